"""The lane interpreter against a plain reference: random reductions and scans at both widths."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from simulated import CUDA, ROCM

from portlint.source import Source
from portlint.verify.simulate.launch import compile_kernel, execute, program_of
from portlint.verify.simulate.machine import Dimensions, Machine

KERNELS_IN_A_TEXT = 50
TEXTS = 20

Number = int | float
Combine = Callable[[Number, Number], Number]
OPERATIONS: dict[str, tuple[str, Combine]] = {
    "sum": ("v + o", lambda a, b: a + b),
    "max": ("max(v, o)", max),
    "min": ("v < o ? v : o", min),
    "or": ("v | o", lambda a, b: int(a) | int(b)),
    "xor": ("v ^ o", lambda a, b: int(a) ^ int(b)),
}
TYPES = {"int": (-1000, 1000), "unsigned": (0, 5000), "long long": (-(1 << 40), 1 << 40), "float": (-500, 500),
         "double": (-1000, 1000), "short": (-100, 100)}  # fmt: skip


class Case:
    """One kernel: steps of `v = combine(v, shuffle(v))`, for lanes that a test lets take part in the result."""

    def __init__(self, number: int, random: random.Random) -> None:
        self.name = f"k{number}"
        self.of = random.choice(list(TYPES))
        operations = list(OPERATIONS) if self.of in ("int", "unsigned", "long long") else ["sum", "max", "min"]
        self.text, self.combine = OPERATIONS[random.choice(operations)]
        self.way = random.choice(["down", "up", "xor", ""])
        self.steps = random.sample([1, 2, 4, 8, 16, 32], random.randint(1, 6))
        self.group = random.choice([None, 4, 8, 16, 32])
        self.only_inside = random.random() < 0.5
        self.is_loop = self.steps == sorted(self.steps) and len(self.steps) > 1 and random.random() < 0.5
        low, high = TYPES[self.of]
        self.values = [random.randint(low, high) for _ in range(64)]

    @property
    def kernel(self) -> str:
        across = f", {self.group}" if self.group else ""
        steps = "".join(self._step(str(by), across) for by in self.steps)
        body = f"int t = threadIdx.x; {self.of} v = io[t], o;{steps} io[t] = v;"
        return f"__global__ void {self.name}({self.of}* io) {{ {body} }}"

    def _step(self, by: str, across: str) -> str:
        way = f"_{self.way}" if self.way else ""
        lane = by if self.way else f"t + {by}"
        width = self.group or "warpSize"
        condition = f"if (t % {width} >= {by}) " if self.only_inside else ""
        return f" o = __shfl{way}(v, {lane}{across}); {condition}v = {self.text};"

    def expected(self, width: int) -> list[Number]:
        """What each thread ends with, lane by lane as the manuals say."""
        group = min(self.group or width, width)
        values: list[Number] = list(self.values)
        for by in self.steps:
            values = [self._after(values, thread, by, width, group) for thread in range(64)]
        return values

    def _after(self, values: list[Number], thread: int, by: int, width: int, group: int) -> Number:
        wave, lane = thread // width * width, thread % width
        first = lane // group * group
        source = {
            "down": lane + by if lane + by < first + group else lane,
            "up": lane - by if lane - by >= first else lane,
            "xor": lane ^ by if lane ^ by < first + group else lane,
            "": first + (thread + by) % group,
        }[self.way]
        if self.only_inside and thread % (self.group or width) < by:
            return values[thread]
        return self._wrapped(self.combine(values[thread], values[wave + source]))

    def _wrapped(self, value: Number) -> Number:
        bits = {"int": 32, "unsigned": 32, "long long": 64, "short": 16}.get(self.of)
        if bits is None:
            return value
        value = int(value) & ((1 << bits) - 1)
        return value - (1 << bits) if self.of != "unsigned" and value >> (bits - 1) else value


@pytest.mark.parametrize("seed", range(TEXTS))
def test_random_reductions_and_scans(seed: int) -> None:
    source = random.Random(seed)
    cases = [Case(number, source) for number in range(KERNELS_IN_A_TEXT)]
    text = Source("kernel.cu", "\n".join(case.kernel for case in cases).encode(), "cuda")
    for machine in (CUDA, ROCM):
        program = program_of(text, machine)
        for case in cases:
            code, _ = compile_kernel(program, machine, program.functions[case.name][0])
            result = execute(code, Dimensions((64, 1, 1)), {"io": case.values}, lambda *_: 0, seed)
            assert result.read("io", 64) == case.expected(machine.width), (machine.width, case.kernel)


def test_a_block_of_256_threads_is_reduced_in_well_under_a_second() -> None:
    import time

    text = """__global__ void k(const float* x, float* o) {
        __shared__ float s[8]; float v = x[threadIdx.x];
        for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
        if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
        __syncthreads();
        if (threadIdx.x == 0) { v = 0; for (int i = 0; i < 8; ++i) v += s[i]; o[0] = v; }
    }"""
    program = program_of(Source("kernel.cu", text.encode(), "cuda"), Machine())
    code, _ = compile_kernel(program, Machine(), program.functions["k"][0])
    start = time.process_time()
    result = execute(code, Dimensions((256, 1, 1)), {"x": [0.25] * 256, "o": [0.0]}, lambda *_: 0)
    assert result.read("o", 1) == [64.0]
    assert time.process_time() - start < 0.5
