"""A tile of an NKI kernel spreads over more partitions than the machine has.

The first dimension of a tile in SBUF or PSUM lies across the partitions, 128 of them. The compiler refuses a tile with
more rows; the number is right only for the free dimensions that follow.

## Exceptions
Arrays in HBM have no partitions, and copies from HBM to HBM no tiles: both are silent.

## References
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/get-started/about/tiling-overview.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, at_most

rule = Rule(
    assumes={},
    message="'{text}' puts {assumed} rows of a tile on the partition axis; {target} has {fact}.",
    remedy={
        "*": "Take `nl.tile_size.pmax` rows at a time and loop over the rest, or move the long dimension to the free axis."
    },
)

LANGUAGES = ("neuronxcc.nki.language", "nki.language")


def _named(*names: str) -> list[str]:
    return [f"{language}.{name}" for language in LANGUAGES for name in names]


@rule.calls(*_named("ndarray", "zeros", "ones", "full", "empty"))
def made(call: Node) -> Hits:
    tile = call.tile
    if tile is not None and tile.buffer in ("sbuf", "psum") and tile.rows is not None:
        yield _rows(tile.place, tile.rows)


@rule.calls(*_named("load"))
def loaded(call: Node) -> Hits:
    tile = call.tile
    if tile is not None and tile.rows is not None:
        yield _rows(tile.place, tile.rows)


@rule.references(*_named("mgrid"))
def grid(name: Node) -> Hits:
    rows = name.index_rows
    if rows is not None and rows.selected is not None:
        yield _rows(rows, rows.selected)


@rule.calls(*_named("arange"))
def column(call: Node) -> Hits:
    if call.index_rows is not None and call.selected is not None:
        yield _rows(call.index_rows, call.selected)


def _rows(place: Node, rows: int) -> Hit:
    return Hit(place, {"lanes.partitions": at_most(rows)}, language="nki")
