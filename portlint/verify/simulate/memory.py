"""Memory: buffers of typed cells, with bounds, undefined cells, and who wrote what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from portlint.verify.simulate.faults import Fault, Undecided
from portlint.verify.simulate.values import CType, Scalar, from_bytes, to_bytes

Address: TypeAlias = "tuple[Buffer | None, int]"
HOST = -1
"""the writer of what was there before the launch"""
_LARGEST_SCALAR = 8


class Buffer:
    """A piece of memory. `size` is None for one that grows: the parameters of a kernel whose extent nobody states.

    `initial` gives the content of a cell that nobody has written; without it such a cell is undefined.
    """

    __slots__ = ("cells", "initial", "name", "size", "stores")

    def __init__(self, name: str, size: int | None, initial: Callable[[int, CType], Any] | None = None) -> None:
        self.name = name
        self.size = size
        self.initial = initial
        self.cells: dict[int, tuple[CType, Any, int]] = {}
        """offset -> type, value, and the thread that wrote it"""
        self.stores: dict[int, tuple[int, int, Any]] | None = None
        """of memory that waves share: offset -> the barriers before the last store, its wave, and what it stored"""

    def load(self, at: int, ctype: CType, line: int) -> tuple[Any, int]:
        """The value at an offset, and who wrote it."""
        cell = self.cells.get(at)
        if cell is not None and cell[0] is ctype:
            return cell[1], cell[2]
        self.check(at, ctype, line)
        if cell is None and not self._overlapping(at, ctype.size):
            if self.initial is None:
                return None, HOST
            value = self.initial(at, ctype)
            self.cells[at] = (ctype, value, HOST)
            return value, HOST
        if cell is not None and not isinstance(ctype, Scalar) and not isinstance(cell[0], Scalar):
            return cell[1], cell[2]
        return self._reassembled(at, ctype, line)

    def store(self, at: int, ctype: CType, value: Any, writer: int, line: int) -> None:
        """Write a cell."""
        cell = self.cells.get(at)
        if cell is None or cell[0] is not ctype:
            self.check(at, ctype, line)
            if cell is None or cell[0].size != ctype.size:
                self._split(at, ctype.size, line)
        self.cells[at] = (ctype, value, writer)

    def check(self, at: int, ctype: CType, line: int) -> None:
        """Raise a fault where an access leaves the buffer."""
        if at < 0 or (self.size is not None and at + ctype.size > self.size):
            held = "" if self.size is None else f" of {self.size // max(1, ctype.size)} elements"
            raise Fault("bounds", f"element {at // max(1, ctype.size)} of '{self.name}'{held} is out of bounds", line)

    def _overlapping(self, at: int, size: int) -> list[int]:
        first = at - _LARGEST_SCALAR + 1
        found = (offset for offset in range(first, at + size) if offset in self.cells)
        return [offset for offset in found if offset + self.cells[offset][0].size > at]

    def _split(self, at: int, size: int, line: int) -> None:
        """Make way for a cell: what lies across its ends falls apart into bytes."""
        for offset in self._overlapping(at, size):
            ctype, value, writer = self.cells.pop(offset)
            if at <= offset and offset + ctype.size <= at + size:
                continue
            data = None if value is None else to_bytes(value, ctype)
            if data is None and value is not None:
                raise Undecided("a pointer in memory is written to in part", line)
            for index in range(ctype.size):
                byte = None if data is None else data[index]
                self.cells[offset + index] = (_BYTE, byte, writer)

    def _reassembled(self, at: int, ctype: CType, line: int) -> tuple[Any, int]:
        """A value read with another type than it was written with."""
        data: dict[int, int | None] = {}
        last = HOST
        for offset in self._overlapping(at, ctype.size):
            own, value, writer = self.cells[offset]
            held = None if value is None else to_bytes(value, own)
            if held is None and value is not None:
                raise Undecided("a pointer is read as a number", line)
            for index in range(own.size):
                data[offset + index] = None if held is None else held[index]
            last = max(last, writer)
        wanted = [data.get(at + index) for index in range(ctype.size)]
        if any(byte is None for byte in wanted):
            return None, last
        return from_bytes(bytes(byte for byte in wanted if byte is not None), ctype), last


_BYTE = Scalar("byte", "u", 1, 1, "B")
