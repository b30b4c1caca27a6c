"""How often JAX compiles a function that is made and jitted anew in each round, or that has a new static argument.

The cache is JAX's own and comes before any compiler, so the answer of any machine holds for all.

How it checks itself: the same function, made and jitted once, must be compiled once, and all must give the same number.

Proof: compile
"""

from _kernel import options, report

asked = options("shape.temporary_functions")

from _platform import jax, jnp

ROUNDS = 4
COMPILATION = "/jax/core/compile/backend_compile_duration"
compilations = 0


def count(event: str, _: float, **__: str) -> None:
    """Count what JAX says that it compiles."""
    global compilations  # noqa: PLW0603  (JAX calls this back)
    compilations += event == COMPILATION


jax.monitoring.register_event_duration_secs_listener(count)
numbers = jnp.arange(8.0)
total = float(jax.block_until_ready(numbers.sum()))


def counted(is_made_once: bool) -> tuple[int, bool]:
    """How many compilations the rounds take, and whether their results are right."""
    before, right = compilations, True
    kept = jax.jit(lambda x: (x * 2).sum())
    for _ in range(ROUNDS):
        step = kept if is_made_once else jax.jit(lambda x: (x * 2).sum())
        right = right and float(step(numbers)) == 2 * total
    return compilations - before, right


once, once_right = counted(True)
anew, anew_right = counted(False)
report(
    asked.fact,
    "slow" if anew >= ROUNDS else "native",
    checked=once == 1 and once_right and anew_right,
    detail=f"{anew} compilations in {ROUNDS} rounds, {once} where the function is made once",
    jax=jax.__version__,
)
