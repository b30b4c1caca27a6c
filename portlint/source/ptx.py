"""Inline PTX: the instructions in the text of an `asm` statement, and which rows of the PTX matrix they stand for.

The rows (`isa.ptx.<row>` in the profiles) were made by assembling each instruction for each architecture; an opcode
that no row covers exists on every architecture from sm_80 on.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from portlint.regex import regex

_COMMENT = regex(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STATEMENT = regex(r"[;\n]")
_INSTRUCTION = regex(
    r"^[\s{}]*(?:[$%\w]+:[\s{}]*)*(?:@!?\s*[%\w]+\s+)?(?P<opcode>[a-z][a-z0-9_]*(?:[.:]{1,2}[\w]+)*)(?P<operands>.*)$",
    re.DOTALL,
)

_ROOTS = frozenset(
    (
        "abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt "
        "brx call clz cnot clusterlaunchcontrol copysign cos cp createpolicy cvt cvta discard div dp2a dp4a "
        "elect ex2 exit fence fma fns getctarank griddepcontrol isspacep istypep ld ldmatrix ldu lg2 lop3 mad "
        "mad24 madc mapa match max mbarrier membar min mma mov movmatrix mul mul24 multimem nanosleep neg not "
        "or pmevent popc prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg setp shf "
        "shfl shl shr sin slct sqrt st stackrestore stacksave stmatrix sub subc suld suq sured sust szext "
        "tanh tcgen05 tensormap testp tex tld4 trap txq vabsdiff vadd vmax vmin vote wgmma wmma xor "
    ).split()
)
"""first parts of opcodes in the PTX ISA, version 9.0 (https://docs.nvidia.com/cuda/parallel-thread-execution/)"""

_BARE = frozenset("activemask brkpt exit ret trap".split())
"""opcodes that PTX allows without a modifier and that no host assembler has with operands"""

_OF_HOSTS = regex(r"fence\.(?:i|tso)|[a-z0-9]+(?:\.[a-z])+|[a-z0-9]+\.(?:[bhwd]u|v[vxi]m?|s\.[a-z]|[a-z]\.[a-z])")
"""opcodes of RISC-V, LoongArch and MIPS that begin like PTX's: `fence.tso`, `ld.d`, `st.w`, `vadd.vv`, `cvt.d.w`"""

_ROWS = (
    (r"cp\.(reduce\.)?async\.bulk\..*cta_group::", "bulk_cta_group"),
    (r"cp\.async\.bulk\.tensor\..*shared::cta\.global\.tile::gather4", "bulk_gather4"),
    (r"cp\.(reduce\.)?async\.bulk\..*tile::(gather4|scatter4)", "bulk_scatter4"),
    (r"cp\.(reduce\.)?async\.bulk\.(prefetch\.)?tensor", "tma_tensor"),
    (r"tensormap\.replace", "tensormap_replace"),
    (r"tensormap\.|prefetch\.tensormap", "tma_tensor"),
    (r"cp\.(reduce\.)?async\.bulk", "cp_async_bulk"),
    (r"cp\.async\.mbarrier", "mbarrier"),
    (r"cp\.async", "cp_async"),
    (r"mbarrier\.(try_wait|expect_tx|complete_tx)", "mbarrier_try_wait"),
    (r"mbarrier\.arrive\.expect_tx", "mbarrier_try_wait"),
    (r"mbarrier\.", "mbarrier"),
    (r"barrier\.cluster", "cluster"),
    (r"(mapa|getctarank)\b", "dsmem"),
    (r"(ld|st|atom|red)\..*shared::cluster", "dsmem"),
    (r"st\.async|red\.async", "dsmem"),
    (r"redux\.sync\.(min|max).*\.f32", "redux_sync_f32"),
    (r"redux\.sync", "redux_sync_int"),
    (r"match\.", "match_sync"),
    (r"elect\.", "elect_sync"),
    (r"griddepcontrol", "pdl"),
    (r"setmaxnreg", "setmaxnreg"),
    (r"wgmma\.", "wgmma"),
    (r"tcgen05\.mma.*kind::i8", "tcgen05_mma_i8"),
    (r"tcgen05\.mma.*kind::f16", "tcgen05_mma_f16"),
    (r"tcgen05\.mma.*kind::tf32", "tcgen05_mma_tf32"),
    (r"tcgen05\.mma.*kind::(mx)?f8f6f4", "tcgen05_mma_f8f6f4"),
    (r"tcgen05\.mma.*kind::mxf4", "tcgen05_mma_mxf4nvf4"),
    (r"tcgen05\.", "tcgen05"),
    (r"mma\..*kind::mxf4", "mma_kind_mxf4nvf4"),
    (r"mma\..*kind::mxf8f6f4", "mma_kind_mxf8f6f4"),
    (r"mma\..*kind::f8f6f4", "mma_kind_f8f6f4"),
    (r"mma\..*\.(e4m3|e5m2)\b", "mma_fp8"),
    (r"w?mma\..*\.bf16\b", "mma_bf16"),
    (r"w?mma\..*\.tf32\b", "mma_tf32"),
    (r"w?mma\..*\.f64\b", "mma_f64"),
    (r"w?mma\..*\.[su]8\b", "mma_s8"),
    (r"w?mma\..*\.[su]4\b", "mma_s4"),
    (r"w?mma\..*\.b1\b", "mma_b1"),
    (r"w?mma\..*\.f16\b", "mma_f16"),
    (r"(ld|st)matrix\..*\.b8", "matrix_b8"),
    (r"ldmatrix\.", "ldmatrix"),
    (r"stmatrix\.", "stmatrix"),
    (r"cvt\.rs\.", "cvt_rs"),
    (r"cvt\..*\.(e2m1x2|e2m3x2|e3m2x2|ue8m0x2)", "cvt_e2m1x2"),
    (r"cvt\..*\.(e4m3x2|e5m2x2)", "cvt_e4m3x2"),
    (r"cvt\..*\.bf16\.[su]\d+|cvt\..*\.[su]\d+\.bf16", "cvt_bf16_int"),
    (r"(add|sub|mul)\.(\w+\.)*bf16", "bf16_arith"),
    (r"(tanh|ex2)\..*bf16", "tanh_bf16"),
    (r"(add|sub|fma)\.(\w+\.)*f32\.b?f16$", "add_mixed"),
    (r"fence\.(proxy\.(async|tensormap)|mbarrier_init)", "fence_proxy"),
    (r"(fence|ld|st|atom|red)\.(.*\.)?cluster\b", "cluster_scope"),
    (r"st\.bulk", "st_bulk"),
    (r"atom\..*\.b128", "atom_b128"),
    (r"multimem\.", "multimem"),
    (r"clusterlaunchcontrol", "clusterlaunchcontrol"),
    (r"(add|sub|mul|fma)\..*f32x2", "add_f32x2"),
    (r"(ld|st)\..*\.v8\.(b32|f32|u32|s32)|(ld|st)\..*\.v4\.(b64|u64|f64|s64)", "ld_v8_f32"),
    (r"(atom|red)\..*add.*\.bf16", "atom_add_bf16x2"),
    (r"(atom|red)\..*add.*\.v[248]\.", "atom_add_v4_f32"),
    (r"(atom|red)\..*add.*\.f64", "atom_add_f64"),
    (r"dp[24]a", "dp4a"),
    (r"nanosleep", "nanosleep"),
    (r"tex\.", "tex"),
)
_CLUSTER_REGISTER = regex(r"%{1,2}(n?cluster|is_explicit_cluster|aggr_smem)")
_THREE_INPUT = regex(r"(min|max)(\.\w+)*\.f32$")


class Instruction(msgspec.Struct, frozen=True):
    """One PTX instruction."""

    opcode: str
    """with its modifiers: "ld.global.nc.f32" """
    operands: tuple[str, ...]

    @property
    def row(self) -> str:
        """The row of the PTX matrix that it stands for, or ""."""
        if _THREE_INPUT.match(self.opcode) and len(self.operands) == 4:
            return "max3_f32"
        if any(map(_CLUSTER_REGISTER.match, self.operands)):
            return "cluster_scope"
        return next((row for pattern, row in _patterns() if pattern.match(self.opcode)), "")


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The rows, compiled when the first assembly is met: most runs meet none."""
    return tuple((re.compile(pattern), row) for pattern, row in _ROWS)


def instructions(text: str) -> tuple[Instruction, ...]:
    """The PTX instructions in an assembly text, none if it is written for another machine.

    Directives (`.reg`), labels and predicates are skipped. Text counts as PTX if its opcodes are PTX's and carry the
    type suffixes that no host or AMD assembler has.
    """
    found: list[Instruction] = []
    others = False
    for statement in _STATEMENT.split(_COMMENT.sub(" ", text)):
        match = _INSTRUCTION.match(statement)
        if match is None:
            continue
        opcode, operands = match["opcode"], match["operands"].strip()
        root = re.split(r"[.:]", opcode, maxsplit=1)[0]
        if root not in _ROOTS:
            others = True
        elif ("." in opcode or (root in _BARE and not operands.startswith("%r"))) and not _OF_HOSTS.fullmatch(opcode):
            found.append(Instruction(opcode, _operands(operands)))
    if others:  # `ret` among instructions of another machine is that machine's
        found = [one for one in found if "." in one.opcode]
    return tuple(found)


def _operands(text: str) -> tuple[str, ...]:
    """The operands, a vector {a, b} or an address [a + 4] counted as one."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "[{(") - (char in "]})")
        if char == "," and not depth:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return tuple([*parts, last] if last else parts)
