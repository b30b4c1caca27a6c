"""Whether a product of float32 matrices keeps the bits of float32 when no precision is asked for.

How it checks itself: the elements have a part that bfloat16 and TF32 lose; the exact product, of numbers with few bits,
is known, and with the highest precision it must come out.

Proof: run
"""

from _kernel import options, report

asked = options("numerics.float32_matmul")

from _platform import described, device, jax, jnp

SIDE = 128
SMALL = 2.0**-12

where = device(asked)
left = jax.device_put(jnp.full((SIDE, SIDE), 1 + SMALL, jnp.float32), where)
right = jax.device_put(jnp.ones((SIDE, SIDE), jnp.float32), where)
exact = SIDE * (1 + SMALL)
default, highest = (float(jnp.dot(left, right, precision=precision)[0, 0]) for precision in (None, "highest"))
report(
    asked.fact,
    "native" if default == exact else "narrowed",
    checked=highest == exact,
    detail=f"{default} by default, {exact} exactly",
    **described(where),
)
