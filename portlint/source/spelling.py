"""What of a piece of code stays the same when it is moved, renamed around or laid out anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from portlint.regex import regex

if TYPE_CHECKING:
    import tree_sitter

    from portlint.source.node import Node

_IGNORED = frozenset(("comment", "line_comment", "bracket_comment", "line_continuation"))
_CLOSING = frozenset((")", "]", "}"))
_QUOTES = frozenset(("string_start", "string_end"))
_NUMBERS = frozenset(("integer", "float", "number_literal"))
_AROUND_AN_ARGUMENT = frozenset(("argument_list", "keyword_argument", "parenthesized_expression"))
_BLOCKS = frozenset(
    "block compound_statement declaration_list field_declaration_list translation_unit module preproc_if preproc_ifdef "
    "preproc_else preproc_elif source_file program document block_mapping block_sequence".split()
)
_LAST_NAME = regex(r"(\w+)(?:<.*>)?$", re.DOTALL)
_LONGEST = 2_000
"""bytes of a statement; in a longer one, such as a table, what is around an item says nothing of it"""


def spelling(node: Node) -> str:
    """The tokens of a piece of code in one way of writing them.

    White space, line breaks, comments, a comma before a closing bracket, the case of numbers and, in Python, the kind
    of quotes are matters of layout.
    """
    return _spelled(node.source.text, node.raw, node.end)


def part(node: Node) -> str:
    """What an expression is a direct part of: the name of the function that is called with it, or an operator."""
    parent = node.source.parent
    raw = parent(node.raw)
    while raw is not None and raw.type in _AROUND_AN_ARGUMENT:
        raw = parent(raw)
    if raw is None:
        return ""
    function = raw.child_by_field_name("function")
    if function is not None:
        name = _LAST_NAME.search(_spelled(node.source.text, function, function.end_byte))
        return f"{name[1]}()" if name and function.end_byte <= node.start else ""
    operator = raw.child_by_field_name("operator") or raw.child_by_field_name("operators")
    return operator.type if operator is not None else ""


def statement(node: Node) -> str:
    """The spelling of the statement around an expression; of a compound statement, that of its header."""
    raw, end, parent = node.raw, node.end, node.source.parent
    while (around := parent(raw)) is not None and parent(around) is not None and around.type not in _BLOCKS:
        body = around.child_by_field_name("body") or around.child_by_field_name("consequence")
        is_header = body is not None and body.start_byte >= node.end
        stop = body.start_byte if body is not None and is_header else around.end_byte
        if stop - around.start_byte > _LONGEST:
            break
        raw, end = around, stop
        if is_header:
            break
    return _spelled(node.source.text, raw, end)


def _spelled(text: bytes, raw: tree_sitter.Node, end: int) -> str:
    tokens: list[str] = []
    for leaf in _leaves(raw, end):
        token = "".join(text[leaf.start_byte : leaf.end_byte].decode(errors="replace").replace("\\\n", "").split())
        if leaf.type in _QUOTES:
            token = token.replace("'", '"')
        elif leaf.type in _NUMBERS:
            token = token.lower()
        elif leaf.type in _CLOSING and tokens and tokens[-1] == ",":
            tokens.pop()
        tokens.append(token)
    return "".join(tokens)


def _leaves(raw: tree_sitter.Node, end: int) -> Iterator[tree_sitter.Node]:
    """The tokens of a tree that start before `end`, comments left out."""
    cursor = raw.walk()
    depth = 0
    while True:
        node = cursor.node
        if node is not None and node.start_byte < end and node.type not in _IGNORED:
            if cursor.goto_first_child():
                depth += 1
                continue
            yield node
        while depth and not cursor.goto_next_sibling():
            cursor.goto_parent()
            depth -= 1
        if not depth:
            return
