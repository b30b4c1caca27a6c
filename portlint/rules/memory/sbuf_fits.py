"""The tiles of an NKI kernel are taken to fit the state buffer.

SBUF is a fixed number of bytes in each partition: 192 KiB on Inferentia2, 224 KiB on Trainium2, 256 KiB on Trainium3. A
kernel that allocates by itself states how many tiles lie side by side, and the compiler refuses what ends after the
last byte.

## Exceptions
Only tiles of known size are judged. Elements whose type is that of an argument count four bytes, as float32.

## References
https://github.com/aws-neuron/aws-neuron-sdk/issues/1036
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, at_most

rule = Rule(
    assumes={},
    message="'{text}' takes {assumed} bytes of each partition, at {element} an element; {target} has {fact}.",
    remedy={"*": "Allocate fewer tiles, or cut the free dimension, and reuse tiles that have been stored."},
)

FLOAT32 = 4


@rule.calls(
    *(f"{language}.{name}" for language in ("neuronxcc.nki.language", "nki.language") for name in ("ndarray", "zeros"))
)
def allocated(call: Node) -> Hits:
    tile = call.tile
    if tile is None or tile.buffer != "sbuf" or tile.free is None:
        return
    size = tile.item_bytes or FLOAT32
    if tile.item_bytes is None and tile.allocation is None:
        return
    needed = tile.offset + tile.copies * tile.free * size
    yield Hit(
        tile.allocation or call.argument(0, "shape") or call,
        {"memory.sbuf_partition_bytes": at_most(needed)},
        words={"element": f"{size} bytes" if size > 1 else "1 byte"},
        language="nki",
    )
