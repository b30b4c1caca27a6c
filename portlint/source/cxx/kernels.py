"""Kernels as values: which names and variables are kernels, or pointers to one."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from portlint.regex import regex
from portlint.source.cxx.functions import KERNEL
from portlint.source.node import Node

if TYPE_CHECKING:
    from portlint.source.cxx.definitions import Definition
    from portlint.source.cxx.services import CxxServices

_CALLED = regex(rb"(\w+)\s*\(")
_ATTRIBUTE = regex(rb"__\w+__|\w*(?:launch_bounds|LAUNCH_BOUNDS)\w*|decltype")
_LONGEST_HEAD = 600
_NAMES = ("identifier", "template_function", "qualified_identifier")
_DEPTH = 4


class Kernels:
    """The kernels of one file, and what points to them."""

    def __init__(self, analysis: CxxServices) -> None:
        self.analysis = analysis

    def is_kernel_value(self, node: Node, depth: int = _DEPTH) -> bool:
        """Whether an expression certainly is a kernel, its address, or a variable that holds one.

        A cast is neither, and a variable that is launched cannot be a `const void*`.
        """
        while node.type in ("parenthesized_expression", "pointer_expression") and node.children:
            node = node.children[0]
        if node.type not in _NAMES or not depth:
            return False
        declared = self._variables(node)
        if not declared:
            return self._bare(node) in self._functions | self._pointers | self._launched.keys()
        return all(self._holds_kernel(one, depth) for one in declared)

    def _holds_kernel(self, definition: Definition, depth: int) -> bool:
        declaration = Node(self.analysis.source, definition.node)
        kind = declaration.get("type")
        if kind is not None and kind.text == "void":
            return False
        if any(definition in self._variables(launched) for launched in self._launched.get(definition.name, ())):
            return True
        value = Node(self.analysis.source, definition.value) if definition.value is not None else None
        deduced = kind is not None and kind.type == "placeholder_type_specifier"
        return deduced and value is not None and self.is_kernel_value(value, depth - 1)

    def _variables(self, name: Node) -> list[Definition]:
        found = self.analysis.definitions.declared(name.text, name.start) if name.type == "identifier" else []
        return [one for one in found if one.kind in ("variable", "parameter", "field")]

    def _bare(self, name: Node) -> str:
        return self.analysis.name(name).rpartition("::")[2]

    @cached_property
    def _launched(self) -> dict[str, list[Node]]:
        """What stands before `<<<` in the file, by its name."""
        found: dict[str, list[Node]] = {}
        for root in self.analysis.roots():
            for syntax in Node(self.analysis.source, root).walk("kernel_call_syntax"):
                kernel = syntax.parent.get("function") if syntax.parent is not None else None
                if kernel is not None and kernel.type in _NAMES:
                    found.setdefault(self._bare(kernel), []).append(kernel)
        return found

    @cached_property
    def _functions(self) -> frozenset[str]:
        """The names of the kernels that the file defines or declares; read from the text, whatever its tree is."""
        code = self.analysis.masked
        return frozenset(name for match in KERNEL.finditer(code) if (name := _declared_name(code, match.end())))

    @cached_property
    def _pointers(self) -> frozenset[str]:
        """The names that are declared as pointers to functions that return nothing: `void (*name)(...)`."""
        return frozenset(
            name.decode() for name in re.findall(rb"\bvoid\s*\(\s*\*\s*(\w+)\s*\)\s*\(", self.analysis.masked)
        )


def _declared_name(code: bytes, at: int) -> str:
    """The name of the function that the words at an offset declare, attributes with arguments passed over."""
    end = at + _LONGEST_HEAD
    while (match := _CALLED.search(code, at, end)) and not re.search(rb"[;{}]", code[at : match.start()]):
        if not _ATTRIBUTE.fullmatch(match[1]):
            return match[1].decode()
        at = _after_parenthesis(code, match.end(), end)
    return ""


def _after_parenthesis(code: bytes, at: int, end: int) -> int:
    depth = 1
    while at < end and depth:
        depth += {b"(": 1, b")": -1}.get(code[at : at + 1], 0)
        at += 1
    return at
