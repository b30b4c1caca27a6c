"""What portlint says of Pallas blocks on TPU, against JAX's lowering and, for memory, libtpu's compiler.

Neither needs a device. The lowering is part of JAX for any platform; without JAX, and for memory without libtpu, the
tests skip.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import msgspec
import pytest
from harness import rules, scan

if find_spec("jax") is None:  # not imported here: workers that later tests fork would carry it
    pytest.skip("JAX is not installed", allow_module_level=True)

COMPILER = Path(__file__).with_name("compile_pallas.py")
KINDS = {"tpu-v5e": "TPU v5 lite", "tpu-v6e": "TPU v6 lite"}
TOPOLOGIES = {"tpu-v5e": "v5e:2x2", "tpu-v6e": "v6e:2x2"}
REFUSALS = ("Pallas TPU lowering", "vmem")
"""what an error is about that a finding can agree with"""
LIMIT_S = 1800
AGREEMENT = 0.98

HEAD = """import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
"""
COPY = """

def _copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]
"""

MiB = 1 << 20


class Case(msgspec.Struct, frozen=True):
    """A program, and the arrays that it is launched with."""

    name: str
    program: str
    arrays: list[tuple[tuple[int, ...], str]]


FORMS = {
    # makes the array
    "made": """

def launch():
    x = jnp.zeros({shape}, jnp.{dtype})
    return pl.pallas_call(
        _copy,
        grid={grid},
        in_specs=[{spec}],
        out_specs={spec},
        out_shape=jax.ShapeDtypeStruct({shape}, jnp.{dtype}),
    )(x)
""",
    # says of the result what shape it has
    "given": """

def launch(x):
    return pl.pallas_call(
        _copy,
        grid={grid},
        in_specs=[{spec}],
        out_specs={spec},
        out_shape=jax.ShapeDtypeStruct({shape}, jnp.{dtype}),
    )(x)
""",
    # names everything
    "named": """

SHAPE = {shape}
BLOCK = {block}


def launch(x):
    spec = pl.BlockSpec(BLOCK, lambda {names}: ({index},))
    grids = pl.GridSpec(grid={grid}, in_specs=[spec], out_specs=spec)
    return pl.pallas_call(_copy, grid_spec=grids, out_shape=jax.ShapeDtypeStruct(SHAPE, x.dtype))(x)
""",
    # says nothing
    "like": """

def launch(x):
    spec = {spec}
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(_copy, grid={grid}, in_specs=[spec], out_specs=spec, out_shape=result)(x)
""",
}
"""how a file says what is cut"""


def cut(
    shape: tuple[int, ...], block: tuple[int | None, ...], moves: tuple[bool, ...], dtype: str, form: str = "made"
) -> Case:
    """A copy in blocks, which the grid moves along some dimensions."""
    axes = [position for position, moved in enumerate(moves) if moved]
    steps = [-(-shape[axis] // (block[axis] or 1)) for axis in axes]
    index = ", ".join(f"i{axes.index(axis)}" if moved else "0" for axis, moved in enumerate(moves))
    names = ", ".join(f"i{position}" for position in range(len(axes)))
    launch = FORMS[form].format(
        shape=shape,
        block=block,
        dtype=dtype,
        names=names,
        index=index,
        spec=f"pl.BlockSpec({block}, lambda {names}: ({index},))",
        grid=f"({''.join(f'{step}, ' for step in steps)})",
    )
    arrays = [] if form == "made" else [(shape, dtype)]
    return Case(f"{form} {dtype} {shape} in {block} along {axes}", HEAD + COPY + launch, arrays)


def blocks() -> list[Case]:
    """Blocks of rank 1 to 3: whole, dividing or not, of every packing, with sub-tile sides."""
    found: list[Case] = []
    for size, dtype in product((64, 100, 128, 256, 384, 512, 1000, 1024, 1536, 2048), ("float32", "bfloat16", "int8")):
        found.append(cut((12288,), (size,), (True,), dtype))
    found += [cut((size,), (size,), (False,), dtype) for size in (7, 100, 1000) for dtype in ("float32", "int8")]
    found += [cut((4096,), (512,), (True,), dtype, "given") for dtype in ("float32", "float8_e4m3fn", "uint8", "int32")]
    sides = product((1, 4, 8, 12, 32), (64, 100, 128))
    for (rows, columns), (form, dtype) in product(
        sides, (("made", "float32"), ("given", "bfloat16"), ("named", "int8"))
    ):
        found += [
            cut((96, 512), (rows, columns), (True, True), dtype, form),
            cut((96, columns), (rows, columns), (True, False), dtype, form),
            cut((rows, 512), (rows, columns), (False, True), dtype, form),
            cut((rows, columns), (rows, columns), (False, False), dtype, form),
        ]
    # the first block along a dimension that the grid leaves alone is not the whole of it
    for (rows, columns), form in product(((8, 64), (8, 100), (4, 128), (12, 256), (16, 128)), ("made", "given")):
        found += [
            cut((96, 512), (rows, columns), (True, False), "float32", form),
            cut((96, 512), (rows, columns), (False, True), "float32", form),
        ]
    of_rank_3 = (
        (1, 8, 128), (None, 8, 128), (3, 8, 256), (2, 4, 128), (None, 16, 64), (1, 1, 128), (None, None, 128),
        (5, 32, 512),
    )  # fmt: skip
    for block, dtype in product(of_rank_3, ("float32", "bfloat16", "uint8")):
        found += [
            cut((30, 64, 512), block, (True, True, True), dtype),
            cut((30, 64, 512), block, (True, True, True), dtype, "given"),
            cut((30, block[1] or 1, 512), block, (True, False, True), dtype),
        ]
    # where the file says nothing of the array, a block that stays may be the whole of it
    for rows, columns in ((8, 128), (8, 64), (4, 128), (16, 256)):
        found += [cut((96, 512), (rows, columns), moves, "float32", "like") for moves in ((True, True), (True, False))]
    found += [cut((12288,), (size,), (True,), "bfloat16", "like") for size in (64, 128, 256, 1000)]
    return found


SCALED = """

def _scale(x_ref, w_ref, o_ref, kept_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        kept_ref[...] = w_ref[...] * 2

    o_ref[...] = x_ref[...] + jnp.sum(kept_ref[...])
"""


FORWARDED = """

def _scale(x_ref, w_ref, o_ref, kept_ref):
    kept_ref[...] = w_ref[...] * 2
    o_ref[...] = x_ref[...] + jnp.sum(kept_ref[...])
"""


def in_memory(kernel: str, rows: int, weights: int, dtype: str) -> Case:
    """A launch that keeps moving blocks twice, and weights and scratch memory once."""
    launch = f"""

def launch(x, w):
    return pl.pallas_call(
        _scale,
        grid=(4,),
        in_specs=[pl.BlockSpec(({rows}, 1024), lambda i: (i, 0)), pl.BlockSpec(({weights}, 1024), lambda i: (0, 0))],
        out_specs=pl.BlockSpec(({rows}, 1024), lambda i: (i, 0)),
        scratch_shapes=[pltpu.VMEM(({weights}, 1024), jnp.{dtype})],
        out_shape=jax.ShapeDtypeStruct(({4 * rows}, 1024), jnp.{dtype}),
    )(x, w)


def main():
    x = jnp.ones(({4 * rows}, 1024), jnp.{dtype})
    w = jnp.ones(({weights}, 1024), jnp.{dtype})
    return launch(x, w)
"""
    arrays = [((4 * rows, 1024), dtype), ((weights, 1024), dtype)]
    kind = "kept" if kernel == SCALED else "forwarded"
    return Case(f"{dtype} blocks of {rows} rows, {weights} of {kind} weights", HEAD + kernel + launch, arrays)


def copied(rows: int, dtype: str, limit: int = 0) -> Case:
    """A copy in blocks of whole rows, or, with no rows, of a whole array."""
    asked = f"\n        compiler_params=pltpu.CompilerParams(vmem_limit_bytes={limit})," if limit else ""
    launch = f"""

def launch(x):
    spec = pl.BlockSpec(({rows}, 1024), lambda i: (i, 0))
    return pl.pallas_call(
        _copy,
        grid=(4,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(({4 * rows}, 1024), jnp.{dtype}),{asked}
    )(x)


def main():
    return launch(jnp.ones(({4 * rows}, 1024), jnp.{dtype}))
"""
    name = f"{dtype} {rows} rows{f' within {limit}' if limit else ''}"
    return Case(name, HEAD + COPY + launch, [((4 * rows, 1024), dtype)])


def whole(rows: int, dtype: str) -> Case:
    launch = f"""

def launch(x):
    return pl.pallas_call(_copy, out_shape=jax.ShapeDtypeStruct(({rows}, 1024), jnp.{dtype}))(x)


def main():
    return launch(jnp.ones(({rows}, 1024), jnp.{dtype}))
"""
    return Case(f"{dtype} whole {rows} rows", HEAD + COPY + launch, [((rows, 1024), dtype)])


def budgets() -> list[Case]:
    """Launches around the limits of both generations, and far from them."""
    sizes = {"float32": 4, "bfloat16": 2}
    mebibytes = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 20)
    found = [copied(mib * MiB // 1024 // item, dtype) for mib in mebibytes for dtype, item in sizes.items()]
    found += [whole(mib * MiB // 1024 // 4, "float32") for mib in (2, 6, 9, 12, 15, 17, 40)]
    weights = product((1, 2), (2, 4, 5, 7, 12, 14))
    found += [in_memory(SCALED, mib * 256, size * 256, "float32") for mib, size in weights]
    found += [in_memory(FORWARDED, 256, size * 256, "float32") for size in (2, 7)]
    found += [copied(mib * MiB // 4096, "float32", 100 * MiB) for mib in (6, 20)]
    return found


def asked(cases: list[Case], targets: dict[str, str]) -> list[dict[str, dict]]:
    """What the compiler says of each case, by target."""
    requests = [
        json.dumps({"program": case.program, "arrays": case.arrays, "target": kind})
        for case in cases
        for kind in targets.values()
    ]
    run = subprocess.run(
        [sys.executable, str(COMPILER)],
        input="".join(f"{one}\n" for one in requests),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(answers) == len(requests), run.stderr[-2000:]
    others = [one for one in answers if "error" in one and not any(word in one["error"] for word in REFUSALS)]
    assert not others, others
    return [dict(zip(targets, answers[at : at + len(targets)])) for at in range(0, len(answers), len(targets))]  # noqa: B905


def compare(cases: list[Case], targets: dict[str, str], rule: str, folder: Path) -> None:
    wrong: list[str] = []
    missed: list[str] = []
    refused = 0
    for case, said in zip(cases, asked(cases, targets), strict=True):
        file = folder / "linted.py"
        file.write_text(case.program, encoding="utf-8")
        found = {finding.target for finding in scan(file, [rules()[rule]], targets)}
        for target, answer in said.items():
            if (target in found) != ("error" in answer):
                (wrong if target in found else missed).append(f"{case.name} @ {target}: {answer}")
            refused += "error" in answer
    count = len(cases) * len(targets)
    agreed = count - len(wrong) - len(missed)
    report = [f"{agreed} of {count} agree, of which {refused} are refused"]
    for title, places in (("wrong", wrong), ("missed", missed)):
        report += [f"{title}: {place}" for place in places]
    sys.stdout.write("\n".join(report) + "\n")  # pytest -rP shows it
    assert not wrong, report
    assert agreed >= AGREEMENT * count, report


def test_blocks_agree_with_the_lowering(tmp_path: Path) -> None:
    compare(blocks(), KINDS, "tile/any-block-shape", tmp_path)


def test_budgets_agree_with_the_compiler(tmp_path: Path) -> None:
    if find_spec("libtpu") is None:
        pytest.skip("libtpu, which compiles for TPU, is not installed")
    compare(budgets(), TOPOLOGIES, "memory/vmem-fits", tmp_path)
