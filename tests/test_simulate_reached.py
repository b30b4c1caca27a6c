"""The lane interpreter: memory that a kernel reaches through structs and pointers, and kernels that it launches."""

from __future__ import annotations

import pytest

from portlint.source import Source
from portlint.verify.simulate import Outcome, prove


def proof(text: str, part: str) -> Outcome:
    line = next(number for number, one in enumerate(text.splitlines(), 1) if part in one)
    return prove(Source("kernel.cu", text.encode(), "cuda"), line, seconds=60.0)


def test_a_table_of_pointers_leads_to_buffers_of_their_own() -> None:
    text = """
    __global__ void k(int** rows, const int* in) {
        const unsigned LANES kept = __ballot(in[threadIdx.x] > 2);
        if (threadIdx.x % 32 == 0) rows[1][threadIdx.x / 32] = __popcll(kept);
    }"""
    outcome = proof(text.replace("LANES", "long long"), "__ballot")
    assert outcome.verdict == "proven"
    assert outcome.counterexample is not None
    assert outcome.counterexample.where.startswith("rows+8[")
    right = text.replace("__popcll(kept)", "in[threadIdx.x] + (kept > 0)").replace("LANES", "long long")
    assert proof(right, "__ballot").verdict == "refuted"


POINTS = """
class Points {
    float* m_x;
    int m_begin, m_end;
public:
    __device__ Points() : m_x(NULL), m_begin(0), m_end(0) {}
    __device__ float get(int at) const { return m_x[at]; }
    __device__ void set(int at, float x) { m_x[at] = x; }
    __device__ int begin() const { return m_begin; }
    __device__ int end() const { return m_end; }
};
__global__ void keep(Points* from, Points* to, int* count) {
    const Points& source = from[blockIdx.x];
    const int lane = threadIdx.x % warpSize;
    const int below = (BIT << lane) - 1;
    for (int at = source.begin() + threadIdx.x; at - lane < source.end(); at += blockDim.x) {
        const bool kept = at < source.end() && source.get(at) > 0;
        const unsigned votes = __ballot(kept);
        int first = 0;
        if (lane == 0) first = atomicAdd(count, __popc(votes));
        first = __shfl(first, 0);
        if (kept) to->set(first + __popc(votes & below), source.get(at));
    }
}
"""


def test_objects_of_classes_hold_sizes_that_fit_their_names() -> None:
    outcome = proof(POINTS.replace("BIT", "1"), "(1 << lane)")
    assert outcome.verdict == "proven", outcome
    assert "undefined" in outcome.reason
    right = POINTS.replace("BIT", "1ull").replace("unsigned", "unsigned long long").replace("int below", "auto below")
    outcome = proof(right.replace("__popc(", "__popcll("), "1ull << lane")
    assert outcome.verdict == "refuted", outcome


LAUNCHES = """
__global__ void child(int* data, int count) { data[threadIdx.x] = count; }
__global__ void parent(int* data, const int* in) {{
    const auto passed = {votes};
    if (threadIdx.x % 32 == 0) child<<<dim3(2, 1), 32>>>(data + threadIdx.x, {count});
    {after}
}}
"""


@pytest.mark.parametrize(
    ("votes", "count", "after", "verdict"),
    [
        ("(unsigned)__ballot(in[threadIdx.x] > 2)", "__popc(passed)", "", "proven"),
        ("__shfl_xor(in[threadIdx.x], 1)", "passed", "", "refuted"),
        ("__ballot(in[threadIdx.x] > 2)", "7", "", "refuted"),
        ("__ballot(in[threadIdx.x] > 2)", "7", "cudaDeviceSynchronize(); data[0] = passed;", "undecided"),
    ],
)
def test_the_kernels_that_a_kernel_launches_are_compared(votes: str, count: str, after: str, verdict: str) -> None:
    text = LAUNCHES.replace("{ data", "{{ data").replace("count; }", "count; }}")
    outcome = proof(text.format(votes=votes, count=count, after=after), "const auto")
    assert outcome.verdict == verdict, outcome


PARTITION = """
__global__ void part(const int* in, int* out, int* first, int n) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % warpSize;
    if (at >= n) return;
    const BITS votes = __ballot(1);
    int base = 0;
    if (lane == 0) base = atomicAdd(first, COUNT(votes));
    base = __shfl(base, 0);
    out[base + lane] = in[at];
}
"""


def test_elements_that_only_change_their_places_are_neither_lost_nor_made() -> None:
    lost = PARTITION.replace("BITS", "unsigned").replace("COUNT", "__popc")
    outcome = proof(lost, "const unsigned votes")
    assert outcome.verdict == "proven", outcome
    assert outcome.counterexample is not None
    assert "elements" in outcome.counterexample.where
    kept = PARTITION.replace("BITS", "unsigned long long").replace("COUNT", "__popcll")
    assert proof(kept, "votes = ").verdict == "undecided"  # each run has an order of its own


def test_a_wave_that_takes_a_row_takes_fewer_rows_by_intention() -> None:
    text = """
    __global__ void rows(const int* in, int* out, int* next) {
        const int row = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize, lane = threadIdx.x % warpSize;
        int to = 0;
        if (lane == 0) to = atomicAdd(next, 32);
        to = __shfl(to, 0);
        if (lane < 32) out[to + lane] = in[row * 32 + lane];
    }"""
    assert proof(text, "if (lane == 0)").verdict != "proven"


def test_addresses_and_bytes_are_compared_by_what_they_are() -> None:
    text = """
    __global__ void k(int** rows, const int* in, unsigned char* bytes) {
        const int v = __shfl_xor(in[threadIdx.x], 1);
        rows[threadIdx.x] = rows[1000] + v;
        if (MASK(threadIdx.x)) ((unsigned*)bytes)[threadIdx.x] = 0x01010101u;
        else for (int i = 0; i < 4; ++i) bytes[4 * threadIdx.x + i] = 1;
    }"""
    assert proof(text.replace("MASK", "__popcll(__ballot(1)) == 32 || "), "__shfl_xor").verdict == "refuted"
    lost = text.replace("MASK", "").replace("+ v", "+ __popc(__ballot(v > 3))")
    outcome = proof(lost, "__shfl_xor")
    assert outcome.verdict == "proven", outcome
    assert outcome.counterexample is not None
    assert "rows+8000+" in outcome.counterexample.expected
