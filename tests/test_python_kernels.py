"""Kernels written in Python: which functions are compiled, how they are launched, and what their values are."""

from __future__ import annotations

import pytest

from portlint.source import Source
from portlint.source.node import Node

HEAD = "import numpy as np\nfrom numba import cuda\nfrom cupyx import jit\n"


def source(code: str) -> Source:
    return Source("code.py", (HEAD + code).encode(), "python")


def expression(code: str, text: str) -> Node:
    """The last expression with that text."""
    found = [one for one in source(code).root.walk() if one.text == text]
    return found[-1]


KERNEL = "def kernel(x, y):\n    i = cuda.grid(1)\n    y[i] = x[i]\n"


@pytest.mark.parametrize(
    ("code", "threads"),
    [
        (f"@cuda.jit\n{KERNEL}kernel[8, 64](x, y)\n", [64]),
        (f"@cuda.jit(fastmath=True)\n{KERNEL}kernel[8, (8, 4)](x, y)\n", [32]),
        (f"{KERNEL}fast = cuda.jit('void(float32[:])')(kernel)\nfast[8, 64](x, y)\n", [64]),
        (f"{KERNEL}fast = cuda.jit(kernel)\nfast[8, 64](x, y)\n", [64]),
        (f"@cuda.jit\n{KERNEL}BLOCK = 128\nkernel[8, BLOCK](x, y)\n", [128]),
        (f"@cuda.jit\n{KERNEL}kernel[8, n](x, y)\n", []),
        (f"{KERNEL}kernel[8, 64](x, y)\n", []),
        (f"@jit.rawkernel()\n{KERNEL}kernel((8,), (64,), (x, y))\n", [64]),
    ],
)
def test_the_block_of_a_launch(code: str, threads: list[int]) -> None:
    calls = list(source(code).root.walk("call"))
    blocks = [block for call in calls if (block := call.launched_block) is not None]
    assert [size for block in blocks for size, _ in block.block_sizes] == threads


@pytest.mark.parametrize(
    ("code", "small"),
    [
        (f"@cuda.jit\n{KERNEL}kernel[8, 32](x, y)\n", True),
        (f"@cuda.jit\n{KERNEL}kernel[8, 32](x, y)\nkernel[8, 64](x, y)\n", False),
        (f"@cuda.jit\n{KERNEL}kernel[8, n](x, y)\n", False),
        (f"@cuda.jit\n{KERNEL}", False),
        (f"@cuda.jit(device=True)\n{KERNEL}@cuda.jit\ndef outer(x, y):\n    kernel(x, y)\nouter[1, 32](x, y)\n", True),
        (f"@cuda.jit(device=True)\n{KERNEL}@cuda.jit\ndef outer(x, y):\n    kernel(x, y)\nouter[1, 33](x, y)\n", False),
        # another kernel of that name
        (f"@cuda.jit\n{KERNEL}def f():\n    @cuda.jit\n    def kernel(x): pass\n    kernel[1, 32](x)\n", False),
        ("@cuda.jit\ndef kernel(x, y):\n    kernel(x, y)\n", False),
    ],
)
def test_whether_a_kernel_runs_in_32_threads(code: str, small: bool) -> None:
    (function, *_) = source(code).root.walk("function_definition")
    assert function.role("at-most-32-threads") is small


@pytest.mark.parametrize(
    ("value", "role", "expected"),
    [
        ("cuda.threadIdx.x", "thread-index", True),
        ("cuda.grid(1)", "thread-index", True),
        ("cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x", "thread-index", True),
        ("cuda.threadIdx.x + cuda.blockDim.x * cuda.blockIdx.x", "thread-index", True),
        ("cuda.threadIdx.y", "thread-index", False),
        ("cuda.grid(2)", "thread-index", False),
        ("x + cuda.threadIdx.x", "thread-index", False),
        ("cuda.laneid", "hardware-lane", True),
        ("jit.laneid()", "hardware-lane", True),
        ("cuda.threadIdx.x % cuda.warpsize", "hardware-lane", True),
        ("cuda.threadIdx.x % 32", "hardware-lane", False),
    ],
)
def test_the_role_of_a_value(value: str, role: str, expected: bool) -> None:
    code = f"@cuda.jit\ndef kernel(x):\n    named = {value}\n    x[named] = 0\n"
    assert expression(code, "named").role(role) is expected
    assert expression(code, value).role(role) is expected


@pytest.mark.parametrize(
    ("array", "bytes_"),
    [
        ("cuda.shared.array(64, np.float32)", 256),
        ("cuda.shared.array(shape=(8, 8), dtype=np.float64)", 512),
        ("cuda.shared.array((8, 8), dtype='int16')", 128),
        ("jit.shared_memory(np.int8, 100)", 100),
        ("cuda.shared.array(n, np.float32)", None),
        ("cuda.shared.array(0, np.float32)", 0),
        ("cuda.shared.array(64, dtype)", None),
        ("cuda.local.array(64, np.float32)", None),
    ],
)
def test_the_bytes_of_a_shared_array(array: str, bytes_: int | None) -> None:
    assert expression(f"@cuda.jit\ndef kernel(x):\n    a = {array}\n    a[0] = 0\n", array).storage_bytes == bytes_


@pytest.mark.parametrize(
    "code",
    [
        "cuda.jit",
        "cuda.jit()()()",
        "cuda.jit(cuda.jit)(cuda.jit)",
        "@cuda.jit\nclass A: pass",
        "@cuda.jit\ndef f(): f[1](f)[2]()",
        "@cuda.jit\ndef f(\n    f[1, 2]()",
        "x = x + x\n@cuda.jit\ndef f(): cuda.any_sync(1, x % 32)",
        "@cuda.jit\ndef f():\n  a = b\n  b = a\n  a[cuda.laneid] = a % 32 // 32",
        "@cuda.jit\ndef f(): cuda.shared.array()[cuda.laneid]; f[()](); f[1, ()]()",
    ],
)
def test_hostile_code_does_no_harm(code: str) -> None:
    for node in source(code).root.walk():
        if node.type == "function_definition":
            assert node.role("at-most-32-threads") in (True, False)
            assert isinstance(node.warp_operations, list)
        if node.type == "call":
            assert node.launched_block is None or node.launched_block.block_sizes is not None
        if node.type == "subscript":
            assert node.role("hardware-lane") is False
            assert node["value"].extent in (None, 0)
