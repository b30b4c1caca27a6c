"""Pallas kernels: the blocks of their specs, the launches that get them, and what they add to."""

from __future__ import annotations

import pytest

from portlint.source import Source
from portlint.source.node import Node

HEAD = (
    "import functools\nimport jax\nfrom jax.experimental import pallas as pl\n"
    "from jax.experimental.pallas import tpu as pltpu\n"
)
KERNEL = "def kernel(x_ref, o_ref):\n    o_ref[...] += x_ref[...]\n"


def source(code: str) -> Source:
    return Source("code.py", (HEAD + code).encode(), "python")


def calls(code: str, name: str) -> list[Node]:
    return [one for one in source(code).root.walk("call") if one["function"].text == name]


@pytest.mark.parametrize(
    ("spec", "sides"),
    [
        ("pl.BlockSpec((8, 128), lambda i, j: (i, j))", [(8, True), (128, True)]),
        ("pl.BlockSpec((8, 128), lambda i, j: (i, 0))", [(8, True), (128, False)]),
        ("pl.BlockSpec((None, n), lambda i, j: (j, i))", [(1, True), (None, True)]),
        ("pl.BlockSpec(lambda i, j: (0, j), (8, 2 * 64))", [(8, False), (128, True)]),
        ("pl.BlockSpec(block_shape=(64,), index_map=lambda i, j: i)", [(64, True)]),
        ("pl.BlockSpec((8, 128), place)", [(8, False), (128, True)]),
        ("pl.BlockSpec((8, 128))", [(8, False), (128, False)]),
        ("pl.BlockSpec(shape)", []),
        ("pl.BlockSpec((*shape, 128), lambda i, j: (i, j))", []),
    ],
)
def test_the_dimensions_of_a_block(spec: str, sides: list[tuple[int | None, bool]]) -> None:
    code = (
        f"def place(i, j):\n    return 0, j\nspec = {spec}\npl.pallas_call(kernel, grid=(4, 4), in_specs=[spec])(x)\n"
    )
    (found,) = calls(code, "pl.BlockSpec")
    assert [(one.size, one.is_part) for one in found.sides] == sides


@pytest.mark.parametrize(
    ("code", "launches"),
    [
        ("pl.pallas_call(kernel, grid=(2,), in_specs=[pl.BlockSpec((8,), f)])(x)", 1),
        ("specs = [pl.BlockSpec((8,), f)]\npl.pallas_call(kernel, grid=(2,), in_specs=specs)(x)", 1),
        ("specs = []\nspecs.append(pl.BlockSpec((8,), f))\npl.pallas_call(kernel, in_specs=specs)(x)", 1),
        ("grid = pl.GridSpec(in_specs=[pl.BlockSpec((8,), f)])\npl.pallas_call(kernel, grid_spec=grid)(x)", 1),
        ("def spec():\n    return pl.BlockSpec((8,), f)\npl.pallas_call(kernel, in_specs=[spec()])(x)", 1),
        ("call = functools.partial(pl.pallas_call, kernel, in_specs=[pl.BlockSpec((8,), f)])", 1),
        ("pl.pallas_call(kernel, in_specs=[pl.BlockSpec((8,), f)], interpret=True)(x)", 0),
        ("pltpu.emit_pipeline(kernel, in_specs=[pl.BlockSpec((8,), f)])(x)", 0),
        ("SPEC = pl.BlockSpec((8,), f)", 0),
    ],
)
def test_a_spec_is_followed_to_its_launch(code: str, launches: int) -> None:
    (found,) = calls(f"{KERNEL}{code}\n", "pl.BlockSpec")
    assert len(found.launches) == launches


@pytest.mark.parametrize(
    ("grid", "index", "is_revisited"),
    [
        ("(4,)", "lambda i: (0, 0)", True),
        ("(4, 8)", "lambda i, k: (i, 0)", True),
        ("(4, 1)", "lambda i, k: (i, 0)", False),
        ("4", "lambda i: (i, 0)", False),
        ("pl.cdiv(n, 8)", "lambda i: (0, 0)", True),
        ("grid", "lambda i: (0, 0)", False),
        ("(4, 8)", "lambda *ij: (ij[0], 0)", False),
        ("(4, 8)", "place", False),
    ],
)
def test_an_output_that_keeps_its_place_is_revisited(grid: str, index: str, is_revisited: bool) -> None:
    code = (
        f"{KERNEL}pl.pallas_call(kernel, out, grid={grid}, in_specs=[a],"
        f" out_specs=pl.BlockSpec((8, 128), {index}))(x)\n"
    ).replace("out,", "jax.ShapeDtypeStruct(s, t),")
    (found,) = calls(code, "pl.pallas_call")
    assert bool(found.revisits) == is_revisited


def test_scratch_memory_and_bound_parameters_are_no_outputs() -> None:
    code = (
        "def kernel(x_ref, o_ref, kept_ref, steps):\n"
        "    kept_ref[...] += x_ref[...]\n    o_ref[...] = o_ref[...] + kept_ref[...]\n"
        "pl.pallas_call(functools.partial(kernel, steps=4), jax.ShapeDtypeStruct(s, t), grid=(4,),"
        " scratch_shapes=[pltpu.VMEM((8, 128), t)])(x)\n"
    )
    (found,) = calls(code, "pl.pallas_call")
    assert [one.text for one in found.revisits] == ["o_ref[...] = o_ref[...] + kept_ref[...]"]


@pytest.mark.parametrize(
    ("code", "is_kernel"),
    [
        ("def kernel(r):\n    here()\npl.pallas_call(kernel)(x)", True),
        ("def part(v):\n    here()\ndef kernel(r):\n    part(r[...])\npl.pallas_call(kernel)(x)", True),
        ("def kernel(r):\n    @pl.when(first)\n    def _():\n        here()\npl.pallas_call(kernel)(x)", True),
        ("@functools.partial(pl.pallas_call, grid=(4,))\ndef kernel(r):\n    here()", True),
        ("def kernel(r):\n    here()\npl.pallas_call(kernel, interpret=True)(x)", False),
        ("def other(r):\n    here()\npl.pallas_call(kernel)(x)", False),
    ],
)
def test_what_runs_in_a_kernel(code: str, is_kernel: bool) -> None:
    (found,) = calls(f"{code}\n", "here")
    assert found.role("pallas-kernel") == is_kernel


@pytest.mark.parametrize(
    ("given", "modules"),
    [
        ("scratch_shapes=[pltpu.VMEM((8, 128), t)]", {"tpu"}),
        ("compiler_params=params", {"tpu"}),
        ("backend='triton'", {"triton"}),
        ("backend=backend", set()),
        ("grid=(4,)", set()),
    ],
)
def test_the_back_end_that_a_launch_is_for(given: str, modules: set[str]) -> None:
    (found,) = calls(f"params = pltpu.CompilerParams()\npl.pallas_call(kernel, out, {given})(x)\n", "pl.pallas_call")
    assert found.launches[0].modules == modules
