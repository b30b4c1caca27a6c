"""Inline PTX: what is read from an assembly text, and which row of the PTX matrix an instruction stands for."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from portlint.source.ptx import Instruction, instructions

FACTS = Path(__file__).parent.parent / "portlint" / "targets" / "facts.toml"


def opcodes(text: str) -> list[str]:
    return [one.opcode for one in instructions(text)]


def row(text: str) -> str:
    (found,) = instructions(text)
    return found.row


def test_an_instruction_has_its_opcode_and_operands() -> None:
    assert instructions("ld.global.nc.f32 %0, [%1 + 4];") == (Instruction("ld.global.nc.f32", ("%0", "[%1 + 4]")),)


def test_brackets_keep_their_commas() -> None:
    (found,) = instructions("cp.async.bulk.tensor.2d.shared::cluster.global.tile [%0], [%1, {%2, %3}], [%4];")
    assert len(found.operands) == 3


def test_directives_labels_predicates_and_comments_are_no_instructions() -> None:
    text = """{
        .reg .pred p;            // ld.global.u32 is not here
        WAIT:
        mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;
        @!p bra.uni WAIT; /* trap; */
    }"""
    assert opcodes(text) == ["mbarrier.try_wait.parity.shared::cta.b64", "bra.uni"]


def test_triton_numbers_its_operands_with_dollars() -> None:
    assert instructions("tanh.approx.f32 $0, $1;") == (Instruction("tanh.approx.f32", ("$0", "$1")),)


@pytest.mark.parametrize("text", ["trap;", "exit;", "  ret;", "brkpt;"])
def test_few_opcodes_stand_alone(text: str) -> None:
    assert opcodes(text) == [text.strip(" ;")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pause",
        "mov %%rax, %0",
        "lock; addl $0, 0(%%rsp)",
        "push %rbx\n mov %rdi, %rax\n pop %rbx\n ret",
        "ld1 {v0.4s}, [%1]\n fmla v2.4s, v0.4s, v1.4s",
        "fence.i",
        "fence.tso",
        "ld.d $a0, %1, 0",
        "vadd.vv v0, v1, v2",
        "s_waitcnt vmcnt(0)",
        "v_add_f32_dpp %0, %0, %0 row_bcast:15",
        "buffer_load_dword %0, off, %1, 0",
    ],
)
def test_the_assembly_of_other_machines_is_none(text: str) -> None:
    assert instructions(text) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ld.global.u32 %0, [%1];", ""),
        ("cp.async.cg.shared.global [%0], [%1], 16;", "cp_async"),
        ("cp.async.mbarrier.arrive.shared.b64 [%0];", "mbarrier"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];", "cp_async_bulk"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];", "tma_tensor"),
        ("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%0, {%1}], [%2];", "tma_tensor"),
        ("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%0];", "bulk_gather4"),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [%0];",
            "bulk_scatter4",
        ),
        ("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%0];", "bulk_scatter4"),
        ("cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%0];", "bulk_scatter4"),
        (
            "cp.async.bulk.tensor.1d.cta_group::1.shared::cluster.global.mbarrier::complete_tx::bytes [%0];",
            "bulk_cta_group",
        ),
        ("mbarrier.init.shared::cta.b64 [%0], 1;", "mbarrier"),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", "mbarrier_try_wait"),
        ("barrier.cluster.arrive.release;", "cluster"),
        ("ld.shared::cluster.u32 %0, [%1];", "dsmem"),
        ("redux.sync.add.s32 %0, %1, 0xffffffff;", "redux_sync_int"),
        ("redux.sync.max.abs.f32 %0, %1, 0xffffffff;", "redux_sync_f32"),
        ("griddepcontrol.wait;", "pdl"),
        ("setmaxnreg.dec.sync.aligned.u32 40;", "setmaxnreg"),
        ("wgmma.fence.sync.aligned;", "wgmma"),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;", "tcgen05"),
        ("tcgen05.mma.cta_group::1.kind::i8 [%0], %1, %2, %3, p;", "tcgen05_mma_i8"),
        ("cvt.rn.satfinite.e2m1x2.f32 t, %1, %2;", "cvt_e2m1x2"),
        ("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;", "cvt_e4m3x2"),
        ("cvt.rn.f16x2.f32 %0, %1, %2;", ""),
        ("fma.rn.f32x2 %0, %1, %2, %3;", "add_f32x2"),
        ("st.global.L2::evict_last.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};", "ld_v8_f32"),
        ("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];", ""),
        ("max.f32 %0, %1, %2;", ""),
        ("max.f32 %0, %1, %2, %3;", "max3_f32"),
        ("max.NaN.abs.f32 %0, %1, %2, %3;", "max3_f32"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%1}, {%2}, {%3};", "mma_f16"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0}, {%1}, {%2}, {%3};", "mma_bf16"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0}, {%1}, {%2}, {%3};", "mma_tf32"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0}, {%1}, {%2}, {%3};", "mma_f64"),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0}, {%1}, {%2}, {%3};", "mma_s8"),
        ("mma.sync.aligned.m16n8k64.row.col.s32.u4.u4.s32 {%0}, {%1}, {%2}, {%3};", "mma_s4"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0}, {%1}, {%2}, {%3};", "mma_fp8"),
        ("tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;", "tcgen05_mma_f16"),
        ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%0], %1, %2, %3, p;", "tcgen05_mma_mxf4nvf4"),
        ("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;", "tensormap_replace"),
        ("add.rn.bf16x2 %0, %1, %2;", "bf16_arith"),
        ("fma.rn.bf16x2 %0, %1, %2, %3;", ""),
        ("cvt.rn.bf16.s32 %0, %1;", "cvt_bf16_int"),
        ("cvt.rn.bf16x2.f32 %0, %1, %2;", ""),
        ("fence.proxy.async.shared::cta;", "fence_proxy"),
        ("fence.acq_rel.cluster;", "cluster_scope"),
        ("mov.u32 %0, %%cluster_ctarank;", "cluster_scope"),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%0, %1}, [%2];", "matrix_b8"),
    ],
)
def test_the_row_of_an_opcode(text: str, expected: str) -> None:
    assert row(text) == expected


def test_every_row_is_a_fact() -> None:
    from portlint.source.ptx import _ROWS

    facts = msgspec.toml.decode(FACTS.read_bytes())
    assert {f"isa.ptx.{name}" for _, name in _ROWS} | {"isa.ptx.max3_f32"} == {
        fact for fact in facts if fact.startswith("isa.ptx.")
    }
