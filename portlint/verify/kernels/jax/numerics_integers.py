"""Up to which number integers are exact where a device scatters them, and whether it multiplies matrices of them.

How it checks itself: small numbers must come out right; Python's own arithmetic gives the expected numbers.

Proof: run
"""

from _kernel import level_of, options, report

asked = options("numerics.exact_integer", "numerics.integer_dot")

from _platform import described, device, jax, jnp

SIDE = 32

where = device(asked)
scatter = jax.jit(lambda x, at, y: x.at[at].add(y))


def scattered(number: int) -> bool:
    """Whether a number that is added by a scatter, in two parts, is exact."""
    zeros = jax.device_put(jnp.zeros(8, jnp.int32), where)
    places = jax.device_put(jnp.array([3, 3]), where)
    parts = jax.device_put(jnp.array([number - 1, 1], jnp.int32), where)
    return int(scatter(zeros, places, parts)[3]) == number


def multiplied() -> bool:
    """Whether a product of integer matrices is right."""
    ones = jax.device_put(jnp.full((SIDE, SIDE), 2**12 + 1, jnp.int32), where)
    return int(jax.jit(jnp.dot)(ones, ones)[0, 0]) == SIDE * (2**12 + 1) ** 2


measured: object
if asked.fact == "numerics.integer_dot":
    measured, right, words = level_of(multiplied)
else:
    powers = [power for power in range(4, 31) if scattered(2**power + 1)]
    reached = next((power for power in range(4, 31) if power not in powers), 31)
    measured, right, words = 2**reached, reached > 4, ""
report(asked.fact, measured, checked=right, detail=words, **described(where))
