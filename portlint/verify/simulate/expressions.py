"""Expressions, compiled to functions of a wave and its executing lanes."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from portlint.verify.simulate import values as v
from portlint.verify.simulate.compiler import (
    UNKNOWN,
    Cell,
    Compiler,
    Expr,
    GroupType,
    Instance,
    Lambda,
    LambdaType,
    Place,
)
from portlint.verify.simulate.constants import trait
from portlint.verify.simulate.faults import Fault, Undecided
from portlint.verify.simulate.machine import Evaluate, Wave, pointee
from portlint.verify.simulate.pairs import pair_operator
from portlint.verify.simulate.program import children, text_of
from portlint.verify.simulate.values import Array, CType, Lanes, Pointer, Record, Scalar, Values

if TYPE_CHECKING:
    import tree_sitter

    from portlint.verify.simulate.memory import Address

_GRID = {"threadIdx": "thread", "hipThreadIdx": "thread", "blockIdx": "block", "blockDim": "size", "gridDim": "grid"}
_AXES = {"x": 0, "y": 1, "z": 2}
_INDEX = re.compile(r"hip(ThreadIdx|BlockIdx|BlockDim|GridDim)_([xyz])")
_CASTS = frozenset(("static_cast", "reinterpret_cast", "const_cast", "bit_cast"))
_FAKE_BASE = 1 << 20
"""what a pointer comes to as a number, beside its offset: aligned, and not null"""


class Expressions(Compiler):
    """The expressions of C++."""

    def expression(self, node: tree_sitter.Node) -> Expr:
        """Compile an expression."""
        method: Callable[[tree_sitter.Node], Expr] | None = getattr(self, f"_{node.type}", None)
        if method is None:
            raise self.undecided(f"'{text_of(node)[:40]}' ({node.type})", node)
        return method(node)

    def call(self, node: tree_sitter.Node) -> Expr:
        """Compile a call."""
        raise NotImplementedError

    def operator_call(self, name: str, operands: list[Expr], node: tree_sitter.Node) -> Expr | None:
        """A call of an operator that the program defines; None where it defines none that fits."""
        raise NotImplementedError

    def cast_operator(self, expr: Expr, ctype: CType, line: int) -> Expr | None:
        """A call of `operator T()`; None for a struct that has none for that type."""
        raise NotImplementedError

    def construct(self, ctype: CType, arguments: list[Expr], node: tree_sitter.Node) -> Expr:
        """A value of a type from arguments."""
        raise NotImplementedError

    # ---- literals and names ---------------------------------------------------------------------------------------

    def _number_literal(self, node: tree_sitter.Node) -> Expr:
        return self.number(node)

    def _true(self, node: tree_sitter.Node) -> Expr:
        del node
        return self.const(1, v.BOOL)

    def _false(self, node: tree_sitter.Node) -> Expr:
        del node
        return self.const(0, v.BOOL)

    def _null(self, node: tree_sitter.Node) -> Expr:
        del node
        return self.const((None, 0), Pointer(None))

    def _char_literal(self, node: tree_sitter.Node) -> Expr:
        text = text_of(node)[1:-1]
        if len(text) != 1 and text not in (r"\0", r"\n"):
            raise self.undecided("a character", node)
        return self.const({r"\0": 0, r"\n": 10}.get(text, ord(text[0])), v.CHAR)

    def _string_literal(self, node: tree_sitter.Node) -> Expr:
        del node
        return self.const((None, 0), Pointer(v.CHAR))

    def _parenthesized_expression(self, node: tree_sitter.Node) -> Expr:
        return self.expression(children(node)[0])

    def _condition_clause(self, node: tree_sitter.Node) -> Expr:
        value = node.child_by_field_name("value")
        if node.child_by_field_name("initializer") is not None or value is None or value.type == "declaration":
            raise self.undecided("a declaration in a condition", node)
        return self.expression(value)

    def _identifier(self, node: tree_sitter.Node) -> Expr:
        return self._named(text_of(node), node)

    _field_identifier = _type_identifier = _namespace_identifier = _identifier

    def _named(self, name: str, node: tree_sitter.Node) -> Expr:
        found = self.scope.find(name)
        if isinstance(found, Expr):
            return found
        if isinstance(found, Place):
            return self.placed(found)
        if isinstance(found, Lambda):
            return Expr(LambdaType(found), lambda _, lanes: [0] * len(lanes))
        member = self._own_member(name, node)
        if member is not None:
            return member
        if found is None:
            variable = self.variable(name, node)
            if variable is not None:
                return variable
            builtin = self._builtin_name(name)
            if builtin is not None:
                return builtin
        raise self.undecided(f"'{name}' is defined elsewhere", node)

    def _own_member(self, name: str, node: tree_sitter.Node) -> Expr | None:
        this = self.scope.find("this place")
        if isinstance(this, Place) and isinstance(this.ctype, Record) and name in this.ctype.fields:
            return self.field(self.placed(this), name, node)
        return None

    def _this(self, node: tree_sitter.Node) -> Expr:
        place = self.scope.find("this place")
        if not isinstance(place, Place) or place.address is None:
            raise self.undecided("'this'", node)
        return Expr(Pointer(place.ctype), place.address)

    def _builtin_name(self, name: str) -> Expr | None:
        if name == "warpSize":
            self.width_aware = True
            width = self.machine.width
            return Expr(v.INT, lambda _, lanes: [width] * len(lanes))
        if match := _INDEX.fullmatch(name):
            return self._grid_value(_GRID[match[1][0].lower() + match[1][1:]], match[2])
        if name in _GRID:
            axes = [self._grid_value(_GRID[name], axis).ev for axis in "xyz"]
            return Expr(v.DIM3, lambda wave, lanes: list(zip(*(one(wave, lanes) for one in axes), strict=True)))
        return None

    def _grid_value(self, kind: str, axis: str) -> Expr:
        index = _AXES[axis]

        def thread(wave: Wave, lanes: Lanes) -> Values:
            if index == 0:
                across = wave.launch.dimensions.block[0]
                return [(wave.first + lane) % across for lane in lanes]
            return [wave.position(lane)[index] for lane in lanes]

        def block(wave: Wave, lanes: Lanes) -> Values:
            return [wave.block.index[index]] * len(lanes)

        def size(wave: Wave, lanes: Lanes) -> Values:
            return [wave.launch.dimensions.block[index]] * len(lanes)

        def grid(wave: Wave, lanes: Lanes) -> Values:
            return [wave.launch.dimensions.grid[index]] * len(lanes)

        return Expr(v.UINT, {"thread": thread, "block": block, "size": size, "grid": grid}[kind])

    def _qualified_identifier(self, node: tree_sitter.Node) -> Expr:
        scope, name = node.child_by_field_name("scope"), node.child_by_field_name("name")
        if name is None:
            raise self.undecided(f"'{text_of(node)}'", node)
        owner = self.owner(scope)
        while owner is not None and name.type == "qualified_identifier":
            inner = self.member_type(owner, text_of(name.child_by_field_name("scope")))
            owner = inner if isinstance(inner, Record) else None
            name = name.child_by_field_name("name") or name
        if owner is not None and isinstance(owner.declared, Instance):
            found = owner.declared.scope.names.get(text_of(name))
            if isinstance(found, Expr):
                return found
            raise self.undecided(f"'{text_of(node)}'", node)
        if scope is not None and scope.type == "template_type":
            known = self._trait(scope, "") if text_of(name) == "value" else None
            if known is None:
                raise self.undecided(f"'{text_of(node)}' is defined elsewhere", node)
            return known
        return self.expression(name)

    def _template_function(self, node: tree_sitter.Node) -> Expr:
        """`is_same_v<A, B>`, or a constant that is a template."""
        known = self._trait(node, "_v")
        if known is not None:
            return known
        name, listed = text_of(node.child_by_field_name("name")), node.child_by_field_name("arguments")
        return self.variable_template(name, children(listed) if listed is not None else [], node)

    def _trait(self, node: tree_sitter.Node, ending: str) -> Expr | None:
        name, listed = text_of(node.child_by_field_name("name")), node.child_by_field_name("arguments")
        if not name.endswith(ending) or name in self.program.records:
            return None
        said = trait(self, name.removesuffix(ending), children(listed) if listed is not None else [], node)
        return None if said is None else self.const(int(said), v.BOOL)

    # ---- conversions ----------------------------------------------------------------------------------------------

    def converted(self, expr: Expr, ctype: CType, line: int) -> Expr:
        """An expression as another type, as an assignment converts it."""
        source = expr.ctype
        if source is ctype:
            return expr
        if isinstance(source, Scalar) and isinstance(ctype, Scalar):
            return self._between_scalars(expr, source, ctype)
        if isinstance(source, Array) and isinstance(ctype, Pointer):
            return Expr(ctype, self.decayed(expr, line).ev)
        if isinstance(ctype, Pointer):
            if isinstance(source, Pointer):
                return Expr(ctype, expr.ev, expr.const)
            if isinstance(source, Scalar) and expr.const == 0:
                return self.const((None, 0), ctype)
        cast = self.cast_operator(expr, ctype, line)
        if cast is not None:
            return cast
        if isinstance(source, Pointer) and ctype is v.BOOL:
            return Expr(ctype, v_lift(expr.ev, lambda address: int(address[0] is not None)))
        both = isinstance(source, GroupType) and isinstance(ctype, GroupType)
        if both or v.same(source, ctype):
            return expr
        if isinstance(source, LambdaType) and isinstance(ctype, LambdaType) and source.function is ctype.function:
            return expr
        if isinstance(ctype, Record) and isinstance(source, Record) and self._is_derived(source, ctype):
            return self._as_base(expr, ctype)
        raise Undecided(f"'{source}' is converted to '{ctype}'", line)

    @staticmethod
    def _between_scalars(expr: Expr, source: Scalar, ctype: Scalar) -> Expr:
        convert = v.converter(source, ctype)
        if expr.const is not UNKNOWN:
            value = convert([expr.const])[0]
            return Expr(ctype, lambda _, lanes: [value] * len(lanes), value)
        ev = expr.ev
        return Expr(ctype, lambda wave, lanes: convert(ev(wave, lanes)))

    @staticmethod
    def _is_derived(source: Record, base: Record) -> bool:
        declared = source.declared
        return isinstance(declared, Instance) and len(declared.bases) == 1 and declared.bases[0] is base

    @staticmethod
    def _as_base(expr: Expr, base: Record) -> Expr:
        ev, count = expr.ev, len(base.leaves)
        return Expr(base, lambda wave, lanes: [None if one is None else one[:count] for one in ev(wave, lanes)])

    def decayed(self, expr: Expr, line: int) -> Expr:
        """An array as a pointer to its first element; anything else as it is."""
        if not isinstance(expr.ctype, Array):
            return expr
        if expr.place is None or expr.place.address is None:
            raise Undecided("an array that is in no memory", line)
        return Expr(Pointer(expr.ctype.of), expr.place.address)

    def truth(self, expr: Expr, line: int) -> Evaluate:
        """An expression as 0 or 1."""
        return self.converted(self.decayed(expr, line), v.BOOL, line).ev

    def scalar(self, expr: Expr, node: tree_sitter.Node) -> Expr:
        """An expression that has to be a number."""
        if not isinstance(expr.ctype, Scalar):
            raise self.undecided(f"'{text_of(node)[:40]}' is no number", node)
        return expr

    # ---- operators ------------------------------------------------------------------------------------------------

    def _binary_expression(self, node: tree_sitter.Node) -> Expr:
        symbol = text_of(node.child_by_field_name("operator"))
        symbol = v.ALTERNATIVES.get(symbol, symbol)
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            raise self.undecided("an operator without operands", node)
        if symbol in ("&&", "||"):
            return self._short_circuit(symbol, left, right, node)
        return self.binary(symbol, self.expression(left), self.expression(right), node)

    def binary(self, symbol: str, left: Expr, right: Expr, node: tree_sitter.Node) -> Expr:
        """A binary operator between two values."""
        left, right = self.decayed(left, self.line(node)), self.decayed(right, self.line(node))
        if isinstance(left.ctype, Pointer) or isinstance(right.ctype, Pointer):
            return self._pointer_arithmetic(symbol, left, right, node)
        if not isinstance(left.ctype, Scalar) or not isinstance(right.ctype, Scalar):
            called = pair_operator(symbol, left, right)
            called = called or self.operator_call(f"operator{symbol}", [left, right], node)
            if called is None:
                raise self.undecided(f"'{text_of(node)[:40]}' of '{left.ctype}' and '{right.ctype}'", node)
            return called
        is_shift = symbol in ("<<", ">>")
        ctype = v.promoted(left.ctype) if is_shift else v.common(left.ctype, right.ctype)
        if is_shift:
            left, right = self.converted(left, ctype, 0), self.converted(right, v.LONG, 0)
        else:
            left, right = self.converted(left, ctype, 0), self.converted(right, ctype, 0)
        operation = v.operation(symbol, ctype)
        if operation is None:
            raise self.undecided(f"'{symbol}' of '{ctype}'", node)
        result = v.BOOL if symbol in v.COMPARISONS else ctype
        return self.applied(result, operation, left, right)

    @staticmethod
    def applied(ctype: CType, operation: Callable[..., Values], *operands: Expr) -> Expr:
        """An operation on the values of operands."""
        if all(one.const is not UNKNOWN for one in operands):
            value = operation(*([one.const] for one in operands))[0]
            return Expr(ctype, lambda _, lanes: [value] * len(lanes), UNKNOWN if value is None else value)
        if len(operands) == 2:
            first, second = operands[0].ev, operands[1].ev
            return Expr(ctype, lambda wave, lanes: operation(first(wave, lanes), second(wave, lanes)))
        evs = [one.ev for one in operands]
        return Expr(ctype, lambda wave, lanes: operation(*(one(wave, lanes) for one in evs)))

    def _pointer_arithmetic(self, symbol: str, left: Expr, right: Expr, node: tree_sitter.Node) -> Expr:
        if isinstance(left.ctype, Pointer) and isinstance(right.ctype, Pointer):
            if symbol == "-":
                size = pointee(left.ctype, self.line(node)).size
                return self.applied(v.LONG, v.lift(lambda a, b: (a[1] - b[1]) // size), left, right)
            if symbol in ("==", "!="):
                wanted = symbol == "=="
                equal = v.lift(lambda a, b: int((a[0] is b[0] and a[1] == b[1]) is wanted))
                return self.applied(v.BOOL, equal, left, right)
            if symbol in v.COMPARISONS:
                compare = v.COMPARISONS[symbol]
                return self.applied(v.BOOL, v.lift(lambda a, b: int(compare(a[1], b[1]))), left, right)
        elif isinstance(left.ctype, Pointer) and symbol in ("+", "-") and isinstance(right.ctype, Scalar):
            return self.moved(left, right, self.line(node), -1 if symbol == "-" else 1)
        elif isinstance(right.ctype, Pointer) and symbol == "+" and isinstance(left.ctype, Scalar):
            return self.moved(right, left, self.line(node))
        null = self.const((None, 0), Pointer(None))
        if isinstance(left.ctype, Pointer) and right.const == 0 and symbol in ("==", "!="):
            return self._pointer_arithmetic(symbol, left, null, node)
        if isinstance(right.ctype, Pointer) and left.const == 0 and symbol in ("==", "!="):
            return self._pointer_arithmetic(symbol, null, right, node)
        raise self.undecided(f"'{text_of(node)[:40]}'", node)

    def moved(self, pointer: Expr, by: Expr, line: int, sign: int = 1) -> Expr:
        """A pointer some elements further."""
        assert isinstance(pointer.ctype, Pointer)
        size = pointee(pointer.ctype, line).size * sign
        base, index = pointer.ev, self.converted(by, v.LONG, line).ev

        def ev(wave: Wave, lanes: Lanes) -> list[Address | None]:
            return [
                None if at is None or one is None else (at[0], at[1] + one * size)
                for at, one in zip(base(wave, lanes), index(wave, lanes), strict=True)
            ]

        return Expr(pointer.ctype, ev)

    def _short_circuit(
        self, symbol: str, left_node: tree_sitter.Node, right_node: tree_sitter.Node, node: tree_sitter.Node
    ) -> Expr:
        line = self.line(node)
        left = self.expression(left_node)
        if left.const is not UNKNOWN and bool(left.const) is (symbol == "||"):
            return self.const(int(symbol == "||"), v.BOOL)
        self.conditional += 1
        right = self.expression(right_node)
        self.conditional -= 1
        first, second = self.truth(left, line), self.truth(right, line)
        if left.const is not UNKNOWN and right.const is not UNKNOWN:
            return self.const(int(bool(right.const)), v.BOOL)
        goes_on = int(symbol == "&&")

        def ev(wave: Wave, lanes: Lanes) -> Values:
            held = first(wave, lanes)
            rest = [lane for lane, one in zip(lanes, held, strict=True) if one == goes_on]
            if not rest:
                return held
            further = iter(second(wave, rest))
            return [next(further) if one == goes_on else one for one in held]

        return Expr(v.BOOL, ev)

    def _unary_expression(self, node: tree_sitter.Node) -> Expr:
        symbol = text_of(node.child_by_field_name("operator"))
        symbol = v.ALTERNATIVES.get(symbol, symbol)
        operand = self.decayed(self.expression(node.child_by_field_name("argument") or node), self.line(node))
        if symbol == "!":
            truth = Expr(v.BOOL, self.truth(operand, self.line(node)), operand.const)
            if operand.const is not UNKNOWN and isinstance(operand.ctype, Scalar):
                return self.const(int(not operand.const), v.BOOL)
            return self.applied(v.BOOL, v.lift(lambda one: 1 - one), Expr(v.BOOL, truth.ev))
        if not isinstance(operand.ctype, Scalar):
            called = self.operator_call(f"operator{symbol}", [operand], node)
            if called is None:
                raise self.undecided(f"'{text_of(node)[:40]}'", node)
            return called
        ctype = v.promoted(operand.ctype)
        operand = self.converted(operand, ctype, 0)
        match symbol:
            case "-":
                return self.applied(ctype, v.lift(lambda one: -one if ctype.is_float else v.wrap(-one, ctype)), operand)
            case "~" if not ctype.is_float:
                return self.applied(ctype, v.lift(lambda one: v.wrap(~one, ctype)), operand)
            case "+":
                return operand
        raise self.undecided(f"'{text_of(node)[:40]}'", node)

    def _pointer_expression(self, node: tree_sitter.Node) -> Expr:
        inner = node.child_by_field_name("argument")
        if inner is None:
            raise self.undecided("a pointer to nothing", node)
        operand = self.expression(inner)
        if text_of(node).startswith("&"):
            if operand.place is None or operand.place.address is None:
                raise self.undecided(f"the address of '{text_of(inner)[:40]}'", node)
            return Expr(Pointer(operand.ctype), operand.place.address)
        return self.followed(self.decayed(operand, self.line(node)), node)

    def followed(self, pointer: Expr, node: tree_sitter.Node) -> Expr:
        """What a pointer points to."""
        if not isinstance(pointer.ctype, Pointer):
            raise self.undecided(f"'{text_of(node)[:40]}' follows what is no pointer", node)
        line = self.line(node)
        return self.placed(Cell(pointee(pointer.ctype, line), pointer.ev, line))

    def _subscript_expression(self, node: tree_sitter.Node) -> Expr:
        array = node.child_by_field_name("argument")
        listed = node.child_by_field_name("indices")
        indices = children(listed) if listed is not None else []
        if array is None or len(indices) != 1:
            raise self.undecided(f"'{text_of(node)[:40]}'", node)
        held, index = self.expression(array), self.expression(indices[0])
        line = self.line(node)
        if isinstance(held.ctype, Array) and held.ctype.length is not None and isinstance(index.ctype, Scalar):
            return self._element(held, held.ctype, index, node)
        pointer = self.decayed(held, line)
        if isinstance(pointer.ctype, Pointer) and isinstance(index.ctype, Scalar):
            return self.followed(self.moved(pointer, index, line), node)
        called = self.operator_call("operator[]", [held, index], node)
        if called is None:
            raise self.undecided(f"'{text_of(node)[:40]}'", node)
        return called

    def _element(self, held: Expr, array: Array, index: Expr, node: tree_sitter.Node) -> Expr:
        """An element of an array whose length is known, which bounds the index of an array of arrays as well."""
        pointer = self.decayed(held, self.line(node))
        line, name = self.line(node), text_of(node.child_by_field_name("argument"))
        assert isinstance(pointer.ctype, Pointer)
        length, size = array.length or 0, array.of.size
        base, at = pointer.ev, self.converted(index, v.LONG, line).ev

        def address(wave: Wave, lanes: Lanes) -> list[Address | None]:
            found: list[Address | None] = []
            for start, one in zip(base(wave, lanes), at(wave, lanes), strict=True):
                if start is None or one is None:
                    found.append(None)
                    continue
                if not 0 <= one < length:
                    raise Fault("bounds", f"element {one} of '{name}' of {length} elements is out of bounds", line)
                found.append((start[0], start[1] + one * size))
            return found

        if isinstance(array.of, Array):
            # `&a[i][n]`, one past the end of a row, is rare; a wrong row is not
            return self.placed(Cell(array.of, address, line))
        ev = Cell(array.of, address, line)
        free = Expr(Pointer(array.of), self.moved(pointer, index, line).ev)
        return self.placed(_Element(ev, free.ev, line))

    def _conditional_expression(self, node: tree_sitter.Node) -> Expr:
        line = self.line(node)
        parts = [node.child_by_field_name(one) for one in ("condition", "consequence", "alternative")]
        if any(one is None for one in parts):
            raise self.undecided("a choice without branches", node)
        test = self.expression(parts[0])  # type: ignore[arg-type]
        if test.const is not UNKNOWN and isinstance(test.ctype, Scalar):
            return self.expression(parts[1 if test.const else 2])  # type: ignore[arg-type]
        self.conditional += 1
        yes, no = self.expression(parts[1]), self.expression(parts[2])  # type: ignore[arg-type]
        self.conditional -= 1
        yes, no = self.decayed(yes, line), self.decayed(no, line)
        ctype: CType
        if yes.ctype is no.ctype:
            ctype = yes.ctype
        elif isinstance(yes.ctype, Scalar) and isinstance(no.ctype, Scalar):
            ctype = v.common(yes.ctype, no.ctype)
        else:
            is_null = isinstance(yes.ctype, Scalar) or (isinstance(yes.ctype, Pointer) and yes.ctype.to is None)
            ctype = no.ctype if is_null else yes.ctype
        first, second = self.converted(yes, ctype, line).ev, self.converted(no, ctype, line).ev
        condition = self.truth(test, line)

        def ev(wave: Wave, lanes: Lanes) -> Values:
            held = condition(wave, lanes)
            ones = [lane for lane, one in zip(lanes, held, strict=True) if one]
            if len(ones) == len(lanes):
                return first(wave, lanes)
            others = [lane for lane, one in zip(lanes, held, strict=True) if one == 0]
            if len(others) == len(lanes):
                return second(wave, lanes)
            left = iter(first(wave, ones) if ones else ())
            right = iter(second(wave, others) if others else ())
            return [None if one is None else next(left) if one else next(right) for one in held]

        return Expr(ctype, ev)

    def _comma_expression(self, node: tree_sitter.Node) -> Expr:
        left, right = (self.expression(one) for one in children(node)[:2])
        first, second = left.ev, right.ev

        def ev(wave: Wave, lanes: Lanes) -> Values:
            first(wave, lanes)
            return second(wave, lanes)

        return Expr(right.ctype, ev)

    # ---- assignment -----------------------------------------------------------------------------------------------

    def _assignment_expression(self, node: tree_sitter.Node) -> Expr:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        symbol = text_of(node.child_by_field_name("operator"))
        if left is None or right is None:
            raise self.undecided("an assignment without sides", node)
        target = self.expression(left)
        if target.place is None:
            raise self.undecided(f"'{text_of(left)[:40]}' is assigned to", node)
        if symbol == "=":
            if right.type == "initializer_list":
                value = self.braced(target.ctype, right)
            else:
                value = self.assignable(self.expression(right), target.ctype, node)
            return self._assigned(target.place, value)
        return self.compound(symbol[:-1], target, self.expression(right), node)

    def assignable(self, value: Expr, ctype: CType, node: tree_sitter.Node) -> Expr:
        """A value as the type of what it is assigned to, constructors considered."""
        if isinstance(ctype, Record) and not v.same(value.ctype, ctype) and not isinstance(value.ctype, Record):
            return self.construct(ctype, [value], node)
        return self.converted(value, ctype, self.line(node))

    @staticmethod
    def _assigned(place: Place, value: Expr) -> Expr:
        ev = value.ev

        def run(wave: Wave, lanes: Lanes) -> Values:
            values = ev(wave, lanes)
            place.store(wave, lanes, values)
            return values

        return Expr(place.ctype, run)

    def compound(self, symbol: str, target: Expr, value: Expr, node: tree_sitter.Node) -> Expr:
        """`a += b`, where `a` is looked up once."""
        place = target.place
        assert place is not None
        held: list[Values] = [[]]
        old = Expr(place.ctype, lambda _, __: held[-1])
        if not isinstance(place.ctype, Scalar | Pointer):
            called = self.operator_call(f"operator{symbol}=", [target, value], node)
            if called is None:
                result = self.converted(self.binary(symbol, target, value, node), place.ctype, self.line(node))
                return self._assigned(place, result)
            return called
        given: list[Values] = [[]]
        ready = Expr(value.ctype, lambda _, __: given[-1], value.const)
        result = self.converted(self.binary(symbol, old, ready, node), place.ctype, self.line(node))
        second, combine = value.ev, result.ev

        def run(wave: Wave, lanes: Lanes) -> Values:
            values = second(wave, lanes)

            def change(before: Values) -> Values:
                held.append(before)
                given.append(values)
                try:
                    return combine(wave, lanes)
                finally:
                    held.pop()
                    given.pop()

            return place.update(wave, lanes, change)[1]

        return Expr(place.ctype, run)

    def _update_expression(self, node: tree_sitter.Node) -> Expr:
        inner = node.child_by_field_name("argument")
        target = self.expression(inner) if inner is not None else None
        if target is None or target.place is None:
            raise self.undecided(f"'{text_of(node)[:40]}'", node)
        text = text_of(node)
        symbol = "+" if "++" in text else "-"
        change = self.compound(symbol, target, self.const(1, v.INT), node)
        if text.startswith(("++", "--")):
            return change
        place, run = target.place, change.ev
        if isinstance(place, Cell):
            step = 1 if symbol == "+" else -1
            ctype = place.ctype
            size = pointee(ctype, self.line(node)).size if isinstance(ctype, Pointer) else 1

            def next_one(before: Values) -> Values:
                if isinstance(ctype, Pointer):
                    return [None if one is None else (one[0], one[1] + step * size) for one in before]
                assert isinstance(ctype, Scalar)
                return [None if one is None else v.convert_one(one + step, v.LONG, ctype) for one in before]

            return Expr(ctype, lambda wave, lanes: place.update(wave, lanes, next_one)[0])

        def after(wave: Wave, lanes: Lanes) -> Values:
            before = place.load(wave, lanes)
            run(wave, lanes)
            return before

        return Expr(place.ctype, after)

    # ---- casts, sizes ---------------------------------------------------------------------------------------------

    def cast(self, expr: Expr, ctype: CType, node: tree_sitter.Node) -> Expr:
        """An explicit cast."""
        line = self.line(node)
        expr = self.decayed(expr, line)
        if ctype is v.VOID:
            return Expr(ctype, expr.ev)
        if isinstance(ctype, Pointer) and isinstance(expr.ctype, Pointer):
            return Expr(ctype, expr.ev, expr.const)
        if isinstance(expr.ctype, Pointer) and isinstance(ctype, Scalar) and ctype.bits == 64:
            return Expr(ctype, v_lift(expr.ev, lambda one: 0 if one[0] is None else _FAKE_BASE + one[1]))
        return self.assignable(expr, ctype, node)

    def _cast_expression(self, node: tree_sitter.Node) -> Expr:
        named, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if value is None:
            raise self.undecided("a cast of nothing", node)
        return self.cast(self.expression(value), self.known_type(named), node)

    def _sizeof_expression(self, node: tree_sitter.Node) -> Expr:
        named, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if named is not None:
            ctype = self.known_type(named)
        else:
            inner = value
            while inner is not None and inner.type == "parenthesized_expression":
                inner = children(inner)[0]
            if inner is None:
                raise self.undecided("the size of nothing", node)
            found = self.scope.find(text_of(inner)) if inner.type == "identifier" else None
            if isinstance(found, CType):
                ctype = found
            elif found is None and inner.type == "identifier" and self._names_type(text_of(inner)):
                ctype = self.named_type(text_of(inner), inner)
            else:
                ctype = self.expression(inner).ctype
        if not ctype.size:
            raise self.undecided("the size of what has none", node)
        return self.const(ctype.size, v.ULONG)

    def _names_type(self, name: str) -> bool:
        return name in v.NAMED or name in self.program.records or name in self.program.aliases

    # ---- structs --------------------------------------------------------------------------------------------------

    def _field_expression(self, node: tree_sitter.Node) -> Expr:
        argument, name = node.child_by_field_name("argument"), node.child_by_field_name("field")
        if argument is None or name is None:
            raise self.undecided(f"'{text_of(node)[:40]}'", node)
        if argument.type == "identifier" and self.scope.find(text_of(argument)) is None:
            kind = _GRID.get(text_of(argument))
            if kind is not None and text_of(name) in _AXES:
                return self._grid_value(kind, text_of(name))
        held = self.expression(argument)
        if text_of(node.child_by_field_name("operator")) == "->":
            held = self.followed(self.decayed(held, self.line(node)), node)
        return self.field(held, text_of(name), node)

    def field(self, held: Expr, name: str, node: tree_sitter.Node) -> Expr:
        """A field of a struct."""
        record = held.ctype
        if not isinstance(record, Record):
            raise self.undecided(f"'{text_of(node)[:40]}'", node)
        if name not in record.fields:
            found = record.declared.scope.names.get(name) if isinstance(record.declared, Instance) else None
            if isinstance(found, Expr):
                return found
            raise self.undecided(f"'{record}' has no '{name}' here", node)
        at, ctype = record.fields[name]
        place = held.place
        if place is not None and place.address is not None:
            address = place.address

            def moved(wave: Wave, lanes: Lanes) -> list[Address | None]:
                return [None if one is None else (one[0], one[1] + at) for one in address(wave, lanes)]

            return self.placed(Cell(ctype, moved, self.line(node)))
        if record.is_union:
            raise self.undecided("a member of a union that is in no memory", node)
        first, last = record.leaf_range(name)
        ev = held.ev
        if isinstance(ctype, Array):
            raise self.undecided("an array in a struct that is in no memory", node)
        if isinstance(ctype, Record):
            return Expr(ctype, v_lift(ev, lambda one: one[first:last]))
        return Expr(ctype, v_lift(ev, lambda one: one[first]))

    def braced(self, ctype: CType, node: tree_sitter.Node) -> Expr:
        """`{a, b}` as a type."""
        inner = children(node)
        if not isinstance(ctype, Record):
            if len(inner) > 1:
                raise self.undecided(f"'{text_of(node)[:40]}'", node)
            return self.assignable(self.expression(inner[0]), ctype, node) if inner else self.zero(ctype, node)
        if isinstance(ctype.declared, Instance) and self.methods(ctype, ctype.declared.declaration.name):
            return self.construct(ctype, [self.expression(one) for one in inner], node)
        if ctype.is_union and not inner:
            return self.zero(ctype, node)
        cells = {(at, leaf): expr for at, leaf, expr in self.initialised(node, ctype, self.line(node))}
        if not cells.keys() >= set(ctype.leaves):
            raise self.undecided("a union is initialised", node)
        evs = [cells[leaf].ev for leaf in ctype.leaves]
        return Expr(ctype, lambda wave, lanes: list(zip(*(one(wave, lanes) for one in evs), strict=True)))

    def zero(self, ctype: CType, node: tree_sitter.Node) -> Expr:
        """The value that `T{}` has."""
        if isinstance(ctype, Scalar):
            return self.const(0.0 if ctype.is_float else 0, ctype)
        if isinstance(ctype, Pointer):
            return self.const((None, 0), ctype)
        if isinstance(ctype, Record):
            return self.const(tuple(_zero_of(leaf) for _, leaf in ctype.leaves), ctype)
        raise self.undecided(f"nothing as '{ctype}'", node)

    def initialised(self, node: tree_sitter.Node | None, ctype: CType, line: int) -> list[tuple[int, CType, Expr]]:
        """What an initialiser puts where, leaf by leaf; what it leaves out is zero."""
        found: list[tuple[int, CType, Expr]] = []
        parts: list[tuple[int, CType]] = []
        if isinstance(ctype, Array):
            parts = [(index * ctype.of.size, ctype.of) for index in range(ctype.length or 0)]
        elif isinstance(ctype, Record):
            parts = list(ctype.fields.values())[: 1 if ctype.is_union else None]
        items = children(node) if node is not None and node.type == "initializer_list" else []
        for index, (at, part) in enumerate(parts):
            item = items[index] if index < len(items) else None
            if isinstance(part, Array) or (
                isinstance(part, Record) and item is not None and item.type == "initializer_list"
            ):
                found += [(at + inner, leaf, expr) for inner, leaf, expr in self.initialised(item, part, line)]
            elif isinstance(part, Record):
                value = (
                    self.expression(item)
                    if item is not None
                    else self.const(tuple(_zero_of(leaf) for _, leaf in part.leaves), part)
                )
                value = self.converted(value, part, line)
                for place, (inner, leaf) in enumerate(part.leaves):
                    taken = v_lift(value.ev, itemgetter(place))
                    found.append((at + inner, leaf, Expr(leaf, taken)))
            elif item is None:
                found.append((at, part, self.const(_zero_of(part), part)))
            elif item.type == "initializer_list":
                found.append((at, part, self.braced(part, item)))
            else:
                found.append((at, part, self.converted(self.decayed(self.expression(item), line), part, line)))
        if not parts and node is not None:
            found.append((0, ctype, self.converted(self.expression(node), ctype, line)))
        return found

    def _compound_literal_expression(self, node: tree_sitter.Node) -> Expr:
        ctype = self.known_type(node.child_by_field_name("type"))
        value = node.child_by_field_name("value")
        return self.braced(ctype, value) if value is not None else self.zero(ctype, node)

    def _lambda_expression(self, node: tree_sitter.Node) -> Expr:
        return Expr(LambdaType(Lambda(node, self.scope)), lambda _, lanes: [0] * len(lanes))

    def _call_expression(self, node: tree_sitter.Node) -> Expr:
        function = node.child_by_field_name("function")
        if function is not None and function.type == "template_function":
            name = text_of(function.child_by_field_name("name"))
            if name in _CASTS:
                return self._named_cast(node, function)
        return self.call(node)

    def _named_cast(self, node: tree_sitter.Node, function: tree_sitter.Node) -> Expr:
        template, arguments = function.child_by_field_name("arguments"), node.child_by_field_name("arguments")
        if template is None or arguments is None or len(children(arguments)) != 1:
            raise self.undecided(f"'{text_of(node)[:40]}'", node)
        target = children(template)[0]
        operand = self.expression(children(arguments)[0])
        declarator = target.child_by_field_name("declarator")
        if declarator is not None and "reference" in declarator.type:
            return self._referring(operand, target, declarator, node)
        return self.cast(operand, self.known_type(target), node)

    def _referring(
        self, operand: Expr, target: tree_sitter.Node, declarator: tree_sitter.Node, node: tree_sitter.Node
    ) -> Expr:
        """`reinterpret_cast<float4&>(x)`."""
        ctype, _ = self.declared(self.known_type(target.child_by_field_name("type")), declarator)
        if operand.place is None or operand.place.address is None:
            raise self.undecided(f"'{text_of(node)[:40]}' is in no memory", node)
        return self.placed(Cell(ctype, operand.place.address, self.line(node)))


class _Element(Place):
    """An element of an array: an index outside is a fault when it is read or written, not when its address is taken."""

    def __init__(self, checked: Cell, free: Evaluate, line: int) -> None:
        super().__init__(checked.ctype)
        self._free = free
        self.load = checked.load  # type: ignore[method-assign]
        self.store = checked.store  # type: ignore[method-assign]
        self.update = checked.update  # type: ignore[method-assign]
        del line

    @property
    def address(self) -> Evaluate:
        return self._free


def v_lift(ev: Evaluate, function: Callable[[Any], Any]) -> Evaluate:
    """A function of one value, applied to what an expression comes to; undefined stays undefined."""
    return lambda wave, lanes: [None if one is None else function(one) for one in ev(wave, lanes)]


def _zero_of(ctype: CType) -> Any:
    if isinstance(ctype, Scalar):
        return 0.0 if ctype.is_float else 0
    return (None, 0) if isinstance(ctype, Pointer) else None
