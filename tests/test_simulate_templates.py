"""The lane interpreter: which definition of a class template is meant, and templates as arguments of templates."""

from __future__ import annotations

import pytest
from simulated import value_of

from portlint.verify.simulate.faults import Undecided

KINDS = """
template <typename T, int N = 4> struct Kind;
template <typename T, int N> struct Kind { static constexpr int value = 1; static constexpr int size = N; };
template <int N> struct Kind<float, N> { static constexpr int value = 2; static constexpr int size = N; };
template <typename T> struct Kind<T, 8> { static constexpr int value = 3; };
template <typename T, int N> struct Kind<T*, N> { static constexpr int value = 4; using Held = T; };
template <> struct Kind<double, 8> { static constexpr int value = 5; };
template <typename T, int M, int N> struct Kind<Kind<T, M>, N> { static constexpr int value = 6 + M; };
template <int N> struct Kind<Kind<float, N>, N> { static constexpr int value = 100 + N; };
template <typename T> struct Kind<const T, 2> { static constexpr int value = 7; };
template <typename A, typename B> struct Pair { static constexpr int value = 1; };
template <typename A> struct Pair<A, A> { static constexpr int value = 2; };
template <typename A, int N> struct Pair<A[N], A> { static constexpr int value = 10 + N; };
template <int N> struct Only;
template <> struct Only<3> { static constexpr int value = 3; };
template <int N> struct Twice { static constexpr int value = 2; };
template <int N> struct Sum { static constexpr int value = N; };
template <int N, int M> struct Sum2 { static constexpr int value = 1; };
template <int N> struct Sum2<N, N + 1> { static constexpr int value = 2; };
enum Shape { FLAT, ROUND };
template <Shape S, bool B> struct Shaped { static constexpr int value = 1; };
template <bool B> struct Shaped<ROUND, B> { static constexpr int value = B ? 2 : 3; };
"""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("Kind<int>::value", 1), ("Kind<int>::size", 4), ("Kind<int, 3>::size", 3), ("Kind<float>::value", 2),
        ("Kind<float, 5>::size", 5), ("Kind<int, 8>::value", 3), ("Kind<int*, 4>::value", 4),
        ("sizeof(Kind<double*, 4>::Held)", 8), ("Kind<double, 8>::value", 5), ("Kind<double, 7>::value", 1),
        ("Kind<Kind<int, 3>, 4>::value", 9), ("Kind<Kind<float, 3>, 3>::value", 103),
        ("Kind<Kind<float>>::value", 104), ("Kind<Kind<float, 5>, 4>::value", 11),
        ("Pair<int, float>::value", 1), ("Pair<int, int>::value", 2), ("Pair<int[5], int>::value", 15),
        ("Pair<int[5], float>::value", 1), ("Pair<float*, float*>::value", 2), ("Only<3>::value", 3),
        ("Sum2<2, 2>::value", None), ("Shaped<FLAT, true>::value", 1), ("Shaped<ROUND, true>::value", 2),
        ("Shaped<ROUND, false>::value", 3),
    ],
)  # fmt: skip
def test_the_most_special_definition_that_fits_is_meant(expression: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(Undecided):
            value_of(expression, before=KINDS)
    else:
        assert value_of(expression, before=KINDS) == expected


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("Kind<float, 8>::value", "more than one specialisation of 'Kind' fits"),
        ("Kind<int*, 8>::value", "more than one specialisation of 'Kind' fits"),
        ("Kind<int, 2>::value", "a specialisation for 'const T'"),
        ("Sum2<2, 3>::value", "a specialisation for 'N + 1'"),
        ("Only<4>::value", "other template arguments only"),
        ("Kind<int, 1, 2>::value", "other template arguments"),
    ],
)
def test_a_choice_that_is_not_clear_is_undecided(expression: str, reason: str) -> None:
    with pytest.raises(Undecided, match=reason.replace("+", r"\+")):
        value_of(expression, before=KINDS)


def test_a_specialisation_has_fields_and_methods_of_its_own() -> None:
    before = """
    template <typename T, int N> struct Packed { enum { COUNT = N }; typedef T Type; T held[N]; };
    template <int N> struct Packed<short, N> { enum { COUNT = N / 2 }; typedef int Type; int held[N / 2];
        __device__ int first() const { return held[0] + COUNT; } };
    template <typename T> __device__ int filled(T seed) {
        typedef Packed<T, 8> Here;
        Here packed;
        for (int i = 0; i < Here::COUNT; ++i) packed.held[i] = seed + i;
        typename Here::Type last = packed.held[Here::COUNT - 1];
        return last * 100 + sizeof(packed);
    }
    __device__ int first() { Packed<short, 6> p; p.held[0] = 50; return p.first(); }
    """
    assert value_of("filled(1.0f)", before=before) == 832
    assert value_of("filled((short)1)", before=before) == 416
    assert value_of("first()", before=before) == 53


def test_a_base_keeps_its_template_arguments_to_itself() -> None:
    before = """
    template <typename T, int M, int N> struct Steps {
        enum { OWN = 10 * M + N };
        __device__ int own() const { return N; }
    };
    template <typename T, int M> struct Steps<T, 1, M> : public Steps<T, 2, 7> {
        using Base = Steps<T, 2, 7>;
        enum { ALL = Base::OWN + 100 * M };
        __device__ int both() const { return Base::own() * 10 + M; }
    };
    """
    assert value_of("Steps<int, 1, 3>::ALL", before=before) == 327
    assert value_of("Steps<int, 1, 3>::OWN", before=before) == 27
    assert value_of("Steps<int, 1, 3>().both()", before=before) == 73


TAKEN = """
template <typename T, typename A> struct Larger { __device__ A operator()(A a, T b) const { return a > b ? a : b; } };
template <typename T, typename A> struct Added { A from;
    __device__ Added(A start) : from(start) {}
    __device__ A operator()(A a, T b) const { return a + b + from; } };
template <template <typename, typename> class Op, typename T, typename A>
__device__ A folded(T a, T b, const Op<T, A>& op, A first) { return op(op(first, a), b); }
template <template <typename, typename> class Op> __device__ int made() { return Op<int, int>(3)(1, 2); }
template <template <typename, typename> class Op> struct Holder { typedef Op<float, float> Held; };
template <typename T> struct Is { static constexpr int value = 0; };
template <template <typename, typename> class Op, typename T> struct Is<Op<T, T>> { static constexpr int value = 1; };
template <typename A, typename B> using Swapped = Larger<B, A>;
"""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("folded(3, 4, Larger<int, int>(), 1)", 4), ("folded<Larger>(3, 4, Larger<int, int>(), 9)", 9),
        ("folded(3.0f, 4.0f, Added<float, int>(2), 1)", 12), ("folded<Added, float, int>(3, 4, 2, 1)", None),
        ("made<Added>()", 6), ("Is<Larger<int, int>>::value", 1), ("Is<Larger<int, float>>::value", 0),
        ("sizeof(Holder<Larger>::Held)", 1), ("sizeof(Holder<Swapped>::Held)", 1), ("made<Missing>()", None),
    ],
)  # fmt: skip
def test_a_template_is_an_argument_of_a_template(expression: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(Undecided):
            value_of(expression, before=TAKEN)
    else:
        assert value_of(expression, before=TAKEN) == expected


SPECIAL = """
template <typename To, typename From> __device__ To to(From v) { return to(v); }
template <> __device__ int to(int v) { return v; }
template <> __device__ int to(float v) { return (int)v + 100; }
template <> __device__ float to(float v) { return v + 0.5f; }
template <typename T> __device__ int sized(const T& v) { return sizeof(T); }
template <> __device__ int sized<float2>(const float2& v) { return 1000; }
template <> __device__ int sized<double>(const double& v) { return 2000; }
__device__ int sized(double v) { return 3000; }
template <typename T, int N> __device__ int counted(T v) { return N; }
template <> __device__ int counted<int, 4>(int v) { return 44; }
template <int I> struct Get { template <typename T> static __device__ T of(const float2& v); };
template <> template <typename T> __device__ T Get<0>::of(const float2& v) { return v.x; }
template <> template <typename T> __device__ T Get<1>::of(const float2& v) { return v.y; }
template <typename T> struct Outside { __device__ int size() const; };
template <typename T> __device__ int Outside<T>::size() const { return sizeof(T); }
"""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("to<int>(3)", 3), ("to<int>(3.5f)", 103), ("to<float>(3.0f) * 2", 7), ("to<int, float>(7)", 107),
        ("to<float>(3)", None), ("sized(1.0f)", 4), ("sized(make_float2(1, 2))", 1000), ("sized(1.0)", 3000),
        ("sized<double>(1.0)", 2000), ("counted<int, 4>(1)", 44), ("counted<int, 5>(1)", 5),
        ("counted<float, 4>(1.0f)", 4), ("Get<0>::of<int>(make_float2(3, 4))", 3),
        ("Get<1>::of<int>(make_float2(3, 4))", 4), ("Get<2>::of<int>(make_float2(3, 4))", None),
        ("Outside<double>().size()", 8),
    ],
)  # fmt: skip
def test_an_explicit_specialisation_is_taken_for_its_arguments(expression: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(Undecided):
            value_of(expression, before=SPECIAL)
    else:
        assert value_of(expression, before=SPECIAL) == expected
