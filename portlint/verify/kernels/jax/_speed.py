"""How long products of an element type take beside those of bfloat16, and whether they are right."""

import time
from typing import Any

from _platform import jax, jnp

SIDE = 4096
ROUNDS = 10
FASTER = 0.75
"""of the time of bfloat16: a matrix unit that has a narrower type takes half of it, a conversion no less than all"""


def product(name: str, where: Any) -> tuple[float, bool]:
    """The seconds of a product, and whether it is right: all elements are one, so each result is the side."""
    ones = jax.device_put(jnp.ones((SIDE, SIDE), jnp.bfloat16), where).astype(getattr(jnp, name))
    result = jnp.int32 if "int" in name else jnp.float32
    step = jax.jit(lambda x, y: jnp.dot(x, y, preferred_element_type=result))
    right = bool((step(ones, ones) == SIDE).all())
    start = time.perf_counter()
    for _ in range(ROUNDS):
        last = step(ones, ones)
    last.block_until_ready()
    return (time.perf_counter() - start) / ROUNDS, right


def level(name: str, where: Any) -> tuple[str, bool, str]:
    """The level of an element type, whether its products are right, and how long they take."""
    seconds, right = product(name, where)
    usual, usually_right = product("bfloat16", where)
    found = "native" if seconds < FASTER * usual else "emulated"
    return found, right and usually_right, f"{seconds / usual:.2f} times the time of bfloat16"
