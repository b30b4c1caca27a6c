"""The lane interpreter: what lanes do together, on CUDA's and on HIP's machines."""

from __future__ import annotations

import pytest
from simulated import CUDA, ROCM, lanes_of, launched

from portlint.verify.simulate.faults import Fault
from portlint.verify.simulate.machine import Machine

WAVE32 = Machine(32, "rocm")


@pytest.mark.parametrize("machine", [CUDA, ROCM], ids=["32", "64"])
@pytest.mark.parametrize(
    ("call", "source"),
    [
        ("__shfl_down(t, 3)", lambda t, w: t + 3 if t + 3 < w else t),
        ("__shfl_up(t, 3)", lambda t, w: t - 3 if t >= 3 else t),
        ("__shfl_xor(t, 5)", lambda t, w: t ^ 5),
        ("__shfl(t, 70)", lambda t, w: 70 % w),
        ("__shfl(t, t + 1)", lambda t, w: (t + 1) % w),
        ("__shfl_down(t, 3, 8)", lambda t, w: t + 3 if t % 8 + 3 < 8 else t),
        ("__shfl_up(t, 3, 8)", lambda t, w: t - 3 if t % 8 >= 3 else t),
        ("__shfl_xor(t, 16, 16)", lambda t, w: t if (t ^ 16) >= t // 16 * 16 + 16 else t ^ 16),
        ("__shfl(t, 9, 8)", lambda t, w: t // 8 * 8 + 1),
    ],
)
def test_a_shuffle_reads_the_lane_that_the_manuals_say(machine: Machine, call: str, source: object) -> None:
    width = machine.width
    assert lanes_of(f"r = {call};", machine=machine) == [source(t, width) for t in range(width)]  # type: ignore[operator]


def test_a_shuffle_keeps_the_type_of_its_value() -> None:
    assert lanes_of("r = __shfl_sync(0xffffffff, t * 0.5, 3);", "double")[0] == 1.5
    assert lanes_of("r = __shfl_sync(0xffffffff, (1ll << 40) + t, 3);", "long long")[0] == (1 << 40) + 3


def test_a_ballot_has_a_bit_for_each_lane_of_the_wave() -> None:
    odd = 0xAAAAAAAA
    assert lanes_of("r = __ballot_sync(0xffffffff, t & 1);", "unsigned long long")[5] == odd
    assert lanes_of("r = __ballot(t & 1);", "unsigned long long", ROCM)[5] == odd << 32 | odd
    assert lanes_of("unsigned m = __ballot(t & 1); r = m;", "unsigned long long", ROCM)[5] == odd


def test_votes_are_over_the_lanes_that_execute() -> None:
    assert lanes_of("if (t < 4) r = __any(t == 3) * 2 + __all(t < 4); else r = __all(t < 4);")[:6] == [3] * 4 + [0, 0]
    assert lanes_of("r = __activemask() >> 31;", "unsigned")[0] == 1
    assert lanes_of("if (t & 1) r = __activemask();", "unsigned")[1] == 0xAAAAAAAA


def test_matches_and_reductions() -> None:
    assert lanes_of("r = __match_any_sync(0xffffffff, t & 1);", "unsigned")[:2] == [0x55555555, 0xAAAAAAAA]
    assert lanes_of("r = __reduce_add_sync(0xffffffff, t);")[0] == 496
    assert lanes_of("if (t < 8) r = __reduce_max_sync(0xff, t);")[3] == 7


def test_lanes_with_different_masks_are_groups_of_their_own() -> None:
    found = lanes_of("r = __ballot_sync(t < 16 ? 0xffffu : 0xffff0000u, 1);", "unsigned")
    assert found[0] == 0xFFFF
    assert found[31] == 0xFFFF0000


@pytest.mark.parametrize(
    ("statements", "machine", "block", "text"),
    [
        ("r = __shfl_sync(0xffffffff, t, 0);", ROCM, 64, "lanes 32..63 execute '__shfl_sync'"),
        ("if (t < 32) r = __shfl_sync(~0ull, t, 0);", ROCM, 64, "names lanes 32..63, which do not execute"),
        ("r = __shfl_sync(~0ull, t, 0);", ROCM, 48, "names lanes 48..63"),
        ("if (t < 7) return; r = __shfl_sync(~0ull, t, 9);", WAVE32, 32, "names lanes 0..6"),
        ("if (t & 1) __syncwarp(0xffffffff);", CUDA, 32, "which do not execute"),
    ],
)
def test_a_mask_that_does_not_fit_is_a_fault(statements: str, machine: Machine, block: int, text: str) -> None:
    with pytest.raises(Fault, match=text):
        lanes_of(statements, machine=machine, block=block)


def test_cuda_lets_a_mask_name_lanes_that_are_gone() -> None:
    text = "__global__ void k(int* o) { if (threadIdx.x < 7) return; o[threadIdx.x] = __shfl_sync(~0u, 5, 9); }"
    assert launched(text, {"o": [0] * 48}, CUDA, block=48).read("o", 48) == [0] * 7 + [5] * 25 + [0] * 0 + [5] * 16


def test_masks_of_32_bits_fit_a_wave_of_32_lanes_on_hip() -> None:
    assert lanes_of("r = __shfl_sync(0xffffffff, t, 3);", machine=WAVE32) == [3] * 32
    assert lanes_of("r = __shfl_sync(~0ull, t, 3);", machine=WAVE32) == [3] * 32


GROUPS = """
namespace cg = cooperative_groups;
template <typename G> __device__ int sum(G g, int v) {
  for (int i = g.size() / 2; i > 0; i /= 2) v += g.shfl_down(v, i);
  return v;
}
template <int N> __device__ int width(cg::thread_block_tile<N> tile) { return N; }
"""


@pytest.mark.parametrize("machine", [CUDA, ROCM], ids=["32", "64"])
@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("auto tile = cg::tiled_partition<16>(block); r = sum(tile, 1);", 16),
        ("cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block); r = tile.thread_rank() + width<8>(tile);", 8),
        ("auto tile = cg::tiled_partition<32>(block); r = width(tile) + tile.any(t == 0);", 33),
        ("auto tile = cg::tiled_partition<4>(block); r = __popc(tile.ballot(tile.thread_rank() < 3));", 3),
        ("auto tile = cg::tiled_partition<4>(block); r = cg::reduce(tile, tile.thread_rank(), cg::plus<int>());", 6),
        ("if (t % 2 == 0) { auto g = cg::coalesced_threads(); r = g.size() * 100 / warpSize + g.thread_rank(); }", 50),
        ("block.sync(); cg::sync(block); r = block.thread_rank() + block.size() / warpSize;", 1),
        ("auto g = cg::tiled_partition<8>(block); r = g.meta_group_rank() + g.shfl(t, 2) + g.shfl_xor(t, 1);", 3),
    ],
)  # fmt: skip
def test_cooperative_groups(machine: Machine, statements: str, expected: int) -> None:
    body = f"cg::thread_block block = cg::this_thread_block(); {statements}"
    assert lanes_of(body, machine=machine, before=GROUPS)[0] == expected


BLOCK_SUM = """
__device__ int warpSum(int v) { for (int d = warpSize / 2; d; d /= 2) v += __shfl_down(v, d); return v; }
__device__ int blockSum(int v) {
  __shared__ int part[32];
  int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  v = warpSum(v);
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / warpSize ? part[lane] : 0;
  return warp == 0 ? warpSum(v) : 0;
}
"""


@pytest.mark.parametrize("machine", [CUDA, ROCM], ids=["32", "64"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_function_waits_for_the_block_in_the_middle_of_a_statement(machine: Machine, seed: int) -> None:
    found = lanes_of("r = 1 + blockSum(t) * 2;", machine=machine, before=BLOCK_SUM, block=256, seed=seed)
    assert found[0] == 1 + 2 * 255 * 128


def test_barriers_that_count() -> None:
    assert lanes_of("r = __syncthreads_count(t % 3 == 0);", block=96)[95] == 32
    assert lanes_of("r = __syncthreads_or(t == 95) + 2 * __syncthreads_and(t < 95);", block=96)[0] == 1


def test_a_missing_barrier_shows_in_some_order_of_the_waves() -> None:
    text = """__global__ void k(int* o) {
        __shared__ int s[64]; s[threadIdx.x] = 1;
        o[threadIdx.x] = s[63 - threadIdx.x];
    }"""
    with pytest.raises(Fault, match="undefined"):
        launched(text, {"o": [0] * 64}, CUDA, block=64)
