"""A tensor gets one element for each request.

Lists of lengths, slots or positions are as long as there are requests at that moment. Made into tensors as they are, they
give a new shape for each composition of the batch, and a graph compiler starts again.

## Exceptions
Lists that are padded or written out, tensors that stay on the host, constructors, collators, and tests are silent.

## References
https://github.com/pytorch/xla/blob/master/docs/source/perf/recompilation.md
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"shape.dynamic": "native"},
    message="'{text}' has an element for each request of the moment, and so has its tensor; {target} has {fact}.",
    remedy={
        "*": "Pad the list to the largest number of requests, or to one of a few buckets, before it becomes a tensor.",
    },
)

OF_REQUESTS = regex(r"(^|_)(lens|lengths|positions|slots|slot_mapping|block_tables?|num_tokens|start_locs?)$")
PADS = regex(r"pad|bucket", re.IGNORECASE)


@rule.calls("torch.tensor", "torch.as_tensor")
def made(call: Node) -> Hits:
    given = call.arguments[0] if call.arguments else None
    if given is None or given.type != "identifier" or not OF_REQUESTS.search(given.text):
        return
    function = call.function
    if function is None or function["name"].text == "__init__" or call.role("host-code"):
        return
    if _goes_to_device(call) and given.role("growing-list") and not _is_padded(given, function):
        yield Hit(given)


def _goes_to_device(call: Node) -> bool:
    """Whether the tensor is made on a device, or moved there at once."""
    if call.argument(None, "device") is not None:
        return call.role("on-device")
    attribute = call.parent
    moved = attribute.parent if attribute is not None and attribute.type == "attribute" else None
    return moved is not None and moved.type == "call" and not moved.role("on-host")


def _is_padded(given: Node, function: Node) -> bool:
    """Whether the function pads at all, or lengthens the list by more than an element."""
    if any(PADS.search(one.text) for one in function["body"].walk("identifier")):
        return True
    owners = (one["function"] for one in function["body"].walk("call") if one["function"].type == "attribute")
    return any(one["object"].text == given.text and one["attribute"].text == "extend" for one in owners)
