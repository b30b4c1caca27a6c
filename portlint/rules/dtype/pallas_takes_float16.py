"""A Pallas kernel computes in a type that its back end does not list.

Pallas for TPU documents float32, bfloat16, integers and Booleans. float16, the usual half precision of GPU kernels, is not
among them: such a kernel lowers, and what the compiler makes of it is not promised. Complex types are refused.

## Exceptions
Types outside kernels and launches are XLA's matter, and silent. So are kernels that say that they are for GPUs.

## Fix safety
Unsafe: bfloat16 has the range of float32 and 8 bits of precision in place of 11. Complex types are left.

## References
https://docs.jax.dev/en/latest/pallas/tpu/details.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, has, on_platform, replace

rule = Rule(
    assumes={},
    message="'{text}' is an element type of this Pallas kernel; {target} has {fact}.",
    remedy={"*": "Use bfloat16 for half precision and float32 for sums; keep real and imaginary parts in two arrays."},
)

VERDICTS = {"float16": "degrades", "complex64": "breaks", "complex128": "breaks"}
LAUNCH = "jax.experimental.pallas.pallas_call"


@rule.references(*(f"jax.numpy.{name}" for name in VERDICTS))
def element(name: Node) -> Hits:
    launches = [launch for call in name.ancestors("call") if call.name == LAUNCH for launch in call.launches]
    is_for_gpu = name.role("pallas-kernel-for-gpu") or any(launch.is_for_gpu for launch in launches)
    if (launches or name.role("pallas-kernel")) and not is_for_gpu and not _is_compared(name):
        dtype = name.name.rpartition(".")[2]
        guards = (*name.guards, on_platform("tpu"))
        assumes = {"dtype.pallas": has(dtype)}
        half = dtype == "float16" and name.type == "attribute"
        edits = (replace(name["attribute"], "bfloat16"),) if half else ()
        yield Hit(name, assumes, guards=guards, otherwise=VERDICTS[dtype], language="pallas", edits=edits)


def _is_compared(name: Node) -> bool:
    """Whether a type is only looked at: `if x.dtype == jnp.float16`."""
    return next(name.ancestors("comparison_operator"), None) is not None
