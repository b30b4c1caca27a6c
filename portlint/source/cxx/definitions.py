"""What the names of a file are defined as, and which definition a use means."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from portlint.source.cxx.query import captured, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

    from portlint.source import Source
    from portlint.source.cxx.preprocessor import Macro, Preprocessor
    from portlint.source.cxx.scopes import Scope, Scopes

_NAMES = ("identifier", "field_identifier", "type_identifier")
_SEEN_BEFORE_DECLARED = ("type", "enum")
_MOST_MEANT = 64
"""definitions that one use of a name may mean: the last ones, so that looking at all uses takes no quadratic time"""


class Definition(msgspec.Struct, frozen=True):
    """One place that gives a name a meaning or a value."""

    name: str
    kind: str
    """variable | field | parameter | template | range | enumerator | assignment | alias | macro-parameter"""
    offset: int
    """where the name stands"""
    value: Node | None
    """the initialiser, the default argument, or the right-hand side"""
    node: Node
    """the whole declaration or assignment"""
    array: bool = False


class Definitions:
    """The definitions of a file: of its trees, the first of which counts for what both have, and of macro bodies."""

    def __init__(
        self, source: Source, roots: list[Node], macros: Node | None, scopes: Scopes, preprocessor: Preprocessor
    ) -> None:
        self._source = source
        self._scopes = scopes
        self._preprocessor = preprocessor
        self._declared: dict[tuple[str, tuple[str, int]], list[Definition]] = {}
        self._elsewhere: dict[str, list[tuple[Scope, Definition]]] = {}
        self._assigned: dict[str, list[Definition]] = {}
        self._assigned_to: dict[tuple[str, frozenset[int]], list[Definition]] = {}
        self.using: list[tuple[Scope, Node]] = []
        """the `using namespace` directives with the scopes that they work in"""
        found = [definition for root in roots for definition in self._read(root)]
        if macros is not None:
            found += [one for one in self._read(macros) if scopes.at(one.offset).in_macro()]
        for definition in {(one.name, one.offset): one for one in reversed(found)}.values():
            self._add(definition)
        for many in self._declared.values():
            if len(many) > _MOST_MEANT:
                many.sort(key=_offset)

    def macros(self, name: str, at: int) -> list[Macro]:
        """The definitions of a macro before an offset; none for a macro that is undefined somewhere."""
        if name in self._preprocessor.undefined:
            return []
        return [macro for macro in self._preprocessor.macros.get(name, ()) if macro.start < at][-_MOST_MEANT:]

    def declared(self, name: str, at: int) -> list[Definition]:
        """The declarations that a use of a name at an offset means: those of the innermost scope that has any."""
        for scope in self._scopes.at(at).chain():
            found = self._declared.get((name, scope.key))
            if found and (visible := found if scope.kind in _SEEN_BEFORE_DECLARED else _before(found, at)):
                return visible[-_MOST_MEANT:]
        return [d for scope, d in self._elsewhere.get(name, ()) if scope.kind == "namespace" and d.offset <= at]

    def member(self, scope_name: str, name: str) -> list[Definition]:
        """The declarations of a name in the namespaces, types and enumerations called `scope_name`."""
        return [d for scope, d in self._elsewhere.get(name, ()) if scope.name == scope_name]

    def assigned(self, name: str, at: int) -> list[Definition]:
        """The assignments to what a name at an offset means."""
        assignments = self._assigned.get(name)
        if not assignments:
            return []
        meant = frozenset(d.offset for d in self.declared(name, at))
        if (name, meant) not in self._assigned_to:
            self._assigned_to[name, meant] = [
                a for a in assignments if meant.intersection(d.offset for d in self.declared(name, a.offset))
            ]
        return self._assigned_to[name, meant]

    def scope_of(self, definition: Definition) -> Scope:
        """The scope that a declaration puts its name into."""
        return self._scopes.at(definition.offset)

    # ---- reading --------------------------------------------------------------------------------------------------

    def _add(self, definition: Definition) -> None:
        if definition.kind == "assignment":
            self._assigned.setdefault(definition.name, []).append(definition)
            return
        scope = self.scope_of(definition)
        self._declared.setdefault((definition.name, scope.key), []).append(definition)
        if scope.kind in ("namespace", "type", "enum"):
            self._elsewhere.setdefault(definition.name, []).append((scope, definition))

    def _read(self, root: Node) -> Iterator[Definition]:
        captures = captured(self._source, root)
        for kind in ("variable", "field", "parameter", "range"):
            for declarator in captures.get(kind, ()):
                if (declaration := self._source.parent(declarator)) is not None:
                    yield from _declared_by(self._kind(kind, declaration), declarator, declaration)
        for node in captures.get("templated", ()):  # `tile<32> name = ...;`, which the grammar takes for comparisons
            named = node.child_by_field_name("left") or node
            yield Definition(text_of(named), "variable", named.start_byte, node.child_by_field_name("right"), node)
        for node in captures.get("enumerator", ()):
            if name := node.child_by_field_name("name"):
                yield Definition(text_of(name), "enumerator", name.start_byte, node.child_by_field_name("value"), node)
        for node in captures.get("assignment", ()):
            target = node.child_by_field_name("left") or node.child_by_field_name("argument")
            if target:
                value = node.child_by_field_name("right")
                yield Definition(text_of(target), "assignment", target.start_byte, value, node)
        for node in captures.get("output", ()):
            target, outputs = node.child_by_field_name("value"), self._source.parent(node)
            statement = self._source.parent(outputs) if outputs is not None else None
            if target and statement:
                yield Definition(text_of(target), "assignment", target.start_byte, statement, statement)
        yield from self._aliases(captures)

    def _kind(self, kind: str, declaration: Node) -> str:
        around = self._source.parent(declaration) if kind == "parameter" else None
        return "template" if around is not None and around.type == "template_parameter_list" else kind

    def _aliases(self, captures: dict[str, list[Node]]) -> Iterator[Definition]:
        for node in captures.get("alias", ()):
            name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
            target = node.child_by_field_name("type") or (node.named_children[-1] if node.named_children else None)
            if name and target:
                yield Definition(text_of(name), "alias", name.start_byte, target, node)
        for node in captures.get("using", ()):
            target = node.named_children[-1] if node.named_children else None
            if target is None:
                continue
            if any(child.type == "namespace" for child in node.children):
                self.using.append((self._scopes.at(node.start_byte), target))
            elif target.type == "qualified_identifier":
                last = text_of(target).rpartition("::")[2].strip()
                yield Definition(last, "alias", target.start_byte, target, node)


def _offset(definition: Definition) -> int:
    return definition.offset


def _before(found: list[Definition], at: int) -> list[Definition]:
    """The definitions up to an offset; of many, which are in order, those that a use of the name may mean."""
    if len(found) <= _MOST_MEANT:
        return [one for one in found if one.offset <= at]
    end = bisect_right(found, at, key=_offset)
    return found[max(end - _MOST_MEANT, 0) : end]


def _declared_by(kind: str, declarator: Node, node: Node) -> Iterator[Definition]:
    value = None
    array = False
    name: Node | None = declarator
    while name is not None and name.type not in _NAMES:
        if name.type == "init_declarator":
            value = name.child_by_field_name("value")
        elif name.type == "structured_binding_declarator":
            for one in name.named_children:
                yield Definition(text_of(one), "range", one.start_byte, None, node)
            return
        elif name.type not in (
            "pointer_declarator",
            "reference_declarator",
            "array_declarator",
            "parenthesized_declarator",
            "attributed_declarator",
            "variadic_declarator",
        ):
            return
        array = array or name.type == "array_declarator"
        inner = name.child_by_field_name("declarator")
        name = inner or (name.named_children[-1] if name.named_children else None)
    if name is None:
        return
    value = value or node.child_by_field_name("default_value")
    yield Definition(text_of(name), kind, name.start_byte, value, node, array)
