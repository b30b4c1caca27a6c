"""What is long is not slow: texts of a kind that an analysis once took quadratic time for, analysed as a whole."""

from __future__ import annotations

import os

import pytest
from runs import DEVICE, KERNEL, scan

from portlint.source.prescan import Limits

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="limits need fork")

LONG = {
    "launches of one block": ("a.cu", KERNEL + "void f(){\n" + "k<<<g,b>>>(a);\n" * 5_000 + "}\n"),
    "launches of a block each": (
        "a.cu",
        KERNEL + "void f(){\n" + "".join(f"dim3 b{one}(32, 8); k<<<g,b{one}>>>(a);\n" for one in range(2_000)) + "}\n",
    ),
    "one constant defined by itself again and again": (
        "a.cu",
        KERNEL + "unsigned w = warpSize;constexpr int a = a;\n" * 400,
    ),
    "one name given what it was": ("a.py", DEVICE + "x = x.cuda()\n" * 4_000),
    "one name given what it was, between other names": (
        "a.py",
        DEVICE + "x = x.cuda()\nx = y\ny = x\nif a: pass\n" * 1_400,
    ),
    "moves under a decorator": ("a.py", DEVICE + "import torch\n@f\nx = x.cuda()\n" * 1_500),
    "one device said again and again": ("a.py", DEVICE + "device = 'cuda'\nimport torch\n" * 2_000),
    "one command after another": ("Dockerfile", "FROM a\nRUN true\n" + "RUN a && \\\n" * 4_000),
    "tests within tests": ("a.sh", "if a; then (if a; then " * 80 + "a; " + "fi); fi;" * 80 + "\n"),
}


@pytest.mark.parametrize("kind", LONG)
def test_what_is_long_is_analysed_to_the_end(kind: str) -> None:
    """No rule and no parse is stopped, and what there is to find is found."""
    name, text = LONG[kind]
    (result,) = scan([(name, text.encode())], Limits()).values()
    assert result.problems == ()
    assert result.findings or not text.startswith((KERNEL, DEVICE))


def test_numbers_that_no_machine_has_cost_no_file() -> None:
    """A finding has to fit into a report, where numbers have 64 bits."""
    texts = [
        ("a.cu", KERNEL + "__global__ void k() { __shared__ unsigned a[0xFFFFFFFFFFFFFFFFull]; }\n"),
        (
            "b.cu",
            KERNEL
            + "__global__ void __launch_bounds__(1 << 30) k();\n"
            + "void f() { k<<<1, dim3(1 << 30, 1 << 30, 1 << 30)>>>(); }\n",
        ),
        (
            "a.py",
            DEVICE
            + "import triton\nc = triton.Config({}, num_warps=10**400)\nd = triton.Config({}, num_warps=2**20000)\n",
        ),
    ]
    for name, result in scan([(name, text.encode()) for name, text in texts], Limits()).items():
        assert result.problems == (), name
        assert result.findings, name


def test_a_kernel_with_separators_between_its_parameters() -> None:
    """They are no parameters, and have no name that an argument could be for."""
    text = (
        DEVICE
        + "import triton\n@triton.jit\ndef k(x, /, y, *, N, M: int = 3):\n    pass\n\n"
        + "def f(x):\n    k[(1,)](x, 2, N=64, num_warps=4)\n"
    )
    (result,) = scan([("a.py", text.encode())], Limits()).values()
    assert result.problems == ()
    assert result.findings
