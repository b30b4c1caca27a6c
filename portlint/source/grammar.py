"""Syntax trees: one grammar and one parser per language, made when first used."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Language, Node, Parser, Query, Tree


_PACKAGES = {
    "bash": "tree_sitter_bash",
    "cmake": "tree_sitter_cmake",
    "cuda": "tree_sitter_cuda",
    "dockerfile": "tree_sitter_containerfile",
    "python": "tree_sitter_python",
    "requirements": "tree_sitter_requirements",
    "toml": "tree_sitter_toml",
    "yaml": "tree_sitter_yaml",
}


@cache
def language(name: str) -> Language:
    """The grammar of a language, "cuda" being CUDA and HIP C++. Raises ValueError for any other name."""
    from tree_sitter import Language

    if name not in _PACKAGES:
        raise ValueError(f"there is no grammar for '{name}'; there is one for {', '.join(_PACKAGES)}")
    return Language(import_module(_PACKAGES[name]).language())


@cache
def _parser(name: str) -> Parser:
    from tree_sitter import Parser

    return Parser(language(name))


def parse(text: bytes, language: str) -> Tree:
    """The tree of a UTF-8 text; what does not parse becomes ERROR nodes. Raises ValueError for an unknown language."""
    parser = _parser(language)
    parser.reset()  # a parse that was interrupted would otherwise be resumed, with this text spliced into it
    return parser.parse(text)


def edges(tree: Tree) -> Iterator[tuple[Node, Node]]:
    """Every node of a tree with each of its children."""
    waiting = [tree.root_node]
    while waiting:
        node = waiting.pop()
        children = node.children
        waiting += children
        for child in children:
            yield node, child


def broken_places(tree: Tree) -> int:
    """How many places of a tree do not parse."""
    from tree_sitter import Query, QueryCursor

    if not tree.root_node.has_error:
        return 0
    captured = QueryCursor(Query(tree.language, "[(ERROR) (MISSING)] @broken")).captures(tree.root_node)
    return len(captured.get("broken", ()))


def comments(tree: Tree) -> list[tuple[int, int]]:
    """The byte ranges of the comments of a tree, in order."""
    from tree_sitter import QueryCursor

    captured = QueryCursor(_comment_query(tree.language)).captures(tree.root_node)
    return sorted((node.start_byte, node.start_byte + _length(node)) for node in captured.get("comment", ()))


def _length(comment: Node) -> int:
    """The bytes of a comment; some grammars count the end of its line to it."""
    return len((comment.text or b"").rstrip(b"\r\n"))


@cache
def _comment_query(grammar: Language) -> Query:
    from tree_sitter import Query

    kinds = [kind for kind in ("comment", "line_comment", "bracket_comment") if grammar.id_for_node_kind(kind, True)]
    return Query(grammar, f"[{' '.join(f'({kind})' for kind in kinds)}] @comment")
