"""The blocks of a Pallas kernel are taken to fit the vector memory.

On TPU every block of a launch lies in VMEM, twice where the pipeline loads the next one in the meantime, and the scratch
memory besides. Of that memory a kernel gets a part, 16 or 32 MiB, unless it asks for more by `vmem_limit_bytes`. What does
not fit is refused when the kernel is compiled: `Ran out of memory in memory space vmem`.

## Exceptions
The sum is a lower bound: blocks of known size only, of one byte an element where the type is not written, scratch memory
that is kept from step to step or copied to, and nothing for what the compiler spills. Where a file sets
`vmem_limit_bytes`, or XLA's flag for it, its kernels have been measured, and are silent.

## References
https://docs.jax.dev/en/latest/pallas/tpu/details.html
https://github.com/pytorch/helion/pull/2024
"""

from __future__ import annotations

import math

from portlint.rule import Cut, Hit, Hits, Node, Rule, at_most, dtype_bytes, regex

rule = Rule(
    assumes={},
    message="'{text}' keeps at least {assumed} bytes in VMEM; {target} has {fact}.",
    remedy={
        "*": "Make the blocks smaller and the grid larger, or ask for more by `compiler_params=pltpu.CompilerParams(vmem_limit_bytes=...)`, up to `pltpu.get_tpu_info().vmem_capacity_bytes`.",
    },
)

LIMITS = regex(r"^vmem_limit_bytes|xla_tpu_scoped_vmem_limit_kib")
VMEM = "jax.experimental.pallas.tpu.VMEM"
SPEC = "jax.experimental.pallas.BlockSpec"


@rule.calls("jax.experimental.pallas.pallas_call")
def launch(call: Node) -> Hits:
    if any(LIMITS.search(word.text) for word in call.source.root.walk("keyword_argument", "string")):
        return
    for one in call.launches:
        needed = sum(_cut_bytes(cut) for cut in one.cuts)
        for scratch in one.scratch:
            sizes = scratch.arguments[0].items if scratch.name == VMEM and scratch.arguments else ()
            if sizes and all(isinstance(size, int) for size in sizes):
                dtype = scratch.argument(1, "dtype")
                item = dtype_bytes(dtype.name.rpartition(".")[2]) if dtype is not None else 1
                needed += math.prod(size for size in sizes if isinstance(size, int)) * item
        if needed:
            yield Hit(call["function"], {"memory.vmem_scoped_bytes": at_most(needed)}, language="pallas")


def _cut_bytes(cut: Cut) -> int:
    """The bytes of a block, twice where it moves, or of a whole array; 0 where its size is not known."""
    item = dtype_bytes(cut.array.dtype)
    if cut.spec is None:
        lengths = [length for length in cut.array.shape if length is not None]
        return math.prod(lengths) * item if lengths and len(lengths) == len(cut.array.shape) else 0
    sides = cut.spec.sides if cut.spec.name == SPEC else []
    sizes = [side.size for side in sides if side.size is not None]
    if not sides or len(sizes) != len(sides) or cut.spec.argument(None, "memory_space") is not None:
        return 0
    return math.prod(sizes) * item * (2 if any(side.is_part for side in sides) else 1)
