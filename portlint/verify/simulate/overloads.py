"""Which function a call means: overloads, template arguments that are deduced, and explicit specialisations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from portlint.verify.simulate import values as v
from portlint.verify.simulate.collectives import Collectives
from portlint.verify.simulate.compiler import Expr, GroupType, Instance, LambdaType, Scope
from portlint.verify.simulate.faults import Undecided
from portlint.verify.simulate.program import Function, children, text_of
from portlint.verify.simulate.templates import TemplateName, is_of_kind, is_same_argument, template_name
from portlint.verify.simulate.values import Array, CType, Pointer, Record

if TYPE_CHECKING:
    import tree_sitter

_EXACT, _CONVERTED = 2, 1


class Bound:
    """A function with its template parameters bound, and how well the arguments fit."""

    def __init__(self, function: Function, scope: Scope, score: int) -> None:
        self.function = function
        self.scope = scope
        self.score = score


class Overloads(Collectives):
    """The choice among functions of a name."""

    def chosen_function(
        self,
        functions: list[Function],
        given: list[Any],
        arguments: list[Expr],
        node: tree_sitter.Node,
        outer: Scope | None,
    ) -> Bound:
        """The function that fits a call best, with its template parameters. Raises Undecided."""
        bound: list[Bound] = []
        reasons = []
        general = [one for one in functions if not one.is_specialisation] or functions
        for function in general:
            if not takes(function, len(arguments)) or (given and function.template is None):
                continue
            try:
                bound.append(self._bind(function, given, arguments, outer, node))
            except Undecided as error:
                reasons.append(error.reason)
        if not bound:
            why = f": {reasons[0]}" if len(reasons) == 1 else ""
            raise self.undecided(f"no definition of '{functions[0].name}' fits the call{why}", node)
        best = max(one.score for one in bound)
        chosen = [one for one in bound if one.score == best]
        plain = [one for one in chosen if one.function.template is None]
        chosen = plain or chosen
        if len(chosen) > 1:
            chosen = [one for one in chosen if "__device__" in one.function.words] or chosen
        if len(chosen) > 1:
            raise self.undecided(f"more than one definition of '{functions[0].name}' fits the call", node)
        return self._specialised(chosen[0], functions, outer, node)

    def _specialised(
        self, bound: Bound, functions: list[Function], outer: Scope | None, node: tree_sitter.Node
    ) -> Bound:
        """The specialisation for the template arguments of a function, if there is one."""
        special = [one for one in functions if one.is_specialisation]
        if bound.function.template is None or bound.function.is_specialisation or not special:
            return bound
        found = [one for one in special if self._is_specialised_by(bound, one, outer)]
        if len(found) > 1:
            raise self.undecided(f"more than one specialisation of '{bound.function.name}' fits the call", node)
        return Bound(found[0], Scope(outer), bound.score) if found else bound

    def _is_specialised_by(self, bound: Bound, special: Function, outer: Scope | None) -> bool:
        """Whether a specialisation has the template arguments of a function, and its types."""
        assert bound.function.template is not None
        names = [template_name(one) for one in children(bound.function.template)]
        written = special.special_arguments
        scope = Scope(outer)
        try:
            values = [self._at(scope, special, self.template_argument, one) for one in written]
            if len(values) > len(names) or not all(
                name in bound.scope.names and is_same_argument(bound.scope.names[name], value)
                for name, value in zip(names, values, strict=False)
            ):
                return False
            own, other = self._signature(bound.function, bound.scope), self._signature(special, scope)
        except Undecided:
            return False
        return len(own) == len(other) and all(
            v.same(one, two) and reference is also for (one, reference), (two, also) in zip(own, other, strict=True)
        )

    def _signature(self, function: Function, scope: Scope) -> list[tuple[CType | None, bool]]:
        """What a function returns and takes."""
        taken = [
            self._at(scope, function, lambda one: self.parameter_type(one, None), parameter)
            for parameter in function.parameters
        ]
        return [self.returned_by(function, scope), *taken]

    def _at(self, scope: Scope, function: Function, look: Any, node: tree_sitter.Node) -> Any:
        """What something means in the scope of a function."""
        saved, self.scope = self.scope, scope
        unit, self.unit = self.unit, function.unit
        try:
            return look(node)
        finally:
            self.scope, self.unit = saved, unit

    def returned_by(self, function: Function, scope: Scope) -> tuple[CType | None, bool]:
        """The type that a function returns, None for `auto`, and whether it returns a reference."""
        trailing = next((one for one in children(function.declarator) if one.type == "trailing_return_type"), None)
        if trailing is not None:
            return self._at(scope, function, self.known_type, children(trailing)[0]), False
        named = function.node.child_by_field_name("type")
        if named is None:
            return v.VOID, False
        ctype: CType | None = self._at(scope, function, self.type_of, named)
        reference = False
        outside = function.node.child_by_field_name("declarator")
        while outside is not None and outside.type in ("pointer_declarator", "reference_declarator"):
            reference = reference or outside.type == "reference_declarator"
            if outside.type == "pointer_declarator":
                ctype = Pointer(None if ctype is v.VOID else ctype)
            outside = outside.child_by_field_name("declarator") or next(
                (one for one in outside.named_children if one.type.endswith("declarator")), None
            )
        return ctype, reference

    def _bind(
        self, function: Function, given: list[Any], arguments: list[Expr], outer: Scope | None, node: tree_sitter.Node
    ) -> Bound:
        scope = Scope(outer)
        saved, self.scope = self.scope, scope
        unit, self.unit = self.unit, function.unit
        try:
            score = 0
            if function.template is not None:
                parameters = children(function.template)
                if len(given) > len(parameters):
                    raise self.undecided("too many template arguments", node)
                free = {template_name(one) for one in parameters[len(given) :]}
                scope.names.update(_of_the_owner(function, outer, free))
                self._bind_given(function.template, given, node)
                for parameter, argument in zip(function.parameters, arguments, strict=False):
                    self._deduce(parameter, argument, free)
                self.bind_template(function.template, given, node)
            for parameter, argument in zip(function.parameters, arguments, strict=False):
                score += self._fit(parameter, argument)
            return Bound(function, scope, score)
        finally:
            self.scope = saved
            self.unit = unit

    def _bind_given(self, template: tree_sitter.Node, given: list[Any], node: tree_sitter.Node) -> None:
        for parameter, value in zip(children(template), given, strict=False):
            if parameter.type.startswith("variadic"):
                raise self.undecided("a template takes any number of arguments", node)
            if not is_of_kind(parameter, value):
                raise self.undecided("a template argument does not fit", node)
            self.scope.names[template_name(parameter)] = value

    def _deduce(self, parameter: tree_sitter.Node, argument: Expr, free: set[str]) -> None:
        named = parameter.child_by_field_name("type")
        if named is None:
            return
        ctype: CType | None = argument.ctype
        declarator = parameter.child_by_field_name("declarator")
        by_value = declarator is None or declarator.type == "identifier"
        if by_value and isinstance(ctype, Array):
            ctype = Pointer(ctype.of)
        while declarator is not None and ctype is not None and declarator.type != "identifier":
            if "pointer" in declarator.type:
                ctype = ctype.to if isinstance(ctype, Pointer) else ctype.of if isinstance(ctype, Array) else None
            elif declarator.type in ("array_declarator", "abstract_array_declarator"):
                size = declarator.child_by_field_name("size")
                if isinstance(ctype, Array) and size is not None and text_of(size) in free:
                    self.scope.names.setdefault(text_of(size), self.const(ctype.length, v.INT))
                ctype = ctype.of if isinstance(ctype, Array) else ctype.to if isinstance(ctype, Pointer) else None
            declarator = declarator.child_by_field_name("declarator") or next(
                (one for one in declarator.named_children if one.type.endswith("declarator")), None
            )
        if ctype is not None:
            self._deduce_type(named, ctype, free)

    def _deduce_type(self, named: tree_sitter.Node, ctype: CType, free: set[str]) -> None:
        while named.type in ("type_descriptor", "qualified_identifier"):
            inner = named.child_by_field_name("type") or named.child_by_field_name("name")
            if inner is None:
                return
            named = inner
        name = text_of(named)
        if named.type in ("type_identifier", "identifier") and name in free:
            self.scope.names.setdefault(name, ctype)
        elif named.type == "template_type":
            arguments = named.child_by_field_name("arguments")
            patterns = children(arguments) if arguments is not None else []
            if isinstance(ctype, GroupType) and patterns:
                size = text_of(patterns[0])
                if size in free:
                    self.scope.names.setdefault(size, self.const(ctype.width, v.INT))
            elif isinstance(ctype, Record) and isinstance(ctype.declared, Instance):
                self._deduce_arguments(text_of(named.child_by_field_name("name")), patterns, ctype.declared, free)

    def _deduce_arguments(self, name: str, patterns: list[tree_sitter.Node], given: Instance, free: set[str]) -> None:
        """The template arguments of a struct, and its template where a parameter stands for that."""
        if name in free:
            self.scope.names.setdefault(name, TemplateName(given.declaration.name))
        for pattern, value in zip(patterns, given.choice.arguments, strict=False):
            if isinstance(value, CType):
                self._deduce_type(pattern, value, free)
            elif text_of(pattern) in free:
                self.scope.names.setdefault(text_of(pattern), value)

    def _fit(self, parameter: tree_sitter.Node, argument: Expr) -> int:
        """How well an argument fits; raises Undecided where it does not."""
        ctype, reference = self.parameter_type(parameter, argument)
        given = argument.ctype
        if isinstance(given, Array) and isinstance(ctype, Pointer):
            given = Pointer(given.of)
        if v.same(ctype, given) or (isinstance(ctype, GroupType) and isinstance(given, GroupType)):
            return _EXACT
        if isinstance(ctype, LambdaType) or (reference and isinstance(ctype, Array)):
            raise Undecided("an argument does not fit")
        if isinstance(ctype, Record) and not isinstance(given, Record):
            raise Undecided("an argument does not fit")
        self.converted(argument, ctype, 0)
        return _CONVERTED

    def parameter_type(self, parameter: tree_sitter.Node, argument: Expr | None) -> tuple[CType, bool]:
        """The type of a parameter, and whether it is a reference."""
        base = self.type_of(parameter.child_by_field_name("type"))
        declarator = parameter.child_by_field_name("declarator")
        if base is None:
            if argument is None:
                raise self.undecided("a parameter of any type", parameter)
            base = argument.ctype
            if declarator is not None and "pointer" in declarator.type and isinstance(base, Pointer) and base.to:
                base = base.to
        ctype, reference = self.declared(base, declarator)
        if isinstance(ctype, Array) and not reference:
            ctype = Pointer(ctype.of)
        return ctype, reference


def _of_the_owner(function: Function, outer: Scope | None, free: set[str]) -> dict[str, Any]:
    """What the parameters of a struct's template stand for in `template <typename T> void X<T>::f()`."""
    owner = outer.find("this type") if outer is not None else None
    node = function.owner_type
    listed = node.child_by_field_name("arguments") if node is not None else None
    if listed is None or not isinstance(owner, Record) or not isinstance(owner.declared, Instance):
        return {}
    pairs = zip(map(text_of, children(listed)), owner.declared.choice.arguments, strict=False)
    return {name: value for name, value in pairs if name in free}


def takes(function: Function, count: int) -> bool:
    """Whether a function can be called with so many arguments."""
    parameters = function.parameters
    required = sum(one.type == "parameter_declaration" for one in parameters)
    return required <= count <= len(parameters)
