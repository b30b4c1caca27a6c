"""The hash of a line as GitHub's upload step computes it. The values were computed with its own source, v4.36.2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portlint.source.line_hash import line_hashes

MIXED = "__global__ void f() {}\r\n\r\n\tint x = 32;\rint x = 32;\n// 👩 é ".encode() + b"\xff\n"
EQUAL = b"  a = 1\n" * 60 + b"b"


@pytest.mark.parametrize(
    ("data", "line", "value"),
    [
        (b"", 1, "c129715d7a2bc9a3:1"),
        (MIXED, 1, "2c7ee7727e0a1511:1"),
        (MIXED, 2, "4344c04909cfd4a9:1"),
        (MIXED, 3, "c0cfa4886be92a03:1"),
        (MIXED, 4, "951ee7c1f2f95c7d:1"),
        (MIXED, 5, "6fc2f734b39239df:1"),
        (MIXED, 6, "c129715d7a2bc9a3:1"),
        (EQUAL, 1, "c4a34feabef9c0e9:1"),
        (EQUAL, 36, "c4a34feabef9c0e9:36"),
        (EQUAL, 37, "c4a34feac4523419:1"),
        (EQUAL, 61, "8ee5a81e681643c1:1"),
    ],
)
def test_known_values(data: bytes, line: int, value: str) -> None:
    assert line_hashes(data, [line]) == {line: value}


def test_lines_that_a_file_does_not_have_are_left_out() -> None:
    assert line_hashes(b"a\n", [3]) == {}
    assert line_hashes(b"a\n", []) == {}


@given(st.text("a\n\r \té👩%", max_size=300), st.sets(st.integers(1, 40)))
def test_it_is_the_polynomial(text: str, lines: set[int]) -> None:
    every = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    expected, seen = {}, []
    for number in range(1, len(every) + 1):
        rest = "\n".join(every[number - 1 :]).replace(" ", "").replace("\t", "").encode("utf-16-le")
        units = [int.from_bytes(rest[at : at + 2], "little") for at in range(0, len(rest), 2)]
        window = [*units, 0xFFFF, *[0] * 100][:100]
        seen.append(sum(unit * 37 ** (99 - place) for place, unit in enumerate(window)) % 2**64)
        expected[number] = f"{seen[-1]:x}:{seen.count(seen[-1])}"
    assert line_hashes(text.encode(), lines) == {key: value for key, value in expected.items() if key in lines}
