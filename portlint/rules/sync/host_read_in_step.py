"""A device value is read on the host in every step.

`.item()`, `.tolist()`, `float(loss)` and printing a tensor wait until the device has finished everything queued before.
In a training loop the device then idles while Python prepares the next step; a lazy backend cuts its graph as well.

## Exceptions
Reads behind a test of the step number (`if step % 100 == 0`) values that are on the host already, reads
once an epoch, and the loops of `test_*` files are silent.

## References
https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"sync.host_read": "native"},
    message="'{text}' makes the host wait for the device in every step; {target} has {fact}.",
    remedy={
        "tpu": "Keep the value on the device, accumulate it there, and read it every n steps after `torch_xla.sync()`, or through `torch_xla.core.xla_model.add_step_closure`.",
        "*": "Accumulate the value on the device and read it every n steps, or after the loop; read what is known before the loop, such as a schedule, once with `.tolist()`.",
    },
)


@rule.calls(".item", ".tolist")
def read(call: Node) -> Hits:
    value = call["function"]["object"]
    if _in_every_step(call) and not call.arguments and not value.role("on-host"):
        yield Hit(call)


@rule.calls("float", "int", "bool")
def converted(call: Node) -> Hits:
    if len(call.arguments) != 1 or not _in_every_step(call):
        return
    if call.arguments[0].role("tensor") and call.arguments[0].role("on-device"):
        yield Hit(call)


def _in_every_step(call: Node) -> bool:
    if any(True for _ in call.ancestors("assert_statement")):
        return False  # a test needs the value at once
    if not call.source.imports("torch") or not call.role("step-loop") or call.role("occasional"):
        return False
    return not any(_waits(earlier) for earlier in _before(call))


def _before(call: Node) -> list[Node]:
    """The calls before this one in the body of its loop."""
    loop = next(call.ancestors("for_statement", "while_statement"))
    return [one for one in loop["body"].walk("call") if one.end <= call.start]


def _waits(call: Node) -> bool:
    """Whether a read has emptied the queue already: the next one costs nothing."""
    function = call["function"]
    if call.name in ("float", "int", "bool") and len(call.arguments) == 1:
        value = call.arguments[0]
        return value.role("tensor") and value.role("on-device") and not call.role("occasional")
    if function.type != "attribute" or function["attribute"].text not in ("item", "tolist"):
        return False
    return not call.role("occasional") and not function["object"].role("on-host")
