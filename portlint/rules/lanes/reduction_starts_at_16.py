"""A reduction over a warp starts 16 lanes away.

Offsets 16, 8, 4, 2, 1 fold 32 lanes. Where a wavefront has 64, its upper half is never added to the result; nothing
fails, the sum is short.

## Exceptions
A shuffle of explicit width 32, and code that treats every 32 lanes as a group of their own (`threadIdx.x % 32`,
`threadIdx.x / 32`) and combines the groups, is right on 64 lanes and silent.

## Fix safety
Safe in CUDA C++ and Python: `warpSize` is 32 on NVIDIA's devices. Under `#pragma unroll` the compiler may no longer unroll
the loop, so that is unsafe. A function that goes by a constant of the project gets half of that, which is safe, too.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_cpp_language_extensions.html#warp-shuffle-functions
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, replace

rule = Rule(
    assumes={"lanes.width": 32},
    otherwise="corrupts",
    message="A reduction that starts at '{text}' folds 32 lanes; {target} has {fact}.",
    remedy={
        "amd": "Start at `warpSize / 2`, or give the shuffles the width 32 and combine the groups of 32 lanes.",
        "*": "Start at half the device's warp size.",
    },
)
PYTHON_SHUFFLES = [
    f"{home}.shfl_{way}_sync" for home in ("numba.cuda", "numba.hip", "cupyx.jit") for way in ("down", "up", "xor")
]
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
        width = _named_width(loop)
        is_fixable = first.type == "number_literal" and loop.role("device-code")
        edits = (replace(first, f"{width or 'warpSize'} / 2"),) if is_fixable else ()
        yield Hit(first, edits=edits, safe=width != "" or not _is_unrolled(loop))


def _named_width(loop: Node) -> str:
    """The constant for the lanes of a warp by which the function around a loop goes; "" where there is none."""
    function = loop.function
    names = function["body"].walk("identifier") if function is not None else ()
    return next((one.text for one in names if one.role("warp-size") and one.constant == 32), "")


def _is_unrolled(loop: Node) -> bool:
    """Whether a pragma before a loop asks for it to be written out."""
    return "unroll" in loop.source.text[: loop.start].decode(errors="replace").rstrip().rpartition("\n")[2]


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


def _in_groups_of_32(place: Node) -> bool:
    """Whether the function, or every caller of it in the file, splits the block into groups of 32 by literals."""
    function = place.function
    if function is None:
        return False
    users = [function, *(caller.function for caller in function.callers)]
    return any(user is not None and user.role("groups-of-32") for user in users)


@rule.calls(*PYTHON_SHUFFLES)
def python_shuffle(call: Node) -> Hits:
    """A shuffle by a distance that a loop halves, or the first of five that are written out."""
    distance, function = call.argument(2), call.function
    if distance is None or function is None or call.role("group-width") or call.role("first-32-threads"):
        return
    if function.role("at-most-32-threads") or _in_groups_of_32(call):
        return
    first = distance if _is_written_out(call, function) else _first_of_loop(distance)
    if first is not None:
        module = call["function"].get("object")
        is_alone = first.type == "integer" and first.parent is not None and first.parent.type == "assignment"
        width = f"{module.text}.warpsize // 2" if module is not None and is_alone else ""
        edits = (replace(first, width),) if width and first != distance else ()
        yield Hit(first, language="cuda", edits=edits, safe=True)


def _is_written_out(call: Node, function: Node) -> bool:
    """Whether a function shuffles by 16, and by 8, 4, 2 and 1 as well, but not by 32."""
    shuffles = [one for one in function.walk("call") if one.name == call.name]
    distances = {given.constant for one in shuffles if (given := one.argument(2)) is not None}
    first = call.argument(2)
    return first is not None and first.constant == 16 and distances >= {8, 4, 2, 1} and 32 not in distances


def _first_of_loop(distance: Node) -> Node | None:
    """The 16 that a loop's variable is given first."""
    loops = distance.ancestors("while_statement", "for_statement")
    loop = next((one for one in loops if _steps(one, distance.text)), None)
    if loop is None:
        return None
    if loop.type == "for_statement":
        return next(iter(loop["right"].children), loop["right"])
    first = distance.assigned
    return first if first is not None and first.constant == 16 else None


def _steps(loop: Node, variable: str) -> bool:
    """Whether a loop halves a variable down to a distance of one lane, or goes through 16, 8, 4, 2, 1."""
    if loop.type == "for_statement":
        return loop["left"].text == variable and loop["right"].constant == (16, 8, 4, 2, 1)
    test = re.fullmatch(rf"\(?{re.escape(variable)}( *(> *0|>= *1|!= *0))?\)?", loop["condition"].text)
    changes = (one.text.replace(" ", "") for one in loop["body"].walk("augmented_assignment", "assignment"))
    halved = tuple(f"{variable}{step}" for step in ("//=2", ">>=1", f"={variable}//2", f"={variable}>>1"))
    return test is not None and any(one in halved for one in changes)
