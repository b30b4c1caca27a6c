"""Whether a traced function may have a shape, or take a branch, that depends on the values of its arguments.

Tracing is JAX's own and comes before any compiler, so the answer of any machine holds for all.

How it checks itself: the same function must work on the values themselves, and give what Python says; and its static
form, with a size or with `jnp.where`, must be traced.

Proof: compile
"""

from _kernel import options, report, said

asked = options("shape.traced_data_dependent", "shape.traced_branches")

from _platform import jax, jnp

NUMBERS = jnp.arange(-3.0, 4.0)


def positive(x: jax.Array) -> jax.Array:
    """The positive elements."""
    return x[x > 0]


def turned(x: jax.Array) -> jax.Array:
    """The elements, with the sign of their sum."""
    return x if x.sum() > 0 else -x


is_branch = asked.fact == "shape.traced_branches"
function = turned if is_branch else positive
static = (lambda x: jnp.where(x.sum() > 0, x, -x)) if is_branch else (lambda x: jnp.nonzero(x > 0, size=3)[0])
expected = (-NUMBERS).tolist() if is_branch else [1.0, 2.0, 3.0]
measured, words = "none", ""
try:
    jax.jit(function)(NUMBERS)
    measured = "native"
except (jax.errors.TracerBoolConversionError, jax.errors.NonConcreteBooleanIndexError) as error:
    words = said(error)
right = function(NUMBERS).tolist() == expected and jax.jit(static)(NUMBERS) is not None
report(asked.fact, measured, checked=right, detail=words, jax=jax.__version__)
