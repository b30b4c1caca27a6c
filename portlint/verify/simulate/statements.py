"""Statements: which lanes go which way, and which come out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from portlint.source.grammar import parse
from portlint.verify.simulate import values as v
from portlint.verify.simulate.calls import Calls
from portlint.verify.simulate.compiler import (
    UNKNOWN,
    Cell,
    Expr,
    Frame,
    LambdaType,
    Place,
    Scope,
    Slot,
    addressed_names,
)
from portlint.verify.simulate.faults import Undecided
from portlint.verify.simulate.machine import Code, Evaluate, Execute, Step, Wave
from portlint.verify.simulate.program import Function, children, declared_name, text_of, walk
from portlint.verify.simulate.values import Array, CType, Lanes, Record, Scalar

if TYPE_CHECKING:
    import tree_sitter

_WITHOUT_EFFECT = frozenset(
    ("comment", "static_assert_declaration", "preproc_call", "using_declaration", "attributed_statement", "preproc_def")
)  # fmt: skip

_LIKE_A_DECLARATION = re.compile(r"[\w:]+\s*<[^;(){}]*>\s*\w+\s*[=({;]")


def _nothing(_: Wave, lanes: Lanes) -> Step:
    return lanes
    yield


def _not_understood(error: Undecided) -> Execute:
    """A statement that no lane may get to."""

    def run(_: Wave, lanes: Lanes) -> Step:
        if lanes:
            raise Undecided(error.reason, error.line)
        return lanes
        yield

    return run


class Statements(Calls):
    """The statements of C++."""

    def statement(self, node: tree_sitter.Node) -> Execute:
        """Compile a statement."""
        if node.type in _WITHOUT_EFFECT:
            return _nothing
        state = self.scope, self.frame, self.unit, self.called_at, self.suspends, self.hoisted, self.conditional
        jumps = len(self.frame.breaks), len(self.frame.loops)
        try:
            method: Callable[[tree_sitter.Node], Execute] | None = getattr(self, f"_do_{node.type}", None)
            if method is None:
                raise self.undecided(f"'{text_of(node)[:40]}' ({node.type})", node)
            return method(node)
        except Undecided as error:
            self.scope, self.frame, self.unit, self.called_at, self.suspends, self.hoisted, self.conditional = state
            del self.frame.breaks[jumps[0] :], self.frame.loops[jumps[1] :]
            return _not_understood(error)

    def _with_hoists(self, compile_one: Callable[[], Any]) -> tuple[Any, list[Execute]]:
        """What a piece of code is compiled to, and the calls that have to run before it."""
        outer, self.hoisted = self.hoisted, []
        try:
            return compile_one(), self.hoisted
        finally:
            self.hoisted = outer

    def _simple(self, node: tree_sitter.Node, compile_one: Callable[[], Callable[[Wave, Lanes], Any]]) -> Execute:
        """A statement that all lanes come out of."""
        run, hoists = self._with_hoists(compile_one)
        place = self._span(node)

        def step(wave: Wave, lanes: Lanes) -> Step:
            if place is not None:
                wave.launch.reached.add(place)
            for hoist in hoists:
                yield from hoist(wave, lanes)
            run(wave, lanes)
            return lanes

        return step

    def _condition(self, node: tree_sitter.Node | None) -> Callable[[Wave, Lanes], Step]:
        """A test, run as a step that returns the lanes for which it holds."""
        if node is None:
            return _nothing
        line = self.line(node)
        test, hoists = self._with_hoists(lambda: self.truth(self.expression(node), line))
        place = self._span(node)

        def step(wave: Wave, lanes: Lanes) -> Step:
            if place is not None:
                wave.launch.reached.add(place)
            for hoist in hoists:
                yield from hoist(wave, lanes)
            held = wave.truth(test(wave, lanes), line)
            return [lane for lane, one in zip(lanes, held, strict=True) if one]

        return step

    def _span(self, node: tree_sitter.Node) -> tuple[int, int] | None:
        """The lines of a statement of the file; None for one of a header."""
        if self.unit:
            return None
        span = (node.start_point[0] + 1, node.end_point[0] + 1)
        self.spans.add(span)
        return span

    # ---- blocks ---------------------------------------------------------------------------------------------------

    def _do_compound_statement(self, node: tree_sitter.Node) -> Execute:
        with self.inner_scope():
            return self._sequence([self.statement(one) for one in children(node)])

    @staticmethod
    def _sequence(steps: list[Execute]) -> Execute:
        steps = [one for one in steps if one is not _nothing]

        def run(wave: Wave, lanes: Lanes) -> Step:
            for step in steps:
                if not lanes:
                    break
                lanes = yield from step(wave, lanes)
            return lanes

        return run

    def _do_expression_statement(self, node: tree_sitter.Node) -> Execute:
        inner = children(node)
        if not inner:
            return _nothing
        if _LIKE_A_DECLARATION.match(text_of(node)) and (read := _declaration_in(node)) is not None:
            return self.statement(read)
        return self._simple(node, lambda: self.expression(inner[0]).ev)

    def _do_alias_declaration(self, node: tree_sitter.Node) -> Execute:
        self.scope.names[text_of(node.child_by_field_name("name"))] = self.known_type(node.child_by_field_name("type"))
        return _nothing

    def _do_type_definition(self, node: tree_sitter.Node) -> Execute:
        declarator = node.child_by_field_name("declarator")
        ctype = self.known_type(node.child_by_field_name("type"))
        self.scope.names[text_of(declared_name(declarator))] = self.declared(ctype, declarator)[0]
        return _nothing

    def _do_struct_specifier(self, node: tree_sitter.Node) -> Execute:
        name = text_of(node.child_by_field_name("name"))
        self.scope.names[name] = self.instantiated(self.only_definition(node))
        return _nothing

    def _do_union_specifier(self, node: tree_sitter.Node) -> Execute:
        """A union that has a name, or whose members are variables of the block."""
        if node.child_by_field_name("name") is not None:
            return self._do_struct_specifier(node)
        record = self.instantiated(self.only_definition(node))
        union = self.placed(self.local(record, "a union", in_memory=True))
        for name in record.fields:
            place = self.field(union, name, node).place
            assert place is not None
            self.scope.names[name] = place
        return _nothing

    def _do_enum_specifier(self, node: tree_sitter.Node) -> Execute:
        self._enumerators(node)
        return _nothing

    def _do_namespace_alias_definition(self, node: tree_sitter.Node) -> Execute:
        del node
        return _nothing

    # ---- declarations ---------------------------------------------------------------------------------------------

    def _do_declaration(self, node: tree_sitter.Node) -> Execute:
        words = {text_of(one) for one in node.children if not one.type.endswith("declarator")}
        named = node.child_by_field_name("type")
        if named is not None and named.child_by_field_name("body") is not None and named.type == "struct_specifier":
            self._do_struct_specifier(named)
        base = self.type_of(named)
        return self._sequence(
            [self._declare(one, base, words, node) for one in node.children_by_field_name("declarator")]
        )

    def _declare(
        self, declarator: tree_sitter.Node, base: CType | None, words: set[str], node: tree_sitter.Node
    ) -> Execute:
        value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
        target = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
        if target is not None and target.type == "function_declarator":
            return self._declare_function_like(target, base, node)
        name = text_of(declared_name(target))
        if base is None:
            return self._simple(node, lambda: self._deduced(name, target, value, words, node))
        ctype, reference = self.declared(base, target)
        if isinstance(ctype, Array) and ctype.length is None and value is not None:
            ctype = Array(ctype.of, len(children(value)))
        if reference:
            return self._simple(node, lambda: self._reference(name, ctype, value, node))
        if "__shared__" in words:
            if value is not None:
                raise self.undecided("shared memory is initialised", node)
            place = self.shared_variable(
                (self.unit, node.id, name, self.frame.key), name, ctype, dynamic="extern" in words
            )
            self.scope.names[name] = place
            return _nothing
        return self._simple(node, lambda: self._variable(name, ctype, value, words, node))

    def _declare_function_like(self, target: tree_sitter.Node, base: CType | None, node: tree_sitter.Node) -> Execute:
        """`T x(0)` that the grammar reads as a function, or a function that is declared here."""
        parameters = target.child_by_field_name("parameters")
        listed = children(parameters) if parameters is not None else []
        arguments = [named for one in listed if (named := self._value_read_as_parameter(one)) is not None]
        if base is None or not listed or len(arguments) != len(listed):
            raise self.undecided(f"'{text_of(node)[:40]}'", node)
        name, ctype = text_of(target.child_by_field_name("declarator")), base

        def compiled() -> Evaluate:
            values = [self.expression(one) for one in arguments]
            value = self.construct(ctype, values, node) if len(values) > 1 else self.assignable(values[0], ctype, node)
            return self._stored(self.local(ctype, name), value, name)

        return self._simple(node, compiled)

    def _value_read_as_parameter(self, parameter: tree_sitter.Node) -> tree_sitter.Node | None:
        """The name of a variable that the grammar takes for the type of a parameter; None for a type."""
        named = parameter.child_by_field_name("type")
        if named is None or parameter.child_by_field_name("declarator") is not None:
            return None
        found = self.scope.find(text_of(named))
        return None if found is None or isinstance(found, CType) else named

    def _stored(self, place: Place, value: Expr, name: str) -> Evaluate:
        self.scope.names[name] = place
        return self._assigned(place, value).ev

    def _deduced(
        self,
        name: str,
        target: tree_sitter.Node | None,
        value: tree_sitter.Node | None,
        words: set[str],
        node: tree_sitter.Node,
    ) -> Evaluate:
        """`auto x = ...`."""
        if value is None:
            raise self.undecided("'auto' without a value", node)
        inner = children(value) if value.type in ("argument_list", "initializer_list") else [value]
        if len(inner) != 1:
            raise self.undecided("'auto' of a list", node)
        expr = self.expression(inner[0])
        if target is not None and "reference" in target.type:
            if expr.place is not None:
                return self._bound_reference(name, expr.place, node)
        else:
            expr = self.decayed(expr, self.line(node))
        if {"const", "constexpr"} & words and expr.const is not UNKNOWN:
            self.scope.names[name] = expr
            return expr.ev
        if isinstance(expr.ctype, LambdaType):
            self.scope.names[name] = expr
            return expr.ev
        return self._stored(self.local(expr.ctype, name, in_memory=name in self.frame.addressed), expr, name)

    def _reference(self, name: str, ctype: CType, value: tree_sitter.Node | None, node: tree_sitter.Node) -> Evaluate:
        if value is None:
            raise self.undecided("a reference to nothing", node)
        inner = children(value) if value.type in ("argument_list", "initializer_list") else [value]
        expr = self.expression(inner[0])
        if expr.place is not None and v.same(expr.ctype, ctype):
            return self._bound_reference(name, expr.place, node)
        return self._stored(self.local(ctype, name), self.assignable(expr, ctype, node), name)

    def _bound_reference(self, name: str, place: Place, node: tree_sitter.Node) -> Evaluate:
        setup: list[Callable[[Wave, Lanes], None]] = []
        self.scope.names[name] = self._referred(place, setup, node)

        def run(wave: Wave, lanes: Lanes) -> list[Any]:
            for one in setup:
                one(wave, lanes)
            return [None] * len(lanes)

        return run

    def _variable(
        self, name: str, ctype: CType, value: tree_sitter.Node | None, words: set[str], node: tree_sitter.Node
    ) -> Evaluate:
        if ctype is v.VOID or not ctype.size:
            raise self.undecided(f"a variable of type '{ctype}'", node)
        in_memory = name in self.frame.addressed
        if value is None:
            if isinstance(ctype, Record) and self._constructors(ctype):
                return self._stored(self.local(ctype, name), self.construct(ctype, [], node), name)
            place = self.local(ctype, name, in_memory=in_memory)
            self.scope.names[name] = place
            if isinstance(place, Slot):
                return self._assigned(place, Expr(ctype, lambda _, lanes: [None] * len(lanes))).ev
            return lambda _, lanes: [None] * len(lanes)
        if isinstance(ctype, Array):
            return self._filled(self.local(ctype, name), name, value, node)
        inner = children(value)
        if value.type == "initializer_list" and (len(inner) != 1 or isinstance(ctype, Record)):
            expr = self.braced(ctype, value)
        elif value.type == "argument_list":
            expr = self.construct(ctype, [self.decayed(self.expression(one), self.line(node)) for one in inner], node)
        else:
            expr = self.expression(inner[0] if value.type == "initializer_list" else value)
            expr = self.assignable(self.decayed(expr, self.line(node)), ctype, node)
        if expr.const is not UNKNOWN and {"const", "constexpr"} & words and isinstance(ctype, Scalar):
            if in_memory:
                raise self.undecided("the address of a constant", node)
            self.scope.names[name] = expr
            return expr.ev
        return self._stored(self.local(ctype, name, in_memory=in_memory), expr, name)

    def _filled(self, place: Place, name: str, value: tree_sitter.Node, node: tree_sitter.Node) -> Evaluate:
        """An array and its initialiser."""
        line = self.line(node)
        if value.type != "initializer_list":
            raise self.undecided("an array is initialised", node)
        cells = self.initialised(value, place.ctype, line)
        address = place.address
        assert address is not None
        self.scope.names[name] = place

        def run(wave: Wave, lanes: Lanes) -> list[Any]:
            base = address(wave, lanes)
            for at, leaf, expr in cells:
                where = [None if one is None else (one[0], one[1] + at) for one in base]
                wave.store(where, leaf, expr.ev(wave, lanes), lanes, line)
            return base

        return run

    # ---- branches -------------------------------------------------------------------------------------------------

    def _do_if_statement(self, node: tree_sitter.Node) -> Execute:
        condition = node.child_by_field_name("condition")
        consequence, alternative = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if condition is None or consequence is None:
            raise self.undecided("an 'if' without a branch", node)
        with self.inner_scope():
            before, condition = self._condition_parts(condition)
            other = children(alternative)[0] if alternative is not None and children(alternative) else None
            if any(one.type == "constexpr" for one in node.children):
                chosen = consequence if self.constant(condition) else other
                return self.statement(chosen) if chosen is not None else _nothing
            const, _ = self._with_hoists(lambda: self._decided(condition))
            if const is not None:
                chosen = consequence if const else other
                return self._sequence([before, self.statement(chosen)]) if chosen is not None else before
            test = self._condition(condition)
            with self.inner_scope():
                yes = self.statement(consequence)
            with self.inner_scope():
                no = self.statement(other) if other is not None else _nothing
        return self._sequence([before, _branch(test, yes, no)])

    def _decided(self, condition: tree_sitter.Node) -> bool | None:
        """What a condition comes to before the run, so that the other branch need not be understood."""
        if next(walk(condition, "call_expression"), None) is not None:
            return None
        expr = self.expression(condition)
        return bool(expr.const) if expr.const is not UNKNOWN and isinstance(expr.ctype, Scalar) else None

    def _condition_parts(self, condition: tree_sitter.Node) -> tuple[Execute, tree_sitter.Node]:
        initializer, value = condition.child_by_field_name("initializer"), condition.child_by_field_name("value")
        before: Execute = _nothing
        if initializer is not None:
            before = self._sequence([self.statement(one) for one in children(initializer)])
        if value is not None and value.type == "declaration":
            raise self.undecided("a declaration in a condition", condition)
        return before, value if value is not None else condition

    def _do_switch_statement(self, node: tree_sitter.Node) -> Execute:
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        if condition is None or body is None:
            raise self.undecided("a 'switch' without a body", node)
        line = self.line(node)
        expr, hoists = self._with_hoists(lambda: self.expression(condition))
        subject = self.converted(expr, v.LONG, line).ev
        key = self.new_key()
        self.frame.breaks.append(key)
        cases: list[tuple[int | None, Execute]] = []
        with self.inner_scope():
            for one in children(body):
                if one.type != "case_statement":
                    raise self.undecided("a statement before the first case", one)
                value = one.child_by_field_name("value")
                steps = [self.statement(inner) for inner in children(one) if inner != value]
                cases.append((self.constant(value) if value is not None else None, self._sequence(steps)))
        self.frame.breaks.pop()
        known = {value for value, _ in cases if value is not None}

        def run(wave: Wave, lanes: Lanes) -> Step:
            for hoist in hoists:
                yield from hoist(wave, lanes)
            values = wave.truth(subject(wave, lanes), line)
            chosen = dict(zip(lanes, values, strict=True))
            wave.jumps[key] = []
            through: Lanes = []
            unmatched = [lane for lane in lanes if chosen[lane] not in known]
            has_default = False
            for value, body_step in cases:
                has_default = has_default or value is None
                entering = unmatched if value is None else [lane for lane in lanes if chosen[lane] == value]
                through = sorted(through + entering)
                if through:
                    through = yield from body_step(wave, through)
            rest = [] if has_default else unmatched
            return sorted(through + wave.jumps.pop(key) + rest)

        return run

    # ---- loops ----------------------------------------------------------------------------------------------------

    def _do_for_statement(self, node: tree_sitter.Node) -> Execute:
        initializer, update = node.child_by_field_name("initializer"), node.child_by_field_name("update")
        body = node.child_by_field_name("body")
        if body is None:
            raise self.undecided("a loop without a body", node)
        with self.inner_scope():
            before: Execute = _nothing
            if initializer is not None:
                is_statement = initializer.type in ("declaration", "expression_statement")
                before = (
                    self.statement(initializer)
                    if is_statement
                    else self._simple(initializer, lambda: self.expression(initializer).ev)
                )
            test = self._condition(node.child_by_field_name("condition"))
            after = self._simple(update, lambda: self.expression(update).ev) if update is not None else _nothing
            return self._sequence([before, self._loop(test, body, after, node)])

    def _do_while_statement(self, node: tree_sitter.Node) -> Execute:
        body = node.child_by_field_name("body")
        if body is None:
            raise self.undecided("a loop without a body", node)
        with self.inner_scope():
            return self._loop(self._condition(node.child_by_field_name("condition")), body, _nothing, node)

    def _do_do_statement(self, node: tree_sitter.Node) -> Execute:
        body = node.child_by_field_name("body")
        if body is None:
            raise self.undecided("a loop without a body", node)
        with self.inner_scope():
            test = self._condition(node.child_by_field_name("condition"))
            return self._loop(test, body, _nothing, node, body_first=True)

    def _loop(
        self,
        test: Callable[[Wave, Lanes], Step],
        body_node: tree_sitter.Node,
        after: Execute,
        node: tree_sitter.Node,
        *,
        body_first: bool = False,
    ) -> Execute:
        line = self.line(node)
        left, again = self.new_key(), self.new_key()
        self.frame.breaks.append(left)
        self.frame.loops.append(again)
        with self.inner_scope():
            body = self.statement(body_node)
        self.frame.breaks.pop()
        self.frame.loops.pop()

        def run(wave: Wave, lanes: Lanes) -> Step:
            wave.jumps[left], wave.jumps[again] = [], []
            out: Lanes = []
            first = body_first
            while lanes:
                if not first:
                    going = yield from test(wave, lanes)
                    if len(going) < len(lanes):
                        kept = set(going)
                        out += [lane for lane in lanes if lane not in kept]
                        lanes = going
                        if not lanes:
                            break
                first = False
                wave.launch.tick(len(lanes), line)
                lanes = yield from body(wave, lanes)
                if wave.jumps[again]:
                    lanes = sorted(lanes + wave.jumps[again])
                    wave.jumps[again] = []
                if lanes:
                    lanes = yield from after(wave, lanes)
            out += wave.jumps.pop(left)
            del wave.jumps[again]
            out.sort()
            return out

        return run

    def _do_for_range_loop(self, node: tree_sitter.Node) -> Execute:
        held = node.child_by_field_name("right")
        array = self.expression(held) if held is not None else None
        body = node.child_by_field_name("body")
        if array is None or body is None or not isinstance(array.ctype, Array) or array.place is None:
            raise self.undecided("a loop over what is no array", node)
        address, of = array.place.address, array.ctype.of
        assert address is not None
        name, declarator = declared_name(node.child_by_field_name("declarator")), node.child_by_field_name("declarator")
        is_reference = declarator is not None and "reference" in declarator.type
        index = Slot(v.INT, self.new_slot())
        with self.inner_scope():
            element = Cell(of, _element_address(address, index, of.size), self.line(node))
            place: Place = element if is_reference else self.local(of, text_of(name))
            self.scope.names[text_of(name)] = place
            length = array.ctype.length or 0

            def test(wave: Wave, lanes: Lanes) -> Step:
                going = [lane for lane, at in zip(lanes, index.load(wave, lanes), strict=True) if at < length]
                if going and place is not element:
                    place.store(wave, going, element.load(wave, going))
                return going
                yield

            def after(wave: Wave, lanes: Lanes) -> Step:
                index.store(wave, lanes, [at + 1 for at in index.load(wave, lanes)])
                return lanes
                yield

            def before(wave: Wave, lanes: Lanes) -> Step:
                index.store(wave, lanes, [0] * len(lanes))
                return lanes
                yield

            return self._sequence([before, self._loop(test, body, after, node)])

    # ---- jumps ----------------------------------------------------------------------------------------------------

    def _do_break_statement(self, node: tree_sitter.Node) -> Execute:
        if not self.frame.breaks:
            raise self.undecided("a 'break' outside loops", node)
        return _jump(self.frame.breaks[-1])

    def _do_continue_statement(self, node: tree_sitter.Node) -> Execute:
        if not self.frame.loops:
            raise self.undecided("a 'continue' outside loops", node)
        return _jump(self.frame.loops[-1])

    def _do_return_statement(self, node: tree_sitter.Node) -> Execute:
        frame = self.frame
        inner = children(node)
        if not inner:
            return _leave(frame, _nothing)
        return _leave(frame, self._simple(node, lambda: self._returned(frame, inner[0], node)))

    def _returned(self, frame: Frame, value: tree_sitter.Node, node: tree_sitter.Node) -> Evaluate:
        if frame.ctype is v.VOID:
            return self.expression(value).ev
        if value.type == "initializer_list" and frame.ctype is not None:
            expr = self.braced(frame.ctype, value)
        else:
            expr = self.expression(value)
        if frame.is_reference:
            if expr.place is None or expr.place.address is None or frame.place is None:
                raise self.undecided("a reference to what is in no memory is returned", node)
            return self._assigned(frame.place, Expr(frame.place.ctype, expr.place.address)).ev
        expr = self.decayed(expr, self.line(node))
        if frame.ctype is None:
            frame.ctype = expr.ctype
        if expr.ctype is v.VOID:
            return expr.ev
        if frame.place is None:
            frame.place = self.local(frame.ctype, "a result")
        return self._assigned(frame.place, self.assignable(expr, frame.ctype, node)).ev

    # ---- kernels --------------------------------------------------------------------------------------------------

    def kernel(self, function: Function, template: dict[str, Any]) -> Code:
        """Compile a kernel, with values for its template parameters."""
        body = function.node.child_by_field_name("body")
        if body is None:
            raise Undecided("the kernel has no body", function.first_line)
        self.unit = function.unit
        self.called_at = function.first_line
        self.scope = Scope()
        self.scope.names.update(template)
        self.frame = Frame(v.VOID, is_kernel=True)
        self.frame.addressed = addressed_names(body)
        self.used[function.node.id] = function
        if function.template is not None:
            self.bind_template(function.template, [], function.node)
        parameters: list[tuple[str, CType, int]] = []
        copies: list[Callable[[Wave, Lanes], None]] = []
        for parameter in function.parameters:
            name = text_of(declared_name(parameter.child_by_field_name("declarator")))
            ctype, _ = self.parameter_type(parameter, None)
            slot = Slot(ctype, self.new_slot())
            parameters.append((name, ctype, slot.slot))
            if isinstance(ctype, Record) or name in self.frame.addressed:
                place = self.local(ctype, name, in_memory=True)
                copies.append(_copy(slot, place))
                self.scope.names[name] = place
            else:
                self.scope.names[name] = slot
        run = self.statement(body)

        def start(wave: Wave, lanes: Lanes) -> Step:
            for one in copies:
                one(wave, lanes)
            left = yield from run(wave, lanes)
            wave.exited.update(left)
            return left

        return self.code(start, parameters)


def _declaration_in(node: tree_sitter.Node) -> tree_sitter.Node | None:
    """`T<8> x = ...;`, which the grammar sometimes reads as comparisons, read again on its own line."""
    start = b"\n" * node.start_point[0] + b"void f() {"
    root = parse(start + (node.text or b"") + b"}", "cuda").root_node
    return next(walk(root, "declaration"), None)


def _copy(slot: Slot, place: Place) -> Callable[[Wave, Lanes], None]:
    return lambda wave, lanes: place.store(wave, lanes, slot.load(wave, lanes))


def _element_address(address: Evaluate, index: Slot, size: int) -> Evaluate:
    def run(wave: Wave, lanes: Lanes) -> list[Any]:
        pairs = zip(address(wave, lanes), index.load(wave, lanes), strict=True)
        return [None if base is None else (base[0], base[1] + at * size) for base, at in pairs]

    return run


def _branch(test: Callable[[Wave, Lanes], Step], yes: Execute, no: Execute) -> Execute:
    def run(wave: Wave, lanes: Lanes) -> Step:
        held = yield from test(wave, lanes)
        if len(held) == len(lanes):
            return (yield from yes(wave, lanes))
        if not held:
            return (yield from no(wave, lanes))
        kept = set(held)
        rest = [lane for lane in lanes if lane not in kept]
        left = yield from yes(wave, held)
        right = yield from no(wave, rest)
        return sorted(left + right)

    return run


def _jump(key: int) -> Execute:
    def run(wave: Wave, lanes: Lanes) -> Step:
        wave.jumps[key] += lanes
        return []
        yield

    return run


def _leave(frame: Frame, before: Execute) -> Execute:
    def run(wave: Wave, lanes: Lanes) -> Step:
        yield from before(wave, lanes)
        if frame.is_kernel:
            wave.exited.update(lanes)
        return []

    return run
