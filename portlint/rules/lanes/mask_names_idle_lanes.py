"""A mask of the whole warp is passed where the first 32 threads alone run.

Where a wavefront has 64 lanes, `if (threadIdx.x < 32)` leaves half of it idle. The `*_sync` functions of HIP compare
their mask with the lanes that run, and trap where it names others.

## Exceptions
`__activemask()` names the lanes that run, and is silent; so is a test for `warpSize`, and what another platform alone
compiles. A mask of 32 bits is another rule's.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_cpp_language_extensions.html#warp-cross-lane-functions
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"lanes.width": 32},
    message="With '{text}', the mask of '{function}' names lanes that do not run; {target} has {fact}.",
    remedy={
        "amd": "Let the whole wavefront in (`threadIdx.x < warpSize`), or pass `__activemask()`.",
        "*": "Let the whole warp in, or pass `__activemask()`.",
    },
)

SYNC = (
    "__shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync __ballot_sync __any_sync __all_sync __match_any_sync"
    " __match_all_sync __reduce_add_sync __reduce_min_sync __reduce_max_sync __reduce_and_sync __reduce_or_sync"
    " __reduce_xor_sync"
)
ALL_64 = (-1, (1 << 64) - 1)


@rule.cuda("(if_statement condition: (_) @test consequence: (_) @body)")
def first_32_threads(test: Node, body: Node) -> Hits:
    function = test.function
    if function is None or function.role("at-most-32-threads") or not test.role("admits-32-threads"):
        return
    for call in body.walk("call_expression"):
        for origin in _masks_of_all(call):
            words = {"function": call.name.rpartition("::")[2]}
            yield Hit(test, words=words, guards=(*call.guards, *origin.guards))
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
        yield Hit(call.arguments[0], words=words, guards=(*call.guards, *origin.guards))


def _masks_of_all(call: Node) -> list[Node]:
    """Where the mask of a warp-level call is all ones over 64 bits; nothing for any other call."""
    name = call.name.rpartition("::")[2]
    if name not in SYNC.split() or call.source.defines(name) or not call.arguments:
        return []
    return [one for one in call.arguments[0].choices if one.constant in ALL_64 and not one.role("32-bit")]
