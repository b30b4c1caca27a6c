"""Python branches on the value of a tensor.

The host has to wait for the value, and a lazy backend has to cut its graph there. Each way through the branches is then
a graph of its own, to be compiled when it is first taken, in the middle of training or serving. Under `jax.jit` there
is no value yet: tracing fails.

## Exceptions
Tests of shapes, dtypes and devices, of values on the host, in data sets and collators, in `__init__` and what is called
there alone, and in tests are silent. So is a value that the same test reads with `.item()` in a loop of steps:
`sync/host-read-in-step` has it.

## References
https://github.com/pytorch/xla/blob/master/docs/source/perf/recompilation.md
https://docs.jax.dev/en/latest/errors.html#jax.errors.TracerBoolConversionError
"""

from __future__ import annotations

from collections.abc import Iterator

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"shape.value_branches": "native", "sync.host_read": "native", "shape.traced_branches": "native"},
    message="'{text}' decides by a value on the device what runs next; {target} has {fact}.",
    remedy={
        "*": "Compute both sides and choose with `torch.where` (`jnp.where`, `jax.lax.cond` or `jax.lax.while_loop` in JAX), or decide on the host from data that is there.",
    },
)

PACKAGES = ("torch", "jax")
ANYWHERE = {"shape.value_branches": "native"}
IN_EVERY_STEP = {"shape.value_branches": "native", "sync.host_read": "native"}
TRACED = {"shape.traced_branches": "native"}
LEAVES = ("return_statement", "break_statement", "continue_statement")
ABOUT_OBJECTS = frozenset("isinstance issubclass hasattr callable".split())
IDENTITY = frozenset(("is", "is not"))
NO_NUMBER = frozenset("none string concatenated_string".split())
"""what no tensor is compared with"""
PASS_ON = frozenset(("not_operator", "boolean_operator", "parenthesized_expression"))


@rule.python("(if_statement condition: (_) @test)", mentions=PACKAGES)
@rule.python("(elif_clause condition: (_) @test)", mentions=PACKAGES)
@rule.python("(while_statement condition: (_) @test)", mentions=PACKAGES)
@rule.python("(conditional_expression (_) . (_) @test . (_))", mentions=PACKAGES)
@rule.python("(assert_statement . (_) @test)", mentions=PACKAGES)
def branch(test: Node) -> Hits:
    if test.source.imports("torch"):
        for value in filter(_may_be_read, _deciding(test)):
            if _is_read(value) and not value.role("at-rest"):
                every = value.role("step-loop") and not value.role("occasional")
                yield Hit(value, assumes=IN_EVERY_STEP if every else ANYWHERE)
                return
    elif test.source.imports("jax") and test.role("jax-jitted"):
        for value in _deciding(test):
            if value.role("traced") and value.role("bool") and not value.role("closed-over"):
                yield Hit(value, assumes=TRACED, language="jax")
                return


def _deciding(test: Node) -> Iterator[Node]:
    """The values whose truth a test asks for, alone or within `not`, `and`, `or`."""
    if test.type in PASS_ON:
        for child in test.children:
            yield from _deciding(child)
    else:
        yield test


def _may_be_read(value: Node) -> bool:
    """Whether a test may concern the value of a tensor, by its form: `x is None` and `isinstance(x, A)` do not."""
    if value.type == "call":
        return value["function"].text not in ABOUT_OBJECTS
    if value.type == "comparison_operator":
        return not any(raw.type in IDENTITY for raw in value.raw.children) and not any(
            one.type in NO_NUMBER for one in value.children
        )
    return value.type not in NO_NUMBER


def _is_read(value: Node) -> bool:
    """Whether the truth of a value has to be read from the device: `(x > 0).all()`, `rows.numel() == 0`."""
    if value.type == "call" and value.name == "bool" and len(value.arguments) == 1:
        value = value.arguments[0]
    if value.type == "call" and value.name in ("torch.equal", "torch.allclose"):
        return all(one.role("device-tensor") for one in value.arguments[:2])
    if value.role("device-tensor"):
        return value.role("bool")
    compared = value.children if value.type == "comparison_operator" else [value]
    if value.role("host-code") or _was_asked(value) or not any(one.role("read-back") for one in compared):
        return False
    if not _works_with_tensors(value):
        return False
    return not value.role("step-loop") or value.role("occasional") or any(map(_is_size, compared))


def _works_with_tensors(value: Node) -> bool:
    """Whether what a test decides about is work for the device: a number that is here already costs nothing more."""
    statement = next(value.ancestors("if_statement", "while_statement", "conditional_expression", "assert_statement"))
    return any(
        part.type in LEAVES or part.role("device-tensor")
        for part in statement.walk("identifier", *LEAVES)
        if part.start > value.end or statement.type == "conditional_expression"
    )


def _was_asked(value: Node) -> bool:
    """Whether a name that holds a value that was read has been tested before in the same function."""
    function = value.function
    if value.type != "identifier" or function is None:
        return False
    tests = (one for one in value.uses if function.start < one.start < value.start)
    return any(one.parent is not None and one.parent.get("condition") == one for one in tests)


def _is_size(value: Node) -> bool:
    """Whether a number is the size of a tensor, and not one of its values."""
    return any(one.role("sized-by-data") for one in value.walk("identifier", "call"))
