"""The lane interpreter: findings on what a line outside functions defines."""

from __future__ import annotations

from pathlib import Path

import pytest

from portlint.source import Source
from portlint.verify.simulate import Outcome, prove
from portlint.verify.simulate.definitions import defined_by, names_with

COUNT = """
__global__ void k(const int* in, int* out) {
    const unsigned long long kept = __ballot(in[threadIdx.x] & 1);
    if (threadIdx.x % WIDTH == 0) out[threadIdx.x / WIDTH] = __popcll(kept);
}
"""
SUM = """
__global__ void k(const int* in, int* out) {
    __shared__ int part[THREADS / WIDTH];
    int sum = in[threadIdx.x];
    for (int d = WIDTH / 2; d > 0; d /= 2) sum += __shfl_xor(sum, d);
    if (threadIdx.x % WIDTH == 0) part[threadIdx.x / WIDTH] = sum;
    __syncthreads();
    if (threadIdx.x == 0) { out[0] = 0; for (int i = 0; i < THREADS / WIDTH; ++i) out[0] += part[i]; }
}
void run(int* a, int* b) { k<<<1, THREADS>>>(a, b); }
"""


def proof(text: str, line: int = 1) -> Outcome:
    return prove(Source("kernel.cu", text.encode(), "cuda"), line, seconds=60.0)


@pytest.mark.parametrize("defined", ["#define WIDTH 32", "constexpr int WIDTH = 32;", "enum { WIDTH = 32 };"])
def test_a_width_that_makes_a_kernel_go_wrong_is_proven(defined: str) -> None:
    assert proof(defined + COUNT).verdict == "proven"


def test_a_width_that_is_right_in_all_its_uses_is_refuted() -> None:
    outcome = proof("#define WIDTH 32\n#define THREADS (4 * WIDTH)" + SUM)
    assert outcome.verdict == "refuted", outcome
    assert outcome.kernel == "k"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("int shared() { return WIDTH * 4; }", "on the host"),
        ('void tell() { printf("%d", WIDTH); }', ""),
        ("__device__ int elsewhere(int v) { return unknown(v, WIDTH); }", "elsewhere"),
        ("__global__ void rare(int* out, int n) { out[n] = 1; if (n == 987654321)\nout[0] = WIDTH; }", "reaches"),
    ],
)  # fmt: skip
def test_a_use_that_is_not_executed_leaves_a_refutation_open(more: str, reason: str) -> None:
    outcome = proof("#define WIDTH 32\n#define THREADS (4 * WIDTH)" + SUM + more)
    assert outcome.verdict == ("undecided" if reason else "refuted"), outcome
    assert reason in outcome.reason


def test_what_goes_wrong_for_another_reason_is_no_proof_of_a_definition() -> None:
    text = """
    #define WIDTH 32
    __global__ void k(const int* in, int* out, int* small) {
        const unsigned kept = __ballot(in[threadIdx.x] & 1);
        const int lane = threadIdx.x & 31;
        out[threadIdx.x] = __popc(kept & ((1u << lane) - 1));
        if (threadIdx.x < WIDTH) small[threadIdx.x] = 1;
    }"""
    outcome = proof(text, 2)
    assert outcome.verdict == "undecided", outcome


def test_a_function_that_no_kernel_calls_uses_the_width() -> None:
    text = """
    constexpr int WIDTH = 32;
    __device__ float sum(float v) {
        for (int d = WIDTH / 2; d > 0; d /= 2) v += __shfl_down(v, d);
        return v;
    }"""
    outcome = proof(text, 2)
    assert outcome.verdict == "undecided", outcome  # it is right for callers that count in groups of 32


def test_the_users_of_a_header_prove_and_refute(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "includes").mkdir()
    header = tmp_path / "includes" / "width.cuh"
    header.write_text("#pragma once\n#define WIDTH 32\n")
    (tmp_path / "includes" / "all.cuh").write_text('#pragma once\n#include "width.cuh"\n#define THREADS (4 * WIDTH)\n')
    (tmp_path / "sum.cu").write_text('#include "all.cuh"\n' + SUM)
    outcome = prove(Source(str(header), header.read_bytes(), "cuda", str(header)), 2, seconds=60.0)
    assert outcome.verdict == "refuted", outcome


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("#define WIDTH 32", "#define WIDTH (2 * (32))"),
        ("#define WIDTH (1 << BITS) // of a warp", "#define WIDTH (2 * ((1 << BITS)))"),
        ("#define BITS 5", "#define BITS 6"),
        ("constexpr int kMask = 0x1f, kOther = 3;", "constexpr int kMask = 63, kOther = 3;"),
        ("static const unsigned kAll{0xffffffffu};", "static const unsigned kAll{0xffffffffffffffffull};"),
        ("enum : int { kLanes = 32, kStages = 3 };", "enum : int { kLanes = (2 * (32)), kStages = 3 };"),
        ("#define SUM(v) v", ""),
    ],
)
def test_a_definition_for_a_wave_of_64(line: str, changed: str) -> None:
    found = defined_by(Source("a.cu", line.encode(), "cuda"), 1, 64)
    assert found is not None
    assert found.changed.strip() == changed


def test_a_line_that_defines_nothing() -> None:
    assert defined_by(Source("a.cu", b"int main() {}", "cuda"), 1, 64) is None


def test_names_that_are_defined_by_a_name() -> None:
    text = b"#define W 32\n#define T (4 * W)\nconstexpr int kAll = T * 2;\n#define OTHER 3 // W\n"
    assert names_with("W", [text]) == {"W", "T", "kAll"}
