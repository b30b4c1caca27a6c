"""Whether the matrix unit that JAX uses multiplies fp4 (e2m1): refused, converted to a wider type first, or fast.

How it checks itself: the products of ones must be the inner dimension, in fp4 and in bfloat16.

Proof: run
"""

from _kernel import options, report, said

asked = options("dtype.fp4", "dtype.mxfp4")

from _platform import described, device
from _speed import level

where = device(asked)
try:
    measured, right, words = level("float4_e2m1fn", where)
except Exception as error:  # a refusal may be any exception
    measured, right, words = "none", True, said(error)
report(asked.fact, measured, checked=right, detail=words, **described(where))
