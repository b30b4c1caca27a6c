"""The machine: waves of lanes in lock step, blocks of waves between barriers, blocks one after another."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias

import msgspec

from portlint.verify.simulate.faults import Fault, OutOfTime, Undecided
from portlint.verify.simulate.memory import HOST, Address, Buffer
from portlint.verify.simulate.values import CType, Lanes, Pointer, Record, Values

Step: TypeAlias = "Generator[tuple[str, list[Any]], Any, Lanes]"
"""a statement being executed: yields where the wave waits for the block, returns the lanes that come out of it"""
Evaluate: TypeAlias = "Callable[[Wave, Lanes], Values]"
Execute: TypeAlias = "Callable[[Wave, Lanes], Step]"

_MOST_STEPS = 1_500_000
"""lane steps of loops in one launch; code that takes longer is taken to wait for something"""


class Edit(msgspec.Struct, frozen=True):
    """Another text for one line of a file."""

    file: str
    line: int
    text: str


class Machine(msgspec.Struct, frozen=True):
    """What code is executed on: a width, and the toolkit whose builtins it means ("cuda" or "rocm")."""

    width: int = 32
    platform: str = "cuda"
    macros: Mapping[str, str] = {}
    """those that the compiler defines, beside the platform's own"""
    checks_masks: bool = True
    """whether a `*_sync` whose mask does not fit the lanes that execute is a fault; else they all take part"""
    stale: str = ""
    """what a shuffle finds in a lane that does not execute: "" for an undefined value, "zero", or the lane's "own" """
    is_apart: bool = False
    """whether a shuffle finds in the other half of a wave, too, what it finds in a lane that does not execute"""
    ptx: str = "wave"
    """how PTX, which knows 32 lanes, is ported to a wider wave: to the "wave" as a whole, or each of its "halves" """

    edits: tuple[Edit, ...] = ()
    """how the code differs from what the files say"""

    @property
    def mask_bits(self) -> int:
        """The bits of a lane mask."""
        return 64 if self.platform == "rocm" else 32


def ports_of(machine: Machine) -> list[Machine]:
    """A machine, with each way to port PTX to it."""
    return [msgspec.structs.replace(machine, ptx=one) for one in ("wave", "halves")]


class Dimensions(msgspec.Struct, frozen=True):
    """The shape of a launch."""

    block: tuple[int, int, int] = (256, 1, 1)
    grid: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int | None = None
    """of dynamic shared memory; None for as much as the kernel touches"""

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]


class Code(msgspec.Struct):
    """A kernel, compiled for a machine."""

    machine: Machine
    body: Execute
    slots: int
    """registers"""
    parameters: list[tuple[str, CType, int]]
    """name, type and register"""
    arrays: dict[int, tuple[str, int]]
    """local memory: key -> name and bytes per lane"""
    shared: dict[int, tuple[str, int | None]]
    """key -> name and bytes; None for dynamic shared memory, of which there is one"""
    constants: dict[int, tuple[str, int, Callable[[Buffer], None] | None]]
    """memory of the module: key -> name, bytes, and what fills it; None where the host does"""
    width_aware: bool = False
    """whether the code asks for the width of its wave"""
    is_ported: bool = False
    """whether PTX in it asks for its lanes, on a machine that has no PTX"""
    spans: set[tuple[int, int]] = set()
    """first and last line of every statement of the file"""


class Launch:
    """One execution of a kernel: its memory outside blocks, and what is counted over all of them."""

    def __init__(self, code: Code, dimensions: Dimensions, arguments: Mapping[str, Any], module: Mapping[int, Buffer]):
        self.code = code
        self.dimensions = dimensions
        self.arguments = arguments
        self.module = module
        self.steps = 0
        self.until = math.inf
        """when to give up"""
        self.reached: set[tuple[int, int]] = set()
        """the statements that some lane has executed"""
        self.raced = False
        """whether two waves of a block have stored different values to one place without a barrier between"""
        self.launched: list[tuple[str, int]] = []
        """the kernels that it has launched in turn, and the threads that have"""

    def tick(self, lanes: int, line: int) -> None:
        """Count the lanes that begin another round of a loop."""
        self.steps += lanes
        if self.steps > _MOST_STEPS:
            raise Undecided("a loop does not end within the steps that are tried", line)
        if time.process_time() > self.until:
            raise OutOfTime("running it takes too long", line)


class Block:
    """A block of threads and its shared memory."""

    def __init__(self, launch: Launch, index: tuple[int, int, int], number: int) -> None:
        self.launch = launch
        self.index = index
        self.number = number
        dynamic = Buffer("dynamic shared memory", launch.dimensions.shared_bytes)
        self.shared = {
            key: dynamic if size is None else Buffer(name, size) for key, (name, size) in launch.code.shared.items()
        }
        for buffer in self.shared.values():
            buffer.stores = {}
        self.barriers = 0
        """that have been passed"""


class Wave:
    """The lanes that execute together. A register holds one value for each lane of the width, used or not."""

    def __init__(self, block: Block, first: int, lanes: Lanes, width: int) -> None:
        launch = block.launch
        self.block = block
        self.launch = launch
        self.width = width
        self.first = first
        """the number of its first thread in the block"""
        self.lanes = lanes
        self.exited: set[int] = set()
        start = block.number * launch.dimensions.threads + first
        self.thread = range(start, start + width)
        """the number of each lane's thread in the grid"""
        self.empty: Values = [None] * width
        self.registers: list[Values] = [self.empty] * launch.code.slots
        self._arrays: dict[int, list[Buffer]] = {}
        self.crossed = False
        """whether it has read what another wave has written"""
        self.jumps: dict[int, list[int]] = {}
        """where lanes wait that have left a loop by a jump"""
        for name, ctype, slot in launch.code.parameters:
            value = launch.arguments[name]
            self.registers[slot] = value(self) if callable(value) else [value] * width
            del ctype

    def get(self, slot: int, lanes: Lanes) -> Values:
        """What lanes hold in a register; not to be changed."""
        held = self.registers[slot]
        return held if len(lanes) == self.width else [held[lane] for lane in lanes]

    def set(self, slot: int, lanes: Lanes, values: Values) -> None:
        """Give lanes new values."""
        if len(lanes) == self.width:
            self.registers[slot] = values
            return
        held = self.registers[slot][:]
        for lane, value in zip(lanes, values, strict=True):
            held[lane] = value
        self.registers[slot] = held

    def array(self, key: int) -> list[Buffer]:
        """The local memory of a variable, one buffer for each lane."""
        if key not in self._arrays:
            name, size = self.launch.code.arrays[key]
            self._arrays[key] = [Buffer(name, size) for _ in range(self.width)]
        return self._arrays[key]

    def position(self, lane: int) -> tuple[int, int, int]:
        """`threadIdx` of a lane."""
        x, y, _ = self.launch.dimensions.block
        number = self.first + lane
        return number % x, number // x % y, number // (x * y)

    # ---- memory ---------------------------------------------------------------------------------------------------

    def load(self, addresses: list[Address | None], ctype: CType, line: int) -> Values:
        """What lanes find at their addresses."""
        if isinstance(ctype, Record):
            leaves = [self.load([_moved(one, at) for one in addresses], leaf, line) for at, leaf in ctype.leaves]
            return list(zip(*leaves, strict=True)) if leaves else [()] * len(addresses)
        values = []
        low, high = self.thread.start, self.thread.stop
        for address in addresses:
            if address is None:
                raise Fault("undefined", "an undefined value is used as an index or an address", line)
            buffer, at = address
            if buffer is None:
                raise Fault("bounds", "a null pointer is read", line)
            value, writer = buffer.load(at, ctype, line)
            if writer != HOST and not low <= writer < high:
                self.crossed = True
            values.append(value)
        return values

    def store(
        self,
        addresses: list[Address | None],
        ctype: CType,
        values: Values,
        lanes: Lanes,
        line: int,
        *,
        is_atomic: bool = False,
    ) -> None:
        """Write the values of lanes to their addresses; of two lanes at one address the later one stays."""
        if isinstance(ctype, Record):
            for index, (at, leaf) in enumerate(ctype.leaves):
                part = [None if value is None else value[index] for value in values]
                self.store([_moved(one, at) for one in addresses], leaf, part, lanes, line)
            return
        thread = self.thread
        for address, value, lane in zip(addresses, values, lanes, strict=True):
            if address is None:
                raise Fault("undefined", "an undefined value is used as an index or an address", line)
            buffer, at = address
            if buffer is None:
                raise Fault("bounds", "a null pointer is written to", line)
            if value is None and buffer.initial is not None:
                raise Fault("undefined", f"an undefined value is stored to '{buffer.name}'", line)
            if buffer.stores is not None and not is_atomic:
                self._note_race(buffer.stores, at, value)
            buffer.store(at, ctype, value, thread[lane], line)

    def _note_race(self, stores: dict[int, tuple[int, int, Any]], at: int, value: Any) -> None:
        barriers = self.block.barriers
        before = stores.get(at)
        if before is not None and before[0] == barriers and before[1] != self.first and before[2] != value:
            self.launch.raced = True
        stores[at] = barriers, self.first, value

    def truth(self, values: Values, line: int) -> Values:
        """The values of a condition, all of which have to be defined."""
        if None in values:
            raise Fault("branch", "an undefined value decides a branch", line)
        return values


def _moved(address: Address | None, by: int) -> Address | None:
    return None if address is None else (address[0], address[1] + by)


def pointee(ctype: Pointer, line: int) -> CType:
    """What a pointer points to."""
    if ctype.to is None or not ctype.to.size:
        raise Undecided("a pointer to an unknown type is followed", line)
    return ctype.to


def run(launch: Launch, seed: int = 0) -> list[Wave]:
    """Execute a launch: blocks, and waves between barriers, in an order that the seed permutes; 0 is the usual order.

    Returns the waves. Raises Fault and Undecided.
    """
    order = random.Random(seed)  # noqa: S311
    grid = launch.dimensions.grid
    indices = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
    numbered = list(enumerate(indices))
    if seed:
        order.shuffle(numbered)
    waves: list[Wave] = []
    for number, index in numbered:
        waves += _run_block(Block(launch, index, number), order if seed else None)
    return waves


def _run_block(block: Block, order: random.Random | None) -> list[Wave]:
    launch, width = block.launch, block.launch.code.machine.width
    threads = launch.dimensions.threads
    waves = []
    for first in range(0, threads, width):
        waves.append(Wave(block, first, list(range(min(width, threads - first))), width))
    running = [(wave, launch.code.body(wave, wave.lanes)) for wave in waves]
    answers: dict[int, Any] = {}
    while running:
        if order:
            order.shuffle(running)
        waiting, votes = [], []
        for wave, step in running:
            try:
                kind, values = step.send(answers.get(wave.first))
            except StopIteration:
                continue
            waiting.append((wave, step))
            votes.append((wave.first, kind, values))
        answers = _answers(votes)
        running = waiting
        block.barriers += 1
    return waves


def _answers(votes: list[tuple[int, str, list[Any]]]) -> dict[int, Any]:
    """What each wave gets back from a barrier that counts or votes."""
    found: dict[int, Any] = {}
    for first, kind, _ in votes:
        values = [value for _, other, many in votes if other == kind for value in many]
        match kind:
            case "count":
                found[first] = sum(value != 0 for value in values)
            case "and":
                found[first] = int(all(values))
            case "or":
                found[first] = int(any(values))
            case "gather":
                found[first] = values
    return found
