"""Which blocks of an array Pallas takes on a platform: sizes, ranks and numbers of elements.

How it checks itself: twice the smallest size that is taken must be taken as well, and for levels a block of (8, 128).

Proof: compile
"""

from _kernel import options, refuse, report

asked = options(
    "tile.block_last",
    "tile.block_second_last",
    "tile.block_rank1",
    "tile.block_rank0",
    "tile.block_of_any_size",
    "tile.triton_block_of_any_size",
)

from _pallas import accepts, blocked, of_values, triton_parameters
from _platform import Answer, compiled, jax, platform, shape

SIZES = tuple(2**power for power in range(12))
TIMES = 3 if platform(asked) == "tpu" else 1
"""TPU takes some powers of two besides, so it is asked for three times each size; Triton takes nothing but them"""
MANY = 4 * TIMES * SIZES[-1]
add_one = of_values(lambda values: values + 1)


def taken(whole: tuple[int, ...], block: tuple[int, ...]) -> Answer:
    """Whether Pallas takes a block of float32; rank 1 on TPU is its compiler's matter, not that of the lowering."""
    if len(whole) == 1 and platform(asked) == "tpu":
        return compiled(asked, blocked(add_one, whole, block), shape(*whole))
    return accepts(asked, add_one, whole, block)


def of_size(size: int) -> Answer:
    """A block with that size along the axis of the fact."""
    if asked.fact == "tile.block_last":
        return taken((64, MANY), (8, TIMES * size))
    if asked.fact == "tile.block_second_last":
        return taken((MANY, 256), (TIMES * size, 128))
    return taken((MANY,), (TIMES * size,))


if asked.level != "compile":
    refuse("blocks are a matter of the lowering: ask for --level compile")
measured: object
if asked.fact == "tile.block_rank0":
    answer = accepts(asked, add_one, (), ())
    measured, right = "native" if answer.accepted else "none", accepts(asked, add_one, (8, 128), (8, 128)).accepted
elif asked.fact.endswith("of_any_size"):
    more = {"compiler_params": triton_parameters()} if "triton" in asked.fact and platform(asked) != "tpu" else {}
    answer = accepts(asked, add_one, (64, 4 * 384), (8, 384), **more)
    measured, right = (
        "native" if answer.accepted else "none",
        accepts(asked, add_one, (64, 512), (8, 128), **more).accepted,
    )
else:
    answers = {size: of_size(size) for size in SIZES}
    measured = next((size for size, one in answers.items() if one.accepted), 0)
    answer = next((one for one in answers.values() if not one.accepted), answers[SIZES[-1]])
    right = measured > 0 and of_size(2 * measured).accepted
report(asked.fact, measured, checked=right, detail=answer.words, jax=jax.__version__)
