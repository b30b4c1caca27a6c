"""What a Pallas kernel reads where a slice runs past the end of a reference: zeros, or whatever is there.

How it checks itself: the elements before the end must be those of the array.

Proof: run
"""

from typing import Any

from _kernel import need, options, report, said

asked = options("tile.slice_past_end")

from _pallas import pl
from _platform import INSTALL, described, device, jax, jnp, platform, shape

ROWS, START, SIZE = 24, 20, 8
"""the last four of eight rows from the twentieth on are not there"""

where = device(asked)
more: dict[str, Any] = {}
if where.platform == "cpu":
    more["interpret"] = need("jax.experimental.pallas.tpu", INSTALL).InterpretParams()
elif platform(asked) == "rocm":
    more["compiler_params"] = need("jax.experimental.pallas.triton", INSTALL).CompilerParams()


def body(start: Any, source: Any, out: Any) -> None:
    """Copy the slice."""
    out[...] = source[pl.ds(start[0, 0], SIZE), :]


source = jnp.arange(1, ROWS * 128 + 1, dtype=jnp.float32).reshape(ROWS, 128)
start = jnp.full((8, 128), START, jnp.int32)
measured, right, words = "none", True, ""
try:
    call = pl.pallas_call(body, out_shape=shape(SIZE, 128), **more)
    out = jax.jit(call)(jax.device_put(start, where), jax.device_put(source, where))
    inside = ROWS - START
    is_padded = bool((out[inside:] == 0).all())
    measured = "native" if is_padded else "none"
    right = bool((out[:inside] == source[START:]).all()) or not is_padded
    words = f"the last row begins with {float(out[-1, 0])}"
except Exception as error:  # a device may well refuse it
    words = said(error)
report(asked.fact, measured, checked=right, detail=words, **described(where))
