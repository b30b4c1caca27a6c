"""What portlint says of Triton kernels, against Triton's own compiler. It needs no device, and skips without Triton.

The compiler does not look at the limit of shared memory, the launch does: what it says that a kernel needs is compared
with the target's limit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import rules, scan

from portlint.target import load

pytest.importorskip("triton", reason="Triton's compiler is not installed")

COMPILER = Path(__file__).with_name("compile_triton.py")
TARGETS = {
    "cdna3": ("hip", "gfx942"),
    "cdna4": ("hip", "gfx950"),
    "hopper": ("cuda", 90),
    "blackwell-rtx": ("cuda", 120),
}
LIMIT_S = 1800

HEAD = """import triton
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
        total += tl.dot(p.to(tl.float16), v)
    tl.store(c + rm[:, None] * BK + rk[None, :], total)
"""
SMALL = """

@triton.jit
def elementwise(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, {value})
"""
SIZES = "M=4096, N=4096, K=4096"
OF_MATMUL = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
OF_ELEMENTS = {"x": "*fp32", "out": "*fp32"}

TILES = [
    (bm, bn, bk, warps, stages)
    for bm, bn, bk, warps in ((128, 128, 64, 8), (128, 256, 64, 8), (64, 64, 64, 4))
    for stages in (2, 3, 4, 5)
]
DEPTHS = [(64, 64, depth, 4, 2) for depth in (4, 8, 16)]
VALUES = (
    "libdevice.erf(tl.load(x + i))",
    "libdevice.rcbrt(tl.load(x + i))",
    "tl.extra.cuda.libdevice.rsqrt(tl.load(x + i))",
    "tl.load(x + i).to(tl.float8e4b8).to(tl.float32)",
    "tl.load(x + i).to(tl.float8e4nv).to(tl.float32)",
    "tl.exp(tl.load(x + i))",
)


def cases() -> list[tuple[str, str, dict]]:
    """(a name, the program, what the compiler is asked)."""
    found: list[tuple[str, str, dict]] = []
    kernels = (
        ("matmul", MATMUL, TILES + DEPTHS),
        ("converted", CONVERTED, TILES[:2]),
        ("attention", ATTENTION, [(128, 128, 128, 8, stages) for stages in (2, 3, 4)]),
    )
    for kernel, text, tiles in kernels:
        for bm, bn, bk, warps, stages in tiles:
            tile = f"BM={bm}, BN={bn}, BK={bk}, num_warps={warps}, num_stages={stages}"
            sizes = "N=4096" if kernel == "attention" else SIZES
            launch = f"{kernel}[(32, 32)](a, b, c, {sizes}, {tile})"
            request = {
                "kernel": kernel,
                "types": OF_MATMUL,
                "values": {"BM": bm, "BN": bn, "BK": bk},
                "options": {"num_warps": warps, "num_stages": stages},
            }
            program = f"{HEAD}{text}\n\ndef launch(a, b, c):\n    {launch}\n"
            found.append((f"{kernel} {bm}x{bn}x{bk} warps={warps} stages={stages}", program, request))
    for value in VALUES:
        program = HEAD + SMALL.format(value=value)
        request = {"kernel": "elementwise", "types": OF_ELEMENTS, "values": {"BLOCK": 256}, "options": {}}
        found.append((value, program, request))
    for clusters in (1, 2):
        launch = f"elementwise[(8,)](x, out, BLOCK=256, num_ctas={clusters})"
        program = f"{HEAD}{SMALL.format(value='tl.load(x + i)')}\n\ndef launch(x, out):\n    {launch}\n"
        request = {
            "kernel": "elementwise",
            "types": OF_ELEMENTS,
            "values": {"BLOCK": 256},
            "options": {"num_ctas": clusters},
        }
        found.append((f"num_ctas={clusters}", program, request))
    return found


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


def test_findings_agree_with_the_compiler(tmp_path: Path) -> None:
    about = [rule for name, rule in rules().items() if "triton" in name or name == "launch/dot-is-deep-enough"]
    wrong: list[str] = []
    missed: list[str] = []
    count = 0
    by_program: dict[str, list[tuple[str, str, dict]]] = {}
    for name, program, request in cases():
        by_program.setdefault(program.partition("\n\ndef launch")[0], []).append((name, program, request))
    for number, (kernels, group) in enumerate(by_program.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        requests = [
            {**request, "backend": backend, "arch": arch}
            for _, _, request in group
            for backend, arch in TARGETS.values()
        ]
        answers = iter(asked(kernels, requests, folder))
        for name, program, _ in group:
            file = folder / "linted.py"
            file.write_text(program, encoding="utf-8")
            found = {finding.target for finding in scan(file, about, TARGETS)}
            for target in TARGETS:
                answer = next(answers)
                count += 1
                if (target in found) != fails(answer, target):
                    (wrong if target in found else missed).append(f"{name} @ {target}: {answer}")
    agreement = f"{count - len(wrong) - len(missed)} of {count} agree"
    assert not wrong, f"{agreement}; findings that the compiler contradicts"
    assert len(missed) <= count // 16, f"{agreement}; missed: {missed}"
    sys.stdout.write(f"{agreement}\n")  # pytest -rP shows it
