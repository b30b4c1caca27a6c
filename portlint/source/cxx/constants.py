"""The values of expressions that need no run: literals, arithmetic, and the constants and macros of the file.

An expression can have several values, each under guards of its own: `WARP` after `#ifdef USE_ROCM`, `#define WARP 64`,
`#else`, `#define WARP 32`. All of them are carried through arithmetic together with their guards.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from portlint.condition import Expression, Literal, Name
from portlint.regex import regex
from portlint.source.cxx.conditions import choice, conjunction, contradict, negation
from portlint.source.cxx.numbers import Integer, Number, binary, convert, is_arithmetic, literal, size_of, unary
from portlint.source.cxx.query import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

    from portlint.condition import Guard, Value
    from portlint.source.cxx.definitions import Definition, Definitions
    from portlint.source.cxx.preprocessor import Macro

Constant: TypeAlias = Number | bool | str
Alternatives: TypeAlias = list[tuple[Constant, tuple["Guard", ...]]]

_MOST_LEVELS = 60
_MOST_ALTERNATIVES = 16
_MOST_STEPS = 20_000
"""expressions looked at for one question; nested calls of macros can double them at each level"""
_CASTS = frozenset(("static_cast", "const_cast", "reinterpret_cast", "implicit_cast"))
_TRANSPARENT = frozenset(("parenthesized_expression", "condition_clause", "expression_statement"))
_LITERALS = frozenset(
    (
        "number_literal", "true", "false", "char_literal", "string_literal", "raw_string_literal",
        "concatenated_string",
    )
)  # fmt: skip
_STRING = regex(r'(?:u8|[uUL])?(R?)"(.*)"', re.DOTALL)
_IDENTIFIER = regex(r"[A-Za-z_]\w*", re.ASCII)


class Frame(msgspec.Struct, frozen=True):
    """Where an expression is read: names mean what they mean at `at`, parameters of a macro what it was called with."""

    at: int
    bindings: Mapping[str, tuple[Node, Frame]] = {}
    active: frozenset[str] = frozenset()
    """the names being resolved, against definitions that go in circles"""
    level: int = 0


class Constants:
    """The constants of one file."""

    def __init__(
        self,
        definitions: Definitions,
        guards_at: Callable[[int], tuple[Guard, ...]],
        body_of: Callable[[Macro], Node | None],
        masked: bytes,
    ) -> None:
        self._definitions = definitions
        self._guards_at = guards_at
        self._body_of = body_of
        self._masked = masked
        self._cache: dict[tuple[str, int], Alternatives] = {}
        self._fixed: dict[int, bool] = {}
        self._steps = 0
        self._bound: Mapping[str, Alternatives] = {}

    def values_within(
        self, node: Node, guards: tuple[Guard, ...], arguments: Mapping[str, Node]
    ) -> tuple[tuple[Value, tuple[Guard, ...]], ...]:
        """The values of an expression of a template, with these arguments for its parameters."""
        self._steps = 0
        bound = {name: self._evaluate(one, Frame(one.start_byte)) for name, one in arguments.items()}
        cache, self._cache, self._bound = self._cache, {}, bound
        try:
            return self.values(node, guards)
        finally:
            self._cache, self._bound = cache, {}

    def values(self, node: Node, guards: tuple[Guard, ...]) -> tuple[tuple[Value, tuple[Guard, ...]], ...]:
        """Every value that an expression can have under the given guards, and the further guards that each needs.

        Empty where some part of it is not known.
        """
        found = []
        self._steps = 0
        for value, own in self._evaluate(node, Frame(node.start_byte)):
            if _consistent((*guards, *own)):
                further = tuple(guard for guard in own if guard not in guards)
                found.append((_plain(value), further))
        return tuple(dict.fromkeys(found))

    def constant(self, node: Node, guards: tuple[Guard, ...]) -> Value:
        """The value of an expression under the given guards, if it has exactly one."""
        values = {(type(value), value) for value, _ in self.values(node, guards)}
        return values.pop()[1] if len(values) == 1 else None

    def expression(self, name: str, at: int) -> Expression | None:
        """What a constant that is no macro comes to at an offset, by conditions on macros; None where it is unknown."""
        self._steps = 0
        values = [] if self._definitions.macros(name, at) else self._name(name, Frame(at))
        expression: Expression = Name(name)
        for value, guards in values:
            held = conjunction(*(one.condition if one.expected else negation(one.condition) for one in guards))
            expression = choice(held, Literal(_plain(value)), expression)
        return expression if values else None

    # ---- expressions ----------------------------------------------------------------------------------------------

    def _evaluate(self, node: Node | None, frame: Frame) -> Alternatives:
        while node is not None and node.type in _TRANSPARENT:
            inner = node.child_by_field_name("value")
            node = inner or (node.named_children[0] if node.named_child_count == 1 else None)
        self._steps += 1
        if node is None or frame.level > _MOST_LEVELS or self._steps > _MOST_STEPS:
            return []
        frame = msgspec.structs.replace(frame, level=frame.level + 1)
        match node.type:
            case literal_type if literal_type in _LITERALS:
                value = _literal(node)
                return [] if value is None else [(value, ())]
            case "unary_expression":
                symbol = text_of(node.child_by_field_name("operator"))
                return self._apply(lambda one: unary(symbol, one), frame, node.child_by_field_name("argument"))
            case "binary_expression":
                return self._binary(node, frame)
            case "conditional_expression":
                return self._conditional(node, frame)
            case "cast_expression":
                return self._cast(node.child_by_field_name("type"), node.child_by_field_name("value"), frame)
            case "sizeof_expression":
                return self._sizeof(node, frame)
            case "call_expression":
                return self._call(node, frame)
            case "identifier" | "type_identifier" | "field_identifier" | "namespace_identifier":
                return self._name(text_of(node), frame)
            case "qualified_identifier":
                return self._qualified(node, frame)
            case "type_descriptor":
                plain = node.named_child_count == 1
                return self._evaluate(node.child_by_field_name("type"), frame) if plain else []
            case "initializer_list" | "argument_list":
                return self._evaluate(node.named_children[0], frame) if node.named_child_count == 1 else []
            case "preproc_arg":
                return self._token(text_of(node).strip(), frame)
            case _:
                return []

    def _apply(
        self, operation: Callable[..., Number | bool | None], frame: Frame, *operands: Node | None
    ) -> Alternatives:
        combined: list[tuple[tuple[Number, ...], tuple[Guard, ...]]] = [((), ())]
        for operand in operands:
            alternatives = self._evaluate(operand, frame)
            combined = [
                ((*values, _number(value)), joined)
                for values, guards in combined
                for value, own in alternatives
                if not isinstance(value, str) and (joined := _join(guards, own)) is not None
            ]
            if len(combined) > _MOST_ALTERNATIVES:
                return []
        found: Alternatives = []
        for values, guards in combined:
            result = operation(*values)
            if result is None:
                return []
            found.append((result, guards))
        return found

    def _binary(self, node: Node, frame: Frame) -> Alternatives:
        symbol = text_of(node.child_by_field_name("operator"))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if symbol in ("&&", "||", "and", "or"):
            stops_at = symbol in ("||", "or")
            first = self._evaluate(left, frame)
            if first and all(bool(_number_value(value)) is stops_at for value, _ in first):
                return [(stops_at, guards) for _, guards in first]
            return self._apply(
                lambda a, b: (_truth(a) or _truth(b)) if stops_at else (_truth(a) and _truth(b)), frame, left, right
            )
        return self._apply(lambda a, b: binary(symbol, a, b), frame, left, right)

    def _conditional(self, node: Node, frame: Frame) -> Alternatives:
        found: Alternatives = []
        for test, guards in self._evaluate(node.child_by_field_name("condition"), frame):
            branch = "consequence" if _number_value(test) else "alternative"
            values = self._evaluate(node.child_by_field_name(branch), frame)
            if not values:
                return []
            found += [(value, joined) for value, own in values if (joined := _join(guards, own)) is not None]
        return found if len(found) <= _MOST_ALTERNATIVES else []

    def _cast(self, target: Node | None, operand: Node | None, frame: Frame) -> Alternatives:
        type_name = _type_name(target)
        values = self._evaluate(operand, frame)
        if any(isinstance(value, str) for value, _ in values):
            return values
        return self._converted(values, type_name)

    def _converted(self, values: Alternatives, type_name: str) -> Alternatives:
        found: Alternatives = []
        for value, guards in values:
            if isinstance(value, str) or (isinstance(value, bool) and type_name in ("bool", "auto")):
                found.append((value, guards))
            elif (converted := convert(_number(value), type_name)) is None:
                return []
            else:
                found.append((bool(_number_value(converted)) if type_name == "bool" else converted, guards))
        return found

    def _sizeof(self, node: Node, frame: Frame) -> Alternatives:
        named = node.child_by_field_name("type") or node.child_by_field_name("value")
        while named is not None and named.type == "parenthesized_expression" and named.named_children:
            named = named.named_children[0]
        for _ in range(_MOST_LEVELS):
            type_name = _type_name(named)
            size = size_of(type_name)
            if size is not None:
                return [(Integer(size, 64, False), ())]
            declared = self._definitions.declared(type_name, frame.at) if _IDENTIFIER.fullmatch(type_name) else []
            targets = [d for d in declared if d.kind == "alias"]
            variable = [d for d in declared if d.kind in ("variable", "parameter") and not d.array]
            if len(targets) == 1:
                named = targets[0].value
            elif len(variable) == 1:
                named = variable[0].node.child_by_field_name("type")
            else:
                return []
        return []

    def _call(self, node: Node, frame: Frame) -> Alternatives:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        operands = [one for one in arguments.named_children if one.type != "comment"] if arguments else []
        if function is None:
            return []
        name = text_of(function.child_by_field_name("name") if function.type == "template_function" else function)
        if name in _CASTS and len(operands) == 1 and function.type == "template_function":
            template = function.child_by_field_name("arguments")
            target = template.named_children[0] if template and template.named_children else None
            return self._cast(target, operands[0], frame)
        if is_arithmetic(" ".join(name.split())) and len(operands) == 1:
            return self._cast(function, operands[0], frame)
        found: Alternatives = []
        for macro in self._definitions.macros(name, frame.at):
            if macro.parameters is None or len(macro.parameters) != len(operands) or name in frame.active:
                return []
            body = self._body_of(macro)
            bindings = {one: (operand, frame) for one, operand in zip(macro.parameters, operands, strict=True)}
            inner = Frame(frame.at, bindings, frame.active | {name}, frame.level)
            found += self._under(self._evaluate(body, inner), macro.start)
        return found

    # ---- names ----------------------------------------------------------------------------------------------------

    def _name(self, name: str, frame: Frame) -> Alternatives:
        if name in frame.bindings:
            operand, outer = frame.bindings[name]
            return self._evaluate(operand, msgspec.structs.replace(outer, level=max(outer.level, frame.level)))
        if name in frame.active:
            return []
        key = (name, frame.at)
        if key in self._cache:
            return self._cache[key]
        found = self._named(name, Frame(frame.at, {}, frame.active | {name}, frame.level))
        if self._steps <= _MOST_STEPS:
            self._cache[key] = found
        return found

    def _named(self, name: str, frame: Frame) -> Alternatives:
        macros = self._definitions.macros(name, frame.at)
        if any(macro.parameters is not None for macro in macros):
            return []
        if name in self._bound and any(one.kind == "template" for one in self._definitions.declared(name, frame.at)):
            return self._bound[name]
        # Otherwise the macro hides any variable.
        is_open = all(self._guards_at(macro.start) for macro in macros)
        declared = self._definitions.declared(name, frame.at) if is_open else []
        return self._all(
            chain(
                ((self._macro(macro, frame), macro.start) for macro in macros),
                ((self._definition(one, frame), one.offset) for one in declared),
            )
        )

    def _macro(self, macro: Macro, frame: Frame) -> Alternatives:
        body = self._body_of(macro)
        return self._token(macro.body, frame) if body is None else self._evaluate(body, frame)

    def _token(self, text: str, frame: Frame) -> Alternatives:
        value = literal(text)
        if value is not None:
            return [(value, ())]
        if text in ("true", "false"):
            return [(text == "true", ())]
        return self._name(text, frame) if _IDENTIFIER.fullmatch(text) else []

    def _qualified(self, node: Node, frame: Frame) -> Alternatives:
        scope, name = node.child_by_field_name("scope"), node.child_by_field_name("name")
        while name is not None and name.type == "qualified_identifier":
            scope, name = name.child_by_field_name("scope"), name.child_by_field_name("name")
        if name is None or name.type != "identifier":
            return []
        if scope is None:
            return self._name(text_of(name), frame)
        if scope.type == "template_type":  # a specialisation may say otherwise
            return []
        members = self._definitions.member(text_of(scope), text_of(name))
        return self._all((self._definition(one, frame), one.offset) for one in members)

    def _all(self, found: Iterable[tuple[Alternatives, int]]) -> Alternatives:
        """Alternative definitions: unknown if one of them is, or if there are too many; no more are looked at then."""
        alternatives: Alternatives = []
        for values, offset in found:
            if not values:
                return []
            alternatives += self._under(values, offset)
            if len(alternatives) > _MOST_ALTERNATIVES:
                return []
        return alternatives

    def _under(self, values: Alternatives, offset: int) -> Alternatives:
        own = self._guards_at(offset)
        return [(value, joined) for value, guards in values if (joined := _join(own, guards)) is not None]

    def _definition(self, definition: Definition, frame: Frame) -> Alternatives:
        inner = Frame(definition.offset, {}, frame.active, frame.level)
        if definition.kind == "enumerator":
            return self._enumerator(definition.node, inner)
        if definition.kind not in ("variable", "field") or definition.array or not self.keeps(definition):
            return []
        type_name = _type_name(definition.node.child_by_field_name("type"))
        if definition.value is None or (
            definition.value.type in ("argument_list", "initializer_list")
            and not (is_arithmetic(type_name) or type_name == "auto")
        ):
            return []
        values = self._evaluate(definition.value, inner)
        return self._converted(values, type_name)

    def keeps(self, definition: Definition) -> bool:
        """Whether a variable keeps its initial value: declared so, or a local one that nothing can change."""
        if definition.offset not in self._fixed:
            self._fixed[definition.offset] = self._is_never_changed(definition)
        return self._fixed[definition.offset]

    def _is_never_changed(self, definition: Definition) -> bool:
        words = [
            text_of(child) for child in definition.node.children if child.type.endswith(("qualifier", "specifier"))
        ]
        if "const" in words or "constexpr" in words:
            return True
        scope = self._definitions.scope_of(definition)
        if (
            scope.kind not in ("block", "function", "lambda", "if", "macro")
            or "static" in words
            or "__shared__" in words
        ):
            return False
        if self._definitions.assigned(definition.name, definition.offset):
            return False
        taken = re.compile(rb"(?<![&\w])(?:&\s*|>>\s*)" + re.escape(definition.name.encode()) + rb"\b")
        return not taken.search(self._masked, scope.start, scope.end)

    def _enumerator(self, node: Node, frame: Frame) -> Alternatives:
        steps = 0
        at: Node | None = node
        while at is not None and at.child_by_field_name("value") is None:
            at = at.prev_named_sibling
            while at is not None and at.type != "enumerator":
                if at.type != "comment":
                    return []
                at = at.prev_named_sibling
            steps += at is not None
            if steps > _MOST_LEVELS:
                return []
        if at is None:
            return [(Integer(steps), ())]
        values = self._evaluate(at.child_by_field_name("value"), frame)
        return [
            (binary("+", _number(value), Integer(steps)) or Integer(0), guards)
            for value, guards in values
            if not isinstance(value, str)
        ]


def _join(one: tuple[Guard, ...], other: tuple[Guard, ...]) -> tuple[Guard, ...] | None:
    """Both guards together; None where they exclude each other."""
    joined = (*one, *(guard for guard in other if guard not in one))
    return joined if _consistent(joined) else None


def _consistent(guards: tuple[Guard, ...]) -> bool:
    if len(guards) > _MOST_LEVELS:
        return True
    return not any(
        contradict(a.condition, a.expected, b.condition, b.expected)
        for index, a in enumerate(guards)
        for b in guards[:index]
    )


def literal_value(node: Node) -> Value:
    """The value of a literal, for which no definition has to be known; None for any other expression."""
    return _plain(value) if node.type in _LITERALS and (value := _literal(node)) is not None else None


def _literal(node: Node) -> Constant | None:
    if node.type == "concatenated_string":
        pieces = [_literal(piece) for piece in node.named_children if piece.type.endswith("string_literal")]
        return "".join(map(str, pieces)) if all(isinstance(one, str) for one in pieces) else None
    text = text_of(node)
    if node.type == "number_literal":
        value = literal(text.lstrip("+-"))  # the grammar takes a sign into the literal
        return unary("-", value) if value is not None and text.startswith("-") else value
    if node.type in ("true", "false"):
        return node.type == "true"
    if node.type == "char_literal":
        content = unescape(text.lstrip("uUL8")[1:-1])
        return Integer(ord(content)) if content is not None and len(content) == 1 else None
    match = _STRING.fullmatch(text)
    if match is None:
        return None
    if match[1] or node.type == "raw_string_literal":
        return match[2].partition("(")[2].rpartition(")")[0]
    return unescape(match[2])


def unescape(text: str) -> str | None:
    """The characters that the inside of a literal stands for; None where it is malformed."""
    if "\\" not in text:
        return text
    try:
        value = ast.literal_eval('"' + text.replace('\\"', '"').replace('"', '\\"').replace("\n", "\\n") + '"')
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, str) else None


def _type_name(node: Node | None) -> str:
    """The name of a type without qualifiers, as it is written otherwise."""
    words = text_of(node).replace("*", " *").split()
    return " ".join(word for word in words if word not in ("const", "constexpr", "volatile", "static")).replace(
        " *", "*"
    )


def _number(value: Constant) -> Number:
    return Integer(int(value)) if isinstance(value, bool) else value  # type: ignore[return-value]


def _number_value(value: Constant) -> float | int | str | bool:
    return value.value if isinstance(value, Integer) else value


def _truth(number: Number) -> bool:
    return bool(_number_value(number))


def _plain(value: Constant) -> Value:
    return value.value if isinstance(value, Integer) else value
