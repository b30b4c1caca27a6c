"""Which element types the factorisations of jax.numpy.linalg take on a platform.

JAX of August 2026 and later looks at the type itself. What an older one lowers may still be slow and inexact.

How it checks itself: on a device, the factor of a matrix times its transpose must give the matrix again.

Proof: compile
"""

from typing import Any

from _kernel import options, report, said

asked = options("dtype.linear_algebra")

from _platform import described, device, jax, jnp, lowered, shape

TYPES = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16")
SIDE = 8

jax.config.update("jax_enable_x64", True)


def takes(name: str) -> tuple[bool, bool, str]:
    """Whether the routine takes a type, whether its answer is right, and what was said."""
    dtype: Any = getattr(jnp, name)
    if asked.level == "compile":
        answer = lowered(asked, jnp.linalg.cholesky, shape(SIDE, SIDE, dtype=dtype))
        return answer.accepted, True, answer.words
    matrix = jnp.eye(SIDE, dtype=dtype) * 4 + 1
    try:
        factor = jnp.linalg.cholesky(jax.device_put(matrix, device(asked)))
    except Exception as error:  # a refusal may be any exception
        return False, True, said(error)
    return True, bool(jnp.allclose(factor @ factor.conj().T, matrix, atol=1e-3)), ""


wanted = [asked.item] if asked.item in TYPES else list(TYPES)
answers = {name: takes(name) for name in wanted}
report(
    asked.fact,
    [name for name, (taken, _, _) in answers.items() if taken],
    checked=all(right for _, right, _ in answers.values()),
    detail="; ".join(f"{name}: {words[:100]}" for name, (_, _, words) in answers.items() if words),
    **({"jax": jax.__version__} if asked.level == "compile" else described(device(asked))),
)
