"""What portlint says of Triton kernels, against Triton's own compiler. It needs no device, and skips without Triton.

The compiler does not look at the limit of shared memory, the launch does: what it says that a kernel needs is compared
with the target's limit.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import msgspec
import pytest
from harness import rules, scan

from portlint.rule import Rule
from portlint.target import load

if find_spec("triton") is None:  # not imported here: workers that later tests fork would carry it
    pytest.skip("Triton's compiler is not installed", allow_module_level=True)

COMPILER = Path(__file__).with_name("compile_triton.py")
TARGETS = {
    "cdna3": ("hip", "gfx942"),
    "cdna4": ("hip", "gfx950"),
    "hopper": ("cuda", 90),
    "blackwell-rtx": ("cuda", 120),
}
LIMIT_S = 1800
AGREEMENT = 0.98

HEAD = """import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
"""

MATMUL = """

@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    left, right = a + rm[:, None] * K + rk[None, :], b + rk[:, None] * N + rn[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total += tl.dot(tl.load(left), tl.load(right))
        left += BK
        right += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], total)
"""
CONVERTED = MATMUL.replace("def matmul", "def converted").replace(
    "tl.load(right)", "(tl.load(right) * 2).to(tl.float16)"
)
TURNED = """

@triton.jit
def turned(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    left, right = a + rm[:, None] * K + rk[None, :], b + rn[:, None] * K + rk[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(left, mask=rk[None, :] < K - k, other=0.0)
        y = tl.load(right, mask=rk[None, :] < K - k, other=0.0)
        total += tl.dot(x, y.T)
        left += BK
        right += BK
    tl.store(c + rm[:, None] * N + rn[None, :], total)
"""
GATED = """

@triton.jit
def gated(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    first, second = tl.zeros((BM, BN), dtype=tl.float32), tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rm[:, None] * K + (k + rk)[None, :])
        first += tl.dot(x, tl.load(b + (k + rk)[:, None] * N + rn[None, :]))
        second += tl.dot(x, tl.load(b + N * K + (k + rk)[:, None] * N + rn[None, :]))
    tl.store(c + rm[:, None] * N + rn[None, :], first * tl.sigmoid(first) * second)
"""
ATTENTION = """

@triton.jit
def attention(a, b, c, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn, rk = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    q = tl.load(a + rm[:, None] * BK + rk[None, :])
    total = tl.zeros((BM, BK), dtype=tl.float32)
    for start in range(0, N, BN):
        k = tl.load(b + (start + rn)[None, :] * BK + rk[:, None])
        p = tl.exp2(tl.dot(q, k))
        v = tl.load(b + (start + rn)[:, None] * BK + rk[None, :])
        total += tl.dot(p.to(v.dtype), v)
    tl.store(c + rm[:, None] * BK + rk[None, :], total)
"""
SOFTMAX = """

@triton.jit
def softmax(a, b, c, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn, rk = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    q = tl.load(a + rm[:, None] * BK + rk[None, :])
    total = tl.zeros((BM, BK), dtype=tl.float32)
    high, norm = tl.full((BM,), -1e30, dtype=tl.float32), tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, N, BN):
        k = tl.load(b + (start + rn)[:, None] * BK + rk[None, :], mask=(start + rn)[:, None] < N, other=0.0)
        s = tl.dot(q, tl.trans(k))
        top = tl.maximum(high, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        scale = tl.exp2(high - top)
        norm = norm * scale + tl.sum(p, 1)
        v = tl.load(b + N * BK + (start + rn)[:, None] * BK + rk[None, :], mask=(start + rn)[:, None] < N, other=0.0)
        total = tl.dot(p.to(v.dtype), v, total * scale[:, None])
        high = top
    tl.store(c + rm[:, None] * BK + rk[None, :], total / norm[:, None])
"""
SMALL = """

@triton.jit
def elementwise(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, {value})
"""
KERNELS = {
    "matmul": MATMUL,
    "converted": CONVERTED,
    "turned": TURNED,
    "gated": GATED,
    "attention": ATTENTION,
    "softmax": SOFTMAX,
}
CHAINED = ("attention", "softmax")
TYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp8e4nv": "float8_e4m3fn"}
BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "fp8e4nv": 1}
SAMPLES = 110
"""of the configurations below, drawn anew whenever the grid or this number changes"""
STAGE_BYTES = range(24 << 10, 512 << 10)
"""what the stages of a drawn configuration come to: much less fits everywhere, and much more nowhere"""
VALUES = (
    "libdevice.erf(tl.load(x + i))",
    "libdevice.rcbrt(tl.load(x + i))",
    "tl.extra.cuda.libdevice.rsqrt(tl.load(x + i))",
    "tl.load(x + i).to(tl.float8e4b8).to(tl.float32)",
    "tl.load(x + i).to(tl.float8e4nv).to(tl.float32)",
    "tl.exp(tl.load(x + i))",
)


class Case(msgspec.Struct, frozen=True):
    """A program, and what the compiler is asked about it."""

    name: str
    kernel: str
    """the kernels, as the compiler reads them"""
    launch: str
    request: dict


def tiled(kernel: str, dtype: str, bm: int, bn: int, bk: int, warps: int, stages: int, *, is_whole: bool) -> Case:
    """A product in tiles."""
    sizes = "N=4096" if kernel in CHAINED else "M=4096, N=4096, K=4096"
    made = f"torch.empty((4096, 4096), dtype=torch.{TYPES[dtype]}, device='cuda')"
    tile = f"BM={bm}, BN={bn}, BK={bk}, num_warps={warps}, num_stages={stages}"
    return Case(
        f"{kernel} {dtype} {bm}x{bn}x{bk} warps={warps} stages={stages}",
        KERNELS[kernel],
        f"\n\ndef launch(c):\n    a = {made}\n    b = {made}\n    {kernel}[(32, 32)](a, b, c, {sizes}, {tile})\n",
        {
            "kernel": kernel,
            "types": {"a": f"*{dtype}", "b": f"*{dtype}", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"},
            "values": {"BM": bm, "BN": bn, "BK": bk},
            "options": {"num_warps": warps, "num_stages": stages},
            "is_whole": is_whole,
        },
    )


def small(value: str, options: dict, launch: str = "") -> Case:
    """An elementwise kernel."""
    types = {"x": "*fp32", "out": "*fp32"}
    request = {"kernel": "elementwise", "types": types, "values": {"BLOCK": 256}, "options": options, "is_whole": True}
    return Case(f"{value} {options or ''}", SMALL.format(value=value), launch, request)


def cases() -> list[Case]:
    usual = [(128, 128, 64, 8), (128, 256, 64, 8), (64, 64, 64, 4)]
    found = [
        # a whole compilation of some shows that the short way asks for the same memory
        tiled("matmul", "fp16", *tile, stages, is_whole=stages == 2)
        for tile, stages in product(usual, (2, 3, 4, 5))
    ]
    found += [tiled("matmul", "fp16", 64, 64, depth, 4, 2, is_whole=False) for depth in (4, 8, 16)]
    found += [tiled("converted", "fp16", *usual[0], stages, is_whole=False) for stages in (2, 3)]
    found += [tiled("attention", "fp16", 128, 128, 128, 8, stages, is_whole=stages == 4) for stages in (2, 3, 4)]
    found += drawn()
    found += [small(value, {}) for value in VALUES]
    for clusters in (1, 2):
        launch = f"\n\ndef launch(x, out):\n    elementwise[(8,)](x, out, BLOCK=256, num_ctas={clusters})\n"
        found.append(small("tl.load(x + i)", {"num_ctas": clusters}, launch))
    return found


def drawn() -> list[Case]:
    """Some of a large grid, the same in every run."""
    grid = []
    for kernel, dtype, bm, bn, bk, warps, stages in product(
        ("matmul", "turned", "gated", *CHAINED), TYPES, (32, 64, 128, 256), (32, 64, 128, 256), (32, 64, 128, 256),
        (4, 8), (1, 2, 3, 4, 5, 6),
    ):  # fmt: skip
        rows = 2 * bn if kernel in CHAINED else bm + bn * (2 if kernel == "gated" else 1)
        # a result with more elements spills on every machine
        is_usual = bm * (bk if kernel in CHAINED else bn) <= 128 * 256
        if is_usual and rows * bk * BYTES[dtype] * max(stages - 1, 1) in STAGE_BYTES:
            grid.append((kernel, dtype, bm, bn, bk, warps, stages))
    return [tiled(*one, is_whole=False) for one in random.Random(0).sample(grid, SAMPLES)]


def fails(answer: dict, target: str) -> bool:
    """Whether a kernel cannot be launched on a target, by what the compiler said."""
    fact = load(target).fact("memory.shared_bytes")
    assert fact is not None
    return "error" in answer or answer["shared"] > fact.value


def asked(program: str, requests: list[dict], folder: Path) -> list[dict]:
    """The compiler's answers."""
    file = folder / "kernels.py"
    file.write_text(program, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, str(COMPILER), str(file)],
        input="".join(json.dumps(one) + "\n" for one in requests),
        env={**os.environ, "TRITON_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    lines = run.stdout.splitlines()
    # a compiler that dies has refused the rest
    return [json.loads(line) for line in lines] + [{"error": "the compiler ended"}] * (len(requests) - len(lines))


def answers(group: list[Case], folder: Path) -> dict[tuple[str, str], dict]:
    """What the compiler says of each case that has the same kernels, for each target."""
    places = [(case.name, target) for case in group for target in TARGETS]
    requests = [
        {**case.request, "backend": backend, "arch": arch} for case in group for backend, arch in TARGETS.values()
    ]
    # the compiler does not know torch
    text = HEAD.replace("import torch\n", "") + group[0].kernel
    return dict(zip(places, asked(text, requests, folder), strict=True))


def flagged(case: Case, about: list[Rule], folder: Path) -> set[str]:
    """The targets for which portlint finds something."""
    file = folder / "linted.py"
    file.write_text(HEAD + case.kernel + case.launch, encoding="utf-8")
    return {finding.target for finding in scan(file, about, TARGETS)}


def test_findings_agree_with_the_compiler(tmp_path: Path) -> None:
    about = [rule for name, rule in rules().items() if "triton" in name or name == "launch/dot-is-deep-enough"]
    wrong: list[str] = []
    missed: list[str] = []
    broken: list[str] = []
    count = 0
    by_kernel: dict[str, list[Case]] = {}
    for case in cases():
        by_kernel.setdefault(case.kernel, []).append(case)
    for number, group in enumerate(by_kernel.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        said = answers(group, folder)
        for case in group:
            found = flagged(case, about, folder)
            for target in TARGETS:
                answer = said[case.name, target]
                place = f"{case.name} @ {target}: {answer}"
                if "broken" in answer:
                    broken.append(place)
                    continue
                count += 1
                if (target in found) != fails(answer, target):
                    (wrong if target in found else missed).append(place)
    agreed = count - len(wrong) - len(missed)
    report = [f"{agreed} of {count} agree"]
    for title, places in (("wrong", wrong), ("missed", missed), ("the compiler broke", broken)):
        report += [f"{title}: {place}" for place in places]
    sys.stdout.write("\n".join(report) + "\n")  # pytest -rP shows it
    assert not wrong, report
    assert agreed >= AGREEMENT * count, report
