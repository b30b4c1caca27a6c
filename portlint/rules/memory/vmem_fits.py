"""The blocks of a Pallas kernel are taken to fit the vector memory.

On TPU every block of a launch lies in VMEM, twice where the pipeline loads the next one in the meantime, and the scratch
memory besides. What does not fit is refused when the kernel is compiled: `Ran out of memory in memory space vmem`.

## Exceptions
The sum is a lower bound: blocks of known size only, of one byte an element where the type is not written, and nothing for
what the compiler spills. Where a file sets `vmem_limit_bytes`, its kernels have been measured, and are silent.

## References
https://docs.jax.dev/en/latest/pallas/tpu/details.html
https://github.com/pytorch/helion/pull/2024
"""

from __future__ import annotations

import math

from portlint.rule import Hit, Hits, Node, Rule, at_most

rule = Rule(
    assumes={},
    message="'{text}' keeps at least {assumed} bytes in VMEM; {target} has {fact}.",
    remedy={
        "*": "Make the blocks smaller and the grid larger, and choose them by `pltpu.get_tpu_info().vmem_capacity_bytes`.",
    },
)

BYTES = {
    **dict.fromkeys(("float32", "int32", "uint32"), 4),
    **dict.fromkeys(("bfloat16", "float16", "int16", "uint16"), 2),
}
VMEM = "jax.experimental.pallas.tpu.VMEM"
SPEC = "jax.experimental.pallas.BlockSpec"


@rule.calls("jax.experimental.pallas.pallas_call")
def launch(call: Node) -> Hits:
    for one in call.launches:
        if any(keyword["name"].text == "vmem_limit_bytes" for keyword in call.source.root.walk("keyword_argument")):
            return
        out_types = [_bytes(shape.argument(1, "dtype")) for shape in _calls(call.argument(1, "out_shape"))]
        outputs, inputs = _calls(one.out_specs), _calls(one.in_specs)
        needed = sum(map(_block_bytes, inputs, [1] * len(inputs)))
        needed += sum(map(_block_bytes, outputs, out_types or [1] * len(outputs)))
        for scratch in _calls(call.argument(None, "scratch_shapes")):
            sizes = scratch.arguments[0].items if scratch.name == VMEM and scratch.arguments else ()
            if sizes and all(isinstance(size, int) for size in sizes):
                needed += math.prod(size for size in sizes if isinstance(size, int)) * _bytes(
                    scratch.argument(1, "dtype")
                )
        if needed:
            yield Hit(call["function"], {"memory.vmem_bytes": at_most(needed)}, language="pallas")


def _calls(given: Node | None) -> list[Node]:
    """The calls in a list, or the one that stands in its place, names resolved."""
    given = given.assigned or given if given is not None else None
    if given is None:
        return []
    elements = given.children if given.type in ("list", "tuple") else [given]
    return [one for one in ((each.assigned or each) for each in elements) if one.type == "call"]


def _block_bytes(spec: Node, item: int) -> int:
    """The bytes of a block, twice where it moves; 0 where its size is not known."""
    sides = spec.sides if spec.name == SPEC else []
    sizes = [side.size for side in sides if side.size is not None]
    if not sides or len(sizes) != len(sides) or spec.argument(None, "memory_space") is not None:
        return 0
    return math.prod(sizes) * item * (2 if any(side.is_part for side in sides) else 1)


def _bytes(dtype: Node | None) -> int:
    """The bytes of an element; one, the fewest, where its type is not written."""
    return BYTES.get(dtype.name.rpartition(".")[2], 1) if dtype is not None else 1
