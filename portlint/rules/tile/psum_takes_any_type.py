"""The partial sums of a matrix product are kept in a narrow type.

The tensor engine accumulates in float32, in PSUM. A tile of bfloat16 there rounds every partial sum of the loop over the
contracted dimension; before Trainium3 the result of a product has to be a float32 tile at all.

## Exceptions
Tiles that a transposition fills take the type of its input, and are silent.

## Fix safety
Unsafe: the sums are as exact as the engine gives them, and take more memory.

## References
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/generated/nki.isa.nc_matmul.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, has, replace

rule = Rule(
    assumes={},
    message="'{text}' is the type of the sums of matrix products; {target} has {fact}.",
    remedy={"*": "Make the PSUM tile float32, and convert when it is copied to SBUF."},
    otherwise="corrupts",
)

MAKERS = [
    f"{language}.{name}" for language in ("neuronxcc.nki.language", "nki.language") for name in ("ndarray", "zeros")
]


@rule.calls(*MAKERS)
def sums(call: Node) -> Hits:
    tile, dtype = call.tile, call.argument(1, "dtype")
    if tile is not None and dtype is not None and tile.buffer == "psum" and tile.dtype and call.products:
        module = call["function"].get("object")
        edits = (replace(dtype, f"{module.text}.float32"),) if module is not None else ()
        yield Hit(dtype, {"dtype.matmul_result": has(tile.dtype)}, language="nki", edits=edits)
