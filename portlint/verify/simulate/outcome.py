"""What running the code comes to, and how two runs compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from portlint.verify.simulate.faults import Fault
from portlint.verify.simulate.launch import Result, written
from portlint.verify.simulate.machine import Machine
from portlint.verify.simulate.memory import HOST
from portlint.verify.simulate.values import CType, Scalar

_TOLERANCE: Mapping[str, float] = {"half": 2e-2, "bfloat16": 6e-2, "float": 1e-4, "double": 1e-9}


_MANY = 8
"""values that are the same in two buffers by chance only"""


class Counterexample(msgspec.Struct, frozen=True):
    """A launch that goes wrong on the target."""

    launch: str
    where: str
    """the first wrong element; "" for a fault"""
    thread: int | None
    """that has written it"""
    expected: str
    got: str
    fault: str = ""
    line: int = 0
    """of the fault"""


class Outcome(msgspec.Struct, frozen=True):
    """What running the code says of a finding."""

    verdict: str
    """"proven", "refuted" or "undecided" """
    reason: str
    kernel: str = ""
    counterexample: Counterexample | None = None
    launches: int = 0
    """that say something"""


def agreed(found: list[Outcome]) -> Outcome:
    """The verdict on code whose PTX can be ported in several ways: that of the first, where all come to the same."""
    if all(one.verdict == found[0].verdict for one in found):
        return found[0]
    undecided = [one for one in found if one.verdict == "undecided"]
    if undecided:
        return undecided[0]
    return Outcome("undecided", "it depends on how its PTX is ported", found[0].kernel)


def first_difference(wanted: Result, got: Result, *, aware: bool) -> Counterexample | None:
    """The first element that differs.

    Of code that asks for its width, only what the same thread writes both times and what more than one wave has a part
    in: a result per wave is another one by intention.
    """
    expected, found = written(wanted), written(got)
    for name, at in sorted(expected.keys() | found.keys()):
        one, other = expected.get((name, at)), found.get((name, at))
        if one is None or other is None:
            if aware:
                continue
            present = one or other
            assert present is not None
            held = _held([wanted, got] if one is None else [got, wanted], name, at, present[0])
            one, other = one or (present[0], held, -1), other or (present[0], held, -1)
        elif one[0] is not other[0]:  # bytes that were written one by one, or by wider stores
            held = _held([got], name, at, one[0])
            other = (one[0], held, other[2])
        if equal(one[1], other[1], one[0]):
            continue
        if aware and (one[2] != other[2] or not _crosses(wanted, one[2])):
            continue
        size = max(1, one[0].size)
        return Counterexample(
            "", f"{name}[{at // size}]", other[2] if other[2] >= 0 else one[2], shown(one[1]), shown(other[1])
        )
    return None


def has_part_in(wanted: Result, got: Result, other: Result) -> bool:
    """Whether something that is wrong in a result comes to something else in another one."""
    expected, found, instead = written(wanted), written(got), written(other)
    return any(
        not _is_same(expected.get(key), found.get(key)) and not _is_same(found.get(key), instead.get(key))
        for key in expected.keys() | found.keys()
    )


def _is_same(one: tuple[CType, Any, int] | None, other: tuple[CType, Any, int] | None) -> bool:
    if one is None or other is None:
        return one is other
    return one[0] is other[0] and equal(one[1], other[1], one[0])


def _held(results: list[Result], name: str, at: int, ctype: CType) -> Any:
    """What the first of some results holds in a cell; where it lacks the buffer, what the host has put there.

    A buffer that only a pointer in memory leads to is made when that is followed.
    """
    if not isinstance(ctype, Scalar):
        return None
    buffer = results[0].buffers.get(name)
    if buffer is not None:
        return buffer.load(at, ctype, 0)[0]
    other = results[-1].buffers.get(name)
    return other.initial(at, ctype) if other is not None and other.initial is not None else None


def is_about(fault: Fault, line: int | None, *, breaks: bool) -> bool:
    """Whether a fault is what a finding on a line is about: a mask that does not fit is no matter of other lines."""
    return fault.kind != "mask" or line is None or breaks or abs(fault.line - line) <= 1


def relaxed(on: Callable[[Machine], Result], machine: Machine) -> list[Result]:
    """A run, or where a value that a shuffle took from an idle lane decides a branch, one for each way it may go."""
    try:
        return [on(machine)]
    except Fault as fault:
        if fault.kind != "branch":
            raise
        ways = [msgspec.structs.replace(machine, stale=stale) for stale in ("zero", "own")]
        try:
            return [on(way) for way in ways]
        except Fault:
            raise fault from None


def multiset(result: Result) -> dict[str, list[Any]]:
    """The values that each buffer is left with, whatever their order."""
    found: dict[str, list[Any]] = {}
    for (name, _), (_, value, _) in written(result).items():
        found.setdefault(name, []).append(value)
    return {name: sorted(values, key=lambda one: (one is None, one or 0)) for name, values in found.items()}


def rearranged(wanted: Result, other: Result, got: Result) -> set[str]:
    """The buffers that two runs leave with the values of another one in some order, of which a third reads as much.

    No wave adds a value of its own to these, so they hold the same at any width, also where the code asks for it.
    """
    pairs = _permutations(wanted) & _permutations(other)
    return {name for name, source in pairs if _given(wanted, source).keys() == _given(got, source).keys()}


def _permutations(result: Result) -> set[tuple[str, str]]:
    """A buffer that has been written, and one whose values it has."""
    given = {name: sorted(_given(result, name).values()) for name in result.buffers}
    return {
        (name, source)
        for name, values in multiset(result).items()
        if len(values) >= _MANY and len(set(values)) > 1 and None not in values
        for source, held in given.items()
        if source != name and held == values
    }


def _given(result: Result, name: str) -> dict[int, Any]:
    """What the kernel has read of the numbers that the host has put into a buffer, by offset."""
    cells = result.buffers[name].cells if name in result.buffers else {}
    kept = {at: cell for at, cell in cells.items() if cell[2] == HOST and isinstance(cell[0], Scalar)}
    return {at: cell[1] for at, cell in kept.items()} if len({cell[0] for cell in kept.values()}) == 1 else {}


def unlike(wanted: Result, got: Result, only: Collection[str] | None = None) -> Counterexample | None:
    """How the values that buffers are left with differ, their order left out; None where they do not."""
    one, other = multiset(wanted), multiset(got)
    kinds = {name: cell[0] for (name, _), cell in written(wanted).items()}
    for name in sorted(one.keys() | other.keys() if only is None else only):
        left, right = one.get(name, []), other.get(name, [])
        ctype = kinds.get(name)
        if ctype is None or len(left) != len(right):
            return Counterexample("", f"the number of elements in {name}", None, str(len(left)), str(len(right)))
        for a, b in zip(left, right, strict=True):
            if not equal(a, b, ctype):
                return Counterexample("", f"one of the elements of {name}", None, shown(a), shown(b))
    return None


def says_something(wanted: Result, got: Result) -> bool:
    """Of code that asks for its width: whether what is the same at both widths is more than a result per wave."""
    found = written(got)
    differs = crosses = False
    for key, cell in written(wanted).items():
        other = found.get(key)
        if other is not None and equal(cell[1], other[1], cell[0]):
            crosses = crosses or _crosses(wanted, cell[2])
        else:
            differs = True
    return crosses or not differs


def _crosses(result: Result, thread: int) -> bool:
    """Whether the wave of a thread has read what another wave has written."""
    return any(thread in wave.thread and wave.crossed for wave in result.waves)


def equal(one: Any, other: Any, ctype: CType) -> bool:
    """Whether two values are the same, up to what the order of operations may change."""
    if one is None or other is None:
        return one is other
    if isinstance(ctype, Scalar) and ctype.is_float:
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        if math.isinf(one) or math.isinf(other):
            return bool(one == other)
        return bool(abs(one - other) <= _TOLERANCE[ctype.name] * max(1.0, abs(one), abs(other)))
    return bool(one == other)


def shown(value: Any) -> str:
    """A value for people."""
    if value is None:
        return "undefined"
    return f"{value:.7g}" if isinstance(value, float) else str(value)
