"""A mask of the whole warp is passed where some of its lanes do not run.

Where a wavefront has 64 lanes, `if (threadIdx.x < 32)` leaves half of it idle; and behind `if (i >= n) return;` the last
wavefront has lost lanes on any width. CUDA lets a mask name lanes that have exited. The `*_sync` functions of HIP compare
their mask with the lanes that run, and trap where it names others, unless `NDEBUG` is defined.

## Exceptions
`__activemask()` names the lanes that run, and is silent; so is a test for `warpSize`, an exit that whole warps take, and
what another platform alone compiles. A mask of 32 bits is another rule's.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_cpp_language_extensions.html#warp-cross-lane-functions
"""

from __future__ import annotations

from collections.abc import Iterator

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"lanes.width": 32, "lanes.exited_in_mask": "native"},
    message="With '{text}', the mask of '{function}' names lanes that do not run; {target} has {fact}.",
    remedy={
        "amd": "Let the whole wavefront in (`threadIdx.x < warpSize`, and no `return` before it), or pass `__activemask()`.",
        "*": "Let the whole warp in, or pass `__activemask()`.",
    },
)

SYNC = (
    "__shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync __ballot_sync __any_sync __all_sync __match_any_sync"
    " __match_all_sync __reduce_add_sync __reduce_min_sync __reduce_max_sync __reduce_and_sync __reduce_or_sync"
    " __reduce_xor_sync __syncwarp"
)
ALL_64 = (-1, (1 << 64) - 1)
WIDTH: dict[str, int | str] = {"lanes.width": 32}
EXITED: dict[str, int | str] = {"lanes.exited_in_mask": "native"}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
CALLS_FOLLOWED = 2


@rule.cuda("(if_statement condition: (_) @test consequence: (_) @body)")
def first_32_threads(test: Node, body: Node) -> Hits:
    function = test.function
    if function is None or function.role("at-most-32-threads") or not test.role("admits-32-threads"):
        return
    for call in body.walk("call_expression"):
        for origin in _masks_of_all(call):
            words = {"function": call.name.rpartition("::")[2]}
            yield Hit(test, assumes=WIDTH, words=words, guards=(*call.guards, *origin.guards))
            return


@rule.cuda_calls(*SYNC.split())
def called_by_32_threads(call: Node) -> Hits:
    """The same in a function that is only called from such a branch."""
    if not call.role("first-32-threads") or any(
        one["condition"].role("admits-32-threads") for one in call.ancestors("if_statement")
    ):
        return
    for origin in _masks_of_all(call):
        words = {"function": call.name.rpartition("::")[2]}
        yield Hit(call.arguments[0], assumes=WIDTH, words=words, guards=(*call.guards, *origin.guards))


@rule.cuda("(if_statement condition: (_) @test consequence: (_) @leave) @branch")
def exit_before(branch: Node, test: Node, leave: Node) -> Hits:
    """`if (i >= n) return;` in a kernel, ahead of a call with a mask of all lanes."""
    kernel = branch.function
    if kernel is None or not _is_return(leave) or not kernel.role("kernel"):
        return
    assumed = _lanes_that_leave(test)
    if assumed == WIDTH and kernel.warp_operations:
        return  # the arithmetic is reported
    for call, origin in _calls_after(kernel, branch.end) if assumed else ():
        words = {"function": call.name.rpartition("::")[2]}
        guards = (*test.guards, *call.guards, *origin.guards)
        yield Hit(test.get("value") or test, assumes=assumed, words=words, guards=guards)
        return


def _is_return(branch: Node) -> bool:
    last = branch.children[-1] if branch.type == "compound_statement" and branch.children else branch
    return last.type == "return_statement"


def _lanes_that_leave(test: Node) -> dict[str, int | str]:
    """What a test assumes that parts a warp; nothing where a warp leaves as a whole."""
    for element in test.walk("subscript_expression"):
        if any(index.role("linear-thread") for index in element["indices"].children):
            return EXITED
    for one in test.walk("binary_expression"):
        sides = (one["left"], one["right"]), (one["right"], one["left"])
        for side, bound in sides if one["operator"].text in COMPARISONS else ():
            number = bound.constant
            whole = number if isinstance(number, int) else 1
            if side.role("linear-thread") and whole % 64:
                return WIDTH if whole % 32 == 0 else EXITED
            if side.role("warp-id") and _is_32nd(side.origin):
                return WIDTH
    return {}


def _is_32nd(number: Node) -> bool:
    if number.type != "binary_expression":
        return False
    return (number["operator"].text, number["right"].constant) in (("/", 32), (">>", 5))


def _calls_after(function: Node, start: int, depth: int = CALLS_FOLLOWED) -> Iterator[tuple[Node, Node]]:
    """The calls with a mask of all lanes behind a place, those in functions of the file included."""
    for call in function.walk("call_expression"):
        if call.start < start:
            continue
        yield from ((call, origin) for origin in _masks_of_all(call))
        if depth and call.called is not None:
            yield from _calls_after(call.called, 0, depth - 1)


def _masks_of_all(call: Node) -> list[Node]:
    """Where the mask of a warp-level call is all ones over 64 bits; nothing for any other call."""
    name = call.name.rpartition("::")[2]
    if name not in SYNC.split() or call.source.defines(name) or not call.arguments:
        return []
    return [one for one in call.arguments[0].choices if one.constant in ALL_64 and not one.role("32-bit")]
