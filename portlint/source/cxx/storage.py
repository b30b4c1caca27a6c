"""Widths and sizes: which integers have 32 bits, and how many bytes an array takes."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from portlint.regex import regex
from portlint.source.cxx.numbers import size_of
from portlint.source.node import Node

if TYPE_CHECKING:
    from portlint.condition import Guard
    from portlint.source.cxx.services import CxxServices

_INT_32 = regex(
    r"(const |volatile |static |constexpr |std::|unsigned |signed )*"
    r"(int|unsigned|signed|u?int32_t|uint|u32|i32)( const)?"
)
_LITERAL_64 = regex(r"[lL]", re.ASCII)
_ARITHMETIC = frozenset("+ - * / % & | ^".split())
_CASTS = ("static_cast", "reinterpret_cast")


class Storage:
    """Widths and sizes in one file."""

    def __init__(self, analysis: CxxServices) -> None:
        self.analysis = analysis

    def has_32_bits(self, node: Node) -> bool:
        """Whether an integer expression certainly has 32 bits: by its suffix, its cast or its declared type."""
        match node.type:
            case "number_literal":
                return isinstance(node.constant, int) and not _is_wide(node.text)
            case "preproc_arg":
                return self._is_narrow_text(node)
            case "unary_expression" | "parenthesized_expression":
                inner = node.get("argument") or next(iter(node.children), None)
                return inner is not None and self.has_32_bits(inner)
            case "binary_expression":
                return self._is_narrow_arithmetic(node)
            case "cast_expression" | "function_definition":
                kind = node.get("type")
                return kind is not None and _names_32_bits(kind.text)
            case "call_expression":
                return self._is_narrow_cast(node)
            case "identifier":
                return self._is_declared_narrow(node)
            case "init_declarator" | "assignment_expression":
                target = node.get("declarator") or node["left"]
                return self.has_32_bits(target)
        return False

    def keeper(self, value: Node) -> Node | None:
        """What a value is stored in, cast to or returned from: a declaration, an assignment, a cast, a function.

        None if it is used otherwise.
        """
        parent = value.parent
        while parent is not None and parent.type == "parenthesized_expression":
            parent = parent.parent
        if parent is None:
            return None
        if parent.type == "argument_list" and parent.parent is not None and self._is_narrow_cast(parent.parent):
            return parent.parent
        if parent.type == "assignment_expression" and parent["operator"].text != "=":
            return None
        if parent.type == "return_statement":
            body = next(parent.ancestors("function_definition", "lambda_expression"), None)
            return body if body is not None and body.type == "function_definition" else None
        return parent if parent.type in ("init_declarator", "assignment_expression", "cast_expression") else None

    def extent(self, array: Node) -> int | None:
        """The number of elements in the first dimension of a declared array."""
        declared = self._declarator(array)
        sizes = _sizes(declared) if declared is not None else []
        first = sizes[0].constant if sizes else None
        return first if isinstance(first, int) else None

    def bytes_of(self, array: Node) -> int | None:
        """The bytes that a declared array takes, where its type and all dimensions are known."""
        element, sizes = self._parts_of(array)
        width = size_of(element)
        if not sizes or width is None:
            return None
        total = width
        for size in sizes:
            count = size.constant
            if not isinstance(count, int) or count <= 0:
                return None
            total *= count
        return total

    def bytes_in_instances(self, array: Node) -> dict[tuple[Guard, ...], int]:
        """The most bytes that an array of a template takes in the instances that the file names, by their guards."""
        found: dict[tuple[Guard, ...], int] = {}
        function = self.analysis.function(array)
        element, sizes = self._parts_of(array)
        if function is None or not sizes:
            return found
        for use in self._instances.get(function.name.rpartition("::")[2], ()):
            given = dict(zip(function.template_parameters, use["arguments"].children, strict=False))
            total = size_of(given[element].text if element in given else element) or 0
            for size in sizes:
                values = self.analysis.values_within(size, given)
                count = values[0][0] if len(values) == 1 else 0
                total *= count if isinstance(count, int) else 0
            if total > found.get(use.guards, 0):
                found[use.guards] = total
        return found

    @cached_property
    def _instances(self) -> dict[str, list[Node]]:
        """The names with template arguments in the file, by their last part."""
        found: dict[str, list[Node]] = {}
        for root in self.analysis.roots():
            for named in Node(self.analysis.source, root).walk("template_function"):
                found.setdefault(named["name"].text, []).append(named)
        return found

    def _parts_of(self, array: Node) -> tuple[str, list[Node]]:
        """The type of an array's elements, as it is written, and its dimensions."""
        declared = self._declarator(array)
        declaration = next(declared.ancestors("declaration"), None) if declared is not None else None
        kind = declaration.get("type") if declaration is not None else None
        return kind.text if kind is not None else "", _sizes(declared) if declared is not None else []

    def _declarator(self, array: Node) -> Node | None:
        if array.type == "array_declarator":
            return array
        return next((one for one in self.analysis.declarations_of(array) if one.type == "array_declarator"), None)

    def _is_narrow_arithmetic(self, expression: Node) -> bool:
        """Whether arithmetic leaves 32 bits: both sides have no more, or the one that is shifted has not."""
        symbol = expression["operator"].text
        if symbol in ("<<", ">>"):
            return self.has_32_bits(expression["left"])
        sides = expression["left"], expression["right"]
        return symbol in _ARITHMETIC and all(map(self.has_32_bits, sides))

    def _is_narrow_text(self, text: Node) -> bool:
        """Whether the text of a macro stands for an integer of 32 bits."""
        if (body := self.analysis.body_of_text(text)) is not None:
            return self.has_32_bits(body)
        macro, value = self.analysis.macro_of(text), text.constant
        return macro is not None and isinstance(value, int) and value < 1 << 32 and not _is_wide(macro.body)

    def _is_narrow_cast(self, call: Node) -> bool:
        function = call["function"]
        if function.type == "template_function" and function["name"].text in _CASTS:
            return _names_32_bits(function["arguments"].text.strip("<> "))
        return function.type in ("primitive_type", "identifier") and _names_32_bits(function.text)

    def _is_declared_narrow(self, name: Node) -> bool:
        kinds = self.analysis.types_of(name)
        return bool(kinds) and all(map(_names_32_bits, kinds))


def _is_wide(text: str) -> bool:
    """Whether a literal has a 64-bit suffix, or does not fit 32 bits."""
    stripped = text.strip("() ").lower()
    digits = stripped.rstrip("ul").replace("'", "")
    return _LITERAL_64.search(stripped[len(digits) :]) is not None or (digits.startswith("0x") and len(digits) > 10)


def _names_32_bits(kind: str) -> bool:
    return _INT_32.fullmatch(" ".join(kind.split())) is not None


def _sizes(declarator: Node) -> list[Node]:
    """The dimensions of an array declarator, the outermost (first written) first."""
    sizes: list[Node] = []
    at: Node | None = declarator
    while at is not None and at.type == "array_declarator":
        size = at.get("size")
        if size is None:
            return []
        sizes.insert(0, size)
        at = at.get("declarator")
    return sizes
