"""Lists of architectures: what they name, and on which parts a build of them runs."""

from __future__ import annotations

import pytest

from portlint.source.architectures import Built, covered, from_cmake, from_gencode, from_torch, shown


def cubin(number: int, suffix: str = "") -> Built:
    return Built(number, suffix, ptx=False)


def ptx(number: int, suffix: str = "") -> Built:
    return Built(number, suffix, ptx=True)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("-gencode arch=compute_90,code=sm_90", {cubin(90)}),
        ("-gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_80,code=compute_80", {cubin(90, "a"), ptx(80)}),
        ('-gencode arch=compute_80,code="sm_80,compute_80"', {cubin(80), ptx(80)}),
        ("-gencode arch=compute_100f,code=[sm_100f,sm_103f]", {cubin(100, "f"), cubin(103, "f")}),
        ("-O3 --use_fast_math", set()),
    ],
)
def test_gencode_flags(flags: str, expected: set[Built]) -> None:
    assert from_gencode(flags) == expected


def test_a_cmake_item_is_both_machine_code_and_ptx_unless_it_says_which() -> None:
    assert from_cmake(["80", "90a-real", "120-virtual"]) == {cubin(80), ptx(80), cubin(90, "a"), ptx(120)}


@pytest.mark.parametrize("item", ["${ARCHS}", "native", "gfx942", "8.0"])
def test_a_cmake_list_with_anything_else_is_not_known(item: str) -> None:
    assert from_cmake(["90", item]) is None


@pytest.mark.parametrize("text", ["8.0;9.0a;12.0+PTX", "8.0 9.0a 12.0+PTX", " 8.0; 9.0a; 12.0+PTX "])
def test_torch_lists(text: str) -> None:
    assert from_torch(text) == {cubin(80), cubin(90, "a"), cubin(120), ptx(120)}


@pytest.mark.parametrize("text", ["Hopper", "9.0;Blackwell", "all", ""])
def test_a_torch_list_with_names_is_not_known(text: str) -> None:
    assert from_torch(text) is None


@pytest.mark.parametrize(
    ("built", "runs", "does_not"),
    [
        (cubin(80), (80, 86, 89), (75, 90, 100)),
        (cubin(86), (86, 89), (80, 90)),
        (ptx(80), (80, 90, 100, 121), (75,)),
        (cubin(90, "a"), (90,), (100, 103)),
        (ptx(90, "a"), (90,), (89, 100, 120)),
        (cubin(100, "f"), (100, 103), (110, 120)),
        (ptx(120, "f"), (120, 121), (100, 110)),
    ],
)
def test_where_a_build_runs(built: Built, runs: tuple[int, ...], does_not: tuple[int, ...]) -> None:
    assert all(built.runs_on(part) for part in runs)
    assert not any(built.runs_on(part) for part in does_not)


def test_what_a_list_covers_is_told_in_the_order_of_the_parts() -> None:
    assert covered([cubin(120), cubin(90, "a"), cubin(86)]) == ("sm_86", "sm_87", "sm_89", "sm_90", "sm_120", "sm_121")
    assert covered([]) == ()


def test_a_list_is_shown_machine_code_first() -> None:
    assert shown({ptx(120), cubin(90, "a"), cubin(80)}) == "sm_80, sm_90a, compute_120"
