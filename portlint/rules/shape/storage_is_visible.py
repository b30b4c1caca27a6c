"""The storage of a tensor is looked at.

XLA tensors have no storage and always look contiguous. Code that finds shared parameters by pointers, or asks for the
bytes behind a tensor, fails there or takes everything for one tensor.

## Exceptions
Tensors on the host, pointers that are handed to kernels, errors that are caught, branches for another platform, and tests are silent.

## References
https://github.com/pytorch/xla/blob/master/docs/source/learn/troubleshoot.md#xla-tensor-quirks
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, on_platform

rule = Rule(
    assumes={"shape.storage": "native"},
    message="'{text}' looks at the storage of a tensor; {target} has {fact}.",
    remedy={"*": "Compare the tensor objects (`a is b`) to find shared ones, and take sizes from shape and dtype."},
)


@rule.calls(".data_ptr", ".storage", ".untyped_storage", ".storage_offset")
def looked_at(call: Node) -> Hits:
    value = call["function"]["object"]
    if call.arguments or not value.role("tensor") or not value.role("on-device") or call.role("guarded-call"):
        return
    if _was_looked_at(call):
        return
    if not any(one.type == "argument_list" for one in _around(call)):
        yield Hit(call, guards=(*call.guards, on_platform("xla")))


def _was_looked_at(call: Node) -> bool:
    """Whether the same function has asked the same before."""
    function = call.function
    earlier = function["body"].walk("call") if function is not None else ()
    return any(one.end <= call.start and one.text == call.text for one in earlier)


def _around(call: Node) -> list[Node]:
    """The nodes between a call and its statement: a pointer among arguments is for a kernel."""
    around = []
    for parent in call.ancestors():
        if parent.type.endswith("_statement") or parent.type in ("block", "assignment"):
            break
        around.append(parent)
    return around
