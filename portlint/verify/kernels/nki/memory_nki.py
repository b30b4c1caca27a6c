"""How much SBUF and PSUM a kernel gets of one NeuronCore: the largest tiles that are allocated and used.

Written from the documentation of `nki.language`; no compiler for it was at hand, so it has not run.

How it checks itself: what was copied to the tile must come back from it.

Proof: run
"""

from _kernel import largest, options, report, said

asked = options(
    "memory.sbuf_partition_bytes",
    "memory.sbuf_bytes",
    "memory.psum_partition_bytes",
    "memory.psum_bytes",
    "memory.psum_banks",
    "memory.psum_bank_bytes",
)

from _neuron import called, described, nisa, nki, nl, numpy

PARTITIONS = 128
STEP = 2048
"""bytes: those of a PSUM bank"""
words = ""


@nki.jit
def fills_sbuf(source):
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    out = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def fills_psum(source):
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    between = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.psum)
    nisa.tensor_copy(dst=between, src=tile)
    nisa.tensor_copy(dst=tile, src=between)
    out = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def multiplies(ones):
    tile = nl.ndarray(ones.shape, dtype=ones.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=ones)
    summed = nl.ndarray((32, ones.shape[1]), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=summed, stationary=tile[:, 0:32], moving=tile)
    kept = nl.ndarray(summed.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=kept, src=summed)
    out = nl.ndarray(summed.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=kept)
    return out


def works(kernel: object, size: int, expected: int = 1) -> bool:
    """Whether a kernel works on that many bytes per partition."""
    global words  # noqa: PLW0603  (the last refusal is what the report says)
    try:
        return bool((called(asked, kernel, numpy.ones((PARTITIONS, size // 4), "float32")) == expected).all())
    except Exception as error:  # a refusal may be any exception
        words = said(error)
        return False


in_sbuf = "sbuf" in asked.fact
sizes = range(STEP, 512 * 1024 + 1, STEP) if in_sbuf else range(STEP, 64 * 1024 + 1, STEP)
per_partition = largest(sizes, lambda size: works(fills_sbuf if in_sbuf else fills_psum, size))
measured = per_partition
if asked.fact.endswith(("sbuf_bytes", "psum_bytes")):
    measured = per_partition * PARTITIONS
elif "bank" in asked.fact:
    bank = largest([2**power for power in range(8, 15)], lambda size: works(multiplies, size, PARTITIONS))
    measured = bank if asked.fact == "memory.psum_bank_bytes" else per_partition // max(bank, 1)
report(asked.fact, measured, checked=measured > 0, detail=words, **described(asked))
