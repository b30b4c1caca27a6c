"""The few whole-file questions that Python analysis asks: all calls, and calls by the last part of their name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from portlint.source.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterable

    import tree_sitter

    from portlint.source import Source


def every_call(source: Source) -> list[Node]:
    """Every call of a file, in source order."""
    return _captured(source, "(call) @found")


def calls_of(source: Source, names: Iterable[str]) -> list[Node]:
    """The calls whose function is called, or is an attribute called, by one of these names, in source order."""
    found: list[Node] = []
    for name in names:
        for raw in source.identifiers(name.encode()):
            called, parent = raw, source.parent(raw)
            if parent is not None and parent.type == "attribute":
                called, parent = parent, source.parent(parent)
            is_called = (
                parent is not None and parent.type == "call" and called == parent.child_by_field_name("function")
            )
            if parent is not None and is_called and called.end_byte == raw.end_byte:
                found.append(Node(source, parent))
    return sorted(found, key=lambda node: (node.start, -node.end))


def assigned_attributes(source: Source) -> list[Node]:
    """The assignments `self.name = value`, in source order."""
    return _captured(
        source,
        '((assignment left: (attribute object: (identifier) @_self) right: (_)) @found (#eq? @_self "self"))',
    )


def assigned_items(source: Source) -> list[Node]:
    """The assignments `owner[key] = value`, in source order."""
    return _captured(source, "(assignment left: (subscript) right: (_)) @found")


def _captured(source: Source, query: str) -> list[Node]:
    from tree_sitter import QueryCursor

    found = QueryCursor(_compiled(query)).captures(source.tree.root_node).get("found", [])
    return sorted((Node(source, raw) for raw in found), key=lambda node: node.start)


@cache
def _compiled(query: str) -> tree_sitter.Query:
    from tree_sitter import Query

    from portlint.source.grammar import language

    return Query(language("python"), query)
