"""A tile that was loaded with a mask is worked on as a whole.

`mask=` leaves the rows past the end of the array out of the load, and nothing else puts a value there. A reduction without
that mask takes in whatever the memory holds: along the partitions the result is wrong, along the free axis the unset rows
turn into NaN or infinities, which the simulator and the debugger report.

## Exceptions
Element-wise operations are silent, as long as they do not combine the tile with such a reduction of it: what they make of
the unset rows is not stored.

## References
https://github.com/aws-neuron/nki-samples/commit/396696de8e8c0a6a15dd69f93bdb29e89601a870
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/migration/index.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"tile.masked_rows": "native"},
    message="'{text}' works on rows that the masked load of its tile leaves unset; {target} has {fact}.",
    remedy={
        "*": "Give the operation the mask of the load; with NKI from Neuron 2.27 on, which has no masks, cut the tile to `min(pmax, rows - start)` rows.",
    },
)

LANGUAGES = ("neuronxcc.nki.language", "nki.language")
REDUCTIONS = [
    f"{language}.{name}"
    for language in LANGUAGES
    for name in ("max", "min", "sum", "mean", "var", "prod", "all", "any")
]
COMBINATIONS = [
    f"{language}.{name}"
    for language in LANGUAGES
    for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")
]
PARTITIONS = 0


@rule.calls(*REDUCTIONS)
def reduction(call: Node) -> Hits:
    if _takes_unset_rows(call):
        yield Hit(call, otherwise=_verdict(call), language="nki")


@rule.calls(*COMBINATIONS)
def combination(call: Node) -> Hits:
    made = [one.assigned for one in call.arguments]
    reduced = [one for one in made if one is not None and one.name in REDUCTIONS and _takes_unset_rows(one)]
    if reduced and _takes_unset_rows(call):
        yield Hit(call, otherwise=_verdict(reduced[0]), language="nki")


def _takes_unset_rows(call: Node) -> bool:
    """Whether an argument is a tile that was loaded with a mask, and the call has none."""
    tiles = [one.tile for one in call.arguments if one.type == "identifier"]
    return call.argument(None, "mask") is None and any(tile is not None and tile.is_masked for tile in tiles)


def _verdict(reduction: Node) -> str:
    axis = reduction.argument(1, "axis")
    axes = (axis.items or (axis.constant,)) if axis is not None else (PARTITIONS,)
    return "corrupts" if PARTITIONS in axes else "degrades"
