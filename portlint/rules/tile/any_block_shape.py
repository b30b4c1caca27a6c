"""A Pallas kernel cuts its arrays into blocks of any shape.

On TPU an array lies in tiles of 8 by 128 elements, and the last two dimensions of a block must divide by those, whatever
the element type, or be those of the whole array; blocks of rank 1 have rules of their own, and of rank 0 there are none.
A block of (2, 64) is refused when the kernel is lowered. On GPUs the Triton back end, the only one for AMD's, takes any
such block, but loads only powers of two; Mosaic GPU, JAX's choice for NVIDIA's, takes any.

## Exceptions
Only dimensions that are constants are judged, and of arrays whose shape the file does not say only those along which
the index map moves the block: one at index 0 may be the whole array. Kernels that say that they are for GPUs are silent, and so are blocks of a pipeline inside a kernel.

## References
https://docs.jax.dev/en/latest/pallas/grid_blockspec.html
"""

from __future__ import annotations

import math

from portlint.rule import Array, Assumed, Hit, Hits, Node, Rule, Side, at_least, divides, dtype_bytes

rule = Rule(
    assumes={},
    message="'{text}' is a part of an array as a Pallas block; {target} has {fact}.",
    remedy={
        "tpu": "Make the last two block dimensions multiples of (8, 128), or those of the whole array, and pad the array to whole blocks; give a single number as an array of shape (1, 1), with `memory_space=pltpu.SMEM` in its block spec.",
        "*": "Make the number of elements of a block a power of two, and mask what lies past the array.",
    },
)

TRITON = ("triton", "gpu")
CHUNK = 1024
"""elements from which powers of two are whole rows for any type"""
WIDEST = 4
"""bytes of an element whose type is not known: those of the widest on TPU, of which the smallest blocks are taken"""


@rule.calls("jax.experimental.pallas.BlockSpec")
def block(call: Node) -> Hits:
    launches, shape = call.launches, _shape(call)
    if shape is None or all(launch.is_for_gpu for launch in launches):
        return
    for array in {cut.array: None for launch in launches for cut in launch.cuts if cut.spec == call} or [Array()]:
        parts = _parts(call.sides, array)
        assumes = _of_rank_1(parts[0], array) if len(parts) == 1 else _of_last_two(parts[-1:], parts[-2:-1])
        if assumes:
            yield Hit(shape, assumes, language="pallas")


@rule.calls("jax.experimental.pallas.BlockSpec")
def scalar(call: Node) -> Hits:
    shape, launches = call.argument(0, "block_shape"), call.launches
    is_empty = shape is not None and shape.type == "tuple" and not shape.children
    if all(launch.is_for_gpu for launch in launches):
        return
    if shape is not None and is_empty and call.argument(None, "memory_space") is None:
        yield Hit(shape, assumes={"tile.block_rank0": "native"}, language="pallas")


@rule.calls("jax.experimental.pallas.BlockSpec")
def block_on_gpu(call: Node) -> Hits:
    sides = [side for side in call.sides if side.size != 1]
    sizes = [side.size for side in sides if side.size is not None and side.is_part]
    shape = _shape(call)
    is_power = math.prod(sizes).bit_count() == 1
    if shape is not None and sides and len(sizes) == len(sides) and not is_power and _is_loaded_whole(call):
        is_triton = any(not launch.modules.isdisjoint(TRITON) for launch in call.launches)
        fact = "tile.triton_block_of_any_size" if is_triton else "tile.block_of_any_size"
        yield Hit(shape, assumes={fact: "native"}, language="pallas")


def _shape(spec: Node) -> Node | None:
    """The shape of a block spec, which came after the index map before JAX 0.4.31."""
    given = (spec.argument(position, "block_shape") for position in (0, 1))
    return next((one for one in given if one is not None and one.type != "lambda"), None)


def _of_last_two(last: list[int | None], before: list[int | None]) -> dict[str, Assumed]:
    sizes = {"tile.block_last": last[0] if last else None, "tile.block_second_last": before[0] if before else None}
    return {fact: divides(size) for fact, size in sizes.items() if size is not None}


def _parts(sides: list[Side], array: Array) -> list[int | None]:
    """The sizes of a block where they are not those of the array, by its shape, or because the block moves."""
    lengths = array.shape if len(array.shape) == len(sides) else (None,) * len(sides)
    is_part = [
        side.is_part if length is None else side.size != length for side, length in zip(sides, lengths, strict=True)
    ]
    return [side.size if one else None for side, one in zip(sides, is_part, strict=True)]


def _of_rank_1(size: int | None, array: Array) -> dict[str, Assumed]:
    """A block of rank 1 may be a power of two from one row on, too."""
    if size is None:
        return {}
    if size.bit_count() == 1 and size < CHUNK:
        return {"tile.block_rank1_bytes": at_least(size * dtype_bytes(array.dtype, WIDEST))}
    return {"tile.block_rank1": divides(size)}


def _is_loaded_whole(spec: Node) -> bool:
    """Whether a kernel reads whole blocks, and not for a backend that takes any size."""
    kernels = [launch.kernel for launch in spec.launches if not launch.modules & {"mosaic_gpu", "tpu"}]
    return any(
        kernel is not None and any(one.text.endswith("[...]") for one in kernel["body"].walk("subscript"))
        for kernel in kernels
    )
