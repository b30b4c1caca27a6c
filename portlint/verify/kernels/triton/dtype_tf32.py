"""Whether Triton multiplies float32 matrices in TF32 when it is told to, and what it does when it is told nothing.

How it checks itself: a product with input_precision="ieee" must not come to the TF32 instruction.

Proof: compile
"""

import re

from _kernel import options, report

asked = options("dtype.tf32", "numerics.triton_tf32", "numerics.triton_dot_precision")

from _compile import target, triton
from _product import instructions, multiplied

TF32 = re.compile(r"tf32|xf32")

gpu = target(asked)
made = {precision: multiplied("fp32", gpu, precision=precision) for precision in ("tf32", "ieee", None)}
is_tf32 = {precision: bool(TF32.search(" ".join(instructions(one)))) for precision, one in made.items()}
if asked.fact == "numerics.triton_dot_precision":
    measured = "tf32" if is_tf32[None] else "ieee"
else:
    measured = "native" if is_tf32["tf32"] else "emulated" if made["tf32"].accepted else "none"
report(
    asked.fact,
    measured,
    checked=made["ieee"].accepted and not is_tf32["ieee"],
    detail=made["tf32"].words or ", ".join(instructions(made["tf32"])[:2]),
    triton=triton.__version__,
)
