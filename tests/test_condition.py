"""Three-valued conditions: what is not known must never hide code."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portlint.condition import UNKNOWN, Environment, Expression, Guard, Literal, Name, Op, evaluate, is_live, names
from portlint.naming import guess_platform

KNOWN = Environment({"A": 900, "T": True, "N": None, "S": "gfx942"}, frozenset({"GONE"}))
UNSURE = Name("WHO_KNOWS")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (Op(">=", (Name("A"), Literal(900))), True),
        (Op("and", (Op("defined", (Name("A"),)), Op("<", (Name("A"), Literal(800))))), False),
        (Op("defined", (Name("GONE"),)), False),
        (Op(">=", (Name("GONE"), Literal(900))), False),
        (Op("is", (Name("N"), Literal(None))), True),
        (Op("startswith", (Name("S"), Literal("gfx94"))), True),
        (Op("in", (Literal("gfx9"), Name("S"))), True),
        (Op("<<", (Literal(1), Literal(10**9))), 1 << 64),
        (Op("if", (Name("T"), Literal(1), UNSURE)), 1),
        (Op("/", (Literal(1), Literal(0))), UNKNOWN),
        (Op("no-such-operator", (Literal(1),)), UNKNOWN),
        (Op("<", (Name("S"), Literal(3))), UNKNOWN),
        (UNSURE, UNKNOWN),
        (Op("not", (UNSURE,)), UNKNOWN),
    ],
)
def test_evaluation(expression: Expression, value: object) -> None:
    assert evaluate(expression, KNOWN) == value or evaluate(expression, KNOWN) is value


def test_and_and_or_decide_without_the_unknown_operand_where_they_can() -> None:
    assert evaluate(Op("and", (UNSURE, Literal(False))), KNOWN) is False
    assert evaluate(Op("or", (UNSURE, Literal(True))), KNOWN) is True
    assert evaluate(Op("and", (UNSURE, Literal(True))), KNOWN) is UNKNOWN
    assert evaluate(Op("or", (UNSURE, Literal(False))), KNOWN) is UNKNOWN


def test_unknown_has_no_truth_value() -> None:
    with pytest.raises(TypeError):
        bool(UNKNOWN)


@pytest.mark.parametrize(
    ("conditions", "live"),
    [
        ([], True),
        ([(Literal(True), True)], True),
        ([(Literal(True), False)], False),
        ([(UNSURE, True)], UNKNOWN),
        ([(UNSURE, True), (Literal(False), True)], False),
    ],
)
def test_code_is_dead_only_if_some_guard_is_known_to_fail(
    conditions: list[tuple[Expression, bool]], live: object
) -> None:
    guards = [Guard(condition, expected, "", 1) for condition, expected in conditions]
    assert is_live(guards, KNOWN) is live


expressions = st.recursive(
    st.one_of(
        st.builds(Literal, st.one_of(st.booleans(), st.integers(-9, 9))), st.sampled_from([Name("x"), Name("y")])
    ),
    lambda inner: st.one_of(
        st.builds(lambda a: Op("not", (a,)), inner),
        st.builds(lambda o, a, b: Op(o, (a, b)), st.sampled_from(["and", "or", "==", "<", "+", "%"]), inner, inner),
        st.builds(lambda a, b, c: Op("if", (a, b, c)), inner, inner, inner),
    ),
)


@given(expressions)
def test_an_answer_found_without_knowing_a_name_holds_for_every_value_of_it(expression: Expression) -> None:
    without = evaluate(expression, Environment({"x": 1}))
    if without is UNKNOWN:
        return
    for y in (0, 1, 2, True, False):
        known = evaluate(expression, Environment({"x": 1, "y": y}))
        assert known is UNKNOWN or known == without or bool(known) == bool(without)


@given(expressions)
def test_names_are_all_that_an_expression_asks_for(expression: Expression) -> None:
    complete = Environment(dict.fromkeys(names(expression), 1))
    values = [evaluate(expression, complete), evaluate(expression, complete.extended({"z": 7}))]
    assert all(a == b or a is b for a, b in itertools.pairwise(values))


@pytest.mark.parametrize(
    ("name", "amd", "nvidia"),
    [
        ("USE_ROCM", True, False),
        ("IS_HIP", True, False),
        ("current_platform.is_rocm", True, False),
        ("is_nvidia", False, True),
        ("GGML_USE_HIP", True, False),
        ("self.is_rocm_pytorch", True, False),
        ("KOKKOS_ENABLE_HIP", True, False),
        ("JAX_GPU_CUDA", UNKNOWN, True),
        ("current_platform.is_cuda_alike", True, True),
        ("is_cuda", UNKNOWN, True),
        ("NO_CUDA", UNKNOWN, UNKNOWN),
        ("HIP_GRAPH_SUPPORT", UNKNOWN, UNKNOWN),
        ("BLOCK_SIZE", UNKNOWN, UNKNOWN),
    ],
)
def test_names_made_of_a_platforms_name(name: str, amd: object, nvidia: object) -> None:
    assert guess_platform(name, frozenset({"rocm", "hip", "amd", "~cuda"})) is amd
    assert guess_platform(name, frozenset({"cuda", "nvidia"})) is nvidia
