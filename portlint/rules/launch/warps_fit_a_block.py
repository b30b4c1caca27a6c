"""`num_warps` is taken to count warps of 32 lanes.

A Triton program runs on `num_warps` times the width of a warp. 32 warps are 1,024 threads where a warp has 32 lanes,
and 2,048, which no device launches, where it has 64.

## Exceptions
In a list of configurations the autotuner drops what cannot be launched: that costs a configuration, not the kernel.
Counts that the list's own filter leaves out are silent, and so are lists that the file prunes.

## References
https://triton-lang.org/main/python-api/generated/triton.Config.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, any_way, at_most

rule = Rule(
    assumes={},
    message="num_warps = '{text}' is more than a block can hold; {target} has {fact}.",
    remedy={
        "*": "Filter the list by the device: keep `num_warps * warp_size <= 1024`, with `triton.runtime.driver.active.get_current_target().warp_size`.",
    },
)


@rule.calls("triton.Config")
def configuration(call: Node) -> Hits:
    if any(one.listed.is_pruned for one in call.tunings) or (not call.tunings and _is_filtered_somewhere(call)):
        return
    # the autotuner drops what cannot be launched, so long as something is left
    yield from _counts(call, call.argument(1, "num_warps"), "breaks" if call.role("only-element") else "degrades")


@rule.python("(call function: (subscript)) @call", mentions=("num_warps",))
def launch(call: Node) -> Hits:
    if call.source.imports("triton"):
        yield from _counts(call, call.argument(None, "num_warps"), "breaks")


def _is_filtered_somewhere(config: Node) -> bool:
    """Whether the file goes through a list of configurations by their numbers of warps."""
    filters = config.source.root.walk("if_clause")
    return any(one["attribute"].text == "num_warps" for test in filters for one in test.walk("attribute"))


def _counts(call: Node, warps: Node | None, verdict: str) -> Hits:
    """The numbers that a count of warps may be; each is live where both it and the call are."""
    rounds = call.configurations
    is_known = bool(rounds) and all("num_warps" in one.values for one in rounds)
    for value in warps.choices if warps is not None else ():
        count = value.constant
        ways = [one.guards for one in rounds if one.values.get("num_warps") == count]
        if isinstance(count, int) and (ways or not is_known):
            around = (any_way(ways, f"num_warps = {count}", value.line),) if ways and all(ways) else ()
            both = (*value.guards, *call.guards, *around)
            assumes = {"launch.warps_per_block": at_most(count)}
            yield Hit(value, assumes=assumes, otherwise=verdict, guards=both, language="triton")
