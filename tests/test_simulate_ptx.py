"""The lane interpreter: PTX in `asm`, and what it comes to on waves that PTX does not know."""

from __future__ import annotations

import pytest
from simulated import ROCM, lanes_of

from portlint.source import Source
from portlint.verify.simulate import Outcome, prove
from portlint.verify.simulate.faults import Fault, Undecided
from portlint.verify.simulate.machine import Machine

HALVES = Machine(64, "rocm", ptx="halves")


def of(text: str, operands: str = "") -> str:
    return f'asm volatile("{text}" : "=r"(r){" : " + operands if operands else ""});'


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (of("mov.u32 %0, %%laneid;"), lambda t: t),
        (of("mov.u32 %0, %%lanemask_lt;"), lambda t: (1 << t) - 1),
        (of("mov.u32 %0, %%lanemask_le;"), lambda t: (2 << t) - 1),
        (of("mov.u32 %0, %%lanemask_gt;"), lambda t: 0xFFFFFFFF & ~((2 << t) - 1)),
        (of("mov.u32 %0, %%lanemask_ge;"), lambda t: 0xFFFFFFFF & ~((1 << t) - 1)),
        (of("mov.u32 %0, %%lanemask_eq;"), lambda t: 1 << t),
        (of("popc.b32 %0, %1;", '"r"(t)'), int.bit_count),
        (of("popc.b64 %0, %1;", '"l"(((unsigned long long)t << 32) | t)'), lambda t: 2 * t.bit_count()),
        (of("clz.b32 %0, %1;", '"r"(t)'), lambda t: 32 - t.bit_length()),
        (of("brev.b32 %0, %1;", '"r"(t)'), lambda t: int(f"{t:032b}"[::-1], 2)),
        (of("bfind.u32 %0, %1;", '"r"(t)'), lambda t: t.bit_length() - 1 if t else 0xFFFFFFFF),
        (of("bfe.u32 %0, %1, 1, 3;", '"r"(t)'), lambda t: t >> 1 & 7),
        (of("bfe.s32 %0, %1, 0, 2;", '"r"(t)'), lambda t: (t & 3) - 4 & 0xFFFFFFFF if t & 2 else t & 3),
        (of("bfi.b32 %0, %1, %2, 8, 4;", '"r"(t), "r"(0xffff)'), lambda t: 0xF0FF | (t & 15) << 8),
        (of("lop3.b32 %0, %1, %2, %3, 0xE8;", '"r"(t), "r"(12), "n"(10)'), lambda t: t & 12 | t & 10 | 8),
        (of("shl.b32 %0, %1, 40;", '"r"(t)'), lambda _: 0),
        (of("{ .reg .u32 a<2>; add.u32 a1, %1, 3; // three\\n\\t mul.lo.u32 %0, a1, %1; }", '"r"(t)'),
         lambda t: (t + 3) * t),
        (of("{ .reg .pred p; setp.lt.s32 p, %1, 5; selp.b32 %0, 7, %1, p; }", '"r"(t)'), lambda t: 7 if t < 5 else t),
        (of("{ .reg .pred p; setp.ge.u32 p, %1, 30; vote.sync.ballot.b32 %0, p, 0xffffffff; }", '"r"(t)'),
         lambda _: 3 << 30),
        (of("match.any.sync.b32 %0, %1, -1;", '"r"(t & 1)'), lambda t: 0xAAAAAAAA if t & 1 else 0x55555555),
        (of("redux.sync.add.s32 %0, %1, 0xffffffff;", '"r"(t)'), lambda _: 496),
        (of("shfl.sync.idx.b32 %0, %1, 3, 0x181f, 0xffffffff;", '"r"(t)'), lambda t: t // 8 * 8 + 3),
        (of("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;", '"r"(t)'), lambda t: t ^ 1),
        ('float f = t; asm("add.rn.f32 %0, %0, %1;" : "+f"(f) : "f"(0.5f)); r = f * 2;', lambda t: 2 * t + 1),
        ('asm("mov.u32 %[to], %[from];" : [to] "=r"(r) : [from] "r"(t)); asm volatile("" ::: "memory");', lambda t: t),
    ],
)  # fmt: skip
def test_an_instruction_does_what_the_manual_says(statement: str, expected: object) -> None:
    assert lanes_of(statement, "unsigned") == [expected(t) for t in range(32)]  # type: ignore[operator]


def test_a_guard_leaves_lanes_as_they_are() -> None:
    add = "{ .reg .s32 s; .reg .pred p; shfl.sync.up.b32 s|p, %0, 1, 0, 0xffffffff; @p add.s32 %0, %0, s; }"
    assert lanes_of(f'r = t; asm("{add}" : "+r"(r));') == [0, *(2 * t - 1 for t in range(1, 32))]


@pytest.mark.parametrize(
    "text",
    [
        "mov.u32 %0, %laneid;", "mov.u32 %0, %%smid;", "ld.global.u32 %0, [%1];", "add.cc.u32 %0, %1, 1;",
        "mov.b32 %0, x;", "mul.hi.u32 %0, %1, %1;", "vote.ballot.b32 %0, 1;", "shfl.sync.idx.b32 %0, %1, 0, 0x0f, -1;",
        "L: mov.u32 %0, 1;", "add.rn.f16x2 %0, %1, %1;", "add.bf16 %0, %1, %1;", "max.bf16x2 %0, %1, %1;",
    ],
)  # fmt: skip
def test_what_is_not_understood_is_undecided(text: str) -> None:
    with pytest.raises(Undecided):
        lanes_of(of(text, '"r"(t)'))


def test_a_wave_of_64_is_ported_to_by_wave_or_by_halves() -> None:
    lane, below = of("mov.u32 %0, %%laneid;"), of("mov.u32 %0, %%lanemask_lt;")
    assert lanes_of(lane, machine=ROCM)[40] == 40
    assert lanes_of(lane, machine=HALVES)[40] == 8
    assert lanes_of(below, "unsigned", ROCM)[40] == 0xFFFFFFFF
    assert lanes_of(below, "unsigned", HALVES)[40] == 0xFF
    first = of("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;", '"r"(t)')
    assert lanes_of(first, machine=HALVES)[40] == 32
    with pytest.raises(Fault, match="does not name them"):
        lanes_of(first, machine=ROCM)


def test_a_barrier_waits_for_the_block() -> None:
    text = '__shared__ int s[64]; s[t] = t; asm volatile("bar.sync 0;"); r = s[63 - t];'
    assert lanes_of(text, block=64) == [63 - t for t in range(64)]


def proof(body: str, line: int, before: str = "") -> Outcome:
    text = f"{before}\n__global__ void k(const int* in, int* out, int* count) {{\n{body}\n}}"
    return prove(Source("kernel.cu", text.encode(), "cuda"), line, seconds=60.0)


LANE_AND_MASK = 'unsigned lane, below; asm("mov.u32 %0, %%laneid;" : "=r"(lane));'
LANE_AND_MASK += ' asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));'


def test_votes_that_are_lost_are_lost_however_the_ptx_is_ported() -> None:
    rank = """
    const unsigned kept = __ballot(in[threadIdx.x] > 2);
    const int before = threadIdx.x / 32 * 32;
    out[before + __popc(kept & below)] = in[threadIdx.x];
    if (lane == 0) atomicAdd(count, __popc(kept));"""
    outcome = proof(LANE_AND_MASK + rank, 4)
    assert outcome.verdict == "proven", outcome


def test_what_depends_on_the_port_is_undecided() -> None:
    outcome = proof(LANE_AND_MASK + "\nout[threadIdx.x] = lane * 10;", 3)
    assert outcome.verdict == "undecided"
    assert "ported" in outcome.reason


def test_what_is_right_however_the_ptx_is_ported_is_refuted() -> None:
    outcome = proof(LANE_AND_MASK + "\nout[threadIdx.x] = __shfl_xor(in[threadIdx.x], lane & 0);", 3)
    assert outcome.verdict == "refuted", outcome
    swap = 'int v = in[threadIdx.x]; asm("bfe.u32 %0, %1, 0, 1;" : "=r"(v) : "r"(v));'
    assert proof(swap + "\nout[threadIdx.x] = __shfl_xor(v, 1);", 3).verdict == "refuted"


def test_a_function_alone_is_judged_by_every_port() -> None:
    text = """
    __device__ unsigned rank(int v) {
        unsigned below;
        asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
        return __popc((unsigned)__ballot(v > 0) & below);
    }"""
    assert prove(Source("kernel.cu", text.encode(), "cuda"), 5, seconds=60.0).verdict == "undecided"
