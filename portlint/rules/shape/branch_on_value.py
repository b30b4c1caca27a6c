"""Python branches on the value of a tensor.

The host has to wait for the value, and a lazy backend has to cut its graph there. Each way through the branches is then
a graph of its own, to be compiled when it is first taken, in the middle of training or serving.

## Exceptions
Tests of shapes, dtypes and devices, and of values on the host, are silent.

## References
https://github.com/pytorch/xla/blob/master/docs/source/perf/recompilation.md
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"shape.data_dependent": "native"},
    message="'{text}' decides by a value on the device which graph runs; {target} has {fact}.",
    remedy={"*": "Compute both sides and choose with `torch.where`, or decide on the host from data that is there."},
)

REDUCTIONS = frozenset(("any", "all"))


@rule.python('((if_statement condition: (_) @test) (#match? @test "any|all|bool"))')
@rule.python('((while_statement condition: (_) @test) (#match? @test "any|all|bool"))')
@rule.python('((elif_clause condition: (_) @test) (#match? @test "any|all|bool"))')
def branch(test: Node) -> Hits:
    if not test.source.imports("torch"):
        return
    for call in test.walk("call"):
        value = call.arguments[0] if call.name == "bool" and len(call.arguments) == 1 else call
        if _is_read(value) and call.parent is not None and _decides(call, test):
            yield Hit(call)


def _is_read(value: Node) -> bool:
    """Whether an expression is a Boolean tensor on the device: `(x > 0).all()`, `torch.any(mask)`."""
    if value.type != "call":
        return False
    function = value["function"]
    name = function["attribute"].text if function.type == "attribute" else function.text
    return name in REDUCTIONS and value.role("tensor") and value.role("bool") and value.role("on-device")


def _decides(call: Node, test: Node) -> bool:
    """Whether the call's truth is what the test asks for, alone or within `not`, `and`, `or`."""
    return call == test or all(
        parent.type in ("not_operator", "boolean_operator", "parenthesized_expression")
        for parent in call.ancestors()
        if test.start <= parent.start and parent.end <= test.end
    )
