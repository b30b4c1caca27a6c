"""Which blocks, functions and types an offset lies in."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from portlint.source.cxx.query import captured, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

    from portlint.source import Source

_KINDS = ("function", "lambda", "block", "if", "template", "namespace", "type", "enum")


_Found: TypeAlias = "tuple[int, int, str, Node | None]"


class Scope(msgspec.Struct, frozen=True):
    """A range in which names can be declared."""

    start: int
    end: int
    kind: str
    """file | macro | function | lambda | block | if | template | namespace | type | enum"""
    node: Node | None
    outer: Scope | None

    @property
    def name(self) -> str:
        """The last part of the name of a namespace or type; "" for any other scope."""
        if self.kind not in ("namespace", "type", "enum") or self.node is None:
            return ""
        return text_of(self.node.child_by_field_name("name")).partition("<")[0].rpartition("::")[2].strip()

    @property
    def key(self) -> tuple[str, int]:
        """What it has in common with the same scope of another tree."""
        return self.kind, self.start

    def in_macro(self) -> bool:
        """Whether it is, or lies in, the body of a macro."""
        return any(scope.kind == "macro" for scope in self.chain())

    def chain(self) -> Iterator[Scope]:
        """The scope and those around it, the innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


class Reading(msgspec.Struct, frozen=True):
    """A tree of the file, or of what is left of it once branches are selected."""

    root: Node
    left_out: list[tuple[int, int]]
    """the ranges that it does not have, in order"""

    def has(self, offset: int) -> bool:
        """Whether the tree has the code at an offset."""
        index = bisect_right(self.left_out, offset, key=_start) - 1
        return index < 0 or offset >= self.left_out[index][1]


class Scopes:
    """The scopes of a file: of the first reading that has an offset.

    `bodies` are the ranges of macro bodies, in order; nodes of `macros` outside them are only wrapping.
    """

    def __init__(
        self, source: Source, readings: list[Reading], macros: Node | None, bodies: list[tuple[int, int]]
    ) -> None:
        inner = list(_in_bodies(source, macros, bodies)) if macros is not None else []
        self._readings = [(one, _nest([*_captured(source, one.root), *inner])) for one in readings]

    def at(self, offset: int) -> Scope:
        """The innermost scope around an offset."""
        scopes = next((scopes for reading, scopes in self._readings if reading.has(offset)), self._readings[0][1])
        scope = scopes[bisect_right(scopes, offset, key=_start_of_scope) - 1]
        while scope.outer is not None and scope.end <= offset:
            scope = scope.outer
        return scope


def _start(found: tuple[int, int]) -> int:
    return found[0]


def _start_of_scope(scope: Scope) -> int:
    return scope.start


def _nest(found: list[_Found]) -> list[Scope]:
    found.sort(key=lambda one: (one[0], -one[1], one[2] != "macro"))
    innermost = Scope(0, sys.maxsize, "file", None, None)
    scopes = [innermost]
    for start, end, kind, node in found:
        while innermost.outer is not None and innermost.end <= start:
            innermost = innermost.outer
        innermost = Scope(start, end, kind, node, innermost)
        scopes.append(innermost)
    return scopes


def _in_bodies(source: Source, macros: Node, bodies: list[tuple[int, int]]) -> Iterator[_Found]:
    starts = [start for start, _ in bodies]
    for start, end in bodies:
        yield start, end, "macro", None
    for one in _captured(source, macros):
        index = bisect_right(starts, one[0]) - 1
        if index >= 0 and one[1] <= bodies[index][1]:
            yield one


def _captured(source: Source, root: Node) -> Iterator[_Found]:
    found = captured(source, root)
    for kind in _KINDS:
        for node in found.get(kind, ()):
            yield node.start_byte, node.end_byte, kind, node
