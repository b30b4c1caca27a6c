"""Host tests of the compute capability in C++, as conditions that a target can answer."""

from __future__ import annotations

import pytest

from portlint.condition import UNKNOWN, Environment, evaluate, names
from portlint.source import Source
from portlint.source.node import Node

ASKED = "device.capability"


def last_test(text: str) -> Node:
    """The test of the last `if` of a function body."""
    source = Source("host.cu", b"void f(Prop p, Prop* q, int n) {\n" + text.encode() + b"\n}", "cuda")
    return list(source.root.walk("if_statement"))[-1]["condition"]


def holds(test: Node, major: int, minor: int) -> object:
    return evaluate(test.source.analysis.condition(test), Environment({ASKED: (major, minor)}))


@pytest.mark.parametrize(
    "test",
    [
        "p.major >= 9",
        "q->major >= 9",
        "9 <= p.major",
        "!(p.major < 9)",
        "cc_major > 8",
        "cc >= 90",
        "sm_version >= 90",
        "arch >= 900",
        "compute_capability >= 90",
        "(device_arch >= 90)",
        "cc >= 90 && cc >= 80",
        "cc >= 90 || cc == 70",
    ],
)
def test_nine_and_above_in_its_spellings(test: str) -> None:
    asked = last_test(f"if ({test}) run();")
    assert [holds(asked, *cc) for cc in ((8, 9), (9, 0), (12, 0))] == [False, True, True]


@pytest.mark.parametrize(
    ("test", "true", "false"),
    [
        ("p.major == 9", (9, 4), (10, 0)),
        ("cc == 86", (8, 6), (8, 9)),
        ("cc >= 90 && cc < 100", (9, 4), (10, 0)),
        ("cc != 120", (12, 1), (12, 0)),
    ],
)
def test_exact_and_closed(test: str, true: tuple[int, int], false: tuple[int, int]) -> None:
    asked = last_test(f"if ({test}) run();")
    assert holds(asked, *true) is True
    assert holds(asked, *false) is False


@pytest.mark.parametrize("test", ["n >= 90", "p.multiProcessorCount >= 100", "cc", "cc >= limit", "cc >= 4", "ready()"])
def test_other_tests_do_not_ask(test: str) -> None:
    assert not last_test(f"if ({test}) run();").asks(ASKED)


def test_what_cannot_be_answered_stays_unknown() -> None:
    asked = last_test("if (cc >= 90 && ready()) run();")
    assert holds(asked, 9, 0) is UNKNOWN
    assert holds(asked, 8, 0) is False


def test_an_else_is_reached_where_the_tests_before_it_fail() -> None:
    asked = last_test("if (cc >= 120) a(); else if (cc >= 100) b(); else if (cc >= 90) c();")
    assert [holds(asked, *cc) for cc in ((9, 0), (10, 0), (12, 0))] == [True, False, False]


@pytest.mark.parametrize("way_out", ["return 1;", "{ a(); return 1; }", "throw 1;", "{ throw Error(); }"])
def test_what_follows_an_exit_is_not_reached_by_those_who_left(way_out: str) -> None:
    asked = last_test(f"if (cc >= 100) {way_out}\nif (cc >= 90) run();")
    assert holds(asked, 9, 0) is True
    assert holds(asked, 10, 0) is False


def test_a_branch_that_does_not_leave_keeps_nobody_away() -> None:
    asked = last_test("if (cc >= 100) { a(); }\nif (cc >= 90) run();")
    assert holds(asked, 10, 0) is True


def test_tests_around_count_as_well() -> None:
    inner = last_test("if (cc < 100) { if (cc >= 90) run(); }")
    assert holds(inner, 9, 0) is True
    assert holds(inner, 10, 0) is False


def test_another_function_is_no_way_to_a_test() -> None:
    asked = last_test("if (cc >= 100) { auto g = [&] { if (cc >= 90) run(); }; }")
    assert holds(asked, 9, 0) is True


def test_a_test_of_something_else_asks_nothing_of_its_surroundings() -> None:
    inner = last_test("if (cc >= 90) { if (n > 4) run(); }")
    assert not names(inner.source.analysis.condition(inner))
