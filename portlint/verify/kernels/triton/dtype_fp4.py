"""Whether block-scaled products of fp4 (e2m1) are products of fp4 in Triton, or of a wider type after conversion.

MXFP4 has a power of two (e8m0) as the scale of 32 elements, NVFP4 an e4m3 scale for 16.

How it checks itself: the same product is compiled in bfloat16 with the same scales; fp4 is native only where its matrix
instruction is another one, which names the scaled kind.

Proof: compile
"""

import re

from _kernel import options, report

asked = options("dtype.fp4", "dtype.mxfp4", "dtype.nvfp4")

from _compile import compiled, target, triton
from _product import instructions, multiplied, tl

SCALED = re.compile(r"scale|kind::mx|f8f6f4|e2m1")


@triton.jit
def scaled(
    left, right, left_scale, right_scale, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PER: tl.constexpr
):
    row, column, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 2)
    scale = tl.arange(0, K // PER)
    a = tl.load(left + row[:, None] * (K // 2) + inner[None, :])
    b = tl.load(right + inner[:, None] * N + column[None, :])
    a_scale = tl.load(left_scale + row[:, None] * (K // PER) + scale[None, :])
    b_scale = tl.load(right_scale + column[:, None] * (K // PER) + scale[None, :])
    c = tl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e2m1")
    tl.store(out + row[:, None] * N + column[None, :], c)


gpu = target(asked)
scale, per = ("fp8e4nv", 16) if asked.fact == "dtype.nvfp4" else ("u8", 32)
sizes = {"M": 128, "N": 128, "K": 128, "PER": per}
made = compiled(scaled, ("*u8", "*u8", f"*{scale}", f"*{scale}", "*fp32"), sizes, gpu)
used, wide = instructions(made), instructions(multiplied("bf16", gpu, (128, 128, 128)))
native = bool(SCALED.search(" ".join(used)))
report(
    asked.fact,
    "native" if native else "emulated" if made.accepted else "none",
    checked=not (native and used == wide),
    detail=made.words or ", ".join(used[:2]),
    triton=triton.__version__,
)
