"""The largest tiles that a NeuronCore takes: of operands and results of a product, of memories, of statistics.

Written from the documentation of `nki.isa`; no compiler for it was at hand, so it has not run.

How it checks itself: the products of ones must be the contraction, and copies what was copied.

Proof: run
"""

from typing import Any

from _kernel import largest, options, report, said

asked = options(
    "lanes.partitions",
    "tile.stationary_free",
    "tile.moving_free",
    "tile.contraction",
    "tile.psum_matmul_free",
    "tile.sbuf_free",
    "tile.psum_free",
    "tile.bn_stats_free",
    "tile.contraction_axis",
    "tile.masked_rows",
)

from _neuron import called, described, nisa, nki, nl, numpy

SIZES = tuple(2**power for power in range(5, 18))
words = ""


@nki.jit
def multiplies(stationary, moving):
    left = nl.ndarray(stationary.shape, dtype=stationary.dtype, buffer=nl.sbuf)
    right = nl.ndarray(moving.shape, dtype=moving.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=stationary)
    nisa.dma_copy(dst=right, src=moving)
    summed = nl.ndarray((stationary.shape[1], moving.shape[1]), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=summed, stationary=left, moving=right)
    kept = nl.ndarray(summed.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=kept, src=summed)
    out = nl.ndarray(summed.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=kept)
    return out


@nki.jit
def copies(source):
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    out = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def passes_psum(source):
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    between = nl.ndarray(source.shape, dtype=nl.float32, buffer=nl.psum)
    nisa.tensor_copy(dst=between, src=tile)
    nisa.tensor_copy(dst=tile, src=between)
    out = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def gathers_statistics(source):
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    found = nl.ndarray((source.shape[0], 6), dtype=nl.float32, buffer=nl.sbuf)
    nisa.bn_stats(dst=found, data=tile)
    out = nl.ndarray(found.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=found)
    return out


@nki.jit
def loads_half(source):
    tile = nl.ndarray((128, source.shape[1]), dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:64, :], src=source)
    out = nl.ndarray(tile.shape, dtype=source.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def ones(*sizes: int, dtype: str = "float32") -> object:
    """An array of ones."""
    return numpy.ones(sizes, dtype)


def product(contraction: int = 32, stationary: int = 32, moving: int = 32) -> bool:
    """Whether a product of ones of those sizes is right."""
    made = called(asked, multiplies, ones(contraction, stationary), ones(contraction, moving))
    return bool((made == contraction).all())


def copied(kernel: Any, *sizes: int, dtype: str = "float32") -> bool:
    """Whether ones of those sizes stay ones."""
    return bool((called(asked, kernel, ones(*sizes, dtype=dtype)) == 1).all())


def attempt(size: int) -> bool:
    """Whether a tile of that size comes out right, where it is not refused."""
    match asked.fact:
        case "lanes.partitions":
            return copied(copies, size, 8)
        case "tile.contraction":
            return product(contraction=size)
        case "tile.stationary_free":
            return product(stationary=size)
        case "tile.sbuf_free":
            return copied(copies, 32, size, dtype="uint8")
        case "tile.psum_free":
            return copied(passes_psum, 32, size)
        case "tile.bn_stats_free":
            means = called(asked, gathers_statistics, ones(32, size))[:, 1]
            return bool((means == 1).all())
        case _:
            return product(moving=size)


def fits(size: int) -> bool:
    """Whether a tile of that size works."""
    global words  # noqa: PLW0603  (the last refusal is what the report says)
    try:
        return attempt(size)
    except Exception as error:  # a refusal may be any exception
        words = said(error)
        return False


measured: object
if asked.fact == "tile.contraction_axis":
    left, moved = (numpy.arange(64.0, dtype="float32").reshape(32, 2) + start for start in (0, 1))
    is_over_partitions = (called(asked, multiplies, left, moved) == left.T @ moved).all()
    measured, right = "the partitions of both operands" if is_over_partitions else "another", product()
elif asked.fact == "tile.masked_rows":
    made = called(asked, loads_half, ones(64, 8))
    measured, right = "native" if (made[64:] == 0).all() else "none", bool((made[:64] == 1).all())
else:
    measured = largest(SIZES, fits)
    right = measured != 0
report(asked.fact, measured, checked=right, detail=words, **described(asked))
