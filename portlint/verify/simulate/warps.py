"""What lanes of a wave do together: shuffles, votes, ballots, and the masks that name who takes part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from portlint.verify.simulate.faults import Fault
from portlint.verify.simulate.machine import Machine, Wave
from portlint.verify.simulate.values import Lanes, Values

GROUP = "group"
_HALF = 32
"""of a wave of 64, which a warp of NVIDIA's is"""


def spans(lanes: Iterable[int]) -> str:
    """Lanes as text: `lanes 0..15, 32..47`."""
    ordered = sorted(lanes)
    runs: list[list[int]] = []
    for lane in ordered:
        if runs and runs[-1][1] == lane - 1:
            runs[-1][1] = lane
        else:
            runs.append([lane, lane])
    text = ", ".join(str(a) if a == b else f"{a}..{b}" for a, b in runs)
    return f"lane{'s' if len(ordered) > 1 else ''} {text}"


def groups(machine: Machine, wave: Wave, lanes: Lanes, masks: Values | None, name: str, line: int) -> list[Lanes]:
    """The lanes that take part in an operation together: for a `*_sync`, those of one mask, which is checked.

    CUDA lets a mask name lanes that have exited or that the block does not have; HIP compares it with the lanes that
    execute, whichever they are.
    """
    if masks is None or not machine.checks_masks:
        return [lanes]
    if None in masks:
        raise Fault("undefined", f"the mask of '{name}' is undefined", line)
    by_mask: dict[int, Lanes] = {}
    for lane, mask in zip(lanes, masks, strict=True):
        by_mask.setdefault(mask & ((1 << wave.width) - 1), []).append(lane)
    for mask, members in by_mask.items():
        outside = [lane for lane in members if not mask >> lane & 1]
        if outside:
            raise Fault("mask", f"{spans(outside)} execute '{name}' and the mask {mask:#x} does not name them", line)
        present = members if machine.platform == "rocm" else lanes
        named = [lane for lane in range(wave.width) if mask >> lane & 1 and lane not in present]
        if machine.platform != "rocm":
            named = [lane for lane in named if lane in wave.lanes and lane not in wave.exited]
        if named:
            reason = f"the mask {mask:#x} of '{name}' names {spans(named)}, which do not execute it"
            raise Fault("mask", reason, line)
    return list(by_mask.values())


def source_lane(way: str, lane: int, argument: int, width: int) -> int:
    """The lane that a shuffle reads."""
    first = lane & ~(width - 1)
    match way:
        case "down":
            return lane if (lane & (width - 1)) + argument >= width else lane + argument
        case "up":
            return lane if lane - argument < first else lane - argument
        case "xor":
            return lane if (lane ^ argument) >= first + width else lane ^ argument
        case _:
            return first + (argument & (width - 1))


def shuffle(
    members: list[Lanes],
    lanes: Lanes,
    values: Values,
    arguments: Values,
    widths: Values,
    way: str,
    line: int,
    machine: Machine,
) -> Values:
    """The value of the lane that each lane asks for; of one that does not take part, what the machine says."""
    held = dict(zip(lanes, values, strict=True))
    of = {lane: index for index, group in enumerate(members) for lane in group}
    found = []
    for lane, argument, width in zip(lanes, arguments, widths, strict=True):
        if argument is None or width is None:
            raise Fault("undefined", "the lane that a shuffle asks for is undefined", line)
        source = source_lane(way, lane, argument, width)
        is_near = not machine.is_apart or source // _HALF == lane // _HALF
        if source in held and of[source] == of[lane] and is_near:
            found.append(held[source])
        else:
            found.append(_found_in_an_idle_lane(held[lane], machine.stale))
    return found


def _found_in_an_idle_lane(own: Any, stale: str) -> Any:
    if stale == "own":
        return own
    if stale == "zero":
        return tuple(type(one)(0) for one in own) if isinstance(own, tuple) else own if own is None else type(own)(0)
    return None


def over_groups(members: list[Lanes], lanes: Lanes, values: Values, combine: Callable[[Lanes, Values], Any]) -> Values:
    """One result for each group, given to all of its lanes."""
    held = dict(zip(lanes, values, strict=True))
    results: dict[int, Any] = {}
    for group in members:
        result = combine(group, [held[lane] for lane in group])
        for lane in group:
            results[lane] = result
    return [results[lane] for lane in lanes]


def ballot(group: Lanes, values: Values) -> int:
    """The bits of the lanes whose value is not zero."""
    return sum(1 << lane for lane, value in zip(group, values, strict=True) if value)
