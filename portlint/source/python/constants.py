"""Values of Python expressions that can be known without running anything."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from portlint.condition import Value
    from portlint.source.node import Node
    from portlint.source.python.scopes import Scopes

_DEPTH = 16
_LARGEST = 1 << 64
"""products beyond this are no sizes, masks or counts; folding stops there"""

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": lambda a, b: operator.lshift(a, _small(b)),
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "**": lambda a, b: operator.pow(a, _small(b)),
}


def _small(exponent: Any) -> Any:
    """An exponent or a shift, unless its result would be too large to compute. Raises OverflowError."""
    if abs(exponent) > 64:
        raise OverflowError
    return exponent


_NOTHING: Mapping[str, Value] = {}


def constant(scopes: Scopes, node: Node, depth: int = _DEPTH, known: Mapping[str, Value] = _NOTHING) -> Value:
    """The value of an expression; None where it is not known, and for `None` itself.

    `known` gives values to names, such as those of a round of a loop.
    """
    if not depth:
        return None
    match node.type:
        case "integer" | "float" | "string":
            return _literal(node)
        case "true" | "false":
            return node.type == "true"
        case "concatenated_string":
            parts = [constant(scopes, child, depth - 1, known) for child in node.children]
            return "".join(map(str, parts)) if all(isinstance(part, str) for part in parts) else None
        case "parenthesized_expression":
            return constant(scopes, node.children[0], depth - 1, known) if node.children else None
        case "tuple" | "list" | "expression_list" | "set":
            items = tuple(constant(scopes, child, depth - 1, known) for child in node.children)
            return None if any(item is None for item in items) else items
        case "unary_operator":
            value = constant(scopes, node["argument"], depth - 1, known)
            if isinstance(value, int | float):
                return (
                    -value
                    if node.text.startswith("-")
                    else ~value
                    if node.text.startswith("~") and isinstance(value, int)
                    else value
                )
            return None
        case "binary_operator":
            return _fold(scopes, node, depth, known)
        case "subscript" if node["value"].type in ("identifier", "dictionary"):
            return _entry(scopes, node, depth, known)
        case "identifier" if node.text in known:
            return known[node.text]
        case "identifier":
            binding = scopes.only(node.text, node)
            if binding is not None and binding.kind == "assign" and binding.value is not None:
                return constant(scopes, binding.value, depth - 1, known)
    return None


def _entry(scopes: Scopes, node: Node, depth: int, known: Mapping[str, Value]) -> Value:
    """The entry of a dictionary that is written out, by a constant key."""
    table: Node | None = node["value"]
    key = node.get("subscript")
    if table is not None and table.type == "identifier":
        binding = scopes.only(table.text, table)
        table = binding.value if binding is not None and binding.kind == "assign" else None
    wanted = constant(scopes, key, depth - 1, known) if key is not None else None
    if table is None or table.type != "dictionary" or wanted is None:
        return None
    for pair in table.children:
        if pair.type == "pair" and constant(scopes, pair["key"], depth - 1) == wanted:
            return constant(scopes, pair["value"], depth - 1)
    return None


def _literal(node: Node) -> Value:
    text = node.text
    if node.type == "string" and any(child.type == "interpolation" for child in node.children):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, int | float | str) else None


def _fold(scopes: Scopes, node: Node, depth: int, known: Mapping[str, Value]) -> Value:
    left = constant(scopes, node["left"], depth - 1, known)
    right = constant(scopes, node["right"], depth - 1, known)
    symbol = node["operator"].text
    if isinstance(left, tuple) and isinstance(right, tuple) and symbol == "+":
        return left + right
    if not isinstance(left, int | float) or not isinstance(right, int | float) or symbol not in _BINARY:
        return None
    try:
        value = _BINARY[symbol](left, right)
    except (TypeError, ValueError, ArithmeticError):
        return None
    return value if isinstance(value, int | float) and abs(value) <= _LARGEST else None
