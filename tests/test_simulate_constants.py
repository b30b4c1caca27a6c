"""The lane interpreter: what is known before the run."""

from __future__ import annotations

import pytest
from simulated import lanes_of, value_of

from portlint.verify.simulate.faults import Undecided

BEFORE = """
constexpr int kTable[3] = {3, 1, 2};
template <typename T> constexpr T greatest(T a, T b) { while (b != 0) { T t = b; b = a % b; a = t; } return a; }
constexpr unsigned power(unsigned x) { int log = 0; x--; while (x) { x /= 2; log++; } return 1u << log; }
constexpr int looked(int at) { return kTable[at]; }
constexpr int endless(int x) { while (x) { x = x | 1; } return x; }
constexpr int pathless(int x) { if (x > 0) return x; }
__device__ int plain(int x) { return x; }
__device__ int counter;
struct Always { __device__ static constexpr bool holds() { return true; } };
template <int Wanted> struct When { __device__ static constexpr bool holds() {
#ifdef CHOSEN
    return CHOSEN == Wanted;
#else
    return false;
#endif
} };
template <class Condition = Always> __device__ int chosen() {
    if constexpr (Condition::holds()) { return 1; } else { return unknown(); }
}
template <typename T> constexpr int kBytes = sizeof(T);
template <typename T> constexpr bool kSpecial = false;
template <> constexpr bool kSpecial<float> = true;
"""


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("int a[greatest(12, 8)]; r = sizeof(a);", 16),
        ("__shared__ int a[power(5)][power(2)]; r = sizeof(a);", 64),
        ("constexpr int n = greatest(power(7), 6u); int a[n]; r = sizeof(a);", 8),
        ("int a[looked(0)]; r = sizeof(a);", 12),
        ("r = chosen() + chosen<Always>();", 2),
        ("int a[kBytes<double>]; r = sizeof(a);", 32),
    ],
)
def test_a_function_of_constants_is_one(statements: str, expected: int) -> None:
    assert lanes_of(statements, before=BEFORE)[0] == expected


@pytest.mark.parametrize(
    "statements",
    [
        "int a[greatest(t + 1, 1)]; r = sizeof(a);", "int a[plain(3)]; r = sizeof(a);",
        "int a[endless(1)]; r = sizeof(a);", "int a[pathless(0)]; r = sizeof(a);", "r = chosen<When<3>>();",
        "int a[greatest(counter, 3)]; r = sizeof(a);", "r = kSpecial<float>;", "r = kSpecial<int>;",
    ],
)  # fmt: skip
def test_what_depends_on_the_run_is_none(statements: str) -> None:
    with pytest.raises(Undecided):
        lanes_of(statements, before=BEFORE)


def test_a_condition_that_is_a_type_is_asked_before_the_run() -> None:
    assert value_of("chosen<When<3>>()", before="#define CHOSEN 3\n" + BEFORE) == 1


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("std::is_same<T, float>::value", 1), ("std::is_same_v<T, int>", 0), ("std::is_same<T*, float*>::value", 1),
        ("std::is_integral<unsigned char>::value", 1), ("std::is_integral_v<T>", 0),
        ("std::is_floating_point_v<T>", 1), ("std::is_floating_point<half>::value", 0), ("is_pointer<int*>::value", 1),
        ("std::is_signed<unsigned>::value", 0), ("std::is_unsigned_v<unsigned>", 1), ("std::is_arithmetic_v<bool>", 1),
        ("std::is_same<T, const float>::value", None), ("std::is_same_v<T&, float>", None),
        ("std::is_same_v<T, Missing>", None), ("std::is_final<T>::value", None),
    ],
)  # fmt: skip
def test_the_traits_of_a_type_are_known(expression: str, expected: int | None) -> None:
    before = f"template <typename T> __device__ int asked(T) {{ if constexpr ({expression}) return 1; return 0; }}"
    if expected is None:
        with pytest.raises(Undecided):
            value_of("asked(1.0f)", before=before)
    else:
        assert value_of("asked(1.0f)", before=before) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("__float2int_rn(2.5f)", 2), ("__float2int_rn(-3.7f)", -4), ("__float2int_rd(-3.2f)", -4),
        ("__float2int_ru(3.2f)", 4), ("__float2int_rz(-3.9f)", -3), ("__float2uint_rz(1e20f)", -1),
        ("__half2int_rn((half)1.5f)", 2), ("__double2ll_rd(-0.5)", -1),
    ],
)  # fmt: skip
def test_a_number_is_rounded_as_the_name_says(expression: str, expected: int) -> None:
    assert value_of(expression) == expected
