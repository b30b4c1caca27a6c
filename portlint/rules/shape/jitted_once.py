"""A function is jitted anew in every round.

`jax.jit` keeps what it has compiled by the hash of the function and the values of its static arguments. A lambda, a
`functools.partial` or a function that is defined inside the loop has another hash each time, and a static argument that
counts has another value each time: every round compiles.

## Exceptions
Jitting a function that is defined outside of the loop again is cheap, and silent; so are loops over written lists, and
what is compiled with other options in each round, such as shardings.

## References
https://docs.jax.dev/en/latest/jit-compilation.html#jit-and-caching
"""

from __future__ import annotations

from collections.abc import Iterator

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"shape.temporary_functions": "native"},
    message="'{text}' is compiled again in every round; {target} has {fact}.",
    remedy={
        "*": "Define and jit the function once, before the loop, and pass what changes as an array argument (`jnp.asarray(step)`) that is not static.",
    },
)

JITS = ("jax.jit", "jax.pmap", "equinox.filter_jit")
LOOPS = ("for_statement", "while_statement")


@rule.calls(*JITS)
def in_loop(call: Node) -> Hits:
    loop = next(call.ancestors(*LOOPS, "function_definition", "lambda"), None)
    if loop is None or loop.type not in LOOPS or not call.arguments or call.role("host-file"):
        return
    function = call.arguments[0]
    if loop.type == "for_statement" and loop["right"].type in ("list", "tuple"):
        return
    if _is_another_program(loop, call):
        return
    if function.type == "lambda" or function.name == "functools.partial" or _is_defined_in(loop, function):
        yield Hit(call)


@rule.calls(*JITS)
def static(call: Node) -> Hits:
    binding = call.parent
    if binding is None or binding.type != "assignment" or binding["left"].type != "identifier":
        return
    for use in binding["left"].uses:
        called = use.parent
        if called is None or called.type != "call" or called["function"] != use or called.role("host-file"):
            continue
        for argument in _static_arguments(call, called):
            if argument.role("loop-count"):
                yield Hit(argument, words={"text": f"{use.text}(..., {argument.text})"})


def _is_another_program(loop: Node, call: Node) -> bool:
    """Whether an option of `jit`, such as the sharding of the results, has to be another in each round."""
    variables = {one.text for one in loop["left"].walk("identifier")} if loop.type == "for_statement" else set()
    options = (one["value"] for one in call["arguments"].children if one.type == "keyword_argument")
    return any(one.text in variables for option in options for one in option.walk("identifier"))


def _is_defined_in(loop: Node, function: Node) -> bool:
    return any(one["name"].text == function.text for one in loop["body"].walk("function_definition"))


def _static_arguments(jit: Node, call: Node) -> Iterator[Node]:
    """The arguments of a call that the jit around its function makes static."""
    for keyword, kind in (("static_argnums", int), ("static_argnames", str)):
        given = jit.argument(None, keyword)
        if given is None:
            continue
        values = given.items or (given.constant,)
        for value in values:
            if isinstance(value, kind):
                found = call.argument(value, "") if isinstance(value, int) else call.argument(None, str(value))
                if found is not None:
                    yield found
