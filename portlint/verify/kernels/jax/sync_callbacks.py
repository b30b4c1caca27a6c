"""Whether compiled JAX code can call Python on the host, and what it costs where the device is not the host itself.

How it checks itself: the callback must get the values, and the program its answer.

Proof: run
"""

import time
from typing import Any

from _kernel import options, report, said

asked = options("sync.host_callback", "sync.debug_callback")

from _platform import described, device, jax, jnp, shape

ROUNDS = 20
WAITS = 20.0
"""times the plain program, from which on a round trip counts as waiting"""

where = device(asked)
seen: list[float] = []


def doubled(x: Any) -> Any:
    """On the host."""
    seen.append(float(x[0]))
    return x * 2


def asks(x: jax.Array) -> jax.Array:
    """Ask the host."""
    if asked.fact == "sync.debug_callback":
        jax.debug.callback(doubled, x)
        return x * 2
    return jax.pure_callback(doubled, shape(8), x)


def seconds(function: Any, values: jax.Array) -> float:
    """The median time of a call."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        function(values).block_until_ready()
        jax.effects_barrier()
        times.append(time.perf_counter() - start)
    return sorted(times)[ROUNDS // 2]


values = jax.device_put(jnp.arange(3.0, 11.0), where)
measured, right, words = "none", True, ""
try:
    answer = jax.jit(asks)(values)
    jax.effects_barrier()
    right = answer.tolist() == (values * 2).tolist() and 3.0 in seen
    ratio = seconds(jax.jit(asks), values) / seconds(jax.jit(lambda x: x * 2), values)
    is_slow = asked.fact == "sync.host_callback" and where.platform == "tpu" and ratio > WAITS
    measured, words = "slow" if is_slow else "native", f"{ratio:.0f} times the plain program"
except Exception as error:  # a refusal may be any exception
    words = said(error)
report(asked.fact, measured, checked=right, detail=words, **described(where))
