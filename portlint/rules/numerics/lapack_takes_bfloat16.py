"""A matrix in bfloat16 or float16 is factorised.

The libraries behind `jnp.linalg` know float32 and float64 only. JAX refuses 16-bit types when it traces the call, older
releases when they lower it for a CPU or run it on a GPU; on TPU those went through a slow and inexact fallback, as triangular
solves still do everywhere. A model in bfloat16 brings its type along, and the cast is missing.

## Exceptions
Only values whose type the code states are judged; norms and products take any type.

## References
https://github.com/jax-ml/jax/commit/be2f36d07e2566ff7789e3a6c74dce12acc942cd
https://github.com/jax-ml/jax/issues/38825
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, has

rule = Rule(
    assumes={},
    message="'{text}' works on {assumed} values; {target} has {fact}.",
    remedy={"*": "Convert to float32 before the factorisation, `x.astype(jnp.float32)`, and convert the result back."},
)

FACTORISATIONS = [
    *(
        f"jax.numpy.linalg.{name}"
        for name in "cholesky det eig eigh eigvals eigvalsh inv lstsq matrix_rank pinv qr slogdet solve svd svdvals".split()
    ),
    *(
        f"jax.scipy.linalg.{name}"
        for name in "cho_factor cholesky det eigh expm inv lu lu_factor qr schur solve svd".split()
    ),
    *(f"jax.lax.linalg.{name}" for name in "cholesky eig eigh lu qr schur svd".split()),
]
TRIANGULAR = ["jax.scipy.linalg.solve_triangular", "jax.lax.linalg.triangular_solve"]
OF_TWO = frozenset(("solve", "lstsq"))
NARROW = ("bfloat16", "float16")


@rule.calls(*FACTORISATIONS)
def factorisation(call: Node) -> Hits:
    operands = call.arguments[: 2 if call.name.rpartition(".")[2] in OF_TWO else 1]
    dtype = _narrow(operands)
    if dtype:
        yield Hit(call, {"dtype.linear_algebra": has(dtype)}, language="jax")


@rule.calls(*TRIANGULAR)
def triangular(call: Node) -> Hits:
    dtype = _narrow(call.arguments[:2])
    if dtype:
        yield Hit(call, {"dtype.linear_algebra": has(dtype)}, otherwise="degrades", language="jax")


def _narrow(operands: list[Node]) -> str:
    """The 16-bit type that all operands have; a wider one would win."""
    return next((one for one in NARROW if operands and all(operand.role(one) for operand in operands)), "")
