"""Whether a device that JAX uses takes an fp8 type in a product: Neuron's compiler refuses those that it has not.

TPUs are refused: XLA converts there what the matrix unit has not, and says nothing of it.

How it checks itself: the elements are small whole numbers, so that the product is exact; the host multiplies them too.

Proof: run
"""

from _kernel import level_of, options, refuse, report

TYPES = {
    "dtype.fp8_e4m3fn": "float8_e4m3fn",
    "dtype.fp8_e5m2": "float8_e5m2",
    "dtype.fp8_e4m3fnuz": "float8_e4m3fnuz",
    "dtype.fp8_e5m2fnuz": "float8_e5m2fnuz",
    "dtype.fp8_e4m3": "float8_e4m3",
}
asked = options(*TYPES)

from _platform import described, device, jax, jnp

SIDE = 64

where = device(asked)
if where.platform == "tpu":
    refuse("XLA converts fp8 types that a TPU has not, and neither the values nor the program tell")
whole = jnp.arange(SIDE * SIDE, dtype=jnp.float32).reshape(SIDE, SIDE) % 5 - 2


def multiplied() -> bool:
    """Whether a product in the type is right."""
    left = jax.device_put(whole, where).astype(getattr(jnp, TYPES[asked.fact]))
    made = jax.jit(lambda x: jnp.dot(x, x, preferred_element_type=jnp.float32))(left)
    return bool((jax.device_get(made) == jax.device_get(whole) @ jax.device_get(whole)).all())


measured, right, words = level_of(multiplied)
report(asked.fact, measured, checked=right, detail=words, **described(where))
