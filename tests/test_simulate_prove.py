"""The lane interpreter: what a comparison of width 32 with the target's width proves, refutes and leaves open."""

from __future__ import annotations

from pathlib import Path

import pytest

from portlint.source import Source
from portlint.verify.simulate import Outcome, prove

STAGES = """
__global__ void total(const float* values, float* sum, int count) {{
    __shared__ float stage[32];
    const int thread = threadIdx.x;
    const int lane = {lane};
    const int warp = {warp};
    float mine = thread < count ? values[thread] : 0.0f;
    for (int step = {first}; step > 0; step /= 2) mine += {shuffle};
    if (lane == 0) stage[warp] = mine;
    {barrier}
    if (warp == 0) {{
        mine = lane < {warps} ? stage[lane] : 0.0f;
        for (int step = {first}; step > 0; step /= 2) mine += {shuffle};
        if (lane == 0) *sum = mine;
    }}
}}
"""
LITERAL = {"lane": "thread & 31", "warp": "thread >> 5", "warps": "blockDim.x / 32", "first": "16"}
AWARE = {"lane": "thread % warpSize", "warp": "thread / warpSize", "warps": "blockDim.x / warpSize", "first": "16"}
PLAIN, SYNC = "__shfl_down(mine, step)", "__shfl_down_sync(0xffffffff, mine, step)"
BARRIER = "__syncthreads();"

COUNT = """
__global__ void count(const float* values, float* counts) {{
    const int thread = threadIdx.x;
    const {mask} passed = __ballot(values[thread] > 0.0f);
    if (thread % {width} == 0) counts[thread / {width}] = {popc}(passed);
    __syncthreads();
    if (thread == 0) {{
        float all = 0;
        for (int i = 0; i < blockDim.x / {width}; ++i) all += counts[i];
        counts[0] = all;
    }}
}}
"""
RANK = """
__global__ void rank(const int* keys, int* ranks) {
    const int lane = threadIdx.x % warpSize;
    const unsigned passed = __ballot(keys[threadIdx.x] > 1);
    ranks[threadIdx.x] = __popc(passed & ((1u << lane) - 1));
}
"""


def proof(text: str, line: int | None = None, **options: object) -> Outcome:
    options = {"seconds": 60.0, **options}  # a busy machine is no reason for another verdict
    return prove(Source("kernel.cu", text.encode(), "cuda"), line, **options)  # type: ignore[arg-type]


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def test_a_mask_of_32_lanes_leaves_out_lanes_that_execute() -> None:
    outcome = proof(STAGES.format(**LITERAL, shuffle=SYNC, barrier=BARRIER))
    assert outcome.verdict == "proven"
    assert outcome.counterexample is not None
    assert outcome.counterexample.fault == (
        "lanes 32..63 execute '__shfl_down_sync' and the mask 0xffffffff does not name them"
    )
    assert outcome.counterexample.line == 8


def test_the_idiom_of_32_is_right_on_waves_of_64_without_a_mask() -> None:
    outcome = proof(STAGES.format(**LITERAL, shuffle=PLAIN, barrier=BARRIER))
    assert outcome.verdict == "refuted", outcome


def test_a_wave_that_is_folded_by_half_loses_the_other_half() -> None:
    outcome = proof(STAGES.format(**AWARE, shuffle=PLAIN, barrier=BARRIER))
    assert outcome.verdict == "proven"
    assert outcome.counterexample is not None
    assert outcome.counterexample.where == "sum[0]"
    assert outcome.counterexample.thread == 0
    assert outcome.counterexample.expected != outcome.counterexample.got
    assert "<<<" in outcome.counterexample.launch


def test_code_that_asks_for_the_width_is_refuted() -> None:
    values = {**AWARE, "first": "warpSize / 2"}
    assert proof(STAGES.format(**values, shuffle=PLAIN, barrier=BARRIER)).verdict == "refuted"


def test_a_ballot_in_32_bits_loses_votes() -> None:
    text = COUNT.format(mask="unsigned", width="32", popc="__popc")
    outcome = proof(text, line_of(text, "__ballot"))
    assert outcome.verdict == "proven"


def test_a_ballot_in_64_bits_is_refuted_although_each_wave_counts_more() -> None:
    assert proof(COUNT.format(mask="unsigned long long", width="warpSize", popc="__popcll")).verdict == "refuted"


def test_a_bit_shifted_out_of_32_bits_is_undefined() -> None:
    outcome = proof(RANK, line_of(RANK, "1u << lane"))
    assert outcome.verdict == "proven"
    assert outcome.counterexample is not None
    assert "undefined" in outcome.counterexample.fault
    assert outcome.counterexample.line == line_of(RANK, "ranks[threadIdx.x] =")


def test_a_tree_in_shared_memory_without_barriers_is_the_same_at_both_widths() -> None:
    text = """
    __global__ void tree(const int* in, int* out) {
        __shared__ int s[256]; int t = threadIdx.x;
        s[t] = in[t]; __syncthreads();
        for (int d = 128; d > 32; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
        if (t < 32) for (int d = 32; d > 0; d /= 2) { int other = s[t + d]; s[t] += other; }
        if (t == 0) out[0] = s[0];
    }
    void host() { tree<<<1, 256>>>(0, 0); }"""
    assert proof(text).verdict == "refuted"


def test_a_missing_barrier_breaks_the_kernel_but_proves_no_assumption() -> None:
    text = STAGES.format(**{**AWARE, "first": "warpSize / 2"}, shuffle=PLAIN, barrier="")
    assert proof(text).verdict == "proven"
    outcome = proof(text, line_of(text, "stage[warp] = mine"))
    assert outcome.verdict == "undecided"
    assert "at width 32 already" in outcome.reason


@pytest.mark.parametrize("part", ["thread & 31", "thread >> 5"])
def test_a_mask_that_does_not_fit_is_no_proof_for_another_line(part: str) -> None:
    text = STAGES.format(**LITERAL, shuffle=SYNC, barrier=BARRIER)
    assert proof(text, line_of(text, part)).verdict == "refuted"
    assert proof(text, line_of(text, "__shfl_down_sync")).verdict == "proven"


def test_a_stage_of_32_slots_is_read_past_its_end() -> None:
    text = """
    __global__ void norm(const float* row, float* out, int n) {
        __shared__ float stage[32];
        float v = row[threadIdx.x];
        const int lane = threadIdx.x % warpSize;
        for (int d = warpSize / 2; d > 0; d /= 2) v += __shfl_xor(v, d);
        if (lane == 0) stage[threadIdx.x / warpSize] = v;
        __syncthreads();
        if (threadIdx.x == 0) stage[0] += stage[blockDim.x / 32 - 1];
        if (threadIdx.x < warpSize) out[0] = stage[0] + 0 * stage[lane];
    }
    int main() { norm<<<1, 1024>>>(nullptr, nullptr, 3); }"""
    outcome = proof(text, line_of(text, "stage[lane]"))
    assert outcome.verdict in ("proven", "undecided")


def test_right_values_refute_nothing_of_what_does_not_compile() -> None:
    text = """
    __global__ void half(const int* in, int* out) {
        if (threadIdx.x < 32) out[threadIdx.x] = __shfl_xor_sync(0xffffffffull, in[threadIdx.x], 1);
    }"""
    assert proof(text, 3).verdict == "refuted"
    outcome = proof(text, 3, breaks=True)
    assert outcome.verdict == "undecided"
    assert "compiles" in outcome.reason


def test_a_line_that_no_launch_reaches_is_undecided() -> None:
    text = """
    __global__ void rare(const int* in, int* out, int n) {
        out[threadIdx.x] = in[threadIdx.x];
        if (n == 123456789)
            out[0] = __popc(__ballot(1));
    }"""
    outcome = proof(text, 5)
    assert outcome.verdict == "undecided"
    assert "reaches" in outcome.reason


def test_the_launches_of_the_file_are_those_that_are_tried() -> None:
    kernel = """
    template <int kWidth> __global__ void one(const int* in, int* out, int offset) {
        int v = in[threadIdx.x];
        for (int d = kWidth / 2; d > 0; d /= 2) v += __shfl_xor(v, d);
        if (threadIdx.x % kWidth == 0) out[threadIdx.x / kWidth] = v + offset;
    }
    void host(int* a, int* b) { one<32><<<4, LAUNCH>>>(a, b, 3); }"""
    outcome = proof(kernel.replace("LAUNCH", "32"))
    assert outcome.verdict == "refuted"
    assert "one warp of 32" in outcome.reason
    assert proof(kernel.replace("LAUNCH", "128")).verdict == "refuted"
    wide = kernel.replace("__shfl_xor(v, d)", "__shfl(v, threadIdx.x - d)").replace("LAUNCH", "128")
    outcome = proof(wide)
    assert outcome.verdict == "proven"
    assert outcome.counterexample is not None
    assert ", 128>>>" in outcome.counterexample.launch
    assert "offset = 3" in outcome.counterexample.launch


def test_a_line_in_a_function_is_judged_by_the_kernels_that_call_it() -> None:
    text = """
    #define WIDTH 32
    __device__ int inOrder(int v) {
        const int lane = threadIdx.x % WIDTH;
        for (int d = 1; d < WIDTH; d *= 2) { int below = __shfl_up(v, d); if (lane >= d) v += below; }
        return v;
    }
    __global__ void scan(const int* in, int* out) { out[threadIdx.x] = inOrder(in[threadIdx.x]); }"""
    for line in (2, 4):
        outcome = proof(text, line)
        assert outcome.verdict == "refuted", outcome
        assert outcome.kernel == "scan"


def test_the_order_in_which_waves_append_does_not_matter() -> None:
    text = """
    __global__ void keep(const int* in, int* out, int* count) {
        const int lane = threadIdx.x % 32;
        const unsigned long long mask = __ballot(in[threadIdx.x] > 2);
        int base = 0;
        if (lane == 0) base = atomicAdd(count, __popcll(mask));
        base = __shfl(base, 0);
        if (mask >> lane & 1) out[base + __popcll(mask & ((1ull << lane) - 1))] = in[threadIdx.x];
    }"""
    assert proof(text, 3).verdict == "proven"
    outcome = proof(text.replace("% 32", "% warpSize"), 3)
    assert outcome.verdict == "refuted", outcome


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (
            "float f(float v) { for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d); return v; }",
            "proven",
        ),
        ("float f(float v) { for (int d = warpSize / 2; d; d /= 2) v += __shfl_down(v, d); return v; }", "refuted"),
        ("float f(float v) { for (int d = 16; d; d /= 2) v += __shfl_xor(v, d); return v; }", "undecided"),
        ("int f(int v) { return __popc(__ballot(v)); }", "proven"),
        ("int f(int v) { return 31 - __clz(__activemask()); }", "undecided"),
        ("int f() { return 32; }", "undecided"),
        ("unsigned f(int lane) { return (1u << lane) - 1; }", "proven"),
        ("unsigned f(int lane) { return (1ull << lane) - 1; }", "undecided"),
    ],
)
def test_a_function_alone_is_judged_only_where_its_callers_do_not_matter(function: str, verdict: str) -> None:
    outcome = proof(f"\n__device__ {function}", 2)
    assert outcome.verdict == verdict, outcome


def test_a_block_is_reduced_whatever_the_width() -> None:
    text = """
    __device__ float blockSum(float v) {{
        __shared__ float part[32];
        const int lane = threadIdx.x % {lane}, warp = threadIdx.x / {lane}, warps = blockDim.x / warpSize;
        for (int d = warpSize / 2; d > 0; d /= 2) v += __shfl_down(v, d);
        if (lane == 0) part[warp] = v;
        __syncthreads();
        v = threadIdx.x < warps ? part[threadIdx.x] : 0.0f;
        for (int d = warpSize / 2; d > 0; d /= 2) v += __shfl_down(v, d);
        return v;
    }}"""
    assert proof(text.format(lane="warpSize"), 4).verdict == "refuted"
    assert proof(text.format(lane="32"), 4).verdict == "proven"


def test_a_constant_of_a_header_is_judged_by_the_files_that_include_it(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("")
    header, user = tmp_path / "width.cuh", tmp_path / "user.cu"
    header.write_text("#pragma once\n#define WIDTH 32\n")
    user.write_text(
        '#include "width.cuh"\n'
        "__global__ void k(const int* in, int* out) {\n"
        "    unsigned long long m = __ballot(in[threadIdx.x] & 1);\n"
        "    if (threadIdx.x % WIDTH == 0) out[threadIdx.x / WIDTH] = __popcll(m);\n"
        "}\n"
    )
    outcome = prove(Source(str(header), header.read_bytes(), "cuda", str(header)), 2)
    assert outcome.verdict == "proven", outcome


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__global__ void k(float* o) { o[0] = elsewhere(o[1]); }", "'elsewhere' is defined elsewhere"),
        ("__global__ void k(int* o) { while (atomicCAS(o, 0, 1)) {} }", "line 1: "),
        ("void k(int* o) { o[0] = 32; }", "no function that runs on the device"),
        ("", "no function that runs on the device"),
    ],
)
def test_what_is_not_understood_is_undecided(text: str, reason: str) -> None:
    outcome = proof(text, 1, seconds=2.0)
    assert outcome.verdict == "undecided"
    assert reason in outcome.reason


def test_a_constant_mask_in_code_that_cannot_be_run_is_judged_by_what_stands_around_it() -> None:
    text = """
    template <typename Policy> struct Folded {{
        __device__ void run(float* v) {{
            constexpr unsigned long long kAll = 0xffffffffu;
            for (int i = 0; i < Policy::kCount; ++i) {{
                {before}
                v[i] += __shfl_xor_sync(kAll, v[i], 1);
            }}
        }}
    }};"""
    outcome = proof(text.format(before=""), 7, breaks=True)
    assert outcome.verdict == "proven"
    assert "where a whole wave gets there" in outcome.reason
    for before in ("if (threadIdx.x < 32)", "if (lane == 0) continue;"):
        assert proof(text.format(before=before), 7, breaks=True).verdict == "undecided"


def test_what_is_not_understood_does_not_matter_where_no_lane_gets_to_it() -> None:
    text = """
    __global__ void k(const int* in, int* out, int n) {
        if (n < 0) { asm volatile("trap;"); unknown(out); }
        out[threadIdx.x] = __shfl_xor(in[threadIdx.x], 1);
    }"""
    assert proof(text, 4).verdict == "refuted"


ARGMAX = """
__global__ void best(const float* in, float* out) {
    __shared__ float stage[32];
    float v = in[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) { const float o = __shfl_down(v, d); if (o > v) v = o; }
    if ((threadIdx.x & 31) == 0) stage[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? stage[threadIdx.x] : -1e30f;
        for (int d = 16; d > 0; d /= 2) { const float o = __shfl_down(v, d); if (o > v) v = o; }
        if (threadIdx.x == KEPT) *out = v;
    }
}
"""


def test_a_branch_on_what_an_idle_lane_holds_is_no_fault_where_nobody_looks_at_the_result() -> None:
    assert proof(ARGMAX.replace("KEPT", "0")).verdict == "undecided"  # nor is it known to be harmless
    assert proof(ARGMAX.replace("KEPT", "0").replace("if (o > v) v = o;", "v = o > v ? o : v;")).verdict == "refuted"
    assert proof(ARGMAX.replace("KEPT", "31")).verdict == "proven"


def test_waves_of_32_lanes_on_hip_take_masks_of_either_size() -> None:
    text = STAGES.format(**LITERAL, shuffle=SYNC, barrier=BARRIER)
    assert proof(text, width=32).verdict == "refuted"


@pytest.mark.parametrize(
    ("caller", "verdict"),
    [
        ("", "undecided"),
        ("template <unsigned M> __device__ int all(int v) { return swapped<M, int>(v); }", "undecided"),
        ("__device__ int all(int v) { return swapped<0xffffffffu>(v) + swapped<0x3u>(v); }", "proven"),
        ("constexpr unsigned kAll = ~0u; __device__ int all(int v) { return swapped<kAll, int>(v); }", "proven"),
        ("__device__ int all(int v) { return swapped<0xffffffffffffffffull>(v); }", "undecided"),
    ],
)
def test_a_function_alone_has_the_template_arguments_of_a_call(caller: str, verdict: str) -> None:
    text = f"""
    template <unsigned long long kMask, typename T> __device__ T swapped(T v) {{
        return __shfl_xor_sync(kMask, v, 1);
    }}
    {caller}"""
    outcome = proof(text, 3)
    assert outcome.verdict == verdict, outcome


def test_a_number_of_threads_is_that_of_the_block_where_its_name_says_so() -> None:
    text = """
    template <int kThreads> __device__ int total(int v) {
        __shared__ int part[kThreads / 32];
        for (int d = 16; d > 0; d /= 2) v += __shfl_xor(v, d);
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
        __syncthreads();
        v = 0;
        for (int i = 0; i < kThreads / 32; ++i) v += part[i];
        return v;
    }"""
    assert proof(text, 5).verdict == "refuted"


EPILOGUE = """
template <typename T> struct Larger {{ __device__ T operator()(T a, T b) const {{ return a > b ? a : b; }} }};
template <typename T, typename A> struct Scaled {{
    A by;
    __device__ Scaled(A a, A b) : by(a * b) {{}}
    __device__ A operator()(T v) const {{ return v * by; }}
}};
template <template <typename> class Op, typename A>
__device__ A folded(A* stage, A v, const Op<A>& op) {{
    typedef typename std::aligned_storage<4 * sizeof(A), 4 * alignof(A)>::type Four;
    stage[threadIdx.x] = v;
    __syncthreads();
    A four[4];
    *reinterpret_cast<Four*>(&four) = reinterpret_cast<Four*>(stage)[threadIdx.x % {width} / 4];
    A found = op(op(four[0], four[1]), op(four[2], four[3]));
    for (int d = 16; d > 0; d /= 2) found = op(found, __shfl_xor(found, d));
    return found;
}}
template <typename T, typename A, template <typename, typename> class Epilogue>
__global__ void scaled(const T* in, A* out) {{
    __shared__ A stage[1024];
    A most = folded<Larger, A>(stage, in[threadIdx.x], Larger<A>());
    Epilogue<T, A> epilogue(most, most);
    out[threadIdx.x] = epilogue(in[threadIdx.x]);
}}
template <template <typename, typename> class Epilogue> void host(const float* in, float* out) {{
    scaled<float, float, Epilogue><<<1, 128>>>(in, out);
}}
void all(const float* in, float* out) {{ host<Scaled>(in, out); }}
"""


@pytest.mark.parametrize(("width", "verdict"), [("32", "refuted"), ("warpSize", "proven")])
def test_a_kernel_is_given_the_templates_that_the_file_passes_on(width: str, verdict: str) -> None:
    text = EPILOGUE.format(width=width)
    outcome = proof(text, line_of(text, "reinterpret_cast<Four*>(stage)"))
    assert outcome.verdict == verdict, outcome
    missing = text.replace("host<Scaled>(in, out);", "")
    assert "template parameter 'Epilogue'" in proof(missing, line_of(text, "epilogue(most, most)")).reason


def test_waves_that_race_at_width_32_prove_nothing_by_other_values() -> None:
    text = """
    __global__ void scan(const int* in, int* out, int n) {
        __shared__ int stage[WIDTH];
        __shared__ int carry;
        const int lane = threadIdx.x % warpSize;
        if (threadIdx.x == 0) carry = 0;
        __syncthreads();
        for (int base = 0; base < n; base += warpSize) {
            stage[lane] = base + lane < n ? in[base + lane] : 0;
            __syncthreads();
            if (lane == 0) {
                int run = carry;
                for (int i = 0; i < warpSize; ++i) { run += stage[i]; stage[i] = run; }
                carry = run;
            }
            __syncthreads();
            if (base + lane < n) out[base + lane] = stage[lane];
            __syncthreads();
        }
    }"""
    outcome = proof(text.replace("WIDTH", "64"))
    assert outcome.verdict == "undecided", outcome
    assert proof(text.replace("WIDTH", "32")).verdict == "proven"  # a fault it is in any case


def test_a_variable_is_refuted_only_where_its_uses_are_reached() -> None:
    text = """
    __global__ void below(const int* in, int* out, int n) {
        const int lane = threadIdx.x % warpSize;
        const unsigned mask = (1u << lane) - 1;
        out[threadIdx.x] = in[threadIdx.x];
        if (n == RARE) {
            out[threadIdx.x] = __popc(mask);
        }
    }"""
    outcome = proof(text.replace("RARE", "123456789"), 4)
    assert outcome.verdict == "undecided", outcome
    assert "line 7" in outcome.reason
    assert proof(text.replace("n == RARE", "n > 0"), 4).verdict == "proven"
    assert proof(text.replace("RARE", "123456789"), 5).verdict == "refuted"


def test_what_is_right_by_the_values_of_the_other_half_is_not_refuted() -> None:
    text = """
    __global__ void cast(const int* in, int* out, int start) {
        int has_none = threadIdx.x < start;
        for (int d = 16; d > 0; d /= 2) { const int other = __shfl_down(has_none, d); has_none = has_none && other; }
        has_none = __shfl(has_none, 0WIDTH);
        if (has_none) return;
        out[threadIdx.x] = in[threadIdx.x];
    }"""
    outcome = proof(text.replace("WIDTH", ""), 4)
    assert outcome.verdict == "undecided", outcome
    assert proof(text.replace("WIDTH", ", 32"), 4).verdict == "refuted"
