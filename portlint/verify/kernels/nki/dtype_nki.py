"""Which element types NKI copies and computes with, and which a product may be stored in.

Written from the documentation of `nki.language`; no compiler for it was at hand, so it has not run.

How it checks itself: ones must stay ones, and a product of ones be the contraction; float32 must be among the types.

Proof: run
"""

from _kernel import options, report, said

asked = options("dtype.nki", "dtype.matmul_result")

from _neuron import called, described, nisa, nki, nl, numpy

TYPES = (
    "uint8 int8 uint16 int16 uint32 int32 float8_e4m3 float8_e5m2 float8_e4m3fn float8_e8m0fnu"
    " float16 bfloat16 tfloat32 float32 bool_"
).split()
RESULTS = ("float32", "bfloat16", "float16")
SIDE = 32


@nki.jit
def converts(source, dtype):
    wide = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=wide, src=source)
    tile = nl.ndarray(source.shape, dtype=dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=wide)
    nisa.tensor_copy(dst=wide, src=tile)
    out = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=wide)
    return out


@nki.jit
def multiplies(source, dtype):
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    summed = nl.ndarray(source.shape, dtype=dtype, buffer=nl.psum)
    nisa.nc_matmul(dst=summed, stationary=tile, moving=tile)
    nisa.tensor_copy(dst=tile, src=summed)
    out = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


is_result = asked.fact == "dtype.matmul_result"
kernel, names, expected = (multiplies, RESULTS, SIDE) if is_result else (converts, TYPES, 1)
ones = numpy.ones((SIDE, SIDE), "float32")
taken, words = [], []
for name in [asked.item] if asked.item in names else names:
    try:
        if (called(asked, kernel, ones, getattr(nl, name)) == expected).all():
            taken.append(name.rstrip("_"))
    except Exception as error:  # a refusal may be any exception
        words.append(f"{name}: {said(error)[:80]}")
report(asked.fact, taken, checked=bool(asked.item) or "float32" in taken, detail="; ".join(words), **described(asked))
