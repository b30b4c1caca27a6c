"""What Triton makes of its fp8 types: whether it takes them at all, and whether products of them are products of fp8.

How it checks itself: a back end that takes a type must convert it as well as multiply it, and a product must come to
some instruction of the matrix unit or to ordinary multiplications; a type is native where that instruction names fp8.

Proof: compile
"""

import re

from _kernel import options, report

HARDWARE = {
    "dtype.fp8_e4m3fn": "fp8e4nv",
    "dtype.fp8_e5m2": "fp8e5",
    "dtype.fp8_e4m3fnuz": "fp8e4b8",
    "dtype.fp8_e5m2fnuz": "fp8e5b16",
}
asked = options(*HARDWARE, "dtype.triton_fp8", "dtype.triton_fp8_native", "numerics.fp8_e4m3_max")

from _compile import compiled, target, triton
from _product import instructions, multiplied, tl

TYPES = ("fp8e4b15", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16")
OF_FP8 = re.compile(r"fp8|bf8|f8f6f4|e4m3|e5m2")
LARGEST = {"fp8e4nv": 448, "fp8e4b8": 240}


@triton.jit
def converts(source, out):
    place = tl.arange(0, 256)
    tl.store(out + place, tl.load(source + place).to(tl.float32))


gpu = target(asked)
wanted = [asked.item] if asked.item in TYPES else list(TYPES)
if asked.fact in HARDWARE:
    wanted = [HARDWARE[asked.fact]]
converted = {one: compiled(converts, (f"*{one}", "*fp32"), {}, gpu) for one in wanted}
taken = [one for one, made in converted.items() if made.accepted]
products = {one: multiplied(one, gpu) for one in wanted if asked.fact != "dtype.triton_fp8"}
native = [one for one, made in products.items() if OF_FP8.search(" ".join(instructions(made)))]
said = [f"{one}: {made.words or instructions(made)[:1]}" for one, made in (products or converted).items()]

measured: object = taken if asked.fact == "dtype.triton_fp8" else native
if asked.fact in HARDWARE:
    measured = "native" if native else "emulated" if taken else "none"
elif asked.fact == "numerics.fp8_e4m3_max":
    measured = max((LARGEST[one] for one in native if one in LARGEST), default=0)
report(asked.fact, measured, checked=set(native) <= set(taken), detail="; ".join(said), triton=triton.__version__)
