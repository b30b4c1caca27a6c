"""The services that rules ask of C++ on top of the analysis: origins, callers, warps, sizes, conditions."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from portlint.source import Analysis, nearby
from portlint.source.cxx import CxxAnalysis
from portlint.source.cxx.built import build_guards
from portlint.source.cxx.capability import condition
from portlint.source.cxx.includes import Includes, builds_with_torch, constants_of, types_of
from portlint.source.cxx.numbers import Integer, literal
from portlint.source.cxx.storage import Storage
from portlint.source.cxx.twins import twin_guards
from portlint.source.cxx.warps import Warps
from portlint.source.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from portlint.condition import Expression, Guard, Value
    from portlint.source import Source
    from portlint.source.cxx.definitions import Definition
    from portlint.source.cxx.preprocessor import Macro

_DEPTH = 8


class CxxServices(CxxAnalysis, Analysis):
    """Everything that a rule may ask of one C++ file."""

    def __init__(self, source: Source) -> None:
        CxxAnalysis.__init__(self, source)
        self.source = source

    @cached_property
    def warps(self) -> Warps:
        """How functions use their warps."""
        return Warps(self)

    @cached_property
    def storage(self) -> Storage:
        """Widths and sizes."""
        return Storage(self)

    @cached_property
    def includes(self) -> Includes:
        """The headers of the same tree that the file includes."""
        return Includes(self.source.file, self.source.text, self.preprocessor)

    def guards(self, node: Node) -> tuple[Guard, ...]:
        """The conditions under which a node is live, macros of the tree's headers resolved."""
        own = tuple(self.includes.resolve(guard) for guard in super().guards(node))
        return (*twin_guards(self.source.file), *build_guards(self.source.file), *own)

    def constant(self, node: Node) -> Value:
        """The value of an expression if it has exactly one where it stands; of a macro's text, that of its body."""
        if (macro := self.macro_of(node)) is None:
            return super().constant(node)
        if (body := self._body_of(macro)) is not None:
            return super().constant(Node(self.source, body))
        number = literal(macro.body)
        return number.value if isinstance(number, Integer) else number

    def condition(self, node: Node) -> Expression:
        """The condition that a host test of the compute capability amounts to."""
        return condition(node)

    def role(self, node: Node, role: str) -> bool:
        """Whether a node has a role: see `ROLES`, and `CxxAnalysis.role` for those that follow the dataflow."""
        ask = ROLES.get(role)
        return ask(self, node) if ask is not None else super().role(node, role)

    def choices(self, node: Node) -> list[Node]:
        """The expressions that a value may come from: the literals and expressions that its names are defined as."""
        return list(self._choices(node, _DEPTH))

    def _choices(self, node: Node, depth: int) -> Iterator[Node]:
        if node.type == "parenthesized_expression" and node.children:
            yield from self._choices(node.children[0], depth)
        elif node.type == "identifier" and depth:
            found = [*self._macro_values(node), *self._declared_values(node)]
            for value in found:
                yield from self._choices(value, depth - 1)
        else:
            yield node

    def origin(self, node: Node) -> Node:
        """The only expression that a value may come from, else the node itself."""
        found = self.choices(node)
        only = found[0] if len(found) == 1 else node
        return self.body_of_text(only) or only

    def imports(self, module: str) -> bool:
        """Whether the file includes a header of that name."""
        if module in self.source.headers:
            return True
        return f"<{module}>".encode() in self.source.text or f'"{module}"'.encode() in self.source.text

    def defines(self, name: str) -> bool:
        """Whether the file has a macro or a function of that name: a shim for a builtin that a platform lacks."""
        bare = name.rpartition("::")[2]
        return bare in self._own_names or self.includes.defines(bare)

    def warp_operations(self, function: Node) -> list[Node]:
        """What a function does whose result depends on how many lanes a warp really has."""
        return self.warps.operations(function)

    def launched_bytes(self, call: Node) -> Node | None:
        """The dynamic shared memory that a kernel launch asks for."""
        launch = self.launch(call)
        return launch.shared if launch is not None else None

    def extent(self, array: Node) -> int | None:
        """The number of elements in the first dimension of a declared array."""
        return self.storage.extent(array)

    def storage_bytes(self, array: Node) -> int | None:
        """The bytes that a declared array takes, where its type and all dimensions are known."""
        return self.storage.bytes_of(array)

    def uses(self, name: Node) -> list[Node]:
        """The uses of a name in the same file, macro bodies included, its definition left out."""
        root = self.source.tree.root_node
        places = re.finditer(rb"\b" + re.escape(name.text.encode()) + rb"\b", self.masked)
        found = (root.descendant_for_byte_range(*one.span()) for one in places if one.start() != name.start)
        return [Node(self.source, raw) for raw in found if raw is not None]

    def callers(self, function: Node) -> list[Node]:
        """The calls of a function by its name in the same file."""
        name = self.name(function).rpartition("::")[2]
        return self._calls_by_name.get(name, [])

    def macro_of(self, text: Node) -> Macro | None:
        """The macro whose body a text after `#define NAME` is, comments and all; None for any other node."""
        return self._macros_by_body.get(text.start) if text.type == "preproc_arg" else None

    def body_of_text(self, text: Node) -> Node | None:
        """The parsed body that the text after `#define NAME` stands for, where it has more than one token."""
        macro = self.macro_of(text)
        body = self._body_of(macro) if macro is not None else None
        return Node(self.source, body) if body is not None else None

    def bodies_of_macro(self, name: str) -> list[Node]:
        """The parsed bodies of a macro."""
        bodies = (self._body_of(macro) for macro in self.preprocessor.macros.get(name, ()))
        return [Node(self.source, body) for body in bodies if body is not None]

    def declaration(self, name: Node) -> Node | None:
        """The declarator that a name means, if there is only one: `x[32]` of `float x[32]`."""
        found = self.declarations_of(name)
        return found[0] if len(found) == 1 else None

    def declarations_of(self, name: Node) -> list[Node]:
        """The declarators that a name may mean."""
        found: list[Node] = []
        for definition in self._definitions(name):
            around = Node(self.source, definition.node)
            declarators = [one for one in around.walk("array_declarator") if one.start == definition.offset]
            found += declarators[:1] or [around]
        return found

    def types_of(self, name: Node) -> list[str]:
        """The types that a name is declared with, as they are written; "" for one that is not plain."""
        kinds: list[str] = []
        for definition in self._definitions(name):
            declaration = Node(self.source, definition.node)
            kind = declaration.get("type") or next((one["type"] for one in declaration.ancestors("declaration")), None)
            pointed = any(True for _ in declaration.walk("pointer_declarator", "reference_declarator"))
            kinds.append(kind.text if kind is not None and not pointed else "")
        return kinds

    def _definitions(self, name: Node) -> list[Definition]:
        return self.definitions.declared(name.text, name.start) if name.type == "identifier" else []

    def _declared_values(self, name: Node) -> list[Node]:
        return [Node(self.source, one.value) for one in self._definitions(name) if one.value is not None]

    def _macro_values(self, name: Node) -> list[Node]:
        values: list[Node] = []
        for macro in self.definitions.macros(name.text, name.start):
            if macro.parameters is None and macro.body:
                raw = self.source.tree.root_node.descendant_for_byte_range(macro.body_start, macro.body_end)
                values += [Node(self.source, raw)] if raw is not None else []
        return values

    @cached_property
    def _macros_by_body(self) -> dict[int, Macro]:
        return {one.body_start: one for many in self.preprocessor.macros.values() for one in many}

    @cached_property
    def _calls_by_name(self) -> dict[str, list[Node]]:
        calls: dict[str, list[Node]] = {}
        for root in self.roots():
            for call in Node(self.source, root).walk("call_expression"):
                calls.setdefault(self.name(call).rpartition("::")[2], []).append(call)
        return calls

    @cached_property
    def _own_names(self) -> frozenset[str]:
        """The macros, functions, types and namespace-level constants of the file."""
        root = Node(self.source, self.source.tree.root_node)
        functions = {self.name(one).rpartition("::")[2] for one in root.walk("function_definition")}
        return frozenset(
            functions | self.preprocessor.macros.keys() | constants_of(self.masked) | types_of(self.masked)
        )


def _keeps_32_bits(services: CxxServices, node: Node) -> bool:
    keeper = services.storage.keeper(node)
    return keeper is not None and services.storage.has_32_bits(keeper)


def _is_torch_extension(services: CxxServices, node: Node) -> bool:
    """Whether PyTorch's hipify translates the file: it includes PyTorch's headers, or a setup.py speaks of torch."""
    del node
    if "torch/extension.h" in services.source.headers:
        return True
    if re.search(rb"#\s*include\s*[<\"](torch|ATen|c10)/", services.source.text):
        return True
    setup = nearby.find(services.source.file, "setup.py")
    return setup is not None and builds_with_torch(setup)


def _is_stored_to(services: CxxServices, node: Node) -> bool:
    del services
    parent = node.parent
    return parent is not None and parent.type == "assignment_expression" and parent["left"] == node


ROLES: dict[str, Callable[[CxxServices, Node], bool]] = {
    "32-bit": lambda services, node: services.storage.has_32_bits(node),
    "kept-in-32-bits": _keeps_32_bits,
    "stored-to": _is_stored_to,
    "torch-extension": _is_torch_extension,
    "at-most-32-threads": lambda services, node: services.warps.is_one_group(node),
    "groups-of-32": lambda services, node: services.warps.works_in_groups(node),
    "shuffle": lambda services, node: services.warps.is_shuffle(node),
    "group-width": lambda services, node: services.warps.has_group_width(node),
    "first-32-threads": lambda services, node: services.warps.is_in_first_group(node),
    "hardware-lane": lambda services, node: services.warps.is_hardware_lane(node),
    "bounded": lambda services, node: services.warps.is_bounded(node),
}
"""roles of values and functions beside those that follow the dataflow"""
