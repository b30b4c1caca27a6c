"""The lane interpreter: C++ as kernels are written in it, feature by feature."""

from __future__ import annotations

import math

import pytest
from simulated import CUDA, ROCM, lanes_of, launched, value_of

from portlint.verify.simulate.faults import Fault, Undecided


@pytest.mark.parametrize(
    ("expression", "of", "expected"),
    [
        ("7 / 2", "int", 3), ("-7 / 2", "int", -3), ("-7 % 3", "int", -1), ("7u - 8u", "unsigned", 4294967295),
        ("2147483647 + 1", "int", -2147483648), ("(unsigned char)300", "int", 44), ("(signed char)200", "int", -56),
        ("1 << 4 | 1", "int", 17), ("-8 >> 1", "int", -4), ("~0u", "unsigned", 4294967295),
        ("~0ull", "uint64_t", 2**64 - 1),
        ("-1 < 0u", "int", 0), ("(long long)1 << 40", "long long", 1 << 40), ("!3", "int", 0),
        ("3 && 0 || 1", "int", 1),
        ("1.0f / 3", "float", 0.3333333432674408), ("1.0 / 3", "double", 1 / 3), ("7 / 2.0f", "float", 3.5),
        ("(int)3.9f", "int", 3), ("(int)-3.9f", "int", -3), ("(unsigned)1e20f", "unsigned", 4294967295),
        ("1.0f / 0.0f", "float", math.inf), ("16777216.0f + 1.0f", "float", 16777216.0), ("0x1Fu", "unsigned", 31),
        ("1'000", "int", 1000), ("sizeof(float4)", "int", 16), ("sizeof(r)", "int", 4), ("true + true", "int", 2),
        ("'a'", "int", 97), ("(1, 2)", "int", 2), ("static_cast<float>(1) / 4", "float", 0.25), ("int(2.5)", "int", 2),
        ("1 ? 2 : 3", "int", 2), ("0 ? 2 : 3.5f", "float", 3.5), ("float2{1, 2}.y", "float", 2.0), ("+5", "int", 5),
        ("make_float4(1, 2, 3, 4).w", "float", 4.0), ("(half)2049.0f", "float", 2048.0), ("not 1", "int", 0),
        ("__float2bfloat16(1.00390625f)", "float", 1.0), ("(__half)1.0f + (__half)0.5f", "float", 1.5),
        ("std::numeric_limits<int>::max()", "int", 2147483647), ("INFINITY", "float", math.inf),
        ("-std::numeric_limits<float>::infinity()", "float", -math.inf), ("NULL == nullptr", "int", 1),
    ],
)  # fmt: skip
def test_an_expression_has_the_value_and_the_type_of_c(expression: str, of: str, expected: float) -> None:
    assert value_of(expression, of, before="#define NULL 0") == expected


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("if (t % 2) r = 1; else r = 2;", [2, 1] * 16),
        ("if (t < 2) { if (t == 1) r = 5; } else if (t < 4) r = 6; else r = 7;", [0, 5, 6, 6] + [7] * 28),
        ("for (int i = 0; i < t; ++i) r += i;", [t * (t - 1) // 2 for t in range(32)]),
        ("for (int i = 0; i < 100; i++) { if (i == t) break; r++; }", list(range(32))),
        ("for (int i = 0; i < 8; i++) { if (i % 2) continue; r += t; }", [4 * t for t in range(32)]),
        ("int i = t; while (i > 0) { r += 2; i--; }", [2 * t for t in range(32)]),
        ("int i = t; do { r++; } while (--i > 0);", [max(1, t) for t in range(32)]),
        ("while (true) { if (r >= t) break; r++; }", list(range(32))),
        ("switch (t) { case 0: r = 9; break; case 1: r = 1; case 2: r += 5; break; default: r = 7; }",
         [9, 6, 5] + [7] * 29),
        ("switch (t) { case 3: r = 1; }", [0, 0, 0, 1] + [0] * 28),
        ("r = t < 3 ? t * 2 : -1;", [0, 2, 4] + [-1] * 29),
        ("int a[4] = {1, 2, 3}; r = a[t & 3];", [1, 2, 3, 0] * 8),
        ("int a[2][3] = {{1, 2, 3}, {4, 5, 6}}; r = a[t & 1][2];", [3, 6] * 16),
        ("int a[3]; for (int i = 0; i < 3; ++i) a[i] = i * t; for (int v : a) r += v;", [3 * t for t in range(32)]),
        ("int x = 1; int& y = x; y = t; r = x;", list(range(32))),
        ("int x = t; int* p = &x; *p += 1; r = x;", [t + 1 for t in range(32)]),
        ("int u = t; r = u++; r = u - r + --u - t;", [1] * 32),
        ("auto f = [&](int a) { return a + t; }; r = f(2);", [t + 2 for t in range(32)]),
        ("r = [](int a, int b) -> int { return a * b; }(t, 3);", [3 * t for t in range(32)]),
        ("if (int a = 3; a == 3) r = a;", [3] * 32),
        ("if constexpr (sizeof(int) == 4) r = 1; else r = unknown();", [1] * 32),
        ("constexpr int N = 3; int a[N]; a[N - 1] = t; r = a[2];", list(range(32))),
        ("using T = int; typedef T U; U v = t; r = v;", list(range(32))),
        ("#pragma unroll\nfor (int i = 0; i < 3; ++i) r += 1;", [3] * 32),
        ("class { int i; } ; r = 1;", None),
        ("const int lane = t & 7, warp = t >> 3; r = warp * 10 + lane;", [t // 8 * 10 + t % 8 for t in range(32)]),
        ("{ int r2 = 3; { int r2 = 4; } r = r2; }", [3] * 32),
        ("int a = 1, b = 2; std::swap(a, b); r = a;", [2] * 32),
    ],
)  # fmt: skip
def test_lanes_go_the_way_that_their_values_say(statements: str, expected: list[int] | None) -> None:
    if expected is None:
        with pytest.raises(Undecided):
            lanes_of(statements)
    else:
        assert lanes_of(statements) == expected


FUNCTIONS = """
#define TWICE(x) ((x) * 2)
#define SET(to, from) do { to = from; } while (0)
#define COUNT 3
#define JOIN(a, b) a##b
enum Kind { FIRST, SECOND = 5, THIRD };
constexpr int kTable[3] = {10, 20, 30};
template <typename T> __device__ T triple(T v) { return v * 3; }
template <int N, typename T> __device__ T times(T v) { return v * N; }
template <typename T, int N> __device__ T total(const T (&v)[N]) {
  T s = 0;
  for (int i = 0; i < N; ++i) s += v[i];
  return s;
}
template <typename T> struct Sum {
  __device__ T operator()(T a, T b) const { return a + b; }
  static constexpr int kSize = sizeof(T);
};
template <typename T, typename Op> __device__ T fold(T a, T b, Op op) { return op(a, b); }
__device__ int early(int v) { if (v < 3) return -1; for (int i = 0; i < v; ++i) if (i == 4) return 40; return v; }
__device__ void add(int& to, int by) { to += by; }
__device__ void put(int* to, int what) { *to = what; }
__device__ int defaulted(int a, int b = 7) { return a + b; }
__device__ int over(int v) { return 1; }
__device__ int over(float v) { return 2; }
struct Pair { int a; float b; __device__ int whole() const { return a + (int)b; } };
struct Made { int v; __device__ Made(int x) : v(x + 1) {} __device__ Made& bump() { v++; return *this; } };
__device__ Pair paired(int a) { Pair p; p.a = a; p.b = 2.5f; return p; }
__device__ Pair operator+(Pair x, Pair y) { return Pair{x.a + y.a, x.b + y.b}; }
struct Both { int a, b; __device__ Both(int x, int y) : a(x), b(y) {} __device__ Both(int x) : a(x), b(x) {}
  __device__ int whole() const { return 10 * a + b; } };
struct Holder { int v; __device__ operator int() const { return v; } };
namespace inner { __device__ int named() { return 8; } }
"""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("TWICE(COUNT + 1)", 8), ("JOIN(CO, UNT)", 3), ("THIRD", 6), ("kTable[1]", 20), ("triple(4)", 12),
        ("triple<int>(4.9f)", 12), ("times<5>(2)", 10), ("fold(1, 2, Sum<int>())", 3), ("Sum<double>::kSize", 8),
        ("fold(3, 4, [](int a, int b) { return a * b; })", 12), ("early(2)", -1), ("early(3)", 3), ("early(9)", 40),
        ("defaulted(1)", 8), ("over(1)", 1), ("over(1.0f)", 2), ("paired(3).whole()", 5),
        ("(paired(1) + paired(2)).a", 3),
        ("Made(3).v", 4), ("inner::named()", 8), ("Holder{9} + 0 * 1", None), ("max(3, 4) + min(1, 2)", 5),
        ("abs(-3)", 3),
    ],
)  # fmt: skip
def test_functions_templates_and_structs(expression: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(Undecided):
            value_of(expression, before=FUNCTIONS)
    else:
        assert value_of(expression, before=FUNCTIONS) == expected


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("add(r, t);", list(range(32))),
        ("int x; put(&x, t); r = x;", list(range(32))),
        ("SET(r, t + 1);", [t + 1 for t in range(32)]),
        ("Made m(t); m.bump().bump(); r = m.v;", [t + 3 for t in range(32)]),
        ("int v[3] = {1, 2, t}; r = total(v);", [t + 3 for t in range(32)]),
        ("Pair p = {t, 1.0f}; Pair q = p; q.a++; r = p.a * 100 + q.a;", [t * 101 + 1 for t in range(32)]),
        ("float4 v; v.x = t; float* p = &v.x; p[1] = 3; r = v.x + v.y;", [t + 3 for t in range(32)]),
        ("int h = Holder{t}; r = h;", list(range(32))),
        ("int a = 2; Both b(t, a); r = b.whole();", [10 * t + 2 for t in range(32)]),
        ("int a = 2; Both b(a); r = b.whole();", [22] * 32),
        ("int max = 3; r = ::max(max, t);", [max(3, t) for t in range(32)]),
        ("int min = 5, triple = 1; r = std::min(min, inner::triple(t));", [min(5, 3 * t) for t in range(32)]),
    ],
)
def test_functions_change_what_they_are_given(statements: str, expected: list[int]) -> None:
    assert lanes_of(statements, before=FUNCTIONS) == expected


@pytest.mark.parametrize(
    ("expression", "of", "expected"),
    [
        ("__popc(0xF0F0)", "int", 8), ("__popc(0xF00000000ull)", "int", 0), ("__popcll(0xF00000000ull)", "int", 4),
        ("__ffs(8)", "int", 4), ("__ffs(0)", "int", 0), ("__ffsll(1ull << 40)", "int", 41), ("__clz(1)", "int", 31),
        ("__clzll(1)", "int", 63), ("__brev(1)", "unsigned", 1 << 31), ("__float_as_int(1.0f)", "int", 0x3F800000),
        ("__int_as_float(0x40000000)", "float", 2.0), ("sqrtf(4)", "float", 2.0), ("rsqrtf(4.0f)", "float", 0.5),
        ("fmaxf(1, 2)", "float", 2.0), ("fabsf(-2)", "float", 2.0), ("floorf(1.5f)", "float", 1.0),
        ("expf(0)", "float", 1.0),
        ("__expf(0.0f)", "float", 1.0), ("powf(2, 3)", "float", 8.0), ("fmaf(2, 3, 4)", "float", 10.0),
        ("isnan(NAN)", "int", 1),
        ("warpSize", "int", 32), ("blockDim.x", "int", 32), ("gridDim.x", "int", 1),
        ("__fdividef(1.0f, 4.0f)", "float", 0.25),
        ("__half2float(__float2half(0.5f))", "float", 0.5), ("__umulhi(0x80000000u, 4u)", "unsigned", 2),
    ],
)  # fmt: skip
def test_functions_of_the_toolkit(expression: str, of: str, expected: float) -> None:
    assert value_of(expression, of) == expected


def test_branches_of_the_preprocessor_are_chosen_by_the_machine() -> None:
    before = "#ifdef USE_ROCM\n#define W 64\n#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700\n#define W 32\n#endif"
    assert value_of("W", before=before) == 32
    assert value_of("W", machine=ROCM, before=before) == 64


def test_shared_memory_is_one_for_a_block_and_dynamic_memory_one_for_all_names() -> None:
    text = """__global__ void k(int* out) {
        extern __shared__ char raw[]; int* a = (int*)raw; float* b = (float*)(a + blockDim.x);
        __shared__ int first;
        a[threadIdx.x] = threadIdx.x; b[threadIdx.x] = 0.5f;
        if (threadIdx.x == 40) first = 7;
        __syncthreads();
        out[threadIdx.x] = a[blockDim.x - 1 - threadIdx.x] + first + (int)(b[0] * 2);
    }"""
    found = launched(text, {"out": [0] * 64}, block=64).read("out", 64)
    assert found == [63 - t + 8 for t in range(64)]


UNIONS = """
template <typename T, int N> struct Packed {
  using Alias = union { uint4 whole; T part[N]; };
  Alias data;
  __device__ void put(T v, int at) { data.part[at] = v; }
};
union Bits { float number; unsigned bits; unsigned char bytes[4]; };
struct Tagged { int tag; Bits held; };
"""


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("Bits b; b.number = 1.0f; r = b.bits == 0x3f800000u;", [1] * 32),
        ("Bits b; b.bits = 0x01020304 + t; r = b.bytes[0] + b.bytes[3] * 1000;", [1004 + t for t in range(32)]),
        ("r = sizeof(Bits) * 10 + sizeof(Tagged);", [48] * 32),
        ("Packed<int, 4> p; for (int i = 0; i < 4; ++i) p.put(i * t, i); Packed<int, 4> q; "
         "q.data.whole = p.data.whole; r = q.data.part[3];", [3 * t for t in range(32)]),
        ("Packed<short, 8> p; for (int i = 0; i < 8; ++i) p.put(i, i); r = p.data.whole.y;", [3 << 16 | 2] * 32),
        ("Tagged a; a.tag = t; a.held.bits = 5; Tagged b = a; r = b.tag * 10 + b.held.bits;",
         [t * 10 + 5 for t in range(32)]),
        ("union { int i; unsigned u; } u; u.i = -1; r = u.u == 0xffffffffu;", [1] * 32),
        ("Bits b{}; r = b.bits;", [0] * 32),
        ("Bits b; b.bytes[0] = 1; r = b.bits;", "undefined"),
        ("Bits b = {1.0f}; r = b.bits;", None),
    ],
)  # fmt: skip
def test_the_members_of_a_union_share_their_bytes(statements: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(Undecided):
            lanes_of(statements, before=UNIONS)
    elif expected == "undefined":
        with pytest.raises(Fault):
            lanes_of(statements, before=UNIONS)
    else:
        assert lanes_of(statements, before=UNIONS) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("__low2float(__half2{1.0f, 2.0f} * __half2{3.0f, 4.0f})", 3.0),
        ("__high2float(__hfma2(__float2half2_rn(2.0f), __floats2half2_rn(1.0f, 3.0f), __half2half2((half)0.5f)))", 6.5),
        ("__half22float2(__float22half2_rn(make_float2(2049.0f, 1.0f))).x", 2048.0),
        ("(float)__high2half(__halves2half2((half)1.0f, (half)7.0f))", 7.0),
        ("__low2float(__floats2bfloat162_rn(1.00390625f, 1.0f))", 1.0),
    ],
)
def test_pairs_are_computed_with_element_by_element(expression: str, expected: float) -> None:
    assert value_of(expression, "float") == expected


def test_a_pair_is_changed_in_place() -> None:
    assert (
        lanes_of("half2 h = __float2half2_rn(3.0f); h *= h; h -= __float2half2_rn(1.0f); r = __low2float(h);")
        == [8] * 32
    )


def test_a_grid_of_blocks_and_threads_in_three_dimensions() -> None:
    text = """__global__ void k(int* out) {
        int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        out[blockIdx.x * 64 + t] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x;
    }"""
    found = launched(text, {"out": [0] * 128}, block=(4, 8, 2), grid=2).read("out", 128)
    wanted = [x + 10 * y + 100 * z + 1000 * b for b in range(2) for z in range(2) for y in range(8) for x in range(4)]
    assert found == wanted


@pytest.mark.parametrize(
    ("call", "old", "new"),
    [
        ("atomicAdd(p, 2)", [5 + 2 * t for t in range(32)], 69), ("atomicMax(p, t)", None, 31),
        ("atomicMin(p, t)", None, 0), ("atomicExch(p, t)", [5, *range(31)], 31), ("atomicSub(p, 1)", None, -27),
        ("atomicOr(p, 8)", None, 13), ("atomicCAS(p, 5, 9)", [5] + [9] * 31, 9),
        ("atomicInc((unsigned*)p, 6)", None, 2),
    ],
)  # fmt: skip
def test_atomics_happen_one_lane_after_another(call: str, old: list[int] | None, new: int) -> None:
    text = f"__global__ void k(int* p, int* out) {{ int t = threadIdx.x; out[t] = {call}; }}"
    result = launched(text, {"p": [5], "out": [0] * 32})
    assert result.read("p", 1) == [new]
    assert old is None or result.read("out", 32) == old


def test_wide_loads_read_the_elements() -> None:
    text = """__global__ void k(const float* in, float* out) {
        float4 v = reinterpret_cast<const float4*>(in)[threadIdx.x];
        out[threadIdx.x] = v.x + 10 * v.w;
    }"""
    given = [float(i) for i in range(128)]
    assert launched(text, {"in": given, "out": [0.0] * 32}).read("out", 2) == [30.0, 74.0]


@pytest.mark.parametrize(
    ("statements", "kind"),
    [
        ("int x; if (t == 3) x = 1; r = x;", "undefined"),
        ("int x; if (x) r = 1;", "branch"),
        ("int x; int a[2] = {0, 0}; r = a[x];", "undefined"),
        ("r = 1 << (t + 1);", "undefined"),
        ("__shared__ int s[4]; if (t < 3) s[t] = t; r = s[t & 3];", "undefined"),
        ("if (t < 16) r = __shfl_down(t, 16);", "undefined"),
        ("r = 1 / (t - 5);", "undefined"),
        ("__shared__ int s[31]; s[t] = t; r = 1;", "bounds"),
        ("int a[4]; a[t] = 1;", "bounds"),
        ("out[t + 1] = 1;", "bounds"),
        ("out[t - 1] = 1;", "bounds"),
        ("if (t < 16) __syncthreads();", "barrier"),
        ("assert(t < 31);", "trap"),
        ("if (t == 7) __trap();", "trap"),
        ("r = __shfl_sync(0xffff, t, 0);", "mask"),
        ("if (t < 16) r = __shfl_sync(0xffffffff, t, 0);", "mask"),
    ],
)
def test_what_has_no_defined_result_is_a_fault_with_its_line(statements: str, kind: str) -> None:
    with pytest.raises(Fault) as caught:
        lanes_of(f"\n\n{statements}")
    assert caught.value.kind == kind
    assert caught.value.line in (4, 5)  # of the statement, or of the store that follows


@pytest.mark.parametrize(
    "statements",
    [
        'asm("mov.u32 %0, %laneid;" : "=r"(r));', "goto end; end: r = 1;", "r = elsewhere(t);", "Unknown u;",
        "while (true) { r++; }", "r = t < 3 ? __syncthreads_or(t) : 0;", "r = cub::Sum()(1, 2);",
        "int n = t; int a[n];",
        "try { r = 1; } catch (...) {}", "r = (int)&t;",
    ],
)  # fmt: skip
def test_what_is_not_understood_is_undecided(statements: str) -> None:
    with pytest.raises(Undecided) as caught:
        lanes_of(statements)
    assert caught.value.reason


def test_an_undefined_value_that_reaches_nothing_is_no_fault() -> None:
    assert lanes_of("int x; __shared__ int s[32]; s[t] = x; r = t;", machine=CUDA) == list(range(32))


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("Bits b; b.f = 1.0f; r = b.u >> 23;", 127),
        ("Bits b; b.u = 0x40000000u; Bits c = b; r = c.f;", 2),
        ("Packed p; p.all = 0x04030201; r = p.one[2] + sizeof(Packed);", 7),
        ("union { int i; unsigned char c[4]; } u; u.i = 258; r = u.c[0];", 2),
        ("union { int i; unsigned char c[4]; }; i = 258; c[0] = 3; r = i;", 259),
        ("union Own { int i; unsigned char c[4]; }; Own u; u.i = 258; r = u.c[1];", 1),
    ],
)
def test_members_of_a_union_share_their_bytes(statements: str, expected: int) -> None:
    before = "union Bits { float f; unsigned u; }; using Packed = union { unsigned all; unsigned char one[4]; };"
    assert lanes_of(statements, before=before)[0] == expected
