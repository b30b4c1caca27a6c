"""A kernel is taken to be able to launch other kernels.

Dynamic parallelism is CUDA's: `<<<...>>>` in device code, and waiting for what it started. HIP has no counterpart, and
hipcc refuses such a launch.

## Exceptions
Functions that run on the host as well are silent: the launch may be the host's.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/faq.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"launch.dynamic_parallelism": "native"},
    message="'{text}' is launched from device code; {target} has {fact}.",
    remedy={
        "amd": "Launch from the host: write the sizes to a buffer that the host reads, or loop over a queue of work in one persistent kernel.",
        "*": "Launch from the host.",
    },
)


@rule.cuda("(call_expression (kernel_call_syntax)) @call")
def launch(call: Node) -> Hits:
    if call.role("device-only"):
        yield Hit(call["function"])
