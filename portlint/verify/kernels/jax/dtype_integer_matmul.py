"""Whether the matrix unit that JAX uses multiplies int8 or int4: by the time that products take beside bfloat16.

How it checks itself: the products of ones must be the inner dimension, in integers and in bfloat16.

Proof: run
"""

from _kernel import options, report, said

asked = options("dtype.int8_matmul", "dtype.int4_matmul")

from _platform import described, device
from _speed import level

where = device(asked)
try:
    measured, right, words = level(asked.fact.rpartition(".")[2].removesuffix("_matmul"), where)
except Exception as error:  # a refusal may be any exception
    measured, right, words = "none", True, said(error)
report(asked.fact, measured, checked=right, detail=words, **described(where))
