"""Tree-sitter queries of the C++ services."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Query


@cache
def _compiled(text: str) -> Query:
    from tree_sitter import Query

    from portlint.source.grammar import language

    return Query(language("cuda"), text)


def capture(query: str, root: Node) -> dict[str, list[Node]]:
    """The nodes under a root that a query captures, by capture name."""
    from tree_sitter import QueryCursor

    return QueryCursor(_compiled(query)).captures(root)


def text_of(node: Node | None) -> str:
    """The text of a node in the tree that it is from; "" for None."""
    return (node.text or b"").decode(errors="replace") if node is not None else ""
