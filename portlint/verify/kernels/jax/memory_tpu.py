"""How much VMEM or SMEM a Pallas kernel gets of one TPU core: the largest scratch array that libtpu lays out.

How it checks itself: libtpu's own limit is found in mebibytes from below; half of what is found must compile as well.
SMEM also holds what the compiler puts there, so a kernel gets up to one part in 64 less than what is reported.

Proof: compile
"""

from typing import Any

from _kernel import largest, need, options, refuse, report

asked = options("memory.vmem_bytes", "memory.smem_bytes")

from _pallas import pl
from _platform import INSTALL, compiled, jax, jnp, shape

MIB = 2**20
FRACTION = 64

pltpu = need("jax.experimental.pallas.tpu", INSTALL)
is_scalar = asked.fact == "memory.smem_bytes"
words = ""


def body(source: Any, out: Any, scratch: Any) -> None:
    """Use the first and the last row of the scratch, so that all of it is there."""
    rows = scratch.shape[0]
    if is_scalar:
        scratch[0], scratch[rows - 1] = 1, 2
        out[...] = source[...] + (scratch[0] + scratch[rows - 1]).astype(jnp.float32)
    else:
        scratch[0:8, :] = source[...]
        scratch[rows - 8 : rows, :] = source[...]
        out[...] = scratch[0:8, :] + scratch[rows - 8 : rows, :]


def fits(size: int) -> bool:
    """Whether a kernel with a scratch of that many bytes compiles."""
    global words  # noqa: PLW0603  (the last refusal is what the report says)
    scratch = pltpu.SMEM((size // 4,), jnp.int32) if is_scalar else pltpu.VMEM((size // 512, 128), jnp.float32)
    limit = pltpu.CompilerParams() if is_scalar else pltpu.CompilerParams(vmem_limit_bytes=size + MIB)
    call = pl.pallas_call(body, out_shape=shape(8, 128), scratch_shapes=[scratch], compiler_params=limit)
    answer = compiled(asked, call, shape(8, 128))
    words = answer.words or words
    return answer.accepted


if asked.level != "compile":
    refuse("memory is laid out by the compiler: ask for --level compile")
if is_scalar:  # a little less than a power of two is what is left
    steps = [power * (FRACTION - 1) // FRACTION for power in (2**at for at in range(16, 25))]
    found = largest(steps, fits)
    measured = found * FRACTION // (FRACTION - 1)
else:
    measured = largest([at * 8 * MIB for at in range(1, 33)], fits)
report(asked.fact, measured, checked=measured > 0 and fits(measured // 2), detail=words, jax=jax.__version__)
