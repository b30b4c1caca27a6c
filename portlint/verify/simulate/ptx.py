"""PTX in `asm`: the instructions that move, count and combine bits, and those by which lanes work together.

A register holds the bits of its value as an integer, whatever its type: PTX gives types to instructions.

PTX knows 32 lanes, so on a wave of 64 it has no meaning of its own: somebody has to port it. `Machine.ptx` says how. As
"wave", by HIP's builtins of the same name, which know all lanes of the wave, and whose results are cut to the bits of
the PTX register; as "halves", each 32 lanes for themselves, as on NVIDIA. A verdict needs both to agree.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from portlint.verify.simulate.faults import Fault, Undecided
from portlint.verify.simulate.machine import Machine, Wave
from portlint.verify.simulate.values import Lanes, Values
from portlint.verify.simulate.warps import ballot, groups, over_groups, source_lane

LANES = 32
"""of a warp, as PTX counts them"""
_ONES = 0xFFFFFFFF
_INSTRUCTION = re.compile(r"(?:@(!?)([\w%$]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
_REGISTER = re.compile(r"[%$A-Za-z_][\w$%]*")
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?")
_TYPE = re.compile(r"[bsuf](?:8|16|32|64)|pred")
_DECLARED = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NOTHING = ("membar", "fence", "nanosleep", "prefetch", "prefetchu", "griddepcontrol", "pmevent")
_BELOW_OR_ABOVE: Mapping[str, Callable[[int], int]] = {
    "eq": lambda lane: 1 << lane, "lt": lambda lane: (1 << lane) - 1, "le": lambda lane: (2 << lane) - 1,
    "gt": lambda lane: -(2 << lane), "ge": lambda lane: -(1 << lane),
}  # fmt: skip
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "lo": lambda a, b: a < b, "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b, "hs": lambda a, b: a >= b,
}  # fmt: skip
_COMBINED: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "min": min, "max": max, "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "mul": lambda a, b: a * b,
}  # fmt: skip
_TYPED = ("setp", "selp", "shl", "shr", "bfe", "bfi", "bfind", "lop3", "popc", "clz", "brev", "not", "redux")
"""whose last word says the type that they work on, beside those that combine two numbers"""
_WAYS = {"up": "up", "down": "down", "bfly": "xor", "idx": "index"}


class Instruction(msgspec.Struct, frozen=True):
    """One instruction: `@p shfl.sync.up.b32 r|q, a, b, c, m` has a guard, a second result, and four operands."""

    parts: tuple[str, ...]
    """the words of its name"""
    result: str
    second: str
    operands: tuple[str, ...]
    guard: str = ""
    unless: bool = False
    """whether it is executed where the guard does not hold"""

    @property
    def bits(self) -> int:
        """The size of what it works on."""
        digits = self.parts[-1].lstrip("bsuf")
        return int(digits) if digits.isdigit() else 1


class Program(msgspec.Struct, frozen=True):
    """The text of an `asm`, taken apart."""

    instructions: tuple[Instruction, ...]

    @property
    def asks_for_lanes(self) -> bool:
        """Whether what it does depends on the number of lanes that work together."""
        return any(
            one.parts[0] in ("shfl", "vote", "match", "activemask", "redux", "elect")
            or any(operand.startswith(("%lane", "%warp")) for operand in one.operands)
            or one.parts[:2] == ("bar", "warp")
            for one in self.instructions
        )


def parsed(text: str) -> Program:
    """The instructions of a text. Raises Undecided for one that is not understood."""
    found = []
    for statement in re.split(r"[;{}]", _COMMENT.sub(" ", text)):
        statement = statement.strip()  # noqa: PLW2901
        if not statement or _DECLARED.fullmatch(statement):
            continue
        found.append(_instruction(statement))
    return Program(tuple(found))


def _instruction(text: str) -> Instruction:
    match = _INSTRUCTION.fullmatch(text)
    if match is None:
        raise Undecided(f"PTX '{text[:40]}'")
    parts = tuple(one for one in match[3].split(".") if one)
    operands = [one.strip() for one in match[4].split(",")] if match[4].strip() else []
    has_result = parts[0] not in (*_NOTHING, "bar", "trap", "exit")
    result, _, second = operands[0].partition("|") if has_result and operands else ("", "", "")
    rest = tuple(operands[1:] if has_result else operands)
    run = _RUN.get(parts[0])
    if run is None and parts[0] not in _NOTHING:
        raise Undecided(f"PTX '{text[:40]}'")
    if parts[0] == "bar" and parts[:3] != ("bar", "warp", "sync"):
        raise Undecided(f"PTX '{text[:40]}'")
    if parts[0] in (*_COMBINED, *_TYPED) and not _TYPE.fullmatch(parts[-1]):
        raise Undecided(f"PTX '{text[:40]}'")  # of pairs of numbers, or of numbers that C has no type for
    if "" in rest or (second and parts[0] != "shfl"):
        raise Undecided(f"PTX '{text[:40]}'")
    for one in (result.strip(), second.strip(), *rest):
        if one and not _REGISTER.fullmatch(one.removeprefix("!")) and not _NUMBER.fullmatch(one):
            raise Undecided(f"PTX '{text[:40]}'")
    return Instruction(parts, result.strip(), second.strip(), rest, (match[2] or ""), bool(match[1]))


class Registers:
    """The registers of one `asm` as it runs: for each the bits that every executing lane holds."""

    def __init__(self, machine: Machine, wave: Wave, lanes: Lanes, line: int) -> None:
        self.machine = machine
        self.wave = wave
        self.lanes = lanes
        self.line = line
        self.held: dict[str, dict[int, int | None]] = {}

    def read(self, name: str, lanes: Lanes) -> Values:
        """The bits that lanes hold in a register, or a number, or what a special register says."""
        if _NUMBER.fullmatch(name):
            return [int(name.rstrip("U"), 0)] * len(lanes)
        if name.startswith("!"):
            return [None if one is None else 1 - one for one in self.read(name[1:], lanes)]
        if name.startswith("%") and name not in self.held:
            return self._special(name[1:], lanes)
        if name not in self.held:
            raise Undecided(f"'{name}' of PTX", self.line)
        register = self.held[name]
        return [register.get(lane) for lane in lanes]

    def write(self, name: str, lanes: Lanes, values: Values, bits: int) -> None:
        """Give lanes new bits."""
        if name and name != "_":
            ones = (1 << bits) - 1
            kept = {lane: None if one is None else one & ones for lane, one in zip(lanes, values, strict=True)}
            self.held.setdefault(name, {}).update(kept)

    def first(self, lane: int) -> int:
        """The first of the lanes that a lane works together with."""
        return lane // LANES * LANES if self.machine.ptx == "halves" else 0

    def _special(self, name: str, lanes: Lanes) -> Values:
        if name == "laneid":
            return [lane - self.first(lane) for lane in lanes]
        if name.startswith("lanemask_") and name[9:] in _BELOW_OR_ABOVE:
            mask = _BELOW_OR_ABOVE[name[9:]]
            return [mask(lane - self.first(lane)) & _ONES for lane in lanes]
        raise Undecided(f"'%{name}' of PTX", self.line)

    def together(self, lanes: Lanes) -> list[Lanes]:
        """The executing lanes, those apart that PTX has in different warps."""
        found: dict[int, Lanes] = {}
        for lane in lanes:
            found.setdefault(self.first(lane), []).append(lane)
        return list(found.values())

    def members(self, operand: str, name: str, lanes: Lanes) -> list[Lanes]:
        """The lanes that a mask has work together, which is checked."""
        masks = self.read(operand, lanes)
        if not self.machine.checks_masks:
            return self.together(lanes)
        placed = [
            None if mask is None else (mask & _ONES) << self.first(lane)
            for lane, mask in zip(lanes, masks, strict=True)
        ]
        return groups(self.machine, self.wave, lanes, placed, name, self.line)


def run(program: Program, registers: Registers) -> None:
    """Execute the instructions."""
    for one in program.instructions:
        lanes = registers.lanes
        if one.guard:
            held = registers.read(one.guard, lanes)
            wanted = 0 if one.unless else 1
            lanes = [lane for lane, value in zip(lanes, held, strict=True) if value == wanted]
        if lanes and one.parts[0] not in _NOTHING:
            _RUN[one.parts[0]](one, registers, lanes)


# ---- instructions -------------------------------------------------------------------------------------------------


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _as_typed(value: int, kind: str, bits: int) -> Any:
    value &= (1 << bits) - 1
    if kind == "f":
        return struct.unpack(_FLOATS[bits], value.to_bytes(bits // 8, "little"))[0]
    return _signed(value, bits) if kind == "s" else value


def _as_bits(value: Any, kind: str, bits: int) -> int:
    if kind == "f":
        try:
            return int.from_bytes(struct.pack(_FLOATS[bits], value), "little")
        except OverflowError:
            return _as_bits(math.copysign(math.inf, value), kind, bits)
    return int(value)


_FLOATS = {16: "<e", 32: "<f", 64: "<d"}
_PLAIN = frozenset(("lo", "rn", "ftz"))
"""what an instruction may be called beside its operation and type, without another result"""


def _each(function: Callable[..., int | None]) -> Callable[[Instruction, Registers, Lanes], None]:
    """An instruction that each lane executes for itself, on bits."""

    def step(one: Instruction, registers: Registers, lanes: Lanes) -> None:
        given = [registers.read(operand, lanes) for operand in one.operands]
        values = [
            None if None in operands else function(one, *operands) for operands in zip(*given, strict=True)
        ]  # fmt: skip
        registers.write(one.result, lanes, values, one.bits)

    return step


def _arithmetic(one: Instruction, a: int, b: int) -> int | None:
    kind, bits = one.parts[-1][0], one.bits
    is_high = one.parts[0] == "mul" and kind != "f" and "lo" not in one.parts
    if is_high or not _PLAIN.issuperset(one.parts[1:-1]):
        raise Undecided(f"PTX '{'.'.join(one.parts)}'")
    left, right = _as_typed(a, kind, bits), _as_typed(b, kind, bits)
    return _as_bits(_COMBINED[one.parts[0]](left, right), kind, bits)


def _compared(one: Instruction, a: int, b: int) -> int | None:
    kind, bits = one.parts[-1][0], one.bits
    if len(one.parts) != 3 or one.parts[1] not in _COMPARED:
        raise Undecided(f"PTX '{'.'.join(one.parts)}'")
    return int(_COMPARED[one.parts[1]](_as_typed(a, kind, bits), _as_typed(b, kind, bits)))


def _selected(one: Instruction, a: int, b: int, predicate: int) -> int | None:
    del one
    return a if predicate else b


def _shifted(one: Instruction, value: int, by: int) -> int | None:
    """PTX clamps the distance, C leaves it open."""
    kind, bits = one.parts[-1][0], one.bits
    by = min(by & _ONES, bits)
    typed: int = _as_typed(value, kind, bits)
    if one.parts[0] == "shl":
        return value << by
    return typed >> (min(by, bits - 1) if kind == "s" else by)


def _extracted(one: Instruction, value: int, start: int, length: int) -> int | None:
    kind, bits = one.parts[-1][0], one.bits
    start, length = start & 0xFF, length & 0xFF
    value &= (1 << bits) - 1
    field = value >> start & ((1 << length) - 1)
    if kind != "s" or not length:
        return field
    sign = value >> min(start + length - 1, bits - 1) & 1
    return field | (-1 << min(length, max(bits - start, 0)) if sign else 0)


def _inserted(one: Instruction, field: int, base: int, start: int, length: int) -> int | None:
    bits = one.bits
    start, length = start & 0xFF, length & 0xFF
    window = (((1 << length) - 1) << start) & ((1 << bits) - 1)
    return (base & ~window) | (field << start & window)


def _highest(one: Instruction, value: int) -> int | None:
    """`bfind`: the highest bit that is not a copy of the sign, or all ones where there is none."""
    kind, bits = one.parts[-1][0], one.bits
    typed = _as_typed(value, kind, bits)
    found = (~typed if typed < 0 else typed).bit_length() - 1
    return -1 if found < 0 else bits - 1 - found if "shiftamt" in one.parts else found


def _looked_up(one: Instruction, a: int, b: int, c: int, table: int) -> int | None:
    bits = one.bits
    found = 0
    for row in range(8):
        if table >> row & 1:
            found |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return found & ((1 << bits) - 1)


def _counted(one: Instruction, value: int) -> int | None:
    """A count of bits: of those that are set, or of zeros at the upper end."""
    value &= (1 << one.bits) - 1
    return value.bit_count() if one.parts[0] == "popc" else one.bits - value.bit_length()


def _reversed(one: Instruction, value: int) -> int | None:
    return int(f"{value & ((1 << one.bits) - 1):0{one.bits}b}"[::-1], 2)


def _active(one: Instruction, registers: Registers, lanes: Lanes) -> None:
    values = {}
    for group in registers.together(lanes):
        mask = sum(1 << lane - registers.first(lane) for lane in group)
        values.update(dict.fromkeys(group, mask & _ONES))
    registers.write(one.result, lanes, [values[lane] for lane in lanes], LANES)


def _vote(one: Instruction, registers: Registers, lanes: Lanes) -> None:
    if "sync" not in one.parts:
        raise Undecided(f"PTX '{'.'.join(one.parts)}'", registers.line)
    kind = one.parts[2]
    votes = registers.read(one.operands[0], lanes)
    if None in votes:
        raise Fault("branch", "an undefined value is voted on", registers.line)
    members = registers.members(one.operands[1], ".".join(one.parts), lanes)

    def combine(group: Lanes, held: Values) -> int:
        if kind == "ballot":
            return ballot([lane - registers.first(lane) for lane in group], held) & _ONES
        return {"any": any(held), "all": all(held), "uni": len(set(held)) == 1}[kind]

    values = over_groups(members, lanes, votes, combine)
    registers.write(one.result, lanes, [int(value) for value in values], LANES)


def _match(one: Instruction, registers: Registers, lanes: Lanes) -> None:
    values = dict(zip(lanes, registers.read(one.operands[0], lanes), strict=True))
    if None in values.values() or one.parts[1] != "any":
        raise Undecided(f"PTX '{'.'.join(one.parts)}'", registers.line)
    members = registers.members(one.operands[1], ".".join(one.parts), lanes)
    of = {lane: group for group in members for lane in group}
    found = [
        sum(1 << other - registers.first(other) for other in of[lane] if values[other] == values[lane]) & _ONES
        for lane in lanes
    ]
    registers.write(one.result, lanes, found, LANES)


def _reduced(one: Instruction, registers: Registers, lanes: Lanes) -> None:
    operation, kind = one.parts[2], one.parts[-1][0]
    values = registers.read(one.operands[0], lanes)
    members = registers.members(one.operands[1], ".".join(one.parts), lanes)

    def combine(_: Lanes, held: Values) -> int | None:
        if None in held:
            return None
        total = _as_typed(held[0], kind, one.bits)
        for value in held[1:]:
            total = _COMBINED[operation](total, _as_typed(value, kind, one.bits))
        return _as_bits(total, kind, one.bits)

    registers.write(one.result, lanes, over_groups(members, lanes, values, combine), one.bits)


def _shuffled(one: Instruction, registers: Registers, lanes: Lanes) -> None:
    """`shfl.sync`: the third operand has the last lane of a segment in its lower bits, and a mask of it above them."""
    if "sync" not in one.parts or one.bits != LANES:
        raise Undecided(f"PTX '{'.'.join(one.parts)}'", registers.line)
    way, name = _WAYS[one.parts[2]], ".".join(one.parts)
    values, arguments, clamps = (registers.read(operand, lanes) for operand in one.operands[:3])
    members = registers.members(one.operands[3], name, lanes)
    held = dict(zip(lanes, values, strict=True))
    of = {lane: index for index, group in enumerate(members) for lane in group}
    found: Values = []
    inside: Values = []
    for lane, argument, clamp in zip(lanes, arguments, clamps, strict=True):
        if argument is None or clamp is None:
            raise Fault("undefined", "the lane that a shuffle asks for is undefined", registers.line)
        width = _segment(clamp, way, registers)
        argument &= LANES - 1 if width <= LANES else _ONES  # noqa: PLW2901
        source = source_lane(way, lane, argument, width)
        inside.append(int(way == "index" or source != lane or not argument))
        taken = source in held and of[source] == of[lane]
        found.append(held[source] if taken else _of_idle(held[lane], registers.machine.stale))
    registers.write(one.result, lanes, found, one.bits)
    registers.write(one.second, lanes, inside, 1)


def _segment(clamp: int, way: str, registers: Registers) -> int:
    """The lanes of a segment, by the operand that says it; a whole warp is, ported to HIP's builtin, a whole wave."""
    width = LANES - (clamp >> 8 & 31)
    if width & (width - 1) or clamp & 31 not in ((0,) if way == "up" else (31,)):
        raise Undecided("a shuffle of PTX with segments of its own kind", registers.line)
    return registers.wave.width if width == LANES and registers.machine.ptx != "halves" else width


def _of_idle(own: Any, stale: str) -> Any:
    return own if stale == "own" else 0 if stale == "zero" else None


def _synced(one: Instruction, registers: Registers, lanes: Lanes) -> None:
    registers.members(one.operands[0], ".".join(one.parts), lanes)


def _trap(one: Instruction, registers: Registers, lanes: Lanes) -> None:
    del one, lanes
    raise Fault("trap", "the kernel traps", registers.line)


_RUN: Mapping[str, Callable[[Instruction, Registers, Lanes], None]] = {
    "mov": _each(lambda _, a: a), "not": _each(lambda _, a: ~a), "popc": _each(_counted), "clz": _each(_counted),
    "brev": _each(_reversed), "bfind": _each(_highest), "bfe": _each(_extracted), "bfi": _each(_inserted),
    "lop3": _each(_looked_up), "shl": _each(_shifted), "shr": _each(_shifted), "setp": _each(_compared),
    "selp": _each(_selected), **dict.fromkeys(_COMBINED, _each(_arithmetic)),
    "activemask": _active, "vote": _vote, "match": _match, "redux": _reduced, "shfl": _shuffled, "bar": _synced,
    "trap": _trap,
}  # fmt: skip
