"""Syntax trees: one grammar and one parser per language, made when first used."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Parser, Query, Tree


@cache
def language(name: str) -> Language:
    """The grammar "cuda" (CUDA and HIP C++), "python" or "cmake". Raises ValueError for any other name."""
    from tree_sitter import Language

    if name not in ("cuda", "python", "cmake"):
        raise ValueError(f"there is no grammar for '{name}'; there is one for cuda, python and cmake")
    return Language(import_module(f"tree_sitter_{name}").language())


@cache
def _parser(name: str) -> Parser:
    from tree_sitter import Parser

    return Parser(language(name))


def parse(text: bytes, language: str) -> Tree:
    """The tree of a UTF-8 text; what does not parse becomes ERROR nodes. Raises ValueError for an unknown language."""
    parser = _parser(language)
    parser.reset()  # a parse that was interrupted would otherwise be resumed, with this text spliced into it
    return parser.parse(text)


def comments(tree: Tree) -> list[tuple[int, int]]:
    """The byte ranges of the comments of a tree, in order."""
    from tree_sitter import QueryCursor

    captured = QueryCursor(_comment_query(tree.language)).captures(tree.root_node)
    return sorted((node.start_byte, node.end_byte) for node in captured.get("comment", ()))


@cache
def _comment_query(grammar: Language) -> Query:
    from tree_sitter import Query

    kinds = [kind for kind in ("comment", "line_comment", "bracket_comment") if grammar.id_for_node_kind(kind, True)]
    return Query(grammar, f"[{' '.join(f'({kind})' for kind in kinds)}] @comment")
