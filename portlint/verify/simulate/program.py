"""What a preprocessed text defines: functions, structs, aliases, constants and variables, by their last names.

Namespaces are looked through: two things of one name are told apart by their arguments, or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from portlint.source.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tree_sitter

    from portlint.verify.simulate.preprocess import Unit

_RECORDS = ("struct_specifier", "class_specifier", "union_specifier")
_AROUND = frozenset(
    "translation_unit namespace_definition declaration_list linkage_specification ERROR friend_declaration".split()
)


class Function(msgspec.Struct, frozen=True, eq=False):
    """A function definition."""

    name: str
    node: tree_sitter.Node
    template: tree_sitter.Node | None
    unit: str
    """"" in the file itself"""
    owner: str = ""
    """the struct of a method that is defined outside it"""

    owner_type: tree_sitter.Node | None = None
    """how the struct is written"""

    @property
    def is_specialisation(self) -> bool:
        """Whether it stands in for a template for certain arguments: `template <> f<int>(...)`."""
        return self.template is not None and not children(self.template) and not self.owner

    @property
    def special_arguments(self) -> list[tree_sitter.Node]:
        """The template arguments that a specialisation is written with; it may leave them to be deduced."""
        named = self.declarator.child_by_field_name("declarator")
        listed = named.child_by_field_name("arguments") if named is not None else None
        return children(listed) if listed is not None else []

    @property
    def declarator(self) -> tree_sitter.Node:
        """Name and parameters."""
        found = function_declarator(self.node)
        assert found is not None
        return found

    @property
    def parameters(self) -> list[tree_sitter.Node]:
        """The parameters, `void` alone left out."""
        listed = self.declarator.child_by_field_name("parameters")
        found = [one for one in children(listed) if one.type.endswith("parameter_declaration")] if listed else []
        return [] if len(found) == 1 and text_of(found[0]).strip() == "void" else found

    @property
    def words(self) -> set[str]:
        """The specifiers in front of it."""
        return {text_of(one) for one in self.node.children if one.end_byte <= self.declarator.start_byte}

    @property
    def first_line(self) -> int:
        """The line it starts on."""
        return line_of(self.template or self.node)

    @property
    def last_line(self) -> int:
        """The line it ends on."""
        return self.node.end_point[0] + 1

    @property
    def is_kernel(self) -> bool:
        """Whether the host launches it."""
        return "__global__" in self.words


class RecordDeclaration(msgspec.Struct, frozen=True, eq=False):
    """The definition of a struct, one for each specialisation."""

    name: str
    node: tree_sitter.Node
    template: tree_sitter.Node | None
    unit: str
    special: tree_sitter.Node | None = None
    """the template arguments of a specialisation"""


class Variable(msgspec.Struct, frozen=True, eq=False):
    """A variable of a namespace, or a constant."""

    name: str
    declaration: tree_sitter.Node
    declarator: tree_sitter.Node
    template: tree_sitter.Node | None = None


class Alias(msgspec.Struct, frozen=True, eq=False):
    """Another name for a type."""

    node: tree_sitter.Node
    template: tree_sitter.Node | None
    declarator: tree_sitter.Node | None = None


class Program:
    """The definitions of a file and its headers."""

    def __init__(self, units: list[Unit]) -> None:
        self.functions: dict[str, list[Function]] = {}
        self.records: dict[str, list[RecordDeclaration]] = {}
        self.templates: dict[str, list[tree_sitter.Node]] = {}
        """the parameters of class templates, one list for each declaration that is no specialisation"""
        self.variables: dict[str, Variable] = {}
        self.special_variables: set[str] = set()
        """those that are templates with specialisations"""
        self.aliases: dict[str, Alias] = {}
        self.enumerators: dict[str, tree_sitter.Node] = {}
        self.enums: set[str] = set()
        self.trees = [(unit.path, parse(unit.text, "cuda")) for unit in units]
        for path, tree in self.trees:
            self._read(tree.root_node, None, path)

    @property
    def root(self) -> tree_sitter.Node:
        """The tree of the file itself."""
        return self.trees[-1][1].root_node

    def all_functions(self) -> Iterator[Function]:
        """Every function, those of headers included."""
        for many in self.functions.values():
            yield from many

    def _read(self, node: tree_sitter.Node, template: tree_sitter.Node | None, unit: str) -> None:
        match node.type:
            case "template_declaration":
                parameters = node.child_by_field_name("parameters")
                for child in node.named_children:
                    if child != parameters:
                        self._read(child, parameters, unit)
            case "function_definition":
                self._function(node, template, unit)
            case "struct_specifier" | "class_specifier" | "union_specifier":
                self._record(node, template, unit)
            case "enum_specifier":
                self._enum(node)
            case "alias_declaration":
                name = node.child_by_field_name("name")
                self.aliases.setdefault(text_of(name), Alias(node, template))
            case "type_definition":
                self._typedef(node, unit)
            case "declaration":
                self._declaration(node, template, unit)
            case kind if kind in _AROUND:
                for child in node.named_children:
                    self._read(child, None, unit)

    def _function(self, node: tree_sitter.Node, template: tree_sitter.Node | None, unit: str) -> None:
        declarator = function_declarator(node)
        if declarator is None or node.child_by_field_name("body") is None:
            return
        named = declarator.child_by_field_name("declarator")
        owner = None
        while named is not None and named.type == "qualified_identifier":
            owner = named.child_by_field_name("scope")
            named = named.child_by_field_name("name")
        if named is not None and named.type == "template_function":
            named = named.child_by_field_name("name")  # a specialisation
        name = text_of(named).replace(" ", "")
        function = Function(name, node, template, unit, text_of(owner), owner)
        self.functions.setdefault(name, []).append(function)

    def _record(self, node: tree_sitter.Node, template: tree_sitter.Node | None, unit: str) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and template is not None and name.type != "template_type":
            self.templates.setdefault(text_of(name), []).append(template)
        if name is None or body is None:
            return
        special = None
        if name.type == "template_type":
            special = name.child_by_field_name("arguments")
            name = name.child_by_field_name("name")
        declared = RecordDeclaration(text_of(name), node, template, unit, special)
        self.records.setdefault(declared.name, []).append(declared)

    def _enum(self, node: tree_sitter.Node) -> None:
        self.enums.add(text_of(node.child_by_field_name("name")))
        body = node.child_by_field_name("body")
        for one in children(body) if body is not None else ():
            if one.type == "enumerator":
                self.enumerators.setdefault(text_of(one.child_by_field_name("name")), one)

    def _typedef(self, node: tree_sitter.Node, unit: str) -> None:
        named = node.child_by_field_name("type")
        declarator = node.child_by_field_name("declarator")
        if named is not None and declarator is not None and declarator.type == "type_identifier":
            if named.type in _RECORDS and named.child_by_field_name("name") is None:
                declared = RecordDeclaration(text_of(declarator), named, None, unit)
                self.records.setdefault(declared.name, []).append(declared)
                return
            self._read(named, None, unit)
            self.aliases.setdefault(text_of(declarator), Alias(node, None))
        elif declarator is not None and (name := declared_name(declarator)) is not None:
            self.aliases.setdefault(text_of(name), Alias(node, None, declarator))

    def _declaration(self, node: tree_sitter.Node, template: tree_sitter.Node | None, unit: str) -> None:
        named = node.child_by_field_name("type")
        if named is not None and (named.type in _RECORDS or named.type == "enum_specifier"):
            self._read(named, template, unit)
        for declarator in node.children_by_field_name("declarator"):
            name = declared_name(declarator)
            inner = declarator.child_by_field_name("declarator")
            if inner is not None and inner.type == "template_function":
                self.special_variables.add(text_of(name))
            elif name is not None and function_declarator(declarator) is None:
                self.variables.setdefault(text_of(name), Variable(text_of(name), node, declarator, template))


# ---- nodes --------------------------------------------------------------------------------------------------------


def text_of(node: tree_sitter.Node | None) -> str:
    """The code of a node."""
    return (node.text or b"").decode(errors="replace") if node is not None else ""


def line_of(node: tree_sitter.Node) -> int:
    """The line that a node starts on, counted from 1."""
    return node.start_point[0] + 1


def children(node: tree_sitter.Node) -> list[tree_sitter.Node]:
    """The named children, comments left out."""
    return [one for one in node.named_children if one.type != "comment"]


def walk(node: tree_sitter.Node, *types: str) -> Iterator[tree_sitter.Node]:
    """Every named node of the given types in it, itself included."""
    if node.type in types:
        yield node
    for child in node.named_children:
        yield from walk(child, *types)


def function_declarator(node: tree_sitter.Node) -> tree_sitter.Node | None:
    """The declarator of a function in a definition or another declarator."""
    found = node if node.type == "function_declarator" else node.child_by_field_name("declarator")
    while found is not None and found.type != "function_declarator":
        inner = found.child_by_field_name("declarator")
        if inner is None and found.type in ("reference_declarator", "parenthesized_declarator"):
            inner = next((one for one in found.named_children if one.type.endswith("declarator")), None)
        found = inner
    return found


def declared_name(declarator: tree_sitter.Node | None) -> tree_sitter.Node | None:
    """The name in a declarator."""
    while declarator is not None and declarator.type not in ("identifier", "field_identifier", "type_identifier"):
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            inner = next(
                (
                    one
                    for one in declarator.named_children
                    if one.type.endswith("declarator")
                    or one.type in ("identifier", "field_identifier", "type_identifier")
                ),
                None,
            )
        declarator = inner
    return declarator
