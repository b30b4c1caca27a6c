"""Compiled JAX code calls back into Python.

A callback sends values to the host in the middle of a program and waits for the answer. Neuron has no such channel, so
`jax.debug.print` and `checkify` fail there as well; on TPU the whole device waits, and some run times refuse the program:
`Unknown send channel for host callbacks`.

## Exceptions
Code behind a test of the back end is silent.

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
    "jax.debug.callback",
    "jax.experimental.io_callback",
    "jax.experimental.host_callback.call",
)
def callback(call: Node) -> Hits:
    yield Hit(call["function"], {"sync.host_callback": "native"}, language="jax")


@rule.calls("jax.debug.print", "jax.debug.breakpoint", "jax.experimental.checkify.checkify")
def debugging(call: Node) -> Hits:
    if not call.role("pallas-kernel"):
        yield Hit(call["function"], {"sync.debug_callback": "native"}, language="jax")
