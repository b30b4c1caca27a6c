"""Whether a NeuronCore has the instructions of a generation: one of each family is called.

Written from the documentation of `nki.isa`; no compiler for it was at hand, so it has not run.

How it checks itself: NumPy says what the instruction must give, of numbers that are exact.

Proof: run
"""

from _kernel import level_of, options, report

asked = options("isa.nki.core_v3", "isa.nki.core_v4", "isa.nki.double_row", "isa.nki.mx", "dtype.mxfp8")

from _neuron import called, described, nisa, nki, nl, numpy

PARTITIONS, FREE = 128, 512


@nki.jit
def counts(source):
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    found = nl.ndarray((source.shape[0], source.shape[1] + 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(dst=found, value=0)
    nisa.nonzero_with_count(dst=found, src=tile)
    out = nl.ndarray(found.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=found)
    return out


@nki.jit
def raises(source):
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    power = nl.ndarray(source.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.exponential(dst=power, src=tile)
    out = nl.ndarray(source.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=power)
    return out


@nki.jit
def multiplies_rows(stationary, moving):
    left = nl.ndarray(stationary.shape, dtype=nl.float8_e4m3, buffer=nl.sbuf)
    right = nl.ndarray(moving.shape, dtype=nl.float8_e4m3, buffer=nl.sbuf)
    wide_left = nl.ndarray(stationary.shape, dtype=stationary.dtype, buffer=nl.sbuf)
    wide_right = nl.ndarray(moving.shape, dtype=moving.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=wide_left, src=stationary)
    nisa.dma_copy(dst=wide_right, src=moving)
    nisa.tensor_copy(dst=left, src=wide_left)
    nisa.tensor_copy(dst=right, src=wide_right)
    summed = nl.ndarray((stationary.shape[2], moving.shape[2]), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=summed, stationary=left, moving=right, perf_mode=nisa.matmul_perf_mode.double_row)
    kept = nl.ndarray(summed.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=kept, src=summed)
    out = nl.ndarray(summed.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=kept)
    return out


@nki.jit
def quantizes(source):
    tile = nl.ndarray(source.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    wide = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=wide, src=source)
    nisa.tensor_copy(dst=tile, src=wide)
    packed = nl.ndarray((source.shape[0], source.shape[1] // 4), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)
    scale = nl.ndarray((source.shape[0], source.shape[1] // 4), dtype=nl.uint8, buffer=nl.sbuf)
    nisa.quantize_mx(dst=packed, src=tile, dst_scale=scale)
    summed = nl.ndarray((source.shape[1] // 4, source.shape[1] // 4), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul_mx(dst=summed, stationary=packed, moving=packed, stationary_scale=scale, moving_scale=scale)
    kept = nl.ndarray(summed.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=kept, src=summed)
    out = nl.ndarray(summed.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=kept)
    return out


def counted() -> bool:
    """NeuronCore-v3: the indices of elements that are not zero, and their number."""
    line = numpy.arange(FREE, dtype=numpy.int32) % 4 == 0
    made = called(asked, counts, numpy.tile(line.astype(numpy.int32), (PARTITIONS, 1)))
    return bool(made[0, -1] == FREE // 4 and (made[0, : FREE // 4] == numpy.flatnonzero(line)).all())


def raised() -> bool:
    """NeuronCore-v4: the exponential on the vector engine."""
    made = called(asked, raises, numpy.zeros((PARTITIONS, FREE), numpy.float32))
    return bool((made == 1).all())


def multiplied() -> bool:
    """The contraction split over two rows of fp8."""
    ones = numpy.ones((PARTITIONS, 2, 64), numpy.float32)
    return bool((called(asked, multiplies_rows, ones, ones) == 2 * PARTITIONS).all())


def scaled() -> bool:
    """MX: ones, quantized and multiplied."""
    made = called(asked, quantizes, numpy.ones((PARTITIONS, 256), numpy.float32))
    return bool((made == 4 * PARTITIONS).all())


ATTEMPTS = {
    "isa.nki.core_v3": counted,
    "isa.nki.core_v4": raised,
    "isa.nki.double_row": multiplied,
    "isa.nki.mx": scaled,
    "dtype.mxfp8": scaled,
}
measured, right, words = level_of(ATTEMPTS[asked.fact])
report(asked.fact, measured, checked=right, detail=words, **described(asked))
