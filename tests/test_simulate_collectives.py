"""The lane interpreter: CUB's and hipCUB's collectives."""

from __future__ import annotations

from typing import Any

import pytest
from simulated import CUDA, ROCM, lanes_of

from portlint.source import Source
from portlint.verify.simulate import prove
from portlint.verify.simulate.faults import Fault, Undecided

WARP = "typedef cub::WarpReduce<int> R; __shared__ typename R::TempStorage temp[8]; "
TWICE = "struct Twice { __device__ int operator()(int a, int b) const { return a + 2 * b; } };"


@pytest.mark.parametrize(
    ("statements", "narrow", "wide"),
    [
        (WARP + "r = R(temp[t / 32]).Sum(t); if (t % 32) r = 7;", {0: 496, 32: 1520, 33: 7}, None),
        (WARP + "r = R(temp[t / 32]).Sum(t); if (t % warpSize) r = 7;", {0: 496, 32: 1520}, {0: 2016, 32: 7}),
        (WARP + "r = R(temp[0]).Sum(t, 5); if (t) r = 7;", {0: 10}, {0: 10}),
        (WARP + "r = R(temp[0]).Reduce(t, Twice()); if (t) r = 7;", {0: 992}, {0: 4032}),
        (WARP + "r = R(temp[0]).Reduce(t, [](int a, int b) { return b; }); if (t) r = 7;", {0: 31}, {0: 63}),
        ("__shared__ hipcub::WarpReduce<int, 16>::TempStorage s[4];"
         " r = hipcub::WarpReduce<int, 16>(s[t / 16]).Reduce(t, hipcub::Max()); if (t % 16) r = 7;",
         {0: 15, 16: 31, 48: 63}, {0: 15, 16: 31, 48: 63}),
        ("using S = cub::WarpScan<int>; __shared__ S::TempStorage s[2]; S(s[t / 32]).InclusiveSum(t, r);",
         {0: 0, 2: 3, 33: 65}, {0: 0, 2: 3, 33: 561}),
        ("using S = cub::WarpScan<int>; __shared__ S::TempStorage s[2]; int n; S(s[0]).ExclusiveSum(1, r, n);"
         " r += 100 * n;",
         {0: 3200, 33: 3201}, {0: 6400, 33: 6433}),
        ("using B = cub::BlockReduce<int, 64>; __shared__ B::TempStorage s; r = B(s).Sum(t); if (t) r = 7;",
         {0: 2016, 1: 7}, {0: 2016, 1: 7}),
        ("using B = cub::BlockReduce<int, 64>; __shared__ B::TempStorage s;"
         " r = B(s).Reduce(t, cuda::maximum<>{}, 40); if (t) r = 7;", {0: 39}, {0: 39}),
    ],
)  # fmt: skip
def test_a_collective_works_over_the_wave_unless_it_says_how_wide_it_is(
    statements: str, narrow: dict[int, Any], wide: dict[int, Any] | None
) -> None:
    found = lanes_of(statements, machine=CUDA, before=TWICE, block=64)
    assert {at: found[at] for at in narrow} == narrow
    if wide is None:
        with pytest.raises(Fault, match="undefined"):
            lanes_of(statements, machine=ROCM, before=TWICE, block=64)
    else:
        found = lanes_of(statements, machine=ROCM, before=TWICE, block=64)
        assert {at: found[at] for at in wide} == wide


@pytest.mark.parametrize(
    ("statements", "error"),
    [
        (WARP + "if (t < 8) r = R(temp[0]).Sum(t);", Fault),
        (WARP + "r = R(temp[0]).HeadSegmentedSum(t, 1);", Undecided),
        ("using B = cub::BlockReduce<int, 64>; __shared__ B::TempStorage s; if (t < 8) r = B(s).Sum(t);", Fault),
        ("using B = cub::BlockReduce<int, 64>; __shared__ B::TempStorage s; r = t ? B(s).Sum(t) : 0;", Undecided),
        ("using E = cub::WarpExchange<int, 4>; __shared__ E::TempStorage s;", Undecided),
    ],
)
def test_what_takes_no_part_gives_no_result(statements: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        lanes_of(statements, block=64)


def test_a_warp_that_the_block_does_not_fill_is_undecided() -> None:
    with pytest.raises(Undecided, match="fill"):
        lanes_of(WARP + "r = R(temp[0]).Sum(t); if (t) r = 7;", machine=ROCM, block=32)


ROWS = """
#include <cub/cub.cuh>
__global__ void rows(const float* values, float* sums, int columns) {
    using Reduce = cub::WarpReduce<float WIDTH>;
    __shared__ Reduce::TempStorage storage[256 / 32];
    const int row = threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum = 0;
    for (int i = lane; i < columns; i += 32) sum += values[row * columns + i];
    sum = Reduce(storage[row]).Sum(sum);
    if (lane == 0) sums[row] = sum;
}
void host(float* a, float* b) { rows<<<1, 256>>>(a, b, 100); }
"""


def test_rows_that_are_summed_by_the_hardwares_warps() -> None:
    assert prove(Source("a.cu", ROWS.replace("WIDTH", "").encode(), "cuda"), 4, seconds=60.0).verdict == "proven"
    outcome = prove(Source("a.cu", ROWS.replace(" WIDTH", ", 32").encode(), "cuda"), 4, seconds=60.0)
    assert outcome.verdict == "refuted", outcome
