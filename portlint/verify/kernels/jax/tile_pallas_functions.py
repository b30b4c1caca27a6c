"""Which functions of jax.numpy and jax.lax Pallas lowers inside a kernel on a platform.

A fact that names several functions holds where all of them are lowered; --item asks for one.

How it checks itself: a kernel that only adds must be lowered in the same shape.

Proof: compile
"""

from collections.abc import Callable, Mapping
from typing import Any

from _kernel import options, refuse, report

FACTS = tuple(
    f"tile.{name}"
    for name in (
        "pallas_cumsum pallas_sort pallas_scatter pallas_reverse pallas_prod pallas_factorise pallas_dynamic_slice"
        " pallas_inverse_functions pallas_gamma pallas_windows integer_reductions"
    ).split()
)
asked = options(*FACTS)

from _pallas import accepts, of_values, pl
from _platform import jax, jnp

special = jax.scipy.special
Function = Callable[[Any], Any]
FUNCTIONS: Mapping[str, Mapping[str, Function]] = {
    "pallas_cumsum": {"cumsum": lambda x: jnp.cumsum(x, axis=-1)},
    "pallas_sort": {
        "sort": lambda x: jnp.sort(x, axis=-1),
        "argsort": lambda x: jnp.argsort(x, axis=-1),
        "top_k": lambda x: jax.lax.top_k(x, x.shape[-1])[0],
        "median": lambda x: jnp.median(x, axis=-1, keepdims=True),
    },
    "pallas_scatter": {"set": lambda x: x.at[0, 1].set(0.0)},
    "pallas_reverse": {"flip": lambda x: jnp.flip(x, axis=-1)},
    "pallas_prod": {"prod": lambda x: jnp.prod(x, axis=-1, keepdims=True)},
    "pallas_factorise": {"cholesky": jnp.linalg.cholesky, "qr": lambda x: jnp.linalg.qr(x)[0]},
    "pallas_dynamic_slice": {
        "dynamic_slice": lambda x: jax.lax.dynamic_slice(x, (pl.program_id(0), pl.program_id(1)), x.shape)
    },
    "pallas_inverse_functions": {
        name: getattr(jnp, name) for name in ("sinh", "cosh", "arcsin", "arctan", "cbrt", "expm1")
    },
    "pallas_gamma": {"lgamma": special.gammaln, "digamma": special.digamma, "erfc": special.erfc},
    "pallas_windows": {
        "cummax": lambda x: jax.lax.cummax(x, axis=1),
        "cummin": lambda x: jax.lax.cummin(x, axis=1),
        "reduce_window": lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2), (1, 1), "SAME"),
    },
    "integer_reductions": {
        "sum": lambda x: jnp.sum(x.astype(jnp.int32), axis=-1, keepdims=True),
        "max": lambda x: jnp.max(x.astype(jnp.int32), axis=-1, keepdims=True),
    },
}
BLOCK = (128, 128)

if asked.level != "compile":
    refuse("these are a matter of the lowering: ask for --level compile")
family = FUNCTIONS[asked.fact.removeprefix("tile.")]
wanted = [asked.item] if asked.item in family else list(family)
answers = {name: accepts(asked, of_values(family[name]), (256, 256), BLOCK) for name in wanted}
refused = {name: one.words for name, one in answers.items() if not one.accepted}
report(
    asked.fact,
    "none" if refused else "native",
    checked=accepts(asked, of_values(lambda x: x + 1), (256, 256), BLOCK).accepted,
    detail="; ".join(f"{name}: {words[:120]}" for name, words in refused.items()),
    jax=jax.__version__,
)
