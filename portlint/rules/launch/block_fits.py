"""A block is sized for another machine than the one that it is launched on.

No GPU takes blocks of more than 1,024 threads. A size that is written as so many warps doubles with the width of a warp:
32 warps of 64 lanes do not launch, and `cudaGetLastError` is the only one that says so.

## Exceptions
Sizes that are computed at run time are silent; so are those in branches for another platform.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hardware_features.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, at_most

rule = Rule(
    assumes={},
    message="'{text}' makes blocks of {assumed} threads; {target} has {fact}.",
    remedy={
        "amd": "Count threads rather than warps: divide 1024 by the width of a wavefront to get the waves of a block.",
        "*": "Launch more blocks of at most 1024 threads, and let each thread do more.",
    },
)


@rule.cuda("(call_expression (kernel_call_syntax)) @call")
@rule.cuda_calls("hipLaunchKernelGGL", "hipLaunchKernel", "cudaLaunchKernel")
def launch(call: Node) -> Hits:
    if (block := call.launched_block) is not None:
        yield from _judge(block, call)


@rule.python("(call function: (subscript)) @call", mentions=("numba", "cupy"))
def launch_in_python(call: Node) -> Hits:
    if (block := call.launched_block) is not None:
        yield from _judge(block, call)


@rule.cuda("(launch_bounds . (_) @threads)")
def bounds(threads: Node) -> Hits:
    yield from _judge(threads, threads)


def _judge(block: Node, place: Node) -> Hits:
    for threads, guards in block.block_sizes:
        assumes = {"launch.threads_per_block": at_most(threads)}
        yield Hit(block.block_written, assumes, guards=(*place.guards, *guards), language="cuda")
