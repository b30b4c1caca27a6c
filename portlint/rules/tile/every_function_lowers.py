"""A Pallas kernel calls a function of JAX that its back end has no lowering for.

In a kernel only some primitives exist: on TPU none for running sums, sorting, products over an axis, reversal, updates of a
value by index, or factorisations; of the two back ends for GPUs Triton's has running sums and more elementary functions,
Mosaic's products over an axis. The interpreter runs them all, so the kernel fails when it is first compiled for the
machine: `Unimplemented primitive`.

## Exceptions
Kernels are known by their launch in the same file, with the functions that they call. A kernel that names things of one
back end is judged for that one only.

## References
https://docs.jax.dev/en/latest/pallas/tpu/details.html
https://github.com/jax-ml/jax/blob/cec06d11/jax/_src/pallas/triton/lowering.py
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, on_platform

rule = Rule(
    assumes={},
    message="'{text}' is called in a Pallas kernel; {target} has {fact}.",
    remedy={
        "*": "Compute it before or after `pallas_call`, or from what is lowered: a loop, a product with a triangular matrix of ones for running sums, `jnp.where` with `broadcasted_iota` for updates.",
    },
)

FACTS = {
    "cumsum": "jax.numpy.cumsum jax.lax.cumsum jax.numpy.cumprod jax.lax.cumprod",
    "sort": "jax.numpy.sort jax.numpy.argsort jax.lax.sort jax.lax.top_k jax.numpy.median jax.numpy.quantile "
    "jax.numpy.percentile jax.numpy.unique",
    "reverse": "jax.numpy.flip jax.numpy.fliplr jax.numpy.flipud jax.lax.rev jax.numpy.convolve",
    "prod": "jax.numpy.prod",
    "factorise": "jax.numpy.linalg.cholesky jax.numpy.linalg.qr jax.numpy.linalg.svd jax.numpy.linalg.eigh "
    "jax.numpy.linalg.inv jax.numpy.linalg.solve jax.numpy.linalg.det jax.scipy.linalg.cholesky "
    "jax.scipy.linalg.solve_triangular jax.lax.linalg.cholesky jax.lax.linalg.triangular_solve",
    "dynamic_slice": "jax.lax.dynamic_slice jax.lax.dynamic_update_slice jax.lax.dynamic_slice_in_dim "
    "jax.lax.dynamic_update_slice_in_dim jax.lax.dynamic_index_in_dim",
    "inverse_functions": "jax.numpy.sinh jax.numpy.cosh jax.numpy.arcsin jax.numpy.arctan jax.numpy.cbrt jax.numpy.expm1",
    "gamma": "jax.lax.lgamma jax.lax.digamma jax.lax.erfc jax.scipy.special.gammaln jax.scipy.special.digamma "
    "jax.scipy.special.erfc",
    "windows": "jax.lax.cummax jax.lax.cummin jax.lax.cumlogsumexp jax.lax.reduce_window",
}
BY_NAME = {name: f"tile.pallas_{fact}" for fact, listed in FACTS.items() for name in listed.split()}
PRODUCTS = frozenset(("jax.numpy.cumprod", "jax.lax.cumprod"))
"""running products: the Triton back end has the sums only"""


@rule.calls(*BY_NAME)
def function(call: Node) -> Hits:
    fact = "tile.pallas_windows" if call.name in PRODUCTS else BY_NAME[call.name]
    yield from _in_kernel(call, call["function"], fact)


@rule.calls(".set", ".add", ".multiply", ".max", ".min")
def update(call: Node) -> Hits:
    """`x.at[index].set(value)`."""
    place = call["function"]["object"]
    if place.type == "subscript" and place["value"].type == "attribute" and place["value"]["attribute"].text == "at":
        yield from _in_kernel(call, place["value"], "tile.pallas_scatter")


def _in_kernel(call: Node, place: Node, fact: str) -> Hits:
    if call.role("pallas-kernel") and not call.role("pallas-kernel-for-gpu"):
        guards = (*call.guards, on_platform("tpu")) if call.role("pallas-kernel-for-tpu") else call.guards
        yield Hit(place, {fact: "native"}, guards=guards, language="pallas")
