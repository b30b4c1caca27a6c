"""AMD instructions, by builtin or by mnemonic, and which rows of the AMD matrix they stand for.

The rows (`isa.amd.<row>` in the profiles) were made by assembling each instruction for each gfx target. A name that no
row covers exists on all of them, or says nothing.
"""

from __future__ import annotations

import re
from functools import cache

from portlint.regex import regex

PREFIX = "__builtin_amdgcn_"

_ROWS = (
    (r"mfma_scale_", "mfma_scale_f8f6f4"),
    (r"mfma_\w*f8f6f4", "mfma_f8f6f4"),
    (r"mfma_f32_(16x16x32|32x32x16)_?b?f16", "mfma_f16_double_rate"),
    (r"mfma_\w*xf32", "mfma_xf32"),
    (r"mfma_\w*(fp8|bf8)", "mfma_fp8"),
    (r"mfma_f64", "mfma_f64"),
    (r"mfma_i32\w*i8", "mfma_i8"),
    (r"mfma_\w*bf16", "mfma_bf16_1k"),
    (r"mfma_\w*_?f16", "mfma_f16"),
    (r"mfma_", "mfma_f32"),
    (r"smfmac_", "smfmac_sparse"),
    (r"swmmac_", "swmmac_sparse"),
    (r"wmma_\w*(fp8|bf8)", "wmma_fp8"),
    (r"wmma_\w*iu4", "wmma_iu4"),
    (r"wmma_\w*iu8", "wmma_iu8"),
    (r"wmma_\w*bf16", "wmma_bf16"),
    (r"wmma_\w*f16", "wmma_f16"),
    (r"cvt_scalef32_", "cvt_scalef32_fp4"),
    (r"cvt_(pk|sr)_(fp8|bf8)_f32|cvt_(pk_)?f32_(fp8|bf8)", "cvt_fp8_f32"),
    (r"global_load_async_to_lds", "async_load_to_lds"),
    (r"tensor_load_to_lds|tensor_store_from_lds", "tensor_dma"),
    (r"ds_read_tr\d+_|ds_read_b\d+_tr_", "ds_read_tr_b16"),
    (r"permlane(16|32)_swap", "permlane32_swap"),
    (r"(global|flat)_atomic_f?add_f64", "atomic_add_f64"),
    (r"global_atomic_f?add_f32", "atomic_add_f32"),
    (r"global_atomic_(fadd_v2|pk_add_)f16", "atomic_pk_add_f16"),
    (r"global_atomic_(fadd_v2|pk_add_)bf16", "atomic_pk_add_bf16"),
    (r"ds_gws_", "gws_barrier"),
    (r"bitop3_", "v_bitop3"),
    (r"prng_", "v_prng"),
    (r"pk_(fma|mul|add)_f32", "v_pk_fma_f32"),
)
_TO_LDS = regex(r"(global|raw_ptr_buffer|raw_buffer|struct_ptr_buffer|struct_buffer)_load_lds$|load_to_lds$")
_DPP = {"update_dpp": 2, "mov_dpp": 1}
"""builtins that take a DPP control word -> its position"""
_ROW_BROADCASTS = frozenset((0x142, 0x143))
_SIZE = 2
"""the position of the number of bytes in a load to LDS"""
_STATEMENT = regex(r"[;\n]")
_MNEMONIC = regex(r"\s*((?:v|s|ds|global|flat|buffer|tensor)_[a-z]\w*)\b(.*)", re.DOTALL)


def row_of_builtin(name: str, numbers: tuple[int | None, ...]) -> str:
    """The row that a call of `__builtin_amdgcn_<name>` stands for, given the numbers among its arguments, or ""."""
    if (position := _DPP.get(name)) is not None:
        word = numbers[position] if position < len(numbers) else None
        return "dpp_row_bcast15" if word in _ROW_BROADCASTS else ""
    if _TO_LDS.fullmatch(name):
        size = numbers[_SIZE] if len(numbers) > _SIZE else None
        return "direct_to_lds_b128" if size in (12, 16) else "direct_to_lds_b32" if size in (1, 2, 4) else ""
    return _row(name)


def rows_of_assembly(text: str) -> dict[str, str]:
    """The rows that AMD instructions in an assembly text stand for -> the first mnemonic of each."""
    found: dict[str, str] = {}
    for statement in _STATEMENT.split(text):
        match = _MNEMONIC.match(statement)
        if match is None:
            continue
        mnemonic, operands = match[1], match[2]
        row = _row(mnemonic.removeprefix("v_"))
        if re.search(r"\brow_bcast:(15|31)\b", operands):
            row = "dpp_row_bcast15"
        elif mnemonic.startswith(("buffer_load_", "global_load_lds_")) and (
            "lds" in mnemonic or re.search(r"\blds\b", operands)
        ):
            row = "direct_to_lds_b128" if mnemonic.endswith(("x3", "x4")) else "direct_to_lds_b32"
        if row:
            found.setdefault(row, mnemonic)
    return found


def _row(name: str) -> str:
    return next((row for pattern, row in _patterns() if pattern.match(name)), "")


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The rows, compiled when the first instruction is met: most runs meet none."""
    return tuple((re.compile(pattern), row) for pattern, row in _ROWS)
