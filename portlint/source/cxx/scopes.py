"""Which blocks, functions and types an offset lies in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Node, Query

_QUERY = """
(function_definition) @function
(lambda_expression) @lambda
(compound_statement) @block
(for_statement) @block
(for_range_loop) @block
(if_statement) @if
(while_statement) @block
(template_declaration) @template
(namespace_definition) @namespace
[(class_specifier) (struct_specifier) (union_specifier)] @type
(enum_specifier "class") @enum
(enum_specifier "struct") @enum
"""


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
        name = self.node.child_by_field_name("name")
        text = (name.text or b"").decode(errors="replace") if name else ""
        return text.partition("<")[0].rpartition("::")[2].strip()

    def in_macro(self) -> bool:
        """Whether it is, or lies in, the body of a macro."""
        return any(scope.kind == "macro" for scope in self.chain())

    def chain(self) -> Iterator[Scope]:
        """The scope and those around it, the innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


@cache
def _query() -> Query:
    from tree_sitter import Query

    from portlint.source.grammar import language

    return Query(language("cuda"), _QUERY)


class Scopes:
    """The scopes of a file.

    `bodies` are the ranges of macro bodies, in order; nodes of `macros` outside them are only wrapping.
    """

    def __init__(self, file: Node, macros: Node | None, bodies: list[tuple[int, int]]) -> None:
        found = list(_captured(file))
        if macros is not None:
            found += ((start, end, "macro", None) for start, end in bodies)
            starts = [start for start, _ in bodies]
            for start, end, kind, node in _captured(macros):
                index = bisect_right(starts, start) - 1
                if index >= 0 and end <= bodies[index][1]:
                    found.append((start, end, kind, node))
        found.sort(key=lambda one: (one[0], -one[1], one[2] != "macro"))
        self._all = [Scope(0, max(file.end_byte, macros.end_byte if macros else 0) + 1, "file", None, None)]
        innermost = self._all[0]
        for start, end, kind, node in found:
            while innermost.outer is not None and innermost.end <= start:
                innermost = innermost.outer
            innermost = Scope(start, end, kind, node, innermost)
            self._all.append(innermost)
        self._starts = [scope.start for scope in self._all]

    def at(self, offset: int) -> Scope:
        """The innermost scope around an offset."""
        scope = self._all[bisect_right(self._starts, offset) - 1]
        while scope.outer is not None and scope.end <= offset:
            scope = scope.outer
        return scope


def _captured(root: Node) -> Iterator[tuple[int, int, str, Node | None]]:
    from tree_sitter import QueryCursor

    for kind, nodes in QueryCursor(_query()).captures(root).items():
        for node in nodes:
            yield node.start_byte, node.end_byte, kind, node
