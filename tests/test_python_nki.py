"""NKI kernels: their tiles, the extents of indices, and the products that are accumulated in a tile."""

from __future__ import annotations

import pytest

from portlint.source import Source
from portlint.source.node import Node

HEAD = (
    "import numpy as np\nimport neuronxcc.nki.compiler as ncc\nimport neuronxcc.nki.isa as nisa\n"
    "import neuronxcc.nki.language as nl\nN = 96\n"
)


def last(code: str, text: str) -> Node:
    """The last expression with that text."""
    found = [one for one in Source("code.py", (HEAD + code).encode(), "python").root.walk() if one.text == text]
    return found[-1]


@pytest.mark.parametrize(
    ("made", "buffer", "rows", "free", "dtype"),
    [
        ("nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.psum)", "psum", 128, 512, "bfloat16"),
        ("nl.zeros((N, 2, 64), nl.float32)", "sbuf", 96, 128, "float32"),
        ("nl.ndarray((4, nl.par_dim(128), n), dtype=np.float32, buffer=nl.sbuf)", "sbuf", 128, None, "float32"),
        ("nl.full((n, 8), 0, dtype='int8', buffer=nl.shared_hbm)", "hbm", None, 8, "int8"),
        ("nl.ndarray((128, 8), dtype=x.dtype, buffer='psum')", "psum", 128, 8, ""),
        ("nl.load(x[0:64, 0:32])", "sbuf", 64, 32, ""),
        ("nl.load(x[nl.ds(i, 64), k * 8 : (k + 1) * 8])", "sbuf", 64, 8, ""),
        ("nl.load(x[i, 0:32])", "sbuf", None, 32, ""),
    ],
)
def test_a_tile(made: str, buffer: str, rows: int | None, free: int | None, dtype: str) -> None:
    tile = last(f"tile = {made}\nuse(tile)\n", "tile").tile
    assert tile is not None
    assert (tile.buffer, tile.rows, tile.free, tile.dtype) == (buffer, rows, free, dtype)


def test_a_tile_is_the_last_that_a_name_was_given() -> None:
    tile = last("t = nl.zeros((64, 8), nl.int8)\nt = nl.zeros((32, 8), nl.int8)\nuse(t)\n", "t").tile
    assert tile is not None
    assert tile.rows == 32


def test_tiles_side_by_side() -> None:
    memory = "ncc.sbuf.mod_alloc(base_addr=1024, num_free_tiles=(2, 4))"
    tile = last(f"t = nl.ndarray((8, nl.par_dim(128), 16), nl.float32, buffer={memory})\nuse(t)\n", "t").tile
    assert tile is not None
    assert (tile.copies, tile.offset, tile.item_bytes) == (8, 1024, 4)


@pytest.mark.parametrize(
    ("part", "extent"),
    [
        ("0:N", 96),
        ("8:24", 16),
        ("s : s + 32", 32),
        ("i * N : (i + 1) * N", 96),
        ("i * N : (i + 2) * N", None),
        ("i * 8 : (i + 1) * 16", None),
        ("a:b", None),
        ("nl.ds(i, 32)", 32),
        ("t * 128 + p", 64),
        ("t * 128 + f", 512),
        ("c", 48),
        ("7", 1),
    ],
)
def test_the_extent_of_an_index(part: str, extent: int | None) -> None:
    grids = "p, f = nl.mgrid[0:64, 0:512]\nc = nl.arange(48)[:, None]\n"
    index = last(f"{grids}nl.load(x[{part}, 0:4])\n", part)
    assert index.selected == extent


@pytest.mark.parametrize(
    ("code", "products"),
    [
        ("acc += nisa.nc_matmul(a, b)", 1),
        ("acc[...] += nl.matmul(a, b, transpose_x=True)", 1),
        ("nisa.nc_matmul(acc, a, b)", 1),
        ("nisa.nc_matmul(dst=acc[...], stationary=a, moving=b)", 1),
        ("nisa.nc_matmul(dst=acc, stationary=a, moving=b, is_transpose=True)", 0),
        ("nisa.nc_matmul(acc[0:64, 0:8], a, b)", 0),
        ("nisa.nc_matmul(acc, b)", 0),
        ("acc += other", 0),
        ("acc = nl.zeros((128, 8), nl.float32)\nacc += nisa.nc_matmul(a, b)", 0),
    ],
)
def test_products_into_a_tile(code: str, products: int) -> None:
    made = "nl.zeros((128, 512), nl.float32, buffer=nl.psum)"
    assert len(last(f"acc = {made}\n{code}\n", made).products) == products
