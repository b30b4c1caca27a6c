"""Launches: a kernel compiled, given arguments, and executed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from portlint.verify.simulate import values as v
from portlint.verify.simulate.faults import Undecided
from portlint.verify.simulate.machine import Code, Dimensions, Launch, Machine, Wave, run
from portlint.verify.simulate.memory import HOST, Buffer
from portlint.verify.simulate.preprocess import preprocess
from portlint.verify.simulate.program import Function, Program
from portlint.verify.simulate.statements import Statements
from portlint.verify.simulate.values import CType, Pointer, Record, Scalar

if TYPE_CHECKING:
    from portlint.source import Source

Fill = Callable[[str, int, CType], Any]
"""the content of a cell that the host has written: buffer, offset, type"""


class Result(msgspec.Struct):
    """What a launch has left behind."""

    buffers: dict[str, Buffer]
    launch: Launch
    waves: list[Wave]

    def read(self, name: str, count: int, ctype: Scalar | None = None) -> list[Any]:
        """The first elements of a buffer; None for one that is undefined."""
        buffer = self.buffers[name]
        held = ctype or next((cell[0] for cell in buffer.cells.values()), v.INT)
        return [buffer.load(index * held.size, held, 0)[0] for index in range(count)]


def program_of(source: Source, machine: Machine) -> Program:
    """The definitions of a file and its headers, as a machine's compiler sees them."""
    known = _PROGRAMS.setdefault(source, {})
    key = (machine.width, machine.platform, tuple(sorted(machine.macros.items())), machine.edits)
    if key not in known:
        known[key] = Program(preprocess(source, machine))
    return known[key]


_PROGRAMS: WeakKeyDictionary[Source, dict[tuple[object, ...], Program]] = WeakKeyDictionary()
"""a file mostly has several findings"""


def compile_kernel(
    program: Program, machine: Machine, kernel: Function, template: Mapping[str, Any] | None = None
) -> tuple[Code, Statements]:
    """A kernel compiled for a machine, and the compiler with what it has learnt. Raises Undecided."""
    compiler = Statements(program, machine)
    try:
        code = compiler.kernel(kernel, dict(template or {}))
    except RecursionError:
        raise Undecided("the code is nested too deeply", kernel.first_line) from None
    code.width_aware, code.is_ported = compiler.width_aware, compiler.is_ported
    return code, compiler


def execute(
    code: Code, dimensions: Dimensions, arguments: Mapping[str, Any], fill: Fill, seed: int = 0, until: float = math.inf
) -> Result:
    """Execute a kernel. A list as an argument becomes a buffer of its length, a number is converted.

    A pointer that is given nothing gets a buffer that grows, filled by `fill`. Raises Fault and Undecided.
    """
    memory = _Memory(fill)
    given = {name: memory.argument(name, ctype, arguments.get(name)) for name, ctype, _ in code.parameters}
    module = {}
    for key, (name, size, filler) in code.constants.items():
        module[key] = memory.grown(name, size)
        if filler is not None:
            filler(module[key])
    launch = Launch(code, dimensions, given, module)
    launch.until = until
    waves = run(launch, seed)
    return Result(memory.buffers, launch, waves)


class _Memory:
    """What the host has allocated: every pointer that it hands over, or stores, points to a buffer of its own."""

    def __init__(self, fill: Fill) -> None:
        self.fill = fill
        self.buffers: dict[str, Buffer] = {}

    def grown(self, name: str, size: int | None = None) -> Buffer:
        """A buffer that is filled as it is read."""

        def content(at: int, ctype: CType) -> Any:
            if isinstance(ctype, Pointer):
                return self.grown(f"{name}+{at}"), 0
            return self.fill(name, at, ctype)

        self.buffers[name] = Buffer(name, size, content)
        return self.buffers[name]

    def argument(self, name: str, ctype: CType, given: Any) -> Any:
        """The value of a parameter."""
        if isinstance(ctype, Pointer):
            if isinstance(given, Sequence):
                self.buffers[name] = _filled(name, ctype, given)
            elif given is None:
                self.grown(name)
            return self.buffers[name], 0
        if isinstance(ctype, Scalar):
            if given is None:
                raise Undecided(f"'{name}' is not given")
            source = v.DOUBLE if isinstance(given, float) else v.LONG
            return v.convert_one(given, source, ctype)
        if isinstance(ctype, Record):
            return tuple(self._leaf(name, at, leaf, given) for at, leaf in ctype.leaves)
        raise Undecided(f"'{name}' is of type '{ctype}'")

    def _leaf(self, name: str, at: int, leaf: CType, given: Any) -> Any:
        path = f"{name}+{at}"
        value = given.get(at) if isinstance(given, Mapping) else None
        if isinstance(leaf, Scalar) and value is None:
            return self.fill(path, 0, leaf)
        return self.argument(path, leaf, value)


def _filled(name: str, pointer: Pointer, given: Sequence[Any]) -> Buffer:
    of = pointer.to
    if of is None or isinstance(of, Pointer):
        raise Undecided(f"'{name}' points to what is not known")
    buffer = Buffer(name, len(given) * of.size, lambda _, __: 0)
    for index, value in enumerate(given):
        parts = value if isinstance(of, Record) else (value,)
        for (at, leaf), part in zip(of.leaves, parts, strict=True):
            assert isinstance(leaf, Scalar)
            held = v.convert_one(part, v.DOUBLE if isinstance(part, float) else v.LONG, leaf)
            buffer.cells[index * of.size + at] = (leaf, held, HOST)
    return buffer


def written(result: Result) -> dict[tuple[str, int], tuple[CType, Any, int]]:
    """The cells that the kernel has written, by buffer and offset; the launches that it makes are like cells."""
    found: dict[tuple[str, int], tuple[CType, Any, int]] = {
        (name, at): cell if isinstance(cell[0], Scalar) else (_ADDRESS, _named(cell[1]), cell[2])
        for name, buffer in result.buffers.items()
        for at, cell in buffer.cells.items()
        if cell[2] != HOST
    }
    for number, (launched, thread) in enumerate(sorted(result.launch.launched)):
        found["launches", number] = (_LAUNCH, launched, thread)
    return found


_LAUNCH, _ADDRESS = CType("launch"), CType("address")


def _named(address: Any) -> str | None:
    """An address, the same for the same place in whichever run; None for an undefined one."""
    if address is None:
        return None
    return f"{address[0].name}+{address[1]}" if address[0] is not None else "nullptr"
