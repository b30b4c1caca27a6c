"""Every operator of PyTorch is taken to have a kernel for the device.

MPS raises NotImplementedError for an operator without one; `PYTORCH_ENABLE_MPS_FALLBACK=1` sends that operator to the
CPU, and does nothing for float64, which MPS cannot hold at all. PyTorch/XLA, torch-neuronx and Gaudi say nothing: they cut the
graph, copy the inputs to the CPU, compute there and copy the result back, at every call.

## Exceptions
Values on the host are silent, and so are what is made there because no device is given, weights in `__init__` and in
functions of a `state_dict`, or called from there only, float64, code behind a test of the device, and a call whose error is caught. Backward passes are
not looked at.

## References
https://docs.pytorch.org/docs/stable/mps_environment_variables.html
https://github.com/pytorch/xla/blob/master/docs/source/learn/troubleshoot.md
"""

from __future__ import annotations

from collections import defaultdict

from portlint.rule import Hit, Hits, Node, Rule, has, regex, torch_operators

rule = Rule(
    assumes={},
    message="'{text}' needs a kernel for aten::{operator}; {target} has {fact}: {instead}.",
    remedy={
        "*": "Run this part on the CPU explicitly: move its inputs there once and its result back, outside of loops.",
    },
)

CONDITIONAL = regex(r"(?P<name>[^(]+)\((?P<argument>\w+)(?:='(?P<value>[^']+)')?\)")
POSITIONS = {
    ("torch.nn.functional.interpolate", "mode"): 3,
    ("torch.nn.Upsample", "mode"): 2,
    ("torch.nn.functional.embedding", "max_norm"): 3,
    ("torch.nn.Embedding", "max_norm"): 3,
    ("torch.repeat_interleave", "repeats"): 1,
    (".repeat_interleave", "repeats"): 0,
    (".mode", "dim"): 0,
    (".take", "index"): 0,
    (".put", "source"): 1,
    (".put_", "source"): 1,
}
AVERAGES = {"torch.nn.functional.adaptive_avg_pool3d": 1, "torch.nn.AdaptiveAvgPool3d": 0}
"""what takes the mean, which has a kernel everywhere, where the size asked for is 1"""

NAMES: dict[str, list[str]] = defaultdict(list)
"""a function, module or method -> its spellings in the table, with the arguments that matter"""
for _spelling in torch_operators():
    NAMES[_spelling.partition("(")[0]].append(_spelling)

METHODS = tuple(name for name in NAMES if name.startswith("."))
MODULES = tuple(name for name in NAMES if name.startswith("torch.nn.") and name.rpartition(".")[2][0].isupper())
CREATORS = ("torch.logspace", "torch.tril_indices", "torch.triu_indices")
FUNCTIONS = tuple(name for name in NAMES if name not in {*METHODS, *MODULES, *CREATORS})


@rule.calls(*FUNCTIONS)
def function(call: Node) -> Hits:
    first = call.argument(0, "input")
    if first is None:
        return
    tensors = [first, *(one for one in call.arguments[1:] if one.role("tensor"))]
    if not any(one.role("on-host") or one.role("float64") for one in tensors) and not call.role("at-rest"):
        yield from _hit(call, call.name)


@rule.calls(*METHODS)
def method(call: Node) -> Hits:
    value = call["function"]["object"]
    if value.role("device-tensor") and not value.role("float64") and not call.role("at-rest"):
        yield from _hit(call, f".{call['function']['attribute'].text}")


@rule.calls(*MODULES)
def module(call: Node) -> Hits:
    yield from _hit(call, call.name)


@rule.calls(*CREATORS)
def created(call: Node) -> Hits:
    if call.argument(None, "device") is not None and call.role("on-device"):
        yield from _hit(call, call.name)


def _hit(call: Node, name: str) -> Hits:
    if (
        call.role("guarded-call")
        or call.role("host-torch")
        or (name in AVERAGES and not _is_pooled(call, AVERAGES[name]))
    ):
        return
    for spelling in NAMES[name]:
        if _is_asked_for(call, spelling):
            needs = torch_operators()[spelling].needs
            yield Hit(call, assumes={"api.operators": has(spelling)}, words={"operator": needs})


def _is_asked_for(call: Node, spelling: str) -> bool:
    """Whether a call gives the argument that a spelling has in parentheses."""
    condition = CONDITIONAL.fullmatch(spelling)
    if condition is None:
        return True
    argument = call.argument(POSITIONS.get((condition["name"], condition["argument"])), condition["argument"])
    if argument is None or argument.type == "none":
        return False
    match condition["argument"]:
        case "repeats":
            return argument.role("tensor")
        case "mode":
            return argument.constant == condition["value"]
        case "max_norm" | "decimals":
            return argument.constant is not None
    return True


def _is_pooled(call: Node, position: int) -> bool:
    """Whether a pooling is known to ask for more than one value per channel."""
    size = call.argument(position, "output_size")
    value = None if size is None else size.constant
    return value is not None and value not in (1, (1, 1, 1))
