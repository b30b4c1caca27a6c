"""Which back ends Pallas has for a platform: a kernel is lowered that only the one in question can take.

For TPU it has scratch in VMEM, for Triton the back end's own parameters, for Mosaic GPU likewise.

How it checks itself: the program must hold the call that the back end makes, and no other's.

Proof: compile
"""

from typing import Any

from _kernel import need, options, refuse, report

asked = options("tile.pallas_tpu", "tile.pallas_triton", "tile.pallas_mosaic_gpu")

from _pallas import blocked, triton_parameters
from _platform import INSTALL, jax, jnp, lowered, shape

WHOLE, BLOCK = (64, 512), (8, 128)
CALLS = {"tile.pallas_tpu": "tpu_custom_call", "tile.pallas_triton": "triton", "tile.pallas_mosaic_gpu": "mosaic_gpu"}


def with_scratch(source: Any, out: Any, scratch: Any) -> None:
    """Copy a block by way of the scratch."""
    scratch[...] = source[...]
    out[...] = scratch[...]


def plain(source: Any, out: Any) -> None:
    """Copy a block."""
    out[...] = source[...]


if asked.level != "compile":
    refuse("back ends are a matter of the lowering: ask for --level compile")
if asked.fact == "tile.pallas_tpu":
    scratch = need("jax.experimental.pallas.tpu", INSTALL).VMEM(BLOCK, jnp.float32)
    call = blocked(with_scratch, WHOLE, BLOCK, scratch_shapes=[scratch])
elif asked.fact == "tile.pallas_triton":
    call = blocked(plain, WHOLE, BLOCK, compiler_params=triton_parameters())
else:
    need("absl", "pip install absl-py")
    mosaic = need("jax.experimental.pallas.mosaic_gpu", "pip install jax[cuda13]")
    call = blocked(plain, WHOLE, BLOCK, compiler_params=mosaic.CompilerParams())
answer = lowered(asked, call, shape(*WHOLE))
made = [fact for fact, name in CALLS.items() if f"{name}" in answer.text]
report(
    asked.fact,
    "native" if answer.accepted else "none",
    checked=made == ([asked.fact] if answer.accepted else []),
    detail=answer.words,
    jax=jax.__version__,
)
