"""Kernels run by the lane interpreter, for the tests of it."""

from __future__ import annotations

from typing import Any

from portlint.source import Source
from portlint.verify.simulate.launch import Result, compile_kernel, execute, program_of
from portlint.verify.simulate.machine import Dimensions, Machine

CUDA, ROCM = Machine(32, "cuda"), Machine(64, "rocm")


def launched(
    text: str,
    arguments: dict[str, Any] | None = None,
    machine: Machine = CUDA,
    *,
    block: int | tuple[int, int, int] = 32,
    grid: int = 1,
    seed: int = 0,
    kernel: str = "k",
) -> Result:
    """The result of a kernel of a text. Buffers that are not given hold zeros."""
    program = program_of(Source("kernel.cu", text.encode(), "cuda"), machine)
    code, _ = compile_kernel(program, machine, program.functions[kernel][0])
    shape = block if isinstance(block, tuple) else (block, 1, 1)
    return execute(code, Dimensions(shape, (grid, 1, 1)), arguments or {}, lambda *_: 0, seed)


def lanes_of(
    statements: str, of: str = "int", machine: Machine = CUDA, *, before: str = "", block: int = 0, seed: int = 0
) -> list[Any]:
    """What each thread of a block has assigned to `r`, the threads being numbered by `t`."""
    threads = block or machine.width
    text = f"{before}\n__global__ void k({of}* out) {{ int t = threadIdx.x; {of} r = 0; {statements}\n out[t] = r; }}"
    return launched(text, {"out": [0] * threads}, machine, block=threads, seed=seed).read("out", threads)


def value_of(expression: str, of: str = "int", machine: Machine = CUDA, *, before: str = "") -> Any:
    """What an expression comes to."""
    return lanes_of(f"r = {expression};", of, machine, before=before)[0]
