"""A device value is read on the host in every step.

`.item()`, `.tolist()`, `.cpu()`, `float(loss)` and printing a tensor wait until the device has finished everything
queued before. In a loop that trains, decodes or validates the device then idles while Python prepares the next step; a
lazy backend cuts its graph as well.

## Exceptions
Reads behind a test of the step number (`if step % 100 == 0`), values that are on the host already, reads once an epoch,
a second read in the same step, data sets and collators, and tests are silent.

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


STEPS = rule.option(
    "steps", (), "functions of your own that are one step, as `train_step` is: names without their class"
)
READS = frozenset(("item", "tolist", "cpu", "numpy"))


@rule.calls(".item", ".tolist")
def read(call: Node) -> Hits:
    if not call.arguments and _in_every_step(call) and call["function"]["object"].role("on-device"):
        yield Hit(call)


@rule.calls("float", "int", "bool")
def converted(call: Node) -> Hits:
    if len(call.arguments) == 1 and _in_every_step(call) and call.arguments[0].role("device-tensor"):
        yield Hit(call)


@rule.calls(".cpu")
def copied(call: Node) -> Hits:
    if _in_every_step(call) and (call["function"]["object"].role("device-tensor") or _is_read_at_once(call)):
        yield Hit(call)


@rule.calls("print")
def printed(call: Node) -> Hits:
    if not _in_every_step(call):
        return
    for argument in call.arguments:
        shown = [one.children[0] for one in argument.walk("interpolation") if one.children] or [argument]
        for value in shown:
            if value.type in ("identifier", "attribute", "call") and value.role("device-tensor"):
                yield Hit(value)
                return


def _is_read_at_once(copy: Node) -> bool:
    """Whether a copy's values are read where it is made: `x.cpu().numpy()`; a module's are not."""
    attribute = copy.parent
    return attribute is not None and attribute.type == "attribute" and attribute["attribute"].text in READS


def _in_every_step(call: Node) -> bool:
    if any(True for _ in call.ancestors("assert_statement", "raise_statement")):
        return False  # a test needs the value at once
    if not call.source.imports("torch") or not _is_in_a_step(call) or call.role("occasional"):
        return False
    return not any(_waits(earlier) for earlier in _before(call))


def _is_in_a_step(call: Node) -> bool:
    function = call.function
    return call.role("step-loop") or (function is not None and function["name"].text in STEPS.value)


def _before(call: Node) -> list[Node]:
    """The calls before this one in the body of its loop, or of its function where that is the step."""
    region = next(call.ancestors("for_statement", "while_statement", "function_definition"))
    return [one for one in region["body"].walk("call") if one.end <= call.start]


def _waits(call: Node) -> bool:
    """Whether a read has emptied the queue already: the next one costs nothing."""
    function = call["function"]
    if call.name in ("float", "int", "bool") and len(call.arguments) == 1:
        return call.arguments[0].role("device-tensor") and not call.role("occasional")
    if function.type != "attribute" or function["attribute"].text not in READS:
        return False
    if function["attribute"].text == "cpu" and not (function["object"].role("device-tensor") or _is_read_at_once(call)):
        return False
    return not call.role("occasional") and function["object"].role("on-device")
