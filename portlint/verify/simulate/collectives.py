"""CUB's and hipCUB's collectives: what the lanes of a logical warp, or the threads of a block, work out together.

A logical warp is as wide as the hardware's unless the code says otherwise: 32 lanes on NVIDIA, and on AMD those of a
wave. Only the first lane gets the result of a reduction; what the others get is undefined, as it is where lanes of the
logical warp do not take part.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from portlint.verify.simulate import values as v
from portlint.verify.simulate.builtins import all_at_barrier
from portlint.verify.simulate.compiler import CollectiveType, Expr, Slot
from portlint.verify.simulate.faults import Undecided
from portlint.verify.simulate.machine import Evaluate, Step, Wave
from portlint.verify.simulate.nested import Nested
from portlint.verify.simulate.program import text_of
from portlint.verify.simulate.values import CType, Lanes, Scalar, Values

if TYPE_CHECKING:
    import tree_sitter

_Combine: TypeAlias = "Callable[[Wave, int, Any, Any], Any]"
_LIBRARY = re.compile(r"(?:\w*::)*(Sum|plus|Max|maximum|Min|minimum)(?:<[^<>]*>)?(?:\(\)|\{\})")
"""a function object of CUB, hipCUB or the language's library"""
_SCANS = ("InclusiveSum", "ExclusiveSum")


class Collectives(Nested):
    """Methods of collectives."""

    def combined(self, operation: Expr, left: Expr, right: Expr, node: tree_sitter.Node) -> Expr:
        """A call of a function object of the program."""
        raise NotImplementedError

    def collective_call(
        self, held: CollectiveType, name: str, listed: list[tree_sitter.Node], node: tree_sitter.Node
    ) -> Expr:
        """A method of a collective, called with an element of each thread."""
        if not listed or not isinstance(held.of, Scalar):
            raise self.undecided(f"'{name}' of '{held}'", node)
        value = self.converted(self.expression(listed[0]), held.of, self.line(node))
        if held.kind == "WarpScan" and name in _SCANS and len(listed) in (2, 3):
            return self._scan(held, name, value, [self.expression(one) for one in listed[1:]], node)
        rest = listed[2:] if name == "Reduce" else listed[1:]
        if name not in ("Sum", "Reduce") or len(rest) > 1 or held.kind == "WarpScan" or len(listed) - len(rest) < 1:
            raise self.undecided(f"'{name}' of '{held}'", node)
        combine = self._combine(listed[1] if name == "Reduce" else None, held.of, node)
        count = self.converted(self.expression(rest[0]), v.INT, self.line(node)).ev if rest else None
        if held.kind == "BlockReduce":
            return self._reduce_block(held.of, value.ev, combine, count, node)
        return self._reduce_warp(held, value.ev, combine, count, self.line(node))

    def _combine(self, operation: tree_sitter.Node | None, ctype: Scalar, node: tree_sitter.Node) -> _Combine:
        text = re.sub(r"\s+", "", text_of(operation)) if operation is not None else "Sum()"
        match = _LIBRARY.fullmatch(text)
        if match is not None and match[1] not in self.program.records:
            if match[1] in ("Sum", "plus"):
                add = v.operation("+", ctype)
                assert add is not None
                return lambda _, __, a, b: add([a], [b])[0]
            return (lambda _, __, a, b: max(a, b)) if "x" in match[1] else (lambda _, __, a, b: min(a, b))
        assert operation is not None
        given: list[Any] = [None, None]
        left, right = (Expr(ctype, lambda _, lanes, at=at: [given[at]] * len(lanes)) for at in (0, 1))  # type: ignore[misc]
        called = self.converted(self.combined(self.expression(operation), left, right, node), ctype, self.line(node))

        def combine(wave: Wave, lane: int, a: Any, b: Any) -> Any:
            given[:] = a, b
            return called.ev(wave, [lane])[0]

        return combine

    @staticmethod
    def _reduce_warp(
        held: CollectiveType, value: Evaluate, combine: _Combine, count: Evaluate | None, line: int
    ) -> Expr:
        width = held.width

        def run(wave: Wave, lanes: Lanes) -> Values:
            _check_full(wave, width, line)
            mine = dict(zip(lanes, value(wave, lanes), strict=True))
            counts = count(wave, lanes) if count is not None else [width] * len(lanes)
            return [
                None
                if lane % width or many is None
                else _folded([mine.get(lane + at) for at in range(min(width, many))], combine, wave, lane)
                for lane, many in zip(lanes, counts, strict=True)
            ]

        return Expr(held.of, run)

    def _reduce_block(
        self, ctype: CType, value: Evaluate, combine: _Combine, count: Evaluate | None, node: tree_sitter.Node
    ) -> Expr:
        if self.conditional:
            raise self.undecided("a collective of the block that may not be reached", node)
        self.suspends = True
        line, result = self.line(node), Slot(ctype, self.new_slot())

        def step(wave: Wave, lanes: Lanes) -> Step:
            all_at_barrier(wave, lanes, line)
            own = [(wave.first + lane, one) for lane, one in zip(lanes, value(wave, lanes), strict=True)]
            many = count(wave, lanes)[0] if count is not None else wave.launch.dimensions.threads
            held = dict((yield "gather", own))
            first = None
            if wave.first == 0 and many is not None:
                first = _folded([held.get(thread) for thread in range(many)], combine, wave, lanes[0])
            result.store(wave, lanes, [first if wave.first + lane == 0 else None for lane in lanes])
            return lanes

        self.hoisted.append(step)
        return Expr(ctype, result.load)

    def _scan(self, held: CollectiveType, name: str, value: Expr, outputs: list[Expr], node: tree_sitter.Node) -> Expr:
        """A sum over the lanes before each lane, with its own or without, and the sum of all."""
        places = [one.place for one in outputs]
        if None in places or any(one.ctype is not held.of for one in outputs):
            raise self.undecided(f"'{name}' of '{held}'", node)
        combine, width = self._combine(None, value.ctype, node), held.width  # type: ignore[arg-type]
        line = self.line(node)
        own = 1 if name.startswith("Inclusive") else 0

        def run(wave: Wave, lanes: Lanes) -> Values:
            _check_full(wave, width, line)
            mine = dict(zip(lanes, value.ev(wave, lanes), strict=True))
            sums, totals = [], []
            for lane in lanes:
                first = lane // width * width
                before = [mine.get(at) for at in range(first, lane + own)]
                sums.append(_folded(before, combine, wave, lane) if before else 0)
                totals.append(_folded([mine.get(at) for at in range(first, first + width)], combine, wave, lane))
            for place, held_there in zip(places, (sums, totals), strict=False):
                assert place is not None
                place.store(wave, lanes, held_there)
            return [None] * len(lanes)

        return Expr(v.VOID, run)


def _check_full(wave: Wave, width: int, line: int) -> None:
    if len(wave.lanes) % width:
        raise Undecided("what a collective does in a warp that the block does not fill is not said", line)


def _folded(values: Values, combine: _Combine, wave: Wave, lane: int) -> Any:
    if None in values or not values:
        return None
    total = values[0]
    for value in values[1:]:
        total = combine(wave, lane, total, value)
    return total
