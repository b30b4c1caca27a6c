"""Class templates: which definition some arguments choose, and what the parameters of that definition stand for.

A specialisation is taken where its pattern fits the arguments and no other one that fits is as special. A pattern that
types are not told apart by here, such as one of `const T` or `T&`, leaves the choice open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from portlint.verify.simulate import values as v
from portlint.verify.simulate.program import RecordDeclaration, children, text_of, walk
from portlint.verify.simulate.values import Array, CType, Pointer, Record

if TYPE_CHECKING:
    import tree_sitter

    from portlint.verify.simulate.compiler import Compiler


class TemplateName(msgspec.Struct, frozen=True):
    """A class template as an argument of a template."""

    name: str

    def __str__(self) -> str:
        return self.name


class Choice(msgspec.Struct, frozen=True):
    """The definition of a struct for template arguments."""

    declaration: RecordDeclaration
    arguments: tuple[Any, ...]
    """of the general template, defaults included"""
    names: Mapping[str, Any]
    """what the parameters of the definition stand for"""


class _Constant:
    """A number of which nothing is known, to compare patterns."""

    def __init__(self, const: object) -> None:
        self.const = const


class _StandIn:
    """Where a struct keeps its template arguments, of which some are not known: it has nothing else."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice


def choose(compiler: Compiler, name: str, given: list[Any], node: tree_sitter.Node) -> Choice:
    """The definition that template arguments choose. Raises Undecided."""
    declarations = compiler.program.records[name]
    general = [one for one in declarations if one.special is None]
    if len(general) > 1:
        raise compiler.undecided(f"'{name}' has more than one definition", node)
    names, arguments = _completed(compiler, name, given, node)
    fitting: list[tuple[RecordDeclaration, dict[str, Any]]] = []
    for one in declarations:
        if one.special is not None:
            with _outside(compiler, one):
                found = _Match(compiler, one, node).bound(arguments)
            if found is not None:
                fitting.append((one, found))
    if len(fitting) > 1:
        fitting = [one for one in fitting if _is_most_special(compiler, one[0], [each[0] for each in fitting], node)]
        if len(fitting) != 1:
            raise compiler.undecided(f"more than one specialisation of '{name}' fits", node)
    if fitting:
        return Choice(fitting[0][0], arguments, fitting[0][1])
    if not general:
        raise compiler.undecided(f"'{name}' is defined for other template arguments only", node)
    return Choice(general[0], arguments, names)


def _completed(
    compiler: Compiler, name: str, given: list[Any], node: tree_sitter.Node
) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """The parameters of the general template by name, and all arguments, defaults included.

    A declaration that stands before the definition may be the one that has the defaults.
    """
    listed = compiler.program.templates.get(name, [])
    if not listed:
        return {}, tuple(given)
    if len({len(children(one)) for one in listed}) > 1 or len(given) > len(children(listed[0])):
        raise compiler.undecided(f"'{name}' takes other template arguments", node)
    defining = next((one.template for one in compiler.program.records[name] if one.special is None), None) or listed[0]
    defaults = next((one for one in listed if any(each.type.startswith("optional") for each in children(one))), None)
    arguments = given
    for parameters in (defaults, defining):
        if parameters is not None:
            scope, compiler.scope = compiler.scope, type(compiler.scope)()
            try:
                arguments = compiler.bind_template(parameters, arguments, node)
                names = compiler.scope.names
            finally:
                compiler.scope = scope
    return names, tuple(arguments)


@contextmanager
def _outside(compiler: Compiler, declaration: RecordDeclaration) -> Iterator[None]:
    """The scope of a definition: the program."""
    unit, compiler.unit = compiler.unit, declaration.unit
    outer, compiler.scope = compiler.scope, type(compiler.scope)()
    try:
        yield
    finally:
        compiler.unit, compiler.scope = unit, outer


def _is_most_special(
    compiler: Compiler, one: RecordDeclaration, others: list[RecordDeclaration], node: tree_sitter.Node
) -> bool:
    """Whether every other pattern fits all that a pattern fits, and not the other way round."""
    return all(
        _covers(compiler, other, one, node) and not _covers(compiler, one, other, node)
        for other in others
        if other is not one
    )


def _covers(compiler: Compiler, wide: RecordDeclaration, narrow: RecordDeclaration, node: tree_sitter.Node) -> bool:
    """Whether a pattern fits another one whose parameters stand for something that nothing else is."""
    assert narrow.special is not None
    with _outside(compiler, narrow):
        for parameter in children(narrow.template) if narrow.template is not None else ():
            name = template_name(parameter)
            compiler.scope.names[name] = (
                CType(name)
                if "type_parameter" in parameter.type
                else TemplateName(f"any {name}")
                if is_template(parameter)
                else compiler.const(_Constant(name), v.INT)
            )
        arguments = tuple(_as_argument(compiler, one) for one in children(narrow.special))
    with _outside(compiler, wide):
        return _Match(compiler, wide, node).bound(arguments) is not None


def _as_argument(compiler: Compiler, pattern: tree_sitter.Node) -> Any:
    """A pattern as an argument, where a struct with arguments that are not known has no fields."""
    inner = pattern.child_by_field_name("type") if pattern.type == "type_descriptor" else None
    name = text_of(inner.child_by_field_name("name")) if inner is not None and inner.type == "template_type" else ""
    if inner is None or name not in compiler.program.records:
        return compiler.template_argument(pattern)
    listed = inner.child_by_field_name("arguments")
    arguments = tuple(_as_argument(compiler, one) for one in children(listed)) if listed is not None else ()
    choice = Choice(compiler.program.records[name][0], arguments, {})
    return compiler.declared(Record(name, [], _StandIn(choice)), pattern.child_by_field_name("declarator"))[0]


class _Match:
    """A specialisation, and what its parameters are found to be."""

    def __init__(self, compiler: Compiler, declaration: RecordDeclaration, node: tree_sitter.Node) -> None:
        self.compiler = compiler
        self.declaration = declaration
        self.node = node
        parameters = children(declaration.template) if declaration.template is not None else []
        self.free = {template_name(one): one for one in parameters}
        self.found: dict[str, Any] = {}

    def bound(self, arguments: tuple[Any, ...]) -> dict[str, Any] | None:
        """The parameters for arguments that the pattern fits; None where it does not. Raises Undecided."""
        assert self.declaration.special is not None
        patterns = children(self.declaration.special)
        if any(one.type.startswith("variadic") for one in self.free.values()) or any(
            one.type == "parameter_pack_expansion" for one in patterns
        ):
            raise self.compiler.undecided(f"'{self.declaration.name}' takes any number of arguments", self.node)
        if len(patterns) != len(arguments):
            return None
        pairs = sorted(zip(patterns, arguments, strict=True), key=lambda pair: self._is_open(pair[0]))
        if not all(self._fits(pattern, argument) for pattern, argument in pairs):
            return None
        if len(self.found) < len(self.free):
            raise self.compiler.undecided(f"a specialisation of '{self.declaration.name}'", self.node)
        return self.found

    def _is_open(self, pattern: tree_sitter.Node) -> bool:
        """Whether a pattern is one that cannot be compared: looked at last, where no other one decides."""
        has_parts = next(walk(pattern, "type_qualifier", "abstract_reference_declarator"), None) is not None
        return self._mentions(pattern) and (has_parts or pattern.type != "type_descriptor")

    def _fits(self, pattern: tree_sitter.Node, argument: Any) -> bool:
        inner = pattern.child_by_field_name("type") if pattern.type == "type_descriptor" else pattern
        declarator = pattern.child_by_field_name("declarator") if pattern.type == "type_descriptor" else None
        if inner is None or not self._mentions(inner):
            return is_same_argument(self.compiler.template_argument(pattern), argument)
        if any(one.type == "type_qualifier" for one in pattern.named_children):
            raise self.compiler.undecided(f"a specialisation for '{text_of(pattern)}'", self.node)
        while declarator is not None:
            argument = self._without(declarator, argument)
            if argument is None:
                return False
            declarator = declarator.child_by_field_name("declarator")
        if inner.type in ("type_identifier", "identifier"):
            return self._is(text_of(inner), argument)
        if inner.type == "template_type":
            return self._fits_template(inner, argument)
        raise self.compiler.undecided(f"a specialisation for '{text_of(pattern)[:40]}'", self.node)

    def _mentions(self, pattern: tree_sitter.Node) -> bool:
        return any(text_of(one) in self.free for one in walk(pattern, "type_identifier", "identifier"))

    def _without(self, declarator: tree_sitter.Node, argument: Any) -> Any:
        """What a pointer points to, or an array is of; None for what is neither."""
        if declarator.type == "abstract_pointer_declarator":
            return (argument.to or v.VOID) if isinstance(argument, Pointer) else None
        if declarator.type == "abstract_array_declarator":
            size = declarator.child_by_field_name("size")
            if not isinstance(argument, Array) or (size is None) is not (argument.length is None):
                return None
            length = self.compiler.const(argument.length, v.INT)
            return argument.of if size is None or self._fits(size, length) else None
        raise self.compiler.undecided(f"a specialisation for '{text_of(declarator)[:40]}'", self.node)

    def _is(self, name: str, argument: Any) -> bool:
        """Whether a parameter may stand for an argument, beside those that it stands for already."""
        return is_of_kind(self.free[name], argument) and is_same_argument(
            self.found.setdefault(name, argument), argument
        )

    def _fits_template(self, pattern: tree_sitter.Node, argument: Any) -> bool:
        """`X<T, 4>`, where an alias may stand for anything."""
        name, listed = text_of(pattern.child_by_field_name("name")), pattern.child_by_field_name("arguments")
        if name in self.compiler.program.aliases:
            raise self.compiler.undecided(f"a specialisation for '{text_of(pattern)[:40]}'", self.node)
        found = argument.declared if isinstance(argument, Record) else None
        choice: Choice | None = getattr(found, "choice", None)
        if choice is None:
            return False
        inner = children(listed) if listed is not None else []
        if name in self.free:
            if not self._is(name, TemplateName(choice.declaration.name)):
                return False
        elif choice.declaration.name != name:
            return False
        return len(inner) == len(choice.arguments) and all(map(self._fits, inner, choice.arguments))


def is_template(parameter: tree_sitter.Node) -> bool:
    """Whether a template parameter stands for a template."""
    return parameter.type.startswith("template_template")


def is_of_kind(parameter: tree_sitter.Node, argument: Any) -> bool:
    """Whether a template parameter takes an argument: a type, a template, or a number."""
    if is_template(parameter):
        return isinstance(argument, TemplateName)
    return isinstance(argument, CType) is ("type_parameter" in parameter.type) and not isinstance(
        argument, TemplateName
    )


def template_name(parameter: tree_sitter.Node) -> str:
    """The name of a template parameter."""
    if is_template(parameter):
        parameter = children(parameter)[-1]
    named = parameter.child_by_field_name("name") or parameter.child_by_field_name("declarator")
    if named is None:
        named = next((one for one in parameter.named_children if one.type == "type_identifier"), None)
        if named is not None and named == parameter.child_by_field_name("type"):
            return ""
    return text_of(named)


def is_same_argument(one: Any, other: Any) -> bool:
    """Whether two template arguments are the same."""
    if isinstance(one, CType) or isinstance(other, CType):
        return isinstance(one, CType) and isinstance(other, CType) and v.same(one, other)
    if isinstance(one, TemplateName) or isinstance(other, TemplateName):
        return bool(one == other)
    held, wanted = one.const, other.const
    if isinstance(held, _Constant) and isinstance(wanted, _Constant):
        return bool(held.const == wanted.const)
    return type(held) is not _Constant and type(wanted) is not _Constant and bool(held == wanted)


def argument_key(value: Any) -> Any:
    """What tells template arguments apart."""
    if isinstance(value, Pointer):
        return "*", argument_key(value.to)
    if isinstance(value, Array):
        return "[]", value.length, argument_key(value.of)
    if isinstance(value, CType) or value is None:
        return id(value)
    return value if isinstance(value, TemplateName) else value.const
