"""Whether the steps of a Pallas grid run one after another, and in which order.

Each step adds to one block that all of them get, and notes the sum that it finds there.

How it checks itself: steps that run in order find the numbers of a Python loop, each time; their sum must be right.
Simulated in Pallas' own interpreter for TPU, which runs the steps as a TPU does.

Proof: run
"""

from typing import Any

from _kernel import need, options, report

asked = options("tile.sequential_grid", "tile.grid_order")

from _pallas import pl
from _platform import INSTALL, described, device, jax, jnp, platform, shape

GRID = (4, 8)
BLOCK = (8, 128)
ROUNDS = 8

where = device(asked)
more: dict[str, Any] = {}
if where.platform == "cpu":
    more["interpret"] = need("jax.experimental.pallas.tpu", INSTALL).InterpretParams()
elif platform(asked) == "rocm":
    more["compiler_params"] = need("jax.experimental.pallas.triton", INSTALL).CompilerParams()


def body(ones: Any, total: Any, found: Any) -> None:
    """Note what is there, and add one."""
    first = (pl.program_id(0) == 0) & (pl.program_id(1) == 0)
    before = jnp.where(first, jnp.zeros(BLOCK, jnp.float32), total[...])
    found[...] = before
    total[...] = before + ones[...]


call = pl.pallas_call(
    body,
    grid=GRID,
    in_specs=[pl.BlockSpec(BLOCK, lambda *_: (0, 0))],
    out_specs=[pl.BlockSpec(BLOCK, lambda *_: (0, 0)), pl.BlockSpec(BLOCK, lambda i, j: (i, j))],
    out_shape=[shape(*BLOCK), shape(GRID[0] * BLOCK[0], GRID[1] * BLOCK[1])],
    **more,
)
steps = jax.jit(call)
expected = [float(number) for number in range(GRID[0] * GRID[1])]
in_order = True
for _ in range(ROUNDS):
    total, found = steps(jax.device_put(jnp.ones(BLOCK), where))
    order = found[:: BLOCK[0], :: BLOCK[1]].ravel().tolist()
    in_order = in_order and order == expected and float(total[0, 0]) == len(expected)
if asked.fact == "tile.grid_order":
    measured = "sequential, in lexicographic order" if in_order else "another, or none"
else:
    measured = "native" if in_order else "none"
report(asked.fact, measured, checked=True, detail=f"the last round: {order[:8]}", **described(where))
