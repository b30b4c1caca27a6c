"""A matrix product in Triton, and what the matrix unit did of it, read from the assembly."""

import re
from collections.abc import Mapping
from typing import Any

from _compile import INSTALL, Compiled, compiled, need, triton

tl = need("triton.language", INSTALL)

MATRIX_INSTRUCTION = re.compile(r"\b(?:v_s?w?mfmac?_|v_wmma_|v_swmmac_|wgmma\.mma|mma\.sync|tcgen05\.mma)[\w.:]*")
"""of AMD's and NVIDIA's assembly"""


@triton.jit
def product(left, right, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    row, column, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(left + row[:, None] * K + inner[None, :])
    b = tl.load(right + inner[:, None] * N + column[None, :])
    c = tl.dot(a, b, input_precision=PRECISION, out_dtype=tl.float32)
    tl.store(out + row[:, None] * N + column[None, :], c)


def multiplied(
    dtype: str, gpu: Any, shape: tuple[int, int, int] = (64, 64, 32), precision: str | None = None
) -> Compiled:
    """Compile a product of two matrices of that type, of M by K and K by N elements."""
    constants: Mapping[str, Any] = {**dict(zip("MNK", shape, strict=True)), "PRECISION": precision}
    return compiled(product, (f"*{dtype}", f"*{dtype}", "*fp32"), constants, gpu)


def instructions(made: Compiled) -> tuple[str, ...]:
    """The instructions of the matrix unit in a kernel, each once, in order."""
    return tuple(dict.fromkeys(MATRIX_INSTRUCTION.findall(made.assembly)))
