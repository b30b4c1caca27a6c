"""How many threads a block has, where that is written in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portlint.regex import regex
from portlint.source.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from portlint.condition import Guard
    from portlint.source.cxx.definitions import Definition
    from portlint.source.cxx.services import CxxServices

    Sizes: TypeAlias = "list[tuple[int, tuple[Guard, ...]]]"

_MOST_SIZES = 16
_DEPTH = 4
_CHANGE = regex(r"(?<![\w$])([\w$]+)\s*\.\s*[xyz]\s*[-+*/|&]?=(?!=)|(?<!&)&\s*([\w$]+)")
"""a dimension that is set, or an address that is taken; the variable"""


class Blocks:
    """The sizes of the blocks that one file launches."""

    def __init__(self, analysis: CxxServices) -> None:
        self.analysis = analysis
        self._vexing: dict[Node, dict[str, list[Node]]] = {}
        self._changed: dict[Node, set[str]] = {}
        """function -> what is looked for in it once, and not for each of its launches"""

    def sizes(self, block: Node, depth: int = _DEPTH) -> Sizes:
        """The threads that a block size comes to: a number, a `dim3`, or a variable that keeps either.

        Each number comes with the guards that it needs beside the node's own; none where some part is not known.
        """
        match block.type:
            case "call_expression" if block.name == "dim3":
                return self._product(block.arguments)
            case "compound_literal_expression" if block["type"].text == "dim3":
                return self._product(block["value"].children)
            case "initializer_list" | "argument_list":
                return self._product(block.children)
            case "identifier" if depth and (written := self._dimensions(block)) is not None:
                return self._product(written) if isinstance(written, list) else self.sizes(written, depth - 1)
        return self._numbers(block)

    def _numbers(self, node: Node) -> Sizes:
        values = self.analysis.values(node)
        return [(value, guards) for value, guards in values if isinstance(value, int) and not isinstance(value, bool)]

    def _product(self, dimensions: list[Node]) -> Sizes:
        products: Sizes = [(1, ())] if dimensions else []
        for dimension in dimensions:
            sizes = self._numbers(dimension)
            products = [(a * b, (*held, *more)) for a, held in products for b, more in sizes]
            if len(products) > _MOST_SIZES:
                return []
        return products

    def _dimensions(self, name: Node) -> Node | list[Node] | None:
        """What a `dim3` variable is initialised with, if it keeps that; None for any other variable."""
        declared = self.analysis.definitions.declared(name.text, name.start)
        if len(declared) == 1 and declared[0].value is not None and self._is_dim3(declared[0]):
            return Node(self.analysis.source, declared[0].value) if not self._changes(name) else None
        vexing = list(self._taken_for_functions(name)) if not declared else []
        return vexing[0] if len(vexing) == 1 and not self._changes(name) else None

    def written(self, block: Node) -> Node:
        """The dimensions that a variable is given, or the size itself where it is written in place."""
        found = self._dimensions(block) if block.type == "identifier" else None
        if isinstance(found, list):
            found = found[0].parent.parent if found and found[0].parent is not None else None
        return found or block

    def _is_dim3(self, definition: Definition) -> bool:
        kind = Node(self.analysis.source, definition.node).get("type")
        if kind is None or definition.value is None or definition.kind != "variable":
            return False
        made = (
            definition.value.type == "call_expression" and Node(self.analysis.source, definition.value).name == "dim3"
        )
        return kind.text == "dim3" or (kind.type == "placeholder_type_specifier" and made)

    def _taken_for_functions(self, name: Node) -> Iterator[list[Node]]:
        """The arguments of `dim3 block(kWidth, kHeight);`, which the grammar takes for a function's declaration."""
        function = name.function
        if function is None:
            return
        if function not in self._vexing:
            self._vexing[function] = _vexing(function)
        for declaration in self._vexing[function].get(name.text, ()):
            if declaration.start <= name.start:
                yield [one["type"] for one in declaration["declarator"]["parameters"].children if one.get("type")]

    def _changes(self, name: Node) -> bool:
        """Whether something may change a variable after its definition."""
        if self.analysis.definitions.assigned(name.text, name.start):
            return True
        function = name.function
        if function is None:
            return False
        if function not in self._changed:
            self._changed[function] = {match[1] or match[2] for match in _CHANGE.finditer(function.text)}
        return name.text in self._changed[function]


def _vexing(function: Node) -> dict[str, list[Node]]:
    """The declarations in a function that look like those of functions that return a `dim3`, by name."""
    found: dict[str, list[Node]] = {}
    for declaration in function.walk("declaration"):
        declarator, kind = declaration.get("declarator"), declaration.get("type")
        if declarator is None or declarator.type != "function_declarator" or kind is None or kind.text != "dim3":
            continue
        if (declared := declarator.get("declarator")) is not None:
            found.setdefault(declared.text, []).append(declaration)
    return found
