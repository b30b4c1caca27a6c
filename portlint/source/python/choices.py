"""The values that an expression may take where it is not a single constant: loops over literal lists, f-strings."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from portlint.source.python.scopes import Binding

if TYPE_CHECKING:
    from portlint.source.node import Node
    from portlint.source.python.scopes import Scopes

_DEPTH = 6
_MOST = 64
"""texts that one f-string may stand for; beyond that nothing is said"""


def choices(scopes: Scopes, node: Node, depth: int = _DEPTH) -> list[Node]:
    """The expressions that a value may come from; none where one of them is not written in the file.

    That is the literals of `for w in [4, 8]`, both arms of a conditional, or the expression itself.
    """
    if not depth:
        return []
    match node.type:
        case "integer" | "float" | "string" | "concatenated_string" | "true" | "false" | "unary_operator":
            return [node]
        case "parenthesized_expression":
            return choices(scopes, node.children[0], depth - 1)
        case "conditional_expression" if len(node.children) == 3:
            body, _, other = node.children
            return choices(scopes, body, depth - 1) + choices(scopes, other, depth - 1)
        case "identifier":
            binding = comprehended(node) or scopes.binding(node.text, node)
            if binding is None or binding.value is None:
                return []
            if binding.kind == "assign":
                return choices(scopes, binding.value, depth - 1)
            if binding.kind == "loop":
                return elements(scopes, binding.value, depth - 1)
    return []


def elements(scopes: Scopes, node: Node, depth: int = _DEPTH) -> list[Node]:
    """The elements of a literal list, or of a name that is bound to one; none if any is not written out."""
    if node.type == "identifier" and depth:
        binding = scopes.only(node.text, node)
        if binding is not None and binding.kind == "assign" and binding.value is not None:
            return elements(scopes, binding.value, depth - 1)
    if node.type not in ("list", "tuple", "set"):
        return []
    found = [choices(scopes, child, depth - 1) for child in node.children]
    return [one for group in found for one in group] if all(found) else []


def comprehended(node: Node) -> Binding | None:
    """The variable of the nearest comprehension around a name, which is used before its `for` clause in the source."""
    for parent in node.ancestors(
        "list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression"
    ):
        for clause in parent.children:
            if clause.type == "for_in_clause" and any(
                one.text == node.text for one in clause["left"].walk("identifier")
            ):
                return Binding("loop", clause.start, clause["right"])
    return None


def variants(scopes: Scopes, string: Node) -> list[str]:
    """The texts that a string may be, interpolations replaced by what they may stand for; none if one is unknown."""
    pieces: list[list[str]] = []
    for child in string.children:
        if child.type == "interpolation":
            values = [one.constant for one in choices(scopes, child.children[0])] if child.children else []
            pieces.append([str(value) for value in values if value is not None])
        elif child.type in ("string_content", "escape_sequence"):
            pieces.append([child.text])
    if any(not piece for piece in pieces):
        return []
    return ["".join(parts) for parts in itertools.islice(itertools.product(*pieces), _MOST)]


def origin(scopes: Scopes, string: Node) -> Node:
    """Where a string's text is decided: the list that its interpolation loops over, else the string itself."""
    for child in string.children:
        if child.type == "interpolation" and child.children:
            found = choices(scopes, child.children[0])
            if len(found) > 1 and found[0].parent is not None:
                return found[0].parent
    return string
