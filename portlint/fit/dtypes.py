"""What a number costs in memory, and in which type it is multiplied."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

import msgspec


class UnknownDtype(ValueError):
    """A name that is no dtype here; the message lists those that are."""


class Dtype(msgspec.Struct, frozen=True):
    """How the numbers of a tensor are stored."""

    name: str
    bytes_each: float
    """bytes per number, its share of a block's scale included"""
    peaks: tuple[str, ...]
    """the keys of a product's dense peaks at which it is multiplied, the closest first"""
    how: str = ""
    """what the bytes are made of, where that is not the width alone"""


_ALL = (
    Dtype("fp32", 4, ("fp32_matrix", "fp32")),
    Dtype("tf32", 4, ("tf32",), "stored in 32 bits, multiplied in 19"),
    Dtype("bf16", 2, ("bf16",)),
    Dtype("fp16", 2, ("fp16",)),
    Dtype("fp8", 1, ("fp8",)),
    Dtype("int8", 1, ("int8",)),
    # OCP microscaling: a block of 32 shares an 8-bit scale
    # https://nvidia.github.io/TransformerEngine/features/low_precision_training/mxfp8/mxfp8.html
    Dtype("mxfp8", 1 + 1 / 32, ("mxfp8", "fp8"), "8 bits and an 8-bit scale for each 32 numbers"),
    Dtype("mxfp4", 0.5 + 1 / 32, ("mxfp4", "fp4"), "4 bits and an 8-bit scale for each 32 numbers"),
    # a block of 16 shares an 8-bit scale: https://docs.modular.com/max/api/kernels/linalg/fp4_utils/
    Dtype("nvfp4", 0.5 + 1 / 16, ("fp4",), "4 bits and an 8-bit scale for each 16 numbers"),
    # GPTQ and AWQ: weights alone, widened to bf16 before they are multiplied
    Dtype("int4", 0.5 + 2 / 128, ("bf16",), "4 bits and a 16-bit scale for each 128 weights"),
)

DTYPES: Mapping[str, Dtype] = MappingProxyType({one.name: one for one in _ALL})
"""every dtype by its name"""

_OTHERS = {
    "float32": "fp32",
    "float": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
}
"""what PyTorch and serving programs call them"""


def dtype(name: str) -> Dtype:
    """The dtype of that name, ours or PyTorch's (`torch.bfloat16`). Raises UnknownDtype where there is none."""
    plain = name.strip().lower().removeprefix("torch.")
    found = DTYPES.get(_OTHERS.get(plain, plain))
    if found is None:
        near = get_close_matches(plain, [*DTYPES, *_OTHERS], n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise UnknownDtype(f"there is no dtype '{name}'.{hint} Known are {', '.join(DTYPES)}.")
    return found
