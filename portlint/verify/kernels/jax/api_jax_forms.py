"""Which functions of JAX, and which forms of XLA's operators, a device compiles; Neuron's compiler refuses some.

A fact that names several functions holds where all of them are compiled; --item asks for one.

How it checks itself: each result is compared with one that is made another way, of numbers that are exact.

Proof: run
"""

from collections.abc import Callable, Mapping
from typing import Any

from _kernel import level_of, need, options, report

asked = options(
    "api.integer_topk",
    "api.dilated_input",
    "api.dilated_windows",
    "api.joint_windows",
    "api.random_algorithms",
    "api.jax_control_flow",
    "api.jax_dlpack",
    "api.jax_sparse",
    "api.jax_reduce_precision",
)

from _platform import INSTALL, described, device, jax, jnp

lax = jax.lax
where = device(asked)
LINE = jax.device_put(jnp.arange(8.0), where)
INTEGERS = jax.device_put(jnp.array([3, 1, 2, 7, 5, 4, 6, 0]), where)
IMAGE = jax.device_put(jnp.ones((1, 1, 8, 8)), where)
Attempt = Callable[[], bool]


def made(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The result of a compiled function."""
    out: list[Any] = jax.jit(function)(*arguments).tolist()
    return out


def dilated_convolution() -> bool:
    """A convolution with both sides dilated, of ones: the corner of the result sees one element."""

    def convolve(x: Any) -> Any:
        return lax.conv_general_dilated(
            x, x[:, :, :2, :2], (1, 1), [(1, 1)] * 2, lhs_dilation=(2, 2), rhs_dilation=(2, 2)
        )

    result = jax.jit(convolve)(IMAGE)
    return float(result.max()) == 4.0 and result.shape == (1, 1, 15, 15)


def joint_windows() -> bool:
    """The largest and the smallest of pairs, in one reduction."""

    def both(x: Any, y: Any) -> Any:
        pair = lax.reduce_window(
            (x, y), (-1.0, 9.0), lambda a, b: (lax.max(a[0], b[0]), lax.min(a[1], b[1])), (2,), (2,), "VALID"
        )
        return jnp.stack(pair)

    return made(both, LINE, LINE) == [[1.0, 3.0, 5.0, 7.0], [0.0, 2.0, 4.0, 6.0]]


def dilated_windows() -> bool:
    """Sums of elements that are two apart."""

    def sums(x: Any) -> Any:
        return lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID", window_dilation=(2,))

    return made(sums, LINE) == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]


def random_bits() -> bool:
    """Bits of a named algorithm: the same for the same key."""

    def bits(key: Any) -> Any:
        return lax.rng_bit_generator(key, (8,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)[1]

    key = jax.device_put(jnp.arange(2, dtype=jnp.uint32).repeat(2), where)
    return made(bits, key) == made(bits, key)


def dlpack() -> bool:
    """An array that is handed over without a copy."""
    return bool((jax.dlpack.from_dlpack(LINE) == LINE).all())


def sparse() -> bool:
    """A product of a sparse matrix."""
    dense = jnp.diag(LINE)
    matrix = need("jax.experimental.sparse", INSTALL).BCOO.fromdense(dense)
    return made(lambda m, x: m @ x, matrix, LINE) == [float(number**2) for number in range(8)]


FORMS: Mapping[str, Mapping[str, Attempt]] = {
    "integer_topk": {"top_k": lambda: made(lambda x: lax.top_k(x, 3)[0], INTEGERS) == [7, 6, 5]},
    "dilated_input": {"conv_general_dilated": dilated_convolution},
    "dilated_windows": {"reduce_window": dilated_windows},
    "joint_windows": {"reduce_window": joint_windows},
    "random_algorithms": {"rng_bit_generator": random_bits},
    "jax_control_flow": {
        "cond": lambda: made(lambda x: lax.cond(x[0] > 0, lambda: x, lambda: -x), LINE) == [-i for i in range(8)],
        "switch": lambda: (
            made(lambda x: lax.switch(x[1].astype(int), [lambda: x, lambda: x + 1]), LINE) == [i + 1 for i in range(8)]
        ),
    },
    "jax_dlpack": {"from_dlpack": dlpack},
    "jax_sparse": {"BCOO": sparse},
    "jax_reduce_precision": {
        "reduce_precision": lambda: (
            made(lambda x: lax.reduce_precision(x + 2.0**-12, 8, 7), LINE)[1:] == list(range(1, 8))
        )
    },
}

family = FORMS[asked.fact.removeprefix("api.")]
wanted = [asked.item] if asked.item in family else list(family)
answers = {name: level_of(family[name]) for name in wanted}
report(
    asked.fact,
    "native" if all(level == "native" for level, _, _ in answers.values()) else "none",
    checked=all(right for _, right, _ in answers.values()),
    detail="; ".join(f"{name}: {words}" for name, (_, _, words) in answers.items() if words),
    **described(where),
)
