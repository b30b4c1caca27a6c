"""The formulas of `portlint fit` against published worked examples, with the published digits."""

from __future__ import annotations

import pytest
from simulated import CUDA, ROCM, launched

from portlint.fit import collectives, ledger, measured, roofline
from portlint.fit.dtypes import DTYPES
from portlint.verify.simulate.machine import Machine

GB, GIB, MIB, TB = 1e9, 2**30, 2**20, 1e12
BF16 = DTYPES["bf16"].bytes_each


def to(digits: int, value: float) -> float:
    """The value as it would be published, with that many digits behind the point."""
    return round(value, digits)


@pytest.mark.parametrize(("rows", "intensity"), [(32_768, 2736.0), (8, 8.0)])
def test_the_intensity_of_a_projection(rows: int, intensity: float) -> None:
    assert to(1, roofline.matmul(rows, 4096, 11_008, BF16).intensity) == intensity


def test_the_weights_of_a_projection() -> None:
    assert ledger.weight_bytes(4096 * 11_008, BF16) == 86 * MIB


@pytest.mark.parametrize(
    ("rows", "compute_ms", "memory_ms", "bound"),
    [(32_768, 14.775, 1.080, roofline.Bound.COMPUTE), (8, 0.004, 0.090, roofline.Bound.MEMORY)],
)
def test_the_time_floors_of_a_projection(rows: int, compute_ms: float, memory_ms: float, bound: str) -> None:
    found = roofline.times(roofline.matmul(rows, 4096, 11_008, BF16), 200 * TB, 1 * TB)
    assert (to(3, found.compute_s * 1e3), to(3, found.memory_s * 1e3)) == (compute_ms, memory_ms)
    assert found.bound is bound
    assert found.floor_s == max(found.compute_s, found.memory_s)


@pytest.mark.parametrize(
    ("fraction", "total_ms", "factor", "percent"),
    [(0, 4.8, 1.0, 0), (0.01, 7.2, 1.5, 34.6), (0.1, 29.3, 6.1, 85.3), (1, 250.0, 52.3, 100)],
)
def test_weights_that_are_left_on_the_host(fraction: float, total_ms: float, factor: float, percent: float) -> None:
    found = roofline.offload(16 * GB, fraction, 3.35 * TB, 64 * GB)
    alone = roofline.offload(16 * GB, 0, 3.35 * TB, 64 * GB)
    assert to(1, found.total_s * 1e3) == total_ms
    assert to(1, found.total_s / alone.total_s) == factor
    assert to(1, found.host_share * 100) == percent


@pytest.mark.parametrize(("kv_heads", "per_token", "total_gb"), [(8, 131_072, 17.18), (32, 524_288, 68.7)])
def test_the_kv_cache_of_32_layers(kv_heads: int, per_token: int, total_gb: float) -> None:
    found = ledger.kv_bytes_per_token(32, kv_heads, 128, BF16)
    assert found == per_token
    digits = len(str(total_gb).partition(".")[2])
    assert to(digits, 32 * 4096 * found / GB) == total_gb


def test_the_kv_cache_of_one_sequence() -> None:
    assert 4096 * ledger.kv_bytes_per_token(32, 8, 128, BF16) == 536_870_912


@pytest.mark.parametrize(("kv_heads", "per_token", "total_gb"), [(96, 4_718_592, 2473.9), (8, 393_216, 206.2)])
def test_the_kv_cache_of_96_layers(kv_heads: int, per_token: int, total_gb: float) -> None:
    found = ledger.kv_bytes_per_token(96, kv_heads, 128, BF16)
    assert found == per_token
    assert to(1, 16 * 32_768 * found / GB) == total_gb


@pytest.mark.parametrize(("name", "gb", "gib"), [("bf16", 14, 13.04), ("int8", 7, 6.52), ("fp8", 7, 6.52)])
def test_seven_billion_weights(name: str, gb: float, gib: float) -> None:
    found = ledger.weight_bytes(7e9, DTYPES[name].bytes_each)
    assert (found / GB, to(2, found / GIB)) == (gb, gib)


def test_seven_billion_weights_in_four_bits_and_in_training() -> None:
    assert to(2, ledger.weight_bytes(7e9, DTYPES["int4"].bytes_each) / GB) == 3.61
    assert ledger.training_bytes(7e9) / GB == 112


@pytest.mark.parametrize(
    ("sequences", "ms", "rate", "each"),
    [(0, 14.0, 71.4, None), (1, 14.54, 68.8, 68.8), (8, None, 437, 54.7), (32, None, 1026, 32.1)],
)
def test_decoding_is_bound_by_what_is_read(sequences: int, ms: float | None, rate: float, each: float | None) -> None:
    cache = 4096 * ledger.kv_bytes_per_token(32, 8, 128, BF16)
    work = roofline.decode(
        active_parameters=7e9, read_weight_bytes=14 * GB, kv_bytes_per_sequence=cache, sequences=sequences
    )
    found = roofline.times(work, 1000 * TB, 1000 * GB)
    if sequences in (8, 32):
        assert to(2, work.bytes / GB) == {8: 18.29, 32: 31.18}[sequences]
    if ms is not None:
        assert to(2, found.floor_s * 1e3) == ms
    total = roofline.tokens_per_s(max(sequences, 1), found.floor_s)
    assert to(0 if rate > 100 else 1, total) == rate
    if each is not None:
        assert to(1, total / sequences) == each


def test_the_ridge_of_a_989_teraflop_device() -> None:
    assert to(0, roofline.ridge(989 * TB, 3.35 * TB)) == 295
    assert roofline.tokens_per_s(1, 14 * GB / (3.35 * TB)) == pytest.approx(240, rel=0.01)


@pytest.mark.parametrize(("peak", "bandwidth", "expected"), [(1979, 3.35, 590.7), (2615, 5.3, 493.4)])
def test_ridges_in_fp8(peak: float, bandwidth: float, expected: float) -> None:
    assert to(1, roofline.ridge(peak * TB, bandwidth * TB)) == expected


@pytest.mark.parametrize(("weights_gb", "expected"), [(14, 13), (7, 27)])
def test_sequences_that_fit_into_24_gb(weights_gb: float, expected: int) -> None:
    per_token = ledger.kv_bytes_per_token(32, 8, 128, BF16)
    assert ledger.sequences_that_fit(24 * GB, weights_gb * GB, 2.5 * GB, per_token, 4096) == expected


def test_forty_sequences_of_3000_tokens() -> None:
    cache = 40 * 3000 * ledger.kv_bytes_per_token(32, 8, 128, BF16)
    assert to(2, cache / GB) == 15.73
    books = {gb: ledger.Ledger(gb * GB, 14 * GB, cache, 3 * GB) for gb in (24, 48, 80)}
    assert to(1, books[24].total / GB) == 32.7
    assert [book.fits for book in books.values()] == [False, True, True]
    assert [to(1, books[gb].left / GB) for gb in (48, 80)] == [15.3, 47.3]
    smaller = ledger.Ledger(24 * GB, 7 * GB, cache, 3 * GB)
    assert to(1, smaller.total / GB) == 25.7
    assert not smaller.fits


@pytest.mark.parametrize(("link_gb_s", "seconds"), [(100, 0.245), (12.5, 1.96)])
def test_a_ring_all_reduce_of_14_gb_over_eight_devices(link_gb_s: float, seconds: float) -> None:
    assert collectives.ring_all_reduce_bytes(14 * GB, 8) / GB == 24.5
    assert collectives.ring_all_reduce_s(14 * GB, 8, link_gb_s * GB) == pytest.approx(seconds)


def test_a_step_under_tensor_parallelism() -> None:
    step = collectives.tensor_parallel_step(
        devices=4, hidden=4096, tokens=32, bytes_each=BF16, layers=32, link_bytes_s=50 * GB, latency_s=10e-6
    )
    assert (step.message_bytes, step.ring_bytes) == (262_144, 393_216)
    assert to(1, step.step_bytes / 1e6) == 25.2
    assert (to(2, step.bandwidth_s * 1e3), to(2, step.latency_s * 1e3)) == (0.50, 0.64)


@pytest.mark.parametrize(("latency_us", "ms"), [(5, 0.8), (20, 3.2)])
def test_160_collectives_in_a_row(latency_us: float, ms: float) -> None:
    assert collectives.serial_latency_s(160, latency_us * 1e-6) * 1e3 == pytest.approx(ms)


def test_seventy_billion_parameters_in_fp8() -> None:
    weights = ledger.weight_bytes(70e9, DTYPES["fp8"].bytes_each)
    cache = 32 * 8192 * ledger.kv_bytes_per_token(80, 8, 128, BF16)
    assert (weights / GB, to(1, cache / GB)) == (70, 85.9)
    assert ledger.devices_needed(weights + cache, 192 * GB) == 1
    assert ledger.devices_needed(weights + cache, 80 * GB) == 2


def twenty_requests() -> measured.Measurements:
    """20 requests in 10 s: one is late with its first token, another with the rest."""
    rows = ["start_s,first_token_s,end_s,output_tokens,ok"]
    for number in range(20):
        ttft = 0.5 if number == 3 else 0.1
        tpot = 0.06 if number == 7 else 0.02
        start = 0.0 if number == 0 else 10 - ttft - 99 * tpot
        rows.append(f"{start},{start + ttft},{start + ttft + 99 * tpot},100,true")
    return measured.parse("\n".join(rows))


def test_twenty_requests() -> None:
    limits = measured.Limits(0.450, 0.045)
    found = measured.latency(twenty_requests(), limits)
    assert found.p95_ttft_s == pytest.approx(0.100)
    assert found.p95_tpot_s == pytest.approx(0.020)
    assert (found.ttft_pass_rate, found.tpot_pass_rate, found.joint_pass_rate) == (0.95, 0.95, 0.90)
    assert measured.goodput(twenty_requests(), limits).eligible_tokens_per_s == pytest.approx(180)


@pytest.mark.parametrize(("busy", "cost"), [(1.0, 2.78), (0.7, 3.97), (0.35, 7.94)])
def test_what_a_million_tokens_cost(busy: float, cost: float) -> None:
    assert to(2, measured.cost_per_million_tokens(4.00, 400, busy=busy)) == cost


WARP_SUM = """
__global__ void k(int* out, int n) {
    int value = threadIdx.x < n ? threadIdx.x + 1 : 0;
    for (int step = WIDTH / 2; step > 0; step /= 2) value += __shfl_down(value, step);
    if (threadIdx.x % warpSize == 0) atomicAdd(out, value);
}
"""


@pytest.mark.parametrize(("count", "right", "wrong"), [(63, 2016, 528), (64, 2080, 528), (65, 2145, 593)])
@pytest.mark.parametrize(("machine", "width"), [(CUDA, 32), (ROCM, 64), (ROCM, 32)], ids=["32", "64", "64 as 32"])
def test_sums_over_a_wave(count: int, right: int, wrong: int, machine: Machine, width: int) -> None:
    text = WARP_SUM.replace("WIDTH", str(width))
    result = launched(text, {"out": [0], "n": count}, machine, block=128)
    assert result.read("out", 1) == [right if width == machine.width else wrong]
