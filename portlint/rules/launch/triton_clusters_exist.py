"""A Triton kernel asks for clusters of thread blocks whatever the machine.

`num_ctas` above 1 takes a cluster: Hopper and later NVIDIA GPUs have them. Elsewhere the compiler stops with an error, which
the autotuner does not catch either.

## References
https://triton-lang.org/main/python-api/generated/triton.Config.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"launch.triton_num_ctas": "native"},
    message="'{text}' asks for clusters of thread blocks; {target} has {fact}.",
    remedy={
        "*": "Leave `num_ctas` at 1, and list the configurations with more of them where `get_current_target()` says that clusters exist."
    },
)


@rule.calls("triton.Config")
def configuration(call: Node) -> Hits:
    yield from _clusters(call, call.argument(3, "num_ctas"))


@rule.python("(call function: (subscript)) @call", mentions=("num_ctas",))
def launch(call: Node) -> Hits:
    if call.source.imports("triton"):
        yield from _clusters(call, call.argument(None, "num_ctas"))


def _clusters(call: Node, count: Node | None) -> Hits:
    for value in count.choices if count is not None else ():
        if isinstance(value.constant, int) and value.constant > 1:
            yield Hit(value, guards=(*call.guards, *value.guards), language="triton")
