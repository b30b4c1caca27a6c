"""A Triton kernel is written for the tensor memory accelerator, whatever the machine.

Tensor descriptors become TMA copies, and `warp_specialize=True` divides the warps, on Hopper and later NVIDIA GPUs. Elsewhere
the compiler makes ordinary loads of the same code and ignores the division: the kernel runs, without what it was written for.

## Exceptions
The first of a kernel is reported. Silent are those behind a flag or a test that is named for TMA, descriptors or a generation.

## References
https://triton-lang.org/main/python-api/generated/triton.language.make_tensor_descriptor.html
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"isa.tma": "native"},
    otherwise="degrades",
    message="'{text}' is written for TMA; {target} has {fact}.",
    remedy={
        "*": "Keep a kernel with block pointers or plain pointers for such machines, tuned for them, and choose by a test of the device.",
    },
)

DESCRIPTORS = (
    "triton.language.make_tensor_descriptor",
    "triton.language._experimental_make_tensor_descriptor",
    "triton.language.range",
)
GATE = regex(r"tma|desc|hopper|blackwell|sm_?\d\d|warp_?spec|\bws\b", re.IGNORECASE)


@rule.calls(*DESCRIPTORS)
def written_for_tma(call: Node) -> Hits:
    function = call.function
    if function is None or not _needs_it(call) or any(GATE.search(guard.text) for guard in call.guards):
        return
    if not any(one.start < call.start and _needs_it(one) for one in function.walk("call")):
        yield Hit(call["function"], otherwise="degrades", language="triton")


def _needs_it(call: Node) -> bool:
    if call.name == "triton.language.range":
        flag = call.argument(None, "warp_specialize")
        return flag is not None and flag.constant is True
    return call.name in DESCRIPTORS
