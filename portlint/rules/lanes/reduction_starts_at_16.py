"""A reduction over a warp starts 16 lanes away.

Offsets 16, 8, 4, 2, 1 fold 32 lanes. Where a wavefront has 64, its upper half is never added to the result; nothing
fails, the sum is short.

## Exceptions
A shuffle of explicit width 32, and code that treats every 32 lanes as a group of their own (`threadIdx.x % 32`,
`threadIdx.x / 32`) and combines the groups, is right on 64 lanes and silent.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_cpp_language_extensions.html#warp-shuffle-functions
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"lanes.width": 32},
    otherwise="corrupts",
    message="A reduction that starts at '{text}' folds 32 lanes; {target} has {fact}.",
    remedy={
        "amd": "Start at `warpSize / 2`, or give the shuffles the width 32 and combine the groups of 32 lanes.",
        "*": "Start at half the device's warp size.",
    },
)
ASSIGNMENTS = ("init_declarator", "assignment_expression")


@rule.cuda("(for_statement initializer: (_) @start body: (_) @body) @loop")
def halving_loop(loop: Node, start: Node, body: Node) -> Hits:
    first = _initial(start)
    if first is None or not _halves(loop) or not _ends_at_one(loop) or loop.role("first-32-threads"):
        return
    shuffles = [call for call in body.walk("call_expression") if call.role("shuffle")]
    if not shuffles or any(call.role("group-width") for call in shuffles):
        return
    if not _in_groups_of_32(loop) and not _crosses_32_lanes(loop):
        yield Hit(first)


def _crosses_32_lanes(loop: Node) -> bool:
    """Whether the function also adds what is 32 lanes away, as it does behind a test for 64 lanes."""
    function = loop.function
    return function is not None and any(
        call.role("shuffle") and not call.role("group-width") and any(one.constant == 32 for one in call.arguments)
        for call in function.walk("call_expression")
    )


def _initial(start: Node) -> Node | None:
    """What the loop variable is first given, if that is 16; half of a named width is reported where that is set."""
    given = next((one.get("value") or one.get("right") for one in start.walk(*ASSIGNMENTS)), None)
    if given is None or given.constant != 16 or any(name.role("warp-size") for name in given.walk("identifier")):
        return None
    return given


def _halves(loop: Node) -> bool:
    update = loop.get("update")
    return update is not None and any(step in update.text.replace(" ", "") for step in (">>=1", "/=2", ">>1", "/2"))


def _ends_at_one(loop: Node) -> bool:
    """Whether the loop runs down to a distance of one lane, so that it means the whole warp."""
    test = loop.get("condition")
    return test is not None and re.fullmatch(r"\(?\w+ *(> *0|>= *1|!= *0)?\)?u?", test.text) is not None


def _in_groups_of_32(loop: Node) -> bool:
    """Whether the function, or every caller of it in the file, splits the block into groups of 32 by literals."""
    function = loop.function
    if function is None:
        return False
    users = [function, *(caller.function for caller in function.callers)]
    return any(user is not None and user.role("groups-of-32") for user in users)
