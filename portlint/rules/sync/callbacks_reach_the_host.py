"""Compiled JAX code calls back into Python.

A callback sends values to the host in the middle of a program and waits for the answer. Neuron has no such channel, so
`jax.debug.print`, `jax.debug.callback` and `checkify` fail there as well; on TPU the whole device waits where a result
comes back, and some run times refuse the program: `Unknown send channel for host callbacks`.

## Exceptions
Code behind a test of the back end is silent. In tests and benchmarks a callback only has to work.

## References
https://docs.jax.dev/en/latest/external-callbacks.html
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/jax/setup/jax-neuronx-known-issues.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={},
    message="'{text}' runs Python code on the host from a compiled program; {target} has {fact}.",
    remedy={
        "neuron": "Return the value from the jitted function, and look at it there.",
        "*": "Return the value from the jitted function and call Python there, or write the callback with `jax.numpy`; keep callbacks for debugging behind a flag.",
    },
)


@rule.calls(
    "jax.pure_callback",
    "jax.experimental.io_callback",
    "jax.experimental.host_callback.call",
)
def callback(call: Node) -> Hits:
    has_to_be_fast = not call.role("test") and not call.role("measures")
    fact = "sync.host_callback" if has_to_be_fast else "sync.debug_callback"
    yield Hit(call["function"], {fact: "native"}, language="jax")


@rule.calls("jax.debug.callback", "jax.debug.print", "jax.debug.breakpoint", "jax.experimental.checkify.checkify")
def debugging(call: Node) -> Hits:
    if not call.role("pallas-kernel"):
        yield Hit(call["function"], {"sync.debug_callback": "native"}, language="jax")
