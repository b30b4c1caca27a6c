"""Branches that the compiler, or every thread alike, decides: `if constexpr`, and tests of nothing but `warpSize`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portlint.condition import Expression, Guard, names
from portlint.source.cxx.conditions import UNREADABLE, parse_condition

if TYPE_CHECKING:
    from tree_sitter import Node

    from portlint.source.cxx.constants import Constants
    from portlint.source.cxx.preprocessor import Preprocessor
    from portlint.source.cxx.scopes import Scopes


class Branches:
    """The guards that `if` statements of one file put on code."""

    def __init__(self, scopes: Scopes, masked: bytes, constants: Constants, preprocessor: Preprocessor) -> None:
        self._scopes = scopes
        self._masked = masked
        self._constants = constants
        self._preprocessor = preprocessor
        self._tests: dict[int, tuple[Expression, str] | None] = {}

    def guards_at(self, offset: int) -> tuple[Guard, ...]:
        """The guards on an offset, the outermost first."""
        guards = []
        for scope in self._scopes.at(offset).chain():
            then = scope.node.child_by_field_name("consequence") if scope.kind == "if" and scope.node else None
            if scope.node is None or then is None or offset < then.start_byte:
                continue
            if test := self._test(scope.node):
                expression, written = test
                guards.append(Guard(expression, offset < then.end_byte, written, scope.node.start_point[0] + 1))
        return tuple(reversed(guards))

    def _test(self, node: Node) -> tuple[Expression, str] | None:
        if node.start_byte not in self._tests:
            self._tests[node.start_byte] = self._read(node)
        return self._tests[node.start_byte]

    def _read(self, node: Node) -> tuple[Expression, str] | None:
        condition = node.child_by_field_name("condition")
        if condition is None:
            return None
        head = self._masked[node.start_byte : condition.start_byte]
        text = self._masked[condition.start_byte : condition.end_byte]
        static = b"constexpr" in head
        if not static and b"warpSize" not in text:
            return None
        expression = parse_condition(text.decode(errors="replace"), _Known(self._constants, self._preprocessor, node))
        if expression == UNREADABLE or (not static and names(expression) != {"warpSize"}):
            return None
        return expression, " ".join((head + b" " + text).decode(errors="replace").split())


class _Known:
    """What the names in a test stand for."""

    def __init__(self, constants: Constants, preprocessor: Preprocessor, node: Node) -> None:
        self._constants = constants
        self._preprocessor = preprocessor
        self._at = node.start_byte

    def defined(self, name: str) -> Expression:
        """Whether a macro is defined."""
        return self._preprocessor.defined(name)

    def value(self, name: str) -> Expression:
        """What a constant or a macro comes to."""
        return self._constants.expression(name, self._at) or self._preprocessor.value(name)
