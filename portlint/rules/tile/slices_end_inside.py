"""A loop over slices of a Pallas reference is taken to end with the array.

`pl.cdiv(n, size)` slices of `size` elements cover `n` and more. Blocks of a `BlockSpec` are padded where they overhang,
but `pl.ds` is no block: on TPU the last slice is an access out of bounds, which ends the program, and on a GPU it reads
what lies behind the array. Only the interpreter moves it back inside.

## Exceptions
Kernels that mask, and launches around which something is padded or a remainder is looked at, are silent. So are launches
with block specs, whose blocks may be whole.

## References
https://docs.jax.dev/en/latest/pallas/grid_blockspec.html
https://github.com/pytorch/helion/pull/2104
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"tile.slice_past_end": "native"},
    message="'{text}' runs past the end in the last round where the size does not divide the length; {target} has {fact}.",
    remedy={
        "*": "Pad the array to a multiple of the slice before `pallas_call`, and cut the result back; or loop over whole slices and mask the rest.",
    },
)


@rule.calls("jax.experimental.pallas.ds", "jax.experimental.pallas.dslice")
def part(call: Node) -> Hits:
    if call.role("past-the-end"):
        yield Hit(call, language="pallas")
