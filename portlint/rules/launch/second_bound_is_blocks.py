"""The second argument of `__launch_bounds__` is taken to count blocks.

CUDA reads it as blocks per multiprocessor, HIP as waves per execution unit. The same number then asks for another share of
the registers: too little, and the kernel spills; too much, and fewer waves are resident than it was tuned for.

## Exceptions
One asks for nothing in particular. With 256 threads both readings come to the same where a wave has 64 lanes. Silent, too:
numbers chosen per platform, and files written for HIP.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_cpp_language_extensions.html#launch-bounds
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, asks_for_platform

rule = Rule(
    assumes={"launch.bounds_second_argument": "blocks per multiprocessor"},
    otherwise="degrades",
    message="'{text}' is meant as blocks per multiprocessor; {target} has {fact}.",
    remedy={
        "amd": "Choose the number per platform: in the AMD branch leave it out, or give the waves per execution unit that the kernel is to have.",
        "*": "Choose the number per platform.",
    },
)

SAME_EITHER_WAY = 256
"""threads per block: as many waves on each of four execution units as there are blocks; n times as many have n each"""


@rule.cuda("(launch_bounds) @bounds")
def bounds(bounds: Node) -> Hits:
    chosen = asks_for_platform(bounds.guards, "hip", "rocm", "amd")
    if len(bounds.children) < 2 or chosen or bounds.role("written-for-hip"):
        return
    threads, count = bounds.children[:2]
    wanted, block = count.constant, threads.constant
    implied = block // SAME_EITHER_WAY if isinstance(block, int) else 0
    if isinstance(wanted, int) and wanted > max(1, implied) and block != SAME_EITHER_WAY:
        yield Hit(count, guards=(*bounds.guards, *count.origin.guards))
