"""`num_warps` is taken to count warps of 32 lanes.

A Triton program runs on `num_warps` times the width of a warp. 32 warps are 1,024 threads where a warp has 32 lanes,
and 2,048, which no device launches, where it has 64.

## References
https://triton-lang.org/main/python-api/generated/triton.Config.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, at_most

rule = Rule(
    assumes={},
    message="num_warps = '{text}' is more than a block can hold; {target} has {fact}.",
    remedy={
        "*": "Filter the list by the device: keep `num_warps * warp_size <= 1024`, with `triton.runtime.driver.active.get_current_target().warp_size`.",
    },
)


@rule.calls("triton.Config")
def configuration(call: Node) -> Hits:
    yield from _counts(call, call.argument(1, "num_warps"))


@rule.python("(call function: (subscript)) @call")
def launch(call: Node) -> Hits:
    if call.source.imports("triton"):
        yield from _counts(call, call.argument(None, "num_warps"))


def _counts(call: Node, warps: Node | None) -> Hits:
    """The numbers that a count of warps may be; each is live where both it and the call are."""
    for value in warps.choices if warps is not None else ():
        count = value.constant
        if isinstance(count, int):
            both = (*value.guards, *call.guards)
            yield Hit(value, assumes={"launch.warps_per_block": at_most(count)}, guards=both, language="triton")
