"""What heads of 64 elements cost on a TPU beside those of 128: the bytes that libtpu gives arrays of both.

How it checks itself: the arrays of 128 must take the bytes of their elements, no more.

Proof: compile
"""

from _kernel import options, refuse, report

asked = options("shape.width_not_128")

from _platform import compiled, jax, jnp, shape

HEADS, LENGTH, WIDTH = 8, 1000, 128

if asked.level != "compile":
    refuse("layouts are the compiler's matter: ask for --level compile")


def scores(x: jax.Array) -> jax.Array:
    """Products of all rows of a head with each other."""
    return jnp.einsum("hqd,hkd->hqk", x, x)


whole = compiled(asked, scores, shape(HEADS, LENGTH, WIDTH))
half = compiled(asked, scores, shape(HEADS, LENGTH, WIDTH // 2))
measured = "slow" if half.arguments_bytes > whole.arguments_bytes // 2 else "native"
report(
    asked.fact,
    measured,
    checked=whole.arguments_bytes == HEADS * LENGTH * WIDTH * 4,
    detail=f"{half.arguments_bytes} bytes for width {WIDTH // 2}, {whole.arguments_bytes} for {WIDTH}",
    jax=jax.__version__,
)
