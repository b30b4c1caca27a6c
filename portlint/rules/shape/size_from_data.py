"""A size is taken from data on the device.

`x[:n]`, `torch.zeros(n)` or `range(n)`, where `n` came from `.item()`, `.tolist()` or `int(tensor)`, makes a new shape for
each value, and a graph compiler starts again for each shape. Bounds of a slice that are tensors themselves are read on
the host, everywhere: Python slices need numbers.

## Exceptions
Sizes that come from shapes, lists or configuration, arrays that a traced function takes from the code around it,
tensors that are made and stay on the CPU, `__init__`, what rewrites a state dict and what only these call, data sets
and collators, and tests are silent. What a script reads before its steps makes none of them slow, nor does what makes
inputs (`generate_data`).

## References
https://github.com/pytorch/xla/blob/master/docs/source/perf/recompilation.md
https://docs.habana.ai/en/latest/PyTorch/Model_Optimization_PyTorch/Dynamic_Shapes.html
"""

from __future__ import annotations

from collections.abc import Iterator

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"shape.dynamic": "native", "sync.host_read": "native", "shape.traced_data_dependent": "native"},
    message="'{text}' takes a size from data on the device; {target} has {fact}.",
    remedy={
        "gpu": "Pass the bound as a Python number beside the tensor, or select with `torch.index_select` or `torch.narrow` by an index that stays on the device.",
        "*": "Use the largest size and a mask (`torch.arange(longest) < length`), round the size up to one of a few buckets, or pass the bound as a Python number beside the tensor; in JAX use `jax.lax.dynamic_slice` with a fixed size.",
    },
)

NEW_SHAPE = {"shape.dynamic": "native"}
READ_AND_NEW_SHAPE = {"shape.dynamic": "native", "sync.host_read": "native"}
TRACED = {"shape.traced_data_dependent": "native"}
MADE = ("zeros", "ones", "empty", "full", "rand", "randn", "arange", "eye", "linspace", "randint", "randperm")
SHAPED = (".new_zeros", ".new_ones", ".new_empty", ".new_full", ".expand", ".repeat", ".view", ".reshape", ".narrow")
FILLED = ("torch.full", "jax.numpy.full")
MAKES_INPUTS = regex(r"_?(get|gen|generate|make|create|build|prepare)_(\w+_)?(data|inputs?|cases?|samples?)")
"""functions by the names that benchmarks and tests give to those that make their inputs"""
SPLIT = (".split", ".split_with_sizes", "torch.split")


@rule.calls(*(f"torch.{name}" for name in MADE), *SHAPED, *SPLIT)
def made(call: Node) -> Hits:
    if call.role("on-host") or call.role("host-code") or call.role("test") or not call.source.imports("torch"):
        return
    for size in _sizes(call):
        if _is_of(size, "read-back"):
            yield Hit(size, assumes=NEW_SHAPE)
            return
        if _is_of(size, "device-tensor") and call.name.startswith("torch.") and call.name not in SPLIT:
            yield Hit(size, assumes=NEW_SHAPE if _runs_once(call) else READ_AND_NEW_SHAPE)
            return


@rule.python("(subscript value: (_) @value subscript: (slice) @part)", mentions=("torch",))
def sliced(value: Node, part: Node) -> Hits:
    if value.role("on-host") or value.role("host-code") or value.role("test") or not value.source.imports("torch"):
        return
    if _is_repeated(part):
        return
    bounds = part.children
    if any(_is_of(bound, "device-tensor") for bound in bounds):
        yield Hit(part, assumes=NEW_SHAPE if _runs_once(part) else READ_AND_NEW_SHAPE)
    elif value.role("tensor") and any(_is_of(bound, "read-back") for bound in bounds):
        yield Hit(part, assumes=NEW_SHAPE)


@rule.calls("range")
def counted(call: Node) -> Hits:
    loop = call.parent
    if loop is None or loop.type != "for_statement" or loop["right"] != call or call.role("host-code"):
        return
    counts = [one for one in call.arguments if _is_of(one, "read-back") or _is_of(one, "device-tensor")]
    if counts and any(one.role("device-tensor") for one in loop["body"].walk("call")):
        yield Hit(counts[0], assumes=NEW_SHAPE)


@rule.calls(*(f"jax.numpy.{name}" for name in ("zeros", "ones", "empty", "full", "arange", "eye", "linspace")))
def traced(call: Node) -> Hits:
    if call.role("jax-jitted"):
        for size in _sizes(call):
            if size.role("traced") and not size.role("closed-over"):
                yield Hit(size, assumes=TRACED, language="jax")
                return


def _is_of(size: Node, role: str) -> bool:
    """Whether a size has a role, in code that runs more than once."""
    return size.role(role) and not size.role("at-rest")


def _runs_once(node: Node) -> bool:
    """Whether code stands in no function and no loop of steps, as the set-up of a script, or makes inputs for one."""
    if any(MAKES_INPUTS.fullmatch(one["name"].text) for one in node.ancestors("function_definition")):
        return True
    in_function = any(True for _ in node.ancestors("function_definition", "lambda"))
    return not in_function and not node.role("step-loop")


def _is_repeated(part: Node) -> bool:
    """Whether another slice of the same statement has been looked at already."""
    statement = next(part.ancestors("expression_statement", "return_statement"), None)
    earlier = statement.walk("slice") if statement is not None else ()
    return any(one.end <= part.start and one.text == part.text for one in earlier)


def _sizes(call: Node) -> Iterator[Node]:
    """The numbers that a call's positional arguments give as sizes, those in a tuple or list one by one."""
    given = call.arguments
    if call.name in FILLED:
        given = given[:1]
    elif call.name == "torch.randint":
        given = given[-1:]  # the bounds of the values come first
    for argument in given:
        yield from argument.children if argument.type in ("tuple", "list") else [argument]
