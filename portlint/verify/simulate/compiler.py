"""What compiling works with: scopes, registers, places that can be assigned to, and the meaning of types.

Every call is compiled in place, with its own registers, so that template parameters, references and lambdas are all
resolved before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from portlint.source.cxx.numbers import Integer, literal
from portlint.verify.simulate import values as v
from portlint.verify.simulate.faults import Undecided
from portlint.verify.simulate.machine import Code, Evaluate, Execute, Machine, Wave
from portlint.verify.simulate.memory import Buffer
from portlint.verify.simulate.program import (
    Alias,
    Function,
    Program,
    RecordDeclaration,
    children,
    declared_name,
    line_of,
    text_of,
    walk,
)
from portlint.verify.simulate.templates import (
    Choice,
    TemplateName,
    argument_key,
    choose,
    is_of_kind,
    is_same_argument,
    template_name,
)
from portlint.verify.simulate.values import Array, CType, Lanes, Pointer, Record, Scalar, Values

if TYPE_CHECKING:
    import tree_sitter

_COLLECTIVES = {"WarpReduce": 2, "WarpScan": 2, "BlockReduce": 6}
"""and how many template arguments each has at most"""
_STORAGE = Record("TempStorage", [("held", v.UCHAR)])
"""of a collective: what it keeps there is its own business"""
_ACCUMULATORS = ("acc_type", "acc_type_device", "opmath_type", "AccumulateType")
MOST_CALLS = 60
"""calls within calls; beyond that code is taken to be recursive"""
UNKNOWN: Any = object()
"""the constant of an expression that has none"""


class GroupType(CType):
    """A cooperative group: kind "block", "tile", "coalesced", "grid" or "warp"; a tile's width."""

    size = 8

    def __init__(self, kind: str, width: int = 0) -> None:
        super().__init__(f"{kind} of {width}" if width else kind)
        self.kind = kind
        self.width = width


class CollectiveType(CType):
    """A collective of CUB or hipCUB: kind "WarpReduce", "WarpScan" or "BlockReduce", and its logical warp."""

    size = 1

    def __init__(self, kind: str, of: CType, width: int) -> None:
        super().__init__(f"{kind} of {of}")
        self.kind = kind
        self.of = of
        self.width = width


class Place:
    """Something that can be read and assigned to."""

    def __init__(self, ctype: CType) -> None:
        self.ctype = ctype

    def load(self, wave: Wave, lanes: Lanes) -> Values:
        """What it holds."""
        raise NotImplementedError

    def update(self, wave: Wave, lanes: Lanes, change: Callable[[Values], Values]) -> tuple[Values, Values]:
        """Change what it holds, and say what that was and is."""
        raise NotImplementedError

    def store(self, wave: Wave, lanes: Lanes, values: Values) -> None:
        """Give it a value."""
        raise NotImplementedError

    @property
    def address(self) -> Evaluate | None:
        """Where it is; None for a register."""
        return None


class Slot(Place):
    """A register."""

    # ruff: noqa: D102 -- documented by Place

    def __init__(self, ctype: CType, slot: int) -> None:
        super().__init__(ctype)
        self.slot = slot

    def load(self, wave: Wave, lanes: Lanes) -> Values:
        return wave.get(self.slot, lanes)

    def store(self, wave: Wave, lanes: Lanes, values: Values) -> None:
        wave.set(self.slot, lanes, values)

    def update(self, wave: Wave, lanes: Lanes, change: Callable[[Values], Values]) -> tuple[Values, Values]:
        old = wave.get(self.slot, lanes)
        new = change(old)
        wave.set(self.slot, lanes, new)
        return old, new


class Cell(Place):
    """Memory."""

    def __init__(self, ctype: CType, address: Evaluate, line: int) -> None:
        super().__init__(ctype)
        self._address = address
        self._line = line

    @property
    def address(self) -> Evaluate:
        return self._address

    def load(self, wave: Wave, lanes: Lanes) -> Values:
        return wave.load(self._address(wave, lanes), self.ctype, self._line)

    def store(self, wave: Wave, lanes: Lanes, values: Values) -> None:
        wave.store(self._address(wave, lanes), self.ctype, values, lanes, self._line)

    def update(self, wave: Wave, lanes: Lanes, change: Callable[[Values], Values]) -> tuple[Values, Values]:
        addresses = self._address(wave, lanes)
        old = wave.load(addresses, self.ctype, self._line)
        new = change(old)
        wave.store(addresses, self.ctype, new, lanes, self._line)
        return old, new


class Expr:
    """A compiled expression."""

    __slots__ = ("const", "ctype", "ev", "place")

    def __init__(self, ctype: CType, ev: Evaluate, const: Any = UNKNOWN, place: Place | None = None) -> None:
        self.ctype = ctype
        self.ev = ev
        self.const = const
        """its value where that needs no run, else UNKNOWN"""
        self.place = place


class Lambda:
    """A lambda expression and where it stands."""

    def __init__(self, node: tree_sitter.Node, scope: Scope) -> None:
        self.node = node
        self.scope = scope


class LambdaType(CType):
    """The type of a lambda: each has its own."""

    size = 1

    def __init__(self, function: Lambda) -> None:
        super().__init__("lambda")
        self.function = function


class Instance:
    """A struct with its template arguments."""

    def __init__(self, choice: Choice, scope: Scope) -> None:
        self.choice = choice
        self.declaration = choice.declaration
        self.scope = scope
        self.bases: list[Record] = []
        self.methods: dict[str, list[Function]] = {}


class Scope:
    """Names of a block. What they stand for: an `Expr`, a `Place`, a `CType`, or a `Lambda`."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.names: dict[str, Any] = {}

    def find(self, name: str) -> Any:
        """What a name stands for; None where it is of the program."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None


class Frame:
    """The function being compiled."""

    def __init__(self, ctype: CType | None, *, is_kernel: bool) -> None:
        self.ctype = ctype
        """of what it returns; None for `auto` before the first return"""
        self.place: Place | None = None
        self.is_kernel = is_kernel
        self.is_reference = False
        """whether it returns a reference: its place then holds an address"""
        self.key: Any = None
        """what tells its instances apart"""
        self.addressed: frozenset[str] = frozenset()
        """the variables whose address is taken"""
        self.loops: list[int] = []
        self.breaks: list[int] = []


class Compiler:
    """The state of compiling one kernel, and what all parts of the compiler need."""

    def __init__(self, program: Program, machine: Machine) -> None:
        self.program = program
        self.machine = machine
        self.scope = Scope()
        self.frame = Frame(v.VOID, is_kernel=True)
        self.slots = 0
        self.keys = 0
        self.calls = 0
        self.suspends = False
        self.conditional = 0
        self.hoisted: list[Execute] = []
        self.arrays: dict[int, tuple[str, int]] = {}
        self.shared: dict[int, tuple[str, int | None]] = {}
        self.constants: dict[int, tuple[str, int, Callable[[Buffer], None] | None]] = {}
        self.width_aware = False
        self.is_ported = False
        self.spans: set[tuple[int, int]] = set()
        """the lines of the statements of the file"""
        self.used: dict[int, Function] = {}
        """the functions that are called, by the start of their nodes"""
        self.unit = ""
        self.called_at = 0
        """the line of the file from which code of a header is called"""
        self._shared_keys: dict[Any, int] = {}
        self._variables: dict[str, Place] = {}
        self._records: dict[Any, Record] = {}
        self._resolving: set[str] = set()

    # ---- parts that the other modules give ------------------------------------------------------------------------

    def expression(self, node: tree_sitter.Node) -> Expr:
        """Compile an expression."""
        raise NotImplementedError

    def converted(self, expr: Expr, ctype: CType, line: int) -> Expr:
        """An expression as another type."""
        raise NotImplementedError

    def initialised(self, node: tree_sitter.Node | None, ctype: CType, line: int) -> list[tuple[int, CType, Expr]]:
        """What an initialiser puts where."""
        raise NotImplementedError

    # ---- helpers --------------------------------------------------------------------------------------------------

    def line(self, node: tree_sitter.Node) -> int:
        """The line to report for a node: for code of a header, that of the call."""
        return self.called_at if self.unit else line_of(node)

    def undecided(self, reason: str, node: tree_sitter.Node) -> Undecided:
        """That something is not understood."""
        return Undecided(reason, self.line(node))

    def new_slot(self) -> int:
        """A register."""
        self.slots += 1
        return self.slots - 1

    def new_key(self) -> int:
        """A number that nothing else has."""
        self.keys += 1
        return self.keys

    def local(self, ctype: CType, name: str, *, in_memory: bool = False) -> Place:
        """A new variable."""
        if isinstance(ctype, Record | Array) or in_memory:
            key = self.new_key()
            self.arrays[key] = (name, ctype.size)
            return Cell(ctype, lambda wave, lanes: [(wave.array(key)[lane], 0) for lane in lanes], 0)
        return Slot(ctype, self.new_slot())

    @contextmanager
    def inner_scope(self) -> Iterator[None]:
        """A block of its own."""
        outer, self.scope = self.scope, Scope(self.scope)
        try:
            yield
        finally:
            self.scope = outer

    def constant(self, node: tree_sitter.Node) -> int:
        """An integer that the compiler has to know."""
        const = self.expression(node).const
        if const is UNKNOWN or not isinstance(const, int):
            raise self.undecided(f"'{text_of(node)}' is not known before the run", node)
        return const

    @staticmethod
    def const(value: Any, ctype: CType) -> Expr:
        """A constant."""
        return Expr(ctype, lambda _, lanes: [value] * len(lanes), value)

    def placed(self, place: Place) -> Expr:
        """What a place holds."""
        return Expr(place.ctype, place.load, UNKNOWN, place)

    def number(self, node: tree_sitter.Node) -> Expr:
        """A numeric literal."""
        text = text_of(node).replace("'", "")
        value = literal(text.lstrip("+-"))  # the grammar takes a sign into the literal
        if value is None:
            raise self.undecided(f"'{text}' is no number", node)
        if text.startswith("-"):
            value = Integer(-value.value, value.bits, value.signed) if isinstance(value, Integer) else -value
        if isinstance(value, Integer):
            ctype = (v.INT if value.signed else v.UINT) if value.bits == 32 else (v.LONG if value.signed else v.ULONG)
            return self.const(v.wrap(value.value, ctype), ctype)
        is_float = text[-1] in "fF" and not text.lower().startswith("0x")
        return self.const(v.round_all((value,), v.FLOAT)[0], v.FLOAT) if is_float else self.const(value, v.DOUBLE)

    # ---- types ----------------------------------------------------------------------------------------------------

    def type_of(self, node: tree_sitter.Node | None) -> CType | None:
        """The type that a specifier or a descriptor names; None for `auto`."""
        if node is None:
            raise Undecided("a declaration has no type")
        match node.type:
            case "placeholder_type_specifier" | "auto":
                return None
            case "type_descriptor":
                base = self.type_of(node.child_by_field_name("type"))
                declarator = node.child_by_field_name("declarator")
                return self.declared(base, declarator)[0] if declarator is not None and base is not None else base
            case "primitive_type" | "sized_type_specifier" | "type_identifier" | "identifier":
                return self.named_type(" ".join(w for w in text_of(node).split() if w != "const"), node)
            case "qualified_identifier":
                return self._qualified_type(node)
            case "template_type" | "template_function":
                return self._template_type(node)
            case "dependent_type":
                return self.type_of(children(node)[0])
            case "decltype":
                return self.expression(children(node)[0]).ctype
            case "struct_specifier" | "class_specifier" | "union_specifier" if node.child_by_field_name("body") is None:
                return self.named_type(text_of(node.child_by_field_name("name")), node)
            case "struct_specifier" | "class_specifier" | "union_specifier":
                return self.instantiated(self.only_definition(node))
        raise self.undecided(f"type '{text_of(node)[:40]}'", node)

    def known_type(self, node: tree_sitter.Node | None) -> CType:
        """A type that is not `auto`."""
        ctype = self.type_of(node)
        if ctype is None:
            raise Undecided("a type is left to be deduced", self.line(node) if node is not None else 0)
        return ctype

    def named_type(self, name: str, node: tree_sitter.Node) -> CType:
        """The type of a name."""
        found = self.scope.find(name)
        if isinstance(found, CType):
            return found
        if name in self.program.aliases and name not in self._resolving:
            return self._alias(name, self.program.aliases[name], [], node)
        if name in self.program.records:
            return self.instantiated(choose(self, name, [], node))
        if name in self.program.enums:
            return v.INT
        short = name.rpartition("::")[2]
        if name in v.NAMED or short in v.NAMED:
            return v.NAMED.get(name) or v.NAMED[short]
        group = {"thread_block": "block", "grid_group": "grid", "coalesced_group": "coalesced"}.get(short)
        if group:
            return GroupType(group)
        raise self.undecided(f"type '{name}' is defined elsewhere", node)

    def _qualified_type(self, node: tree_sitter.Node) -> CType:
        scope, name = node.child_by_field_name("scope"), node.child_by_field_name("name")
        if name is None:
            raise self.undecided(f"type '{text_of(node)}'", node)
        owner = self.owner(scope)
        if owner is not None:
            member = self.member_type(owner, text_of(name))
            if member is not None:
                return member
        if text_of(name) == "TempStorage" and scope is not None:
            with suppress(Undecided):
                is_template = scope.type == "template_type"
                around = self._template_type(scope) if is_template else self.named_type(text_of(scope), scope)
                if isinstance(around, CollectiveType):
                    return _STORAGE
        if scope is not None and scope.type == "template_type":
            arguments = scope.child_by_field_name("arguments")
            given = children(arguments) if arguments is not None else []
            if text_of(scope.child_by_field_name("name")) in _ACCUMULATORS and given:
                return self._accumulator(self.known_type(given[0]))
            library = self._library_type(text_of(scope.child_by_field_name("name")), given)
            if library is not None and text_of(name) in ("type", "value_type"):
                return library
        return self.known_type(name)

    def _library_type(self, name: str, given: list[tree_sitter.Node]) -> CType | None:
        if name == "conditional" and len(given) == 3:
            return self.known_type(given[1 if self.template_value(given[0]) else 2])
        if name in ("remove_reference", "remove_const", "remove_cv", "decay", "remove_cvref") and len(given) == 1:
            return self.known_type(given[0])
        if name == "aligned_storage" and given:
            return Record(name, [("bytes", Array(v.UCHAR, self.template_value(given[0])))])
        return None

    @staticmethod
    def _accumulator(ctype: CType) -> CType:
        return v.FLOAT if ctype in (v.HALF, v.BFLOAT) else ctype

    def template_value(self, node: tree_sitter.Node) -> int:
        """The value of a template argument."""
        inner = node.child_by_field_name("type") if node.type == "type_descriptor" else node
        return self.constant(inner if inner is not None else node)

    def _template_type(self, node: tree_sitter.Node) -> CType:
        name = text_of(node.child_by_field_name("name"))
        arguments = node.child_by_field_name("arguments")
        given = children(arguments) if arguments is not None else []
        found = self.scope.find(name)
        if isinstance(found, TemplateName):
            name = found.name
        if name == "thread_block_tile":
            return GroupType("tile", self.template_value(given[0]))
        if name in (
            "conditional_t",
            "remove_reference_t",
            "remove_const_t",
            "remove_cv_t",
            "decay_t",
            "aligned_storage_t",
        ):
            library = self._library_type(name.removesuffix("_t"), given)
            if library is not None:
                return library
        if name in ("acc_type", "opmath_t", "opmath_type_t", "acc_t") and given:
            return self._accumulator(self.known_type(given[0]))
        if name in self.program.aliases:
            return self._alias(name, self.program.aliases[name], given, node)
        if name in self.program.records:
            return self.instantiated(choose(self, name, [self.template_argument(one) for one in given], node))
        collective = self.collective(name, given)
        if collective is not None:
            return collective
        raise self.undecided(f"type '{name}' is defined elsewhere", node)

    def collective(self, name: str, given: list[tree_sitter.Node]) -> CollectiveType | None:
        """A collective of CUB or hipCUB; None for another template."""
        if not 1 <= len(given) <= _COLLECTIVES.get(name, 0):
            return None
        is_of_warp = name.startswith("Warp")
        width = self.template_value(given[1]) if is_of_warp and len(given) > 1 else self.machine.width
        return CollectiveType(name, self.known_type(given[0]), width)

    def _alias(self, name: str, alias: Alias, given: list[tree_sitter.Node], node: tree_sitter.Node) -> CType:
        values = [self.template_argument(one) for one in given]
        outer, self.scope = self.scope, Scope()
        self._resolving.add(name)
        try:
            if alias.template is not None:
                self.bind_template(alias.template, values, node)
            ctype = self.known_type(alias.node.child_by_field_name("type"))
            return self.declared(ctype, alias.declarator)[0] if alias.declarator is not None else ctype
        finally:
            self.scope = outer
            self._resolving.discard(name)

    def owner(self, node: tree_sitter.Node | None) -> Record | None:
        """The struct that the left side of `::` names; None for a namespace."""
        if node is None:
            return None
        name = text_of(node.child_by_field_name("name")) if node.type == "template_type" else text_of(node)
        found = self.scope.find(name)
        if isinstance(found, Record):
            return found
        if found is None and name not in self.program.records and name not in self.program.aliases:
            return None
        ctype = self._template_type(node) if node.type == "template_type" else self.named_type(name, node)
        return ctype if isinstance(ctype, Record) else None

    def member_type(self, owner: Record, name: str) -> CType | None:
        """A type that a struct defines."""
        if not isinstance(owner.declared, Instance):
            return None
        found = owner.declared.scope.names.get(name)
        return found if isinstance(found, CType) else None

    # ---- templates ------------------------------------------------------------------------------------------------

    def template_argument(self, node: tree_sitter.Node) -> Any:
        """A template argument: a type, or a constant."""
        if node.type == "type_descriptor":
            inner = node.child_by_field_name("type")
            plain = node.child_by_field_name("declarator") is None and inner is not None
            if plain and inner is not None and inner.type in ("type_identifier", "identifier"):
                found = self.scope.find(text_of(inner))
                if isinstance(found, Expr | TemplateName):
                    return found
                if not isinstance(found, CType) and self._names_template(text_of(inner)):
                    return TemplateName(text_of(inner))
                is_type = isinstance(found, CType) or text_of(inner) in self.program.aliases
                if not is_type and (
                    text_of(inner) in self.program.variables or text_of(inner) in self.program.enumerators
                ):
                    return self.expression(inner)
            if plain and inner is not None and inner.type == "qualified_identifier":
                try:
                    return self.known_type(node)
                except Undecided:
                    return self.expression(inner)
            return self.known_type(node)
        expr = self.expression(node)
        if isinstance(expr.ctype, LambdaType):
            return expr.ctype
        if expr.const is UNKNOWN:
            raise self.undecided(f"template argument '{text_of(node)}' is not known before the run", node)
        return expr

    def _names_template(self, name: str) -> bool:
        """Whether a name without arguments is that of a template."""
        alias = self.program.aliases.get(name)
        return alias.template is not None if alias is not None else name in self.program.templates

    def bind_template(self, parameters: tree_sitter.Node, given: list[Any], node: tree_sitter.Node) -> list[Any]:
        """Give template parameters their arguments, defaults included, in the present scope; all of them in order."""
        values = []
        for index, parameter in enumerate(children(parameters)):
            name = template_name(parameter)
            if parameter.type.startswith("variadic"):
                raise self.undecided("a template takes any number of arguments", node)
            if name in self.scope.names:
                values.append(self.scope.names[name])
                continue
            if index < len(given) and given[index] is not None:
                value = given[index]
            elif parameter.type == "optional_parameter_declaration":
                value = self.expression(parameter.child_by_field_name("default_value") or parameter)
            elif parameter.type == "optional_type_parameter_declaration":
                value = self.known_type(parameter.child_by_field_name("default_type"))
            else:
                raise self.undecided(f"template parameter '{name}' is not known", node)
            if not is_of_kind(parameter, value):
                raise self.undecided(f"template parameter '{name}' does not fit", node)
            if isinstance(value, Expr):
                wanted = self.type_of(parameter.child_by_field_name("type"))
                value = self.converted(value, wanted, 0) if wanted is not None else value
            values.append(value)
            if name:
                self.scope.names[name] = value
        return values

    # ---- structs --------------------------------------------------------------------------------------------------

    def only_definition(self, node: tree_sitter.Node) -> Choice:
        """A struct that stands where it is used."""
        return Choice(RecordDeclaration(text_of(node.child_by_field_name("name")), node, None, self.unit), (), {})

    def instantiated(self, choice: Choice) -> Record:
        """The struct for template arguments."""
        declaration = choice.declaration
        around = id(self.scope) if _is_nested(declaration.node) else 0
        key = (declaration.unit, declaration.node.id, tuple(map(argument_key, choice.arguments)), around)
        if key in self._records:
            return self._records[key]
        outer, self.scope = self.scope, Scope(self.scope if _is_nested(declaration.node) else None)
        unit, self.unit = self.unit, declaration.unit
        try:
            self.scope.names.update(choice.names)
            instance = Instance(choice, self.scope)
            fields = self._fields(instance)
            is_union = declaration.node.type == "union_specifier"
            record = Record(declaration.name, fields, instance, is_union=is_union)
            self.scope.names[declaration.name] = record
            self._records[key] = record
            return record
        finally:
            self.scope = outer
            self.unit = unit

    def _fields(self, instance: Instance) -> list[tuple[str, CType]]:
        node = instance.declaration.node
        fields: list[tuple[str, CType]] = []
        for clause in node.children:
            if clause.type == "base_class_clause":
                for base in children(clause):
                    if base.type in ("type_identifier", "template_type", "qualified_identifier"):
                        record = self.known_type(base)
                        if not isinstance(record, Record):
                            raise self.undecided("a base is no struct", node)
                        instance.bases.append(record)
                        fields += [(name, ctype) for name, (_, ctype) in record.fields.items()]
                        if isinstance(record.declared, Instance):
                            self._inherit(record.declared)
        body = node.child_by_field_name("body")
        for member in children(body) if body is not None else ():
            template = None
            if member.type == "template_declaration":
                template = member.child_by_field_name("parameters")
                member = children(member)[-1]  # noqa: PLW2901
            match member.type:
                case "field_declaration":
                    fields += self._field(member)
                case "function_definition":
                    self._add_method(instance, member, template)
                case "alias_declaration" if template is None:
                    alias = text_of(member.child_by_field_name("name"))
                    with suppress(Undecided):
                        self.scope.names[alias] = self.known_type(member.child_by_field_name("type"))
                case "type_definition":
                    declarator = member.child_by_field_name("declarator")
                    self.scope.names[text_of(declarator)] = self.known_type(member.child_by_field_name("type"))
                case "static_assert_declaration" | "access_specifier" | "friend_declaration" | "using_declaration":
                    pass
        return fields

    def _inherit(self, base: Instance) -> None:
        """Let a struct see the types and constants of its base, whose template parameters are its own business."""
        for name, value in base.scope.names.items():
            if name not in base.choice.names:
                self.scope.names.setdefault(name, value)

    def _field(self, member: tree_sitter.Node) -> list[tuple[str, CType]]:
        words = {text_of(one) for one in member.children if one.type.endswith(("specifier", "qualifier"))}
        named = member.child_by_field_name("type")
        if named is not None and named.type == "enum_specifier":
            self._enumerators(named)
            return []
        if named is not None and named.type in ("struct_specifier", "class_specifier", "union_specifier"):
            name = text_of(named.child_by_field_name("name"))
            if named.child_by_field_name("body") is not None and name:
                self.scope.names[name] = self.known_type(named)
        declarators = member.children_by_field_name("declarator")
        if "static" in words or "constexpr" in words:
            value = member.child_by_field_name("default_value")
            if value is not None and declarators and declarators[0].type == "field_identifier":
                with suppress(Undecided):  # without it the name is not known, which matters only where it is used
                    wanted = self.type_of(named)
                    expr = self.expression(value)
                    expr = self.converted(expr, wanted, self.line(member)) if wanted is not None else expr
                    self.scope.names[text_of(declarators[0])] = expr
            return []
        found = []
        for declarator in declarators:
            if declarator.type == "function_declarator":
                continue
            ctype, is_reference = self.declared(self.known_type(named), declarator)
            found.append((text_of(declared_name(declarator)), Pointer(ctype) if is_reference else ctype))
            if is_reference:
                raise self.undecided("a struct holds a reference", member)
        return found

    def _enumerators(self, enum: tree_sitter.Node) -> None:
        body = enum.child_by_field_name("body")
        last = -1
        for one in children(body) if body is not None else ():
            value = one.child_by_field_name("value")
            last = self.constant(value) if value is not None else last + 1
            self.scope.names[text_of(one.child_by_field_name("name"))] = self.const(last, v.INT)
        if enum.child_by_field_name("name") is not None:
            self.scope.names[text_of(enum.child_by_field_name("name"))] = v.INT

    def _add_method(self, instance: Instance, node: tree_sitter.Node, template: tree_sitter.Node | None) -> None:
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and declarator.type == "operator_cast":
            method = Function("operator cast", node, template, instance.declaration.unit, instance.declaration.name)
            instance.methods.setdefault("operator cast", []).append(method)
            return
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator") or next(iter(children(declarator)), None)
        if declarator is None or node.child_by_field_name("body") is None:
            return
        name = text_of(declarator.child_by_field_name("declarator")).replace(" ", "")
        method = Function(name, node, template, instance.declaration.unit, instance.declaration.name)
        instance.methods.setdefault(name, []).append(method)

    def methods(self, record: Record, name: str) -> list[tuple[Function, Record]]:
        """The methods of a name, those of its bases after its own."""
        if not isinstance(record.declared, Instance):
            return []
        own = [(one, record) for one in record.declared.methods.get(name, ())]
        instance = record.declared
        own += [(one, record) for one in self.program.functions.get(name, ()) if self._is_method_of(one, instance)]
        return own or [found for base in record.declared.bases for found in self.methods(base, name)]

    def _is_method_of(self, function: Function, instance: Instance) -> bool:
        """Whether a method that is defined outside structs is one of a struct: `X<T>::f` of any, `X<0>::f` of one."""
        if function.owner.partition("<")[0] != instance.declaration.name:
            return False
        node = function.owner_type
        listed = node.child_by_field_name("arguments") if node is not None else None
        outer, self.scope = self.scope, Scope()
        try:
            written = [self.template_argument(one) for one in children(listed)] if listed is not None else []
        except Undecided:
            return True  # parameters of the template
        finally:
            self.scope = outer
        pairs = zip(written, instance.choice.arguments, strict=False)
        return all(is_same_argument(one, other) for one, other in pairs)

    # ---- declarators ----------------------------------------------------------------------------------------------

    def declared(self, base: CType, declarator: tree_sitter.Node | None) -> tuple[CType, bool]:
        """The type of what a declarator declares, and whether it is a reference."""
        reference = False
        ctype = base
        while declarator is not None:
            match declarator.type:
                case "pointer_declarator" | "abstract_pointer_declarator":
                    ctype = Pointer(None if ctype is v.VOID else ctype)
                case "reference_declarator" | "abstract_reference_declarator":
                    reference = True
                case "array_declarator" | "abstract_array_declarator":
                    ctype = self._array(ctype, declarator)
                    inner = declarator.child_by_field_name("declarator")
                    while inner is not None and inner.type in ("array_declarator", "abstract_array_declarator"):
                        inner = inner.child_by_field_name("declarator")
                    declarator = inner
                    continue
                case "function_declarator" | "abstract_function_declarator":
                    raise self.undecided("a pointer to a function", declarator)
            declarator = declarator.child_by_field_name("declarator") or next(
                (one for one in declarator.named_children if one.type.endswith("declarator")), None
            )
        return ctype, reference

    def _array(self, of: CType, declarator: tree_sitter.Node) -> CType:
        """The type of `a[2][3]`, whose declarators nest the other way round."""
        sizes: list[int | None] = []
        inner: tree_sitter.Node | None = declarator
        while inner is not None and inner.type in ("array_declarator", "abstract_array_declarator"):
            size = inner.child_by_field_name("size")
            sizes.append(self.constant(size) if size is not None else None)
            inner = inner.child_by_field_name("declarator")
        ctype = of
        for length in sizes:
            ctype = Array(ctype, length)
        return ctype

    # ---- variables of the program ---------------------------------------------------------------------------------

    def variable(self, name: str, node: tree_sitter.Node) -> Expr | None:
        """A constant or a variable that the file defines outside functions."""
        if name in self.program.enumerators:
            return self._enumerator(self.program.enumerators[name])
        if name in self._variables:
            return self.placed(self._variables[name])
        found = self.program.variables.get(name)
        if found is None or name in self._resolving:
            return None
        words = {text_of(one) for one in found.declaration.children}
        outer, self.scope = self.scope, Scope()
        self._resolving.add(name)
        try:
            if found.template is not None:
                raise self.undecided(f"'{name}' is a template", node)
            named = self.type_of(found.declaration.child_by_field_name("type"))
            value = found.declarator.child_by_field_name("value")
            inner = found.declarator
            if inner.type == "init_declarator":
                inner = inner.child_by_field_name("declarator") or inner
            if named is None:
                if value is None:
                    return None
                return self.expression(value)
            ctype, _ = self.declared(named, inner)
            if isinstance(ctype, Scalar) and value is not None and {"const", "constexpr"} & words:
                expr = self.converted(self._single(value), ctype, self.line(node))
                if expr.const is not UNKNOWN:
                    return expr
            if "__shared__" in words:
                place = self.shared_variable((name, found.declaration.id), name, ctype, dynamic="extern" in words)
            else:
                place = self._of_the_module(name, ctype, value, node)
            self._variables[name] = place
            return self.placed(place)
        finally:
            self.scope = outer
            self._resolving.discard(name)

    def variable_template(self, name: str, given: list[tree_sitter.Node], node: tree_sitter.Node) -> Expr:
        """A constant that is a template, for its arguments."""
        found = self.program.variables.get(name)
        value = found.declarator.child_by_field_name("value") if found is not None else None
        if found is None or found.template is None or value is None or name in self.program.special_variables:
            raise self.undecided(f"'{text_of(node)[:40]}' is defined elsewhere", node)
        arguments = [self.template_argument(one) for one in given]
        outer, self.scope = self.scope, Scope()
        try:
            self.bind_template(found.template, arguments, node)
            named = self.type_of(found.declaration.child_by_field_name("type"))
            expr = self._single(value)
            expr = self.converted(expr, named, self.line(node)) if named is not None else expr
        finally:
            self.scope = outer
        if expr.const is UNKNOWN:
            raise self.undecided(f"'{text_of(node)[:40]}' is not known before the run", node)
        return expr

    def _single(self, value: tree_sitter.Node) -> Expr:
        inner = children(value)
        return self.expression(inner[0] if value.type in ("initializer_list", "argument_list") and inner else value)

    def _enumerator(self, node: tree_sitter.Node) -> Expr:
        before: tree_sitter.Node | None = node
        steps = 0
        while before is not None and before.child_by_field_name("value") is None:
            before = before.prev_named_sibling
            while before is not None and before.type != "enumerator":
                before = before.prev_named_sibling
            steps += before is not None
        value = before.child_by_field_name("value") if before is not None else None
        return self.const((self.constant(value) if value is not None else 0) + steps, v.INT)

    def shared_variable(self, key: Any, name: str, ctype: CType, *, dynamic: bool) -> Place:
        """Shared memory: one for each declaration and instance of its function."""
        if key not in self._shared_keys:
            self._shared_keys[key] = self.new_key()
            self.shared[self._shared_keys[key]] = (name, None if dynamic else ctype.size)
        number = self._shared_keys[key]
        return Cell(ctype, lambda wave, lanes: [(wave.block.shared[number], 0)] * len(lanes), 0)

    def _of_the_module(self, name: str, ctype: CType, value: tree_sitter.Node | None, node: tree_sitter.Node) -> Place:
        number = self.new_key()
        fill = None
        if value is not None:
            cells = [(at, leaf, expr.const) for at, leaf, expr in self.initialised(value, ctype, self.line(node))]
            if any(const is UNKNOWN for _, _, const in cells):
                raise self.undecided(f"'{name}' is initialised with what is not known", node)

            def fill(buffer: Buffer) -> None:
                for at, leaf, const in cells:
                    buffer.cells[at] = (leaf, const, -1)

        self.constants[number] = (name, ctype.size, fill)
        return Cell(ctype, lambda wave, lanes: [(wave.launch.module[number], 0)] * len(lanes), 0)

    def code(self, body: Execute, parameters: list[tuple[str, CType, int]]) -> Code:
        """The finished kernel."""
        return Code(
            self.machine,
            body,
            self.slots,
            parameters,
            self.arrays,
            self.shared,
            self.constants,
            self.width_aware,
            self.is_ported,
            self.spans,
        )


def addressed_names(body: tree_sitter.Node) -> frozenset[str]:
    """The variables of a function whose address is taken."""
    found = set()
    for one in walk(body, "pointer_expression"):
        if text_of(one).startswith("&"):
            target = one.child_by_field_name("argument")
            while target is not None and target.type in ("parenthesized_expression", "field_expression"):
                target = target.child_by_field_name("argument") or next(iter(children(target)), None)
            if target is not None and target.type == "identifier":
                found.add(text_of(target))
    return frozenset(found)


def _is_nested(node: tree_sitter.Node) -> bool:
    around = node.parent
    while around is not None:
        if around.type in ("field_declaration_list", "compound_statement"):
            return True
        around = around.parent
    return False
