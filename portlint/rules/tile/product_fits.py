"""A matrix product of an NKI kernel is larger than the tensor engine takes at once.

One instruction multiplies a stationary operand of at most 128 columns with a moving one of at most 512, which is the
float32 results that one bank of PSUM holds; Trainium3 goes up to all its banks. The compiler refuses larger tiles.

## Exceptions
Only tiles with known sizes are judged, and only those that a product fills as a whole.

## References
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/get-started/about/tiling-overview.html
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/generated/nki.isa.nc_matmul.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, at_most

rule = Rule(
    assumes={},
    message="'{text}' has {assumed} columns in one matrix product; {target} has {fact}.",
    remedy={
        "*": "Loop over tiles of `nl.tile_size.gemm_stationary_fmax` and `nl.tile_size.gemm_moving_fmax` columns.",
    },
)

PRODUCTS = ("neuronxcc.nki.isa.nc_matmul", "nki.isa.nc_matmul")
MAKERS = [
    f"{language}.{name}" for language in ("neuronxcc.nki.language", "nki.language") for name in ("ndarray", "zeros")
]


@rule.calls(*PRODUCTS)
def operands(call: Node) -> Hits:
    shift = 1 if call.argument(None, "dst") is None and len(call.arguments) > 2 else 0
    for position, keyword in enumerate(("stationary", "moving")):
        operand = call.argument(position + shift, keyword)
        tile = operand.tile if operand is not None and call.argument(None, "perf_mode") is None else None
        if operand is not None and tile is not None and tile.free is not None:
            yield Hit(operand, {f"tile.{keyword}_free": at_most(tile.free)}, language="nki")


@rule.calls("neuronxcc.nki.language.matmul", "nki.language.matmul")
def operands_in_order(call: Node) -> Hits:
    for operand, keyword in zip(call.arguments[:2], ("stationary", "moving"), strict=False):
        tile = operand.tile
        if tile is not None and tile.free is not None:
            yield Hit(operand, {f"tile.{keyword}_free": at_most(tile.free)}, language="nki")


@rule.calls(*MAKERS)
def result(call: Node) -> Hits:
    tile = call.tile
    if tile is not None and tile.buffer == "psum" and tile.free is not None and call.products:
        shape = call.argument(0, "shape")
        yield Hit(shape or call, {"tile.psum_matmul_free": at_most(tile.free)}, language="nki")
