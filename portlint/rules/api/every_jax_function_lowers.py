"""A function of JAX is taken to be compiled by every back end.

Neuron's compiler has no `jax.lax.cond`, no sparse arrays, no `reduce_precision` and no exchange by DLPack. They work on
CPU, GPU and TPU, so nothing in the program says that it is tied to these.

## Exceptions
Code behind a test of the back end, functions whose error is caught, and files with Pallas kernels, which Neuron does not
run, are silent.

## References
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/jax/setup/jax-neuronx-known-issues.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, on_platform

rule = Rule(
    assumes={},
    message="'{text}' is not compiled by every back end of JAX; {target} has {fact}.",
    remedy={
        "*": "Compute both branches and choose with `jnp.where` or `jax.lax.select`; keep dense arrays, and pass them through NumPy between frameworks.",
    },
)

FACTS = {
    "api.jax_control_flow": "jax.lax.cond jax.lax.switch",
    "api.jax_dlpack": "jax.dlpack.from_dlpack jax.dlpack.to_dlpack",
    "api.jax_sparse": "jax.experimental.sparse.BCOO.fromdense jax.experimental.sparse.BCOO jax.experimental.sparse.BCSR "
    "jax.experimental.sparse.sparsify jax.experimental.sparse.bcoo_dot_general",
    "api.jax_reduce_precision": "jax.lax.reduce_precision",
}
BY_NAME = {name: fact for fact, listed in FACTS.items() for name in listed.split()}


@rule.calls(*BY_NAME)
def function(call: Node) -> Hits:
    if not call.role("guarded-call") and not call.source.imports("jax.experimental.pallas"):
        guards = (*call.guards, on_platform("neuron"))
        yield Hit(call["function"], {BY_NAME[call.name]: "native"}, guards=guards, language="jax")
