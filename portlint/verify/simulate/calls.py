"""Calls: which function is meant, with which template arguments, and its body in place of the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from portlint.verify.simulate import values as v
from portlint.verify.simulate.compiler import (
    MOST_CALLS,
    UNKNOWN,
    Cell,
    CollectiveType,
    Expr,
    Frame,
    GroupType,
    Instance,
    Lambda,
    LambdaType,
    Place,
    Scope,
    Slot,
    addressed_names,
)
from portlint.verify.simulate.constants import folded, may_be_folded
from portlint.verify.simulate.faults import Undecided
from portlint.verify.simulate.machine import Execute, Step, Wave
from portlint.verify.simulate.overloads import Overloads, takes
from portlint.verify.simulate.program import Function, children, declared_name, text_of
from portlint.verify.simulate.templates import TemplateName, argument_key
from portlint.verify.simulate.values import Array, CType, Lanes, Pointer, Record, Scalar, Values

if TYPE_CHECKING:
    import tree_sitter


class Calls(Overloads):
    """Calls of functions, methods, lambdas and constructors."""

    def statement(self, node: tree_sitter.Node) -> Execute:
        """Compile a statement."""
        raise NotImplementedError

    def call(self, node: tree_sitter.Node) -> Expr:
        """Compile a call."""
        function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or listed is None:
            raise self.undecided(f"'{text_of(node)[:40]}'", node)
        if any(one.type == "kernel_call_syntax" for one in node.children):
            return self.launch(node)
        return self._called(function, children(listed), node)

    def _called(
        self,
        function: tree_sitter.Node,
        listed: list[tree_sitter.Node],
        node: tree_sitter.Node,
        *,
        is_qualified: bool = False,
    ) -> Expr:
        match function.type:
            case "identifier" | "field_identifier":
                return self._by_name(text_of(function), None, listed, node, is_qualified=is_qualified)
            case "template_function" | "template_method":
                template = function.child_by_field_name("arguments")
                given = children(template) if template is not None else []
                name = text_of(function.child_by_field_name("name"))
                return self._by_name(name, given, listed, node, is_qualified=is_qualified)
            case "primitive_type" | "sized_type_specifier" | "type_identifier":
                return self._conversion(self.known_type(function), listed, node)
            case "qualified_identifier":
                return self._qualified_call(function, listed, node)
            case "field_expression":
                return self._method_call(function, listed, node)
            case "parenthesized_expression" if len(children(function)) == 1:
                return self._called(children(function)[0], listed, node)
            case "call_expression" | "lambda_expression" | "subscript_expression" | "compound_literal_expression":
                return self._object_call(self.expression(function), listed, node)
        raise self.undecided(f"a call of '{text_of(function)[:40]}'", node)

    # ---- what is called -------------------------------------------------------------------------------------------

    def _arguments(self, listed: list[tree_sitter.Node]) -> list[Expr]:
        return [self.expression(one) for one in listed]

    def _by_name(
        self,
        name: str,
        template: list[tree_sitter.Node] | None,
        listed: list[tree_sitter.Node],
        node: tree_sitter.Node,
        *,
        is_qualified: bool,
    ) -> Expr:
        found = None if is_qualified else self.scope.find(name)  # `std::max` is no variable of the function
        if isinstance(found, CType):
            return self._conversion(found, listed, node)
        if isinstance(found, TemplateName):
            return self._conversion(self._template_of(found.name, template, node), listed, node)
        if isinstance(found, Lambda):
            return self._lambda_call(found, self._arguments(listed), node)
        if isinstance(found, Place | Expr):
            return self._object_call(self.placed(found) if isinstance(found, Place) else found, listed, node)
        this = self.scope.find("this place")
        if isinstance(this, Place) and isinstance(this.ctype, Record):
            methods = self.methods(this.ctype, name)
            if methods:
                return self._method(methods, self.placed(this), template, listed, node)
        owner = self.scope.find("this type")
        if isinstance(owner, Record) and self.methods(owner, name):
            return self._method(self.methods(owner, name), None, template, listed, node)
        functions = [one for one in self.program.functions.get(name, ()) if not one.owner]
        if functions:
            return self._function_call(functions, template, self._arguments(listed), node)
        if name in self.program.records or name in self.program.aliases:
            return self._conversion(self._template_of(name, template, node), listed, node)
        collective = self.collective(name, template) if template else None
        if collective is not None:
            return self._conversion(collective, listed, node)
        built = self.built_in(name, template, listed, node)
        if built is not None:
            return built
        if name in v.NAMED:
            return self._conversion(v.NAMED[name], listed, node)
        raise self.undecided(f"'{name}' is defined elsewhere", node)

    def _template_of(self, name: str, template: list[tree_sitter.Node] | None, node: tree_sitter.Node) -> CType:
        function = node.child_by_field_name("function")
        while function is not None and function.type == "qualified_identifier":
            function = function.child_by_field_name("name")
        return self.known_type(function) if template is not None else self.named_type(name, node)

    def _conversion(self, ctype: CType, listed: list[tree_sitter.Node], node: tree_sitter.Node) -> Expr:
        if isinstance(ctype, CollectiveType):  # its argument is where it keeps what it needs
            return Expr(ctype, lambda _, lanes: [0] * len(lanes))
        if not listed:
            if isinstance(ctype, Record) and self._constructors(ctype):
                return self.construct(ctype, [], node)
            return (
                Expr(ctype, lambda _, lanes: [0] * len(lanes))
                if isinstance(ctype, LambdaType)
                else self.zero(ctype, node)
            )
        if isinstance(ctype, Record):
            if len(listed) == 1 and listed[0].type == "initializer_list":
                return self.braced(ctype, listed[0])
            return self.construct(ctype, self._arguments(listed), node)
        if len(listed) != 1:
            raise self.undecided(f"'{text_of(node)[:40]}'", node)
        return self.cast(self.expression(listed[0]), ctype, node)

    def _qualified_call(
        self, function: tree_sitter.Node, listed: list[tree_sitter.Node], node: tree_sitter.Node
    ) -> Expr:
        scope, name = function.child_by_field_name("scope"), function.child_by_field_name("name")
        if name is None:
            raise self.undecided(f"a call of '{text_of(function)}'", node)
        if name.type == "qualified_identifier":
            inner = name.child_by_field_name("scope")
            if inner is not None and inner.type == "template_type":
                return self._qualified_call(name, listed, node)
        owner = self.owner(scope)
        if owner is not None:
            template = name.child_by_field_name("arguments") if name.type == "template_function" else None
            short = text_of(name.child_by_field_name("name")) if name.type == "template_function" else text_of(name)
            methods = self.methods(owner, short)
            if methods:
                given = children(template) if template is not None else None
                return self._method(methods, None, given, listed, node)
            member = self.member_type(owner, short)
            if member is not None:
                return self._conversion(member, listed, node)
            raise self.undecided(f"'{text_of(function)[:40]}' is defined elsewhere", node)
        if scope is not None and scope.type == "template_type":
            limit = self.limit(scope, text_of(name))
            if limit is not None:
                return limit
            raise self.undecided(f"'{text_of(function)[:40]}' is defined elsewhere", node)
        return self._called(name, listed, node, is_qualified=True)

    def _method_call(self, function: tree_sitter.Node, listed: list[tree_sitter.Node], node: tree_sitter.Node) -> Expr:
        argument, field = function.child_by_field_name("argument"), function.child_by_field_name("field")
        if argument is None or field is None:
            raise self.undecided(f"a call of '{text_of(function)[:40]}'", node)
        template: list[tree_sitter.Node] | None = None
        if field.type == "dependent_name":
            field = children(field)[0]
        if field.type == "template_method":
            listed_template = field.child_by_field_name("arguments")
            template = children(listed_template) if listed_template is not None else None
            field = field.child_by_field_name("name") or field
        held = self.expression(argument)
        if text_of(function.child_by_field_name("operator")) == "->":
            held = self.followed(self.decayed(held, self.line(node)), node)
        name = text_of(field)
        if isinstance(held.ctype, CollectiveType):
            return self.collective_call(held.ctype, name, listed, node)
        if isinstance(held.ctype, GroupType):
            return self.group_call(held, held.ctype, name, self._arguments(listed), node)
        if not isinstance(held.ctype, Record):
            raise self.undecided(f"a call of '{text_of(function)[:40]}'", node)
        methods = self.methods(held.ctype, name)
        if methods:
            return self._method(methods, held, template, listed, node)
        if name in held.ctype.fields:
            return self._object_call(self.field(held, name, node), listed, node)
        raise self.undecided(f"'{name}' of '{held.ctype}' is defined elsewhere", node)

    def _object_call(self, held: Expr, listed: list[tree_sitter.Node], node: tree_sitter.Node) -> Expr:
        """A call of a lambda or of something with an `operator()`."""
        if isinstance(held.ctype, LambdaType):
            return self._lambda_call(held.ctype.function, self._arguments(listed), node)
        if isinstance(held.ctype, Record):
            methods = self.methods(held.ctype, "operator()")
            if methods:
                return self._method(methods, held, None, listed, node)
        raise self.undecided(f"a call of '{text_of(node)[:40]}'", node)

    def combined(self, operation: Expr, left: Expr, right: Expr, node: tree_sitter.Node) -> Expr:
        """A call of a function object of the program."""
        if isinstance(operation.ctype, LambdaType):
            return self._lambda_call(operation.ctype.function, [left, right], node)
        methods = self.methods(operation.ctype, "operator()") if isinstance(operation.ctype, Record) else []
        if not methods:
            raise self.undecided(f"a call of '{operation.ctype}'", node)
        return self._method_with(methods, operation, None, [left, right], node)

    def _method(
        self,
        methods: list[tuple[Function, Record]],
        held: Expr | None,
        template: list[tree_sitter.Node] | None,
        listed: list[tree_sitter.Node],
        node: tree_sitter.Node,
    ) -> Expr:
        return self._method_with(methods, held, template, self._arguments(listed), node)

    def _method_with(
        self,
        methods: list[tuple[Function, Record]],
        held: Expr | None,
        template: list[tree_sitter.Node] | None,
        arguments: list[Expr],
        node: tree_sitter.Node,
    ) -> Expr:
        record = methods[0][1]
        assert isinstance(record.declared, Instance)
        outer = Scope(record.declared.scope)
        outer.names["this type"] = record
        before: list[Callable[[Wave, Lanes], None]] = []
        if held is not None:
            outer.names["this place"] = self._this_place(held, record, before, node)
        return self._function_call([one for one, _ in methods], template, arguments, node, outer, before)

    def _this_place(
        self, held: Expr, record: Record, before: list[Callable[[Wave, Lanes], None]], node: tree_sitter.Node
    ) -> Place:
        """Where the object of a method is; its address is taken once."""
        if held.place is not None and held.place.address is not None:
            slot, address = Slot(Pointer(record), self.new_slot()), held.place.address
            before.append(lambda wave, lanes: slot.store(wave, lanes, address(wave, lanes)))
            return Cell(record, slot.load, self.line(node))
        copy = self.local(record, "a temporary")
        ev = held.ev
        before.append(lambda wave, lanes: copy.store(wave, lanes, ev(wave, lanes)))
        return copy

    def operator_call(self, name: str, operands: list[Expr], node: tree_sitter.Node) -> Expr | None:
        """A call of an operator that the program defines; None where it defines none that fits."""
        first = operands[0]
        if isinstance(first.ctype, Record):
            methods = [one for one in self.methods(first.ctype, name) if len(one[0].parameters) == len(operands) - 1]
            if methods:
                return self._method_with(methods, first, None, operands[1:], node)
        functions = [one for one in self.program.functions.get(name, ()) if not one.owner]
        if functions:
            try:
                return self._function_call(functions, None, operands, node)
            except Undecided:
                return None
        return None

    def cast_operator(self, expr: Expr, ctype: CType, line: int) -> Expr | None:
        """A call of `operator T()`; None for a struct that has none for that type."""
        if not isinstance(expr.ctype, Record) or isinstance(ctype, Record):
            return None
        for method, owner in self.methods(expr.ctype, "operator cast"):
            declared = method.node.child_by_field_name("declarator")
            assert declared is not None
            assert isinstance(owner.declared, Instance)
            saved, self.scope = self.scope, Scope(owner.declared.scope)
            try:
                named = self.known_type(declared.child_by_field_name("type"))
                inner = declared.child_by_field_name("declarator")
                while inner is not None and "function" not in inner.type:
                    named = Pointer(named) if "pointer" in inner.type else named
                    inner = inner.child_by_field_name("declarator")
            finally:
                self.scope = saved
            if v.same(named, ctype):
                return self._cast_call(method, owner, expr, named, line)
        return None

    def _cast_call(self, method: Function, owner: Record, expr: Expr, ctype: CType, line: int) -> Expr:
        assert isinstance(owner.declared, Instance)
        outer = Scope(owner.declared.scope)
        outer.names["this type"] = owner
        before: list[Callable[[Wave, Lanes], None]] = []
        outer.names["this place"] = self._this_place(expr, owner, before, method.node)
        body = method.node.child_by_field_name("body")
        assert body is not None
        self.used[method.node.id] = method
        del line
        key = (method.unit, method.node.id, id(owner))
        return self._in_place(Frame(ctype, is_kernel=False), [], body, outer, [], before, method.node, key)

    # ---- constructors ---------------------------------------------------------------------------------------------

    def _constructors(self, record: Record) -> list[tuple[Function, Record]]:
        if not isinstance(record.declared, Instance):
            return []
        own = self.methods(record, record.declared.declaration.name)
        return [one for one in own if one[1] is record]

    def construct(self, ctype: CType, arguments: list[Expr], node: tree_sitter.Node) -> Expr:
        """A value of a type from arguments."""
        if not isinstance(ctype, Record):
            if len(arguments) != 1:
                raise self.undecided(f"'{text_of(node)[:40]}'", node)
            return self.cast(arguments[0], ctype, node)
        if len(arguments) == 1 and v.same(arguments[0].ctype, ctype):
            return arguments[0]
        constructors = self._constructors(ctype)
        fitting = [one for one in constructors if takes(one[0], len(arguments))]
        if fitting:
            return self._constructed(ctype, fitting, arguments, node)
        leaves = [leaf for _, leaf in ctype.leaves]
        if ctype is v.DIM3:
            arguments = [*arguments, *(self.const(1, v.UINT) for _ in range(3 - len(arguments)))]
        if constructors or len(arguments) != len(leaves) or ctype.is_union:
            raise self.undecided(f"'{text_of(node)[:40]}' constructs '{ctype}'", node)
        evs = [self.converted(one, leaf, self.line(node)).ev for one, leaf in zip(arguments, leaves, strict=True)]
        return Expr(ctype, lambda wave, lanes: list(zip(*(one(wave, lanes) for one in evs), strict=True)))

    def _constructed(
        self, record: Record, constructors: list[tuple[Function, Record]], arguments: list[Expr], node: tree_sitter.Node
    ) -> Expr:
        place = self.local(record, "a temporary")
        assert isinstance(record.declared, Instance)
        outer = Scope(record.declared.scope)
        outer.names["this type"], outer.names["this place"] = record, place
        ev = self._function_call([one for one, _ in constructors], None, arguments, node, outer, []).ev

        def run(wave: Wave, lanes: Lanes) -> Values:
            ev(wave, lanes)
            return place.load(wave, lanes)

        return Expr(record, run)

    def _function_call(
        self,
        functions: list[Function],
        template: list[tree_sitter.Node] | None,
        arguments: list[Expr],
        node: tree_sitter.Node,
        outer: Scope | None = None,
        before: list[Callable[[Wave, Lanes], None]] | None = None,
    ) -> Expr:
        given = [self.template_argument(one) for one in template] if template is not None else []
        bound = self.chosen_function(functions, given, arguments, node, outer)
        called = self._inlined(bound.function, bound.scope, arguments, before or [], node)
        if not before and may_be_folded(bound.function, arguments, UNKNOWN):
            called.const = folded(self, called, UNKNOWN)
        return called

    # ---- bodies ---------------------------------------------------------------------------------------------------

    def _lambda_call(self, function: Lambda, arguments: list[Expr], node: tree_sitter.Node) -> Expr:
        declarator = function.node.child_by_field_name("declarator")
        listed = declarator.child_by_field_name("parameters") if declarator is not None else None
        parameters = children(listed) if listed is not None else []
        body = function.node.child_by_field_name("body")
        if body is None or len(parameters) != len(arguments):
            raise self.undecided("a lambda is called with other arguments than it takes", node)
        trailing = (
            next((one for one in children(declarator) if one.type == "trailing_return_type"), None)
            if declarator
            else None
        )
        ctype = self.known_type(children(trailing)[0]) if trailing is not None else None
        frame = Frame(ctype, is_kernel=False)
        return self._in_place(frame, parameters, body, Scope(function.scope), arguments, [], node, None)

    def _inlined(
        self,
        function: Function,
        scope: Scope,
        arguments: list[Expr],
        before: list[Callable[[Wave, Lanes], None]],
        node: tree_sitter.Node,
    ) -> Expr:
        body = function.node.child_by_field_name("body")
        assert body is not None
        self.used[function.node.id] = function
        ctype, reference = self.returned_by(function, scope)
        frame = Frame(ctype, is_kernel=False)
        frame.is_reference = reference
        key = (function.unit, function.node.id, _instance_key(scope))
        return self._in_place(frame, function.parameters, body, scope, arguments, before, node, key, function)

    def _in_place(
        self,
        frame: Frame,
        parameters: list[tree_sitter.Node],
        body: tree_sitter.Node,
        scope: Scope,
        arguments: list[Expr],
        before: list[Callable[[Wave, Lanes], None]],
        node: tree_sitter.Node,
        key: Any,
        function: Function | None = None,
    ) -> Expr:
        """The body of a function in place of a call of it."""
        if self.calls > MOST_CALLS:
            raise self.undecided("a function calls itself", node)
        line = self.line(node)
        saved = self.scope, self.frame, self.unit, self.called_at, self.suspends, self.hoisted, self.conditional
        self.scope, self.frame, self.calls = scope, frame, self.calls + 1
        self.suspends, self.hoisted, self.conditional = False, [], 0
        if function is not None and function.unit and not self.unit:
            self.called_at = line
        if function is not None:
            self.unit = function.unit
        frame.addressed = addressed_names(body)
        frame.key = key
        try:
            setup = [*before, *self._bound_parameters(parameters, arguments, frame)]
            if frame.is_reference and frame.ctype is not None:
                frame.place = Slot(Pointer(frame.ctype), self.new_slot())
            elif frame.ctype is not None and frame.ctype is not v.VOID:
                frame.place = self.local(frame.ctype, "a result")
            setup += self._field_initialisers(function)
            run = self.statement(body)
            suspends = self.suspends
        finally:
            self.scope, self.frame, self.unit, self.called_at, self.suspends, self.hoisted, self.conditional = saved
            self.calls -= 1
        place = frame.place
        ctype = frame.ctype or v.VOID
        if suspends:
            self._hoist(setup, run, node)

            def ev(wave: Wave, lanes: Lanes) -> Values:
                return place.load(wave, lanes) if place is not None else [None] * len(lanes)

        else:

            def ev(wave: Wave, lanes: Lanes) -> Values:
                for one in setup:
                    one(wave, lanes)
                for _ in run(wave, lanes):
                    raise Undecided("a function waits where it cannot", line)
                return place.load(wave, lanes) if place is not None else [None] * len(lanes)

        if frame.is_reference and place is not None and frame.ctype is not None:
            return self.placed(Cell(frame.ctype, ev, line))
        return Expr(ctype, ev)

    def _hoist(self, setup: list[Callable[[Wave, Lanes], None]], run: Execute, node: tree_sitter.Node) -> None:
        """Have a call that waits for the block run before the statement that it stands in."""
        if self.conditional:
            raise self.undecided("a call that waits for the block may not happen", node)
        self.suspends = True

        def step(wave: Wave, lanes: Lanes) -> Step:
            for one in setup:
                one(wave, lanes)
            yield from run(wave, lanes)
            return lanes

        self.hoisted.append(step)

    def _bound_parameters(
        self, parameters: list[tree_sitter.Node], arguments: list[Expr], frame: Frame
    ) -> list[Callable[[Wave, Lanes], None]]:
        setup: list[Callable[[Wave, Lanes], None]] = []
        for index, parameter in enumerate(parameters):
            if index < len(arguments):
                argument = arguments[index]
            else:
                default = parameter.child_by_field_name("default_value")
                if default is None:
                    raise self.undecided("an argument is missing", parameter)
                argument = self.expression(default)
            name = text_of(declared_name(parameter.child_by_field_name("declarator")))
            ctype, reference = self.parameter_type(parameter, argument)
            if isinstance(ctype, LambdaType):
                self.scope.names[name] = argument
                continue
            if reference and argument.place is not None and v.same(ctype, argument.ctype):
                self.scope.names[name] = self._referred(argument.place, setup, parameter)
                continue
            if reference and isinstance(ctype, Array):
                raise self.undecided("a reference to an array that is in no memory", parameter)
            value = self.assignable(self.decayed(argument, self.line(parameter)), ctype, parameter)
            place = self.local(ctype, name, in_memory=name in frame.addressed)
            setup.append(_storing(place, value))
            is_const = any(text_of(one) == "const" for one in parameter.children)
            if value.const is not UNKNOWN and is_const and isinstance(ctype, Scalar):
                self.scope.names[name] = Expr(ctype, place.load, UNKNOWN, place)
            elif name:
                self.scope.names[name] = place
        return setup

    def _referred(self, place: Place, setup: list[Callable[[Wave, Lanes], None]], node: tree_sitter.Node) -> Place:
        """What a reference refers to: a register itself, memory by the address that it has now."""
        address = place.address
        if address is None:
            return place
        slot = Slot(Pointer(place.ctype), self.new_slot())
        setup.append(lambda wave, lanes: slot.store(wave, lanes, address(wave, lanes)))
        return Cell(place.ctype, slot.load, self.line(node))

    def _field_initialisers(self, function: Function | None) -> list[Callable[[Wave, Lanes], None]]:
        """`: a(1), b{2}` of a constructor."""
        listed = (
            next((one for one in children(function.node) if one.type == "field_initializer_list"), None)
            if function
            else None
        )
        this = self.scope.find("this place")
        if listed is None or not isinstance(this, Place):
            return []
        found = []
        for one in children(listed):
            name, value = children(one)[0], children(one)[-1]
            target = self.field(self.placed(this), text_of(name), one)
            inner = children(value)
            if target.place is None or len(inner) > 1:
                raise self.undecided("an initialiser of a constructor", one)
            expr = self.expression(inner[0]) if inner else self.zero(target.ctype, one)
            found.append(_storing(target.place, self.assignable(expr, target.ctype, one)))
        return found


def _storing(place: Place, value: Expr) -> Callable[[Wave, Lanes], None]:
    ev = value.ev
    return lambda wave, lanes: place.store(wave, lanes, ev(wave, lanes))


def _instance_key(scope: Scope) -> tuple[Any, ...]:
    """What tells the instances of a template apart."""
    return tuple(
        (name, argument_key(value))
        for name, value in sorted(scope.names.items())
        if isinstance(value, Expr | CType | TemplateName)
    )
