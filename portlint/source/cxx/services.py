"""The services that rules ask of C++ on top of the analysis: origins, callers, warps, sizes, conditions."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from portlint.condition import Environment, any_way, is_live, names
from portlint.regex import regex
from portlint.source import Analysis, nearby
from portlint.source.architectures import PARTS
from portlint.source.cxx import CxxAnalysis, widening
from portlint.source.cxx.assembly import Assembly, statements
from portlint.source.cxx.blocks import Blocks
from portlint.source.cxx.built import build_guards
from portlint.source.cxx.capability import condition, reached, rungs
from portlint.source.cxx.conditions import fits
from portlint.source.cxx.definers import is_defined_for
from portlint.source.cxx.includes import (
    Includes,
    builds_with_torch,
    constants_of,
    externs_of,
    headers_of_file,
    mentions,
    types_of,
)
from portlint.source.cxx.jit import with_macros
from portlint.source.cxx.kernels import Kernels
from portlint.source.cxx.numbers import Integer, literal
from portlint.source.cxx.storage import Storage
from portlint.source.cxx.twins import twin_guards
from portlint.source.cxx.users import INCLUDE_ROOTS, all_users_of
from portlint.source.cxx.variants import variant_guards
from portlint.source.cxx.warps import Warps
from portlint.source.language import CXX_HEADERS
from portlint.source.node import Node
from portlint.source.platforms import asks_for_architecture, asks_for_wave_width, differs_between_passes, is_every_hip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from portlint.condition import Expression, Guard, Value
    from portlint.source import Source
    from portlint.source.cxx.definitions import Definition
    from portlint.source.cxx.preprocessor import Macro

_DEPTH = 8
_MOST_CALLS = 64
_MOST_CHOICES = 256
"""expressions that one value may come from: names that are defined by each other would multiply them at each step"""
_MOST_CALLING = 24
"""files that may call a function; one with more may be called from anywhere"""
_DEEPEST_TREE = 10
"""folders between a source file and the top of its project"""
_OF_ARCHITECTURE = regex(rb"arch|(?<![a-z])sm_?\d|compute_cap", re.IGNORECASE)
_ARCHITECTURE = "__CUDA_ARCH__"
_BOUNDS = frozenset(("<", "<=", ">", ">="))
_SHARED_OF_DEVICE = regex(
    r"DevAttrMaxSharedMemoryPer|DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER|DeviceAttributeMaxSharedMemoryPer|\.sharedMemPer"
)


class CxxServices(CxxAnalysis, Analysis):
    """Everything that a rule may ask of one C++ file."""

    def __init__(self, source: Source) -> None:
        CxxAnalysis.__init__(self, source)
        self.source = source
        self._calls: dict[int, Guard | None] = {}
        self._chosen: dict[tuple[Node, int], tuple[Node, ...]] = {}

    @cached_property
    def warps(self) -> Warps:
        """How functions use their warps."""
        return Warps(self)

    @cached_property
    def storage(self) -> Storage:
        """Widths and sizes."""
        return Storage(self)

    @cached_property
    def blocks(self) -> Blocks:
        """How many threads blocks have."""
        return Blocks(self)

    @cached_property
    def kernels(self) -> Kernels:
        """Kernels as values."""
        return Kernels(self)

    @cached_property
    def includes(self) -> Includes:
        """The headers of the same tree that the file includes."""
        return Includes(self.source.file, self.source.text, self.preprocessor)

    def guards(self, node: Node) -> tuple[Guard, ...]:
        """The conditions under which a node is live, macros of the tree's headers resolved.

        In a device function that only this file can call, one of the calls must be live as well.
        """
        return self._around(node, super().guards(node))

    def guards_as_written(self, node: Node) -> tuple[Guard, ...]:
        """The same, with the macros of headers as they are: shorter."""
        return (*self._guards_from_outside(node), *super().guards(node))

    def _around(self, node: Node, own: tuple[Guard, ...]) -> tuple[Guard, ...]:
        """A node's own guards, macros of headers resolved, with those of its file and of the calls of its function."""
        resolved = with_macros(tuple(map(self.includes.resolve, own)), self.source.file)
        return (*self._guards_from_outside(node), *resolved)

    def _guards_from_outside(self, node: Node) -> tuple[Guard, ...]:
        called = self._guard_of_calls(node)
        return (*self._file_guards, *([] if called is None else [called]))

    @cached_property
    def _file_guards(self) -> tuple[Guard, ...]:
        """The conditions under which the file is built at all."""
        file = self.source.file
        return (*twin_guards(file), *build_guards(file), *variant_guards(file))

    def _guard_of_calls(self, node: Node) -> Guard | None:
        function = self.enclosing_function(node)
        if function is None:
            return None
        if function.start not in self._calls:
            self._calls[function.start] = None  # a function that calls itself needs a call from elsewhere
            self._calls[function.start] = self._read_guard_of_calls(function)
        return self._calls[function.start]

    def _read_guard_of_calls(self, function: Node) -> Guard | None:
        info = self.function(function)
        if info is None or not info.is_device or info.is_kernel or info.is_host:
            return None
        name = info.name.rpartition("::")[2]
        calls = self._calls_from_anywhere(name)
        if not calls or len(calls) > _MOST_CALLS:
            return None
        for guards in (CxxServices.guards, CxxServices.guards_as_written):
            ways = dict.fromkeys(guards(services, call) for services, call in calls)
            called = any_way(ways, name, function.line)
            if not all(ways) or fits(called.condition):
                return called if all(ways) else None
        return None

    def _calls_from_anywhere(self, name: str) -> list[tuple[CxxServices, Node]] | None:
        """The calls of a function, by this file and by those that include it; None where it may have others."""
        users = all_users_of(self.source.file)
        if not users and self.source.path.endswith(CXX_HEADERS):
            return None
        others = _services_of(users, name, self.source.file)
        found: list[tuple[CxxServices, Node]] = []
        for services in (self, *others) if others is not None else ():
            calls = services.calls_of(name)
            if calls is None:
                return None
            found += [(services, call) for call in calls]
        return found

    def calls_of(self, name: str) -> list[Node] | None:
        """The calls of a function in this file; None where its name is used otherwise, to pass it on."""
        root, found = self.source.tree.root_node, list[Node]()
        for place in re.finditer(rb"\b" + re.escape(name.encode()) + rb"\b", self.masked):
            raw = root.descendant_for_byte_range(*place.span())
            call = _called_by(Node(self.source, raw)) if raw is not None else None
            if call is None:
                return None
            found += [call] if call.type == "call_expression" else []
        return found

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

    def ladder(self, node: Node) -> list[tuple[Node, tuple[Guard, ...]]]:
        """What a value comes to by the compute capability, each with the guards that it and its place need."""
        around = (*self.guards(node), *reached(node))
        found: list[tuple[Node, tuple[Guard, ...]]] = []
        for choice in [node] if self.constant(node) is not None else self._kept(node, _DEPTH):
            for returned in self._returned(choice) or [choice]:
                places = (*self.guards(returned), *reached(returned))
                found += [(rung, (*around, *places, *guards)) for rung, guards in rungs(returned)]
        return found

    def _kept(self, node: Node, depth: int) -> list[Node]:
        """What a value is written as, through variables that nothing changes."""
        declared = self._definitions(node)
        if len(declared) != 1 or declared[0].value is None or not depth or not self.constants.keeps(declared[0]):
            return [node]
        return self._kept(Node(self.source, declared[0].value), depth - 1)

    def _returned(self, call: Node) -> list[Node]:
        """What a function of the file returns, of a call of it."""
        if call.type != "call_expression":
            return []
        function = self.called(call)
        returns = function.walk("return_statement") if function is not None else ()
        return [one.children[0] for one in returns if one.children]

    @cached_property
    def _functions_by_name(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for function in Node(self.source, self.source.tree.root_node).walk("function_definition"):
            found.setdefault(self.name(function).rpartition("::")[2], []).append(function)
        return found

    def role(self, node: Node, role: str) -> bool:
        """Whether a node has a role: see `ROLES`, and `CxxAnalysis.role` for those that follow the dataflow."""
        ask = ROLES.get(role)
        return ask(self, node) if ask is not None else super().role(node, role)

    def choices(self, node: Node) -> list[Node]:
        """The expressions that a value may come from: the literals and expressions that its names are defined as."""
        return list(self._choices(node, _DEPTH))

    def _choices(self, node: Node, depth: int) -> tuple[Node, ...]:
        if (node, depth) not in self._chosen:
            self._chosen[node, depth] = tuple(islice(self._followed(node, depth), _MOST_CHOICES))
        return self._chosen[node, depth]

    def _followed(self, node: Node, depth: int) -> Iterator[Node]:
        if node.type == "parenthesized_expression" and node.children:
            yield from self._choices(node.children[0], depth)
        elif node.type == "identifier" and depth:
            for value in (*self._macro_values(node), *self._declared_values(node)):
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

    @cached_property
    def assembly(self) -> list[Assembly]:
        """The `asm` statements of the file, macros of the tree's headers resolved in their guards."""
        return [msgspec.structs.replace(one, guards=self._around(one.node, one.guards)) for one in statements(self)]

    def warp_operations(self, function: Node) -> list[Node]:
        """What a function does whose result depends on how many lanes a warp really has."""
        return self.warps.operations(function)

    def launched_bytes(self, call: Node) -> Node | None:
        """The dynamic shared memory that a kernel launch asks for."""
        launch = self.launch(call)
        return launch.shared if launch is not None else None

    def launched_block(self, call: Node) -> Node | None:
        """The size of the blocks of a kernel launch."""
        launch = self.launch(call)
        return launch.block if launch is not None else None

    def block_sizes(self, block: Node) -> list[tuple[int, tuple[Guard, ...]]]:
        """The threads that a block size comes to, each number with the guards that it needs."""
        return self.blocks.sizes(block)

    def block_written(self, block: Node) -> Node:
        """Where a block size is written: the dimensions of its variable, or the size itself."""
        return self.blocks.written(block)

    def extent(self, array: Node) -> int | None:
        """The number of elements in the first dimension of a declared array."""
        return self.storage.extent(array)

    def storage_bytes(self, array: Node) -> int | None:
        """The bytes that a declared array takes, where its type and all dimensions are known."""
        return self.storage.bytes_of(array)

    def instance_bytes(self, array: Node) -> dict[tuple[Guard, ...], int]:
        """The most bytes that an array of a template takes in the instances that the file names, by their guards."""
        return self.storage.bytes_in_instances(array)

    def values_within(self, node: Node, arguments: dict[str, Node]) -> tuple[tuple[Value, tuple[Guard, ...]], ...]:
        """The values of an expression of a template, with these arguments for its parameters."""
        raw = {name: one.raw for name, one in arguments.items()}
        return self.constants.values_within(node.raw, self.preprocessor.guards_at(node.start), raw)

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

    def called(self, call: Node) -> Node | None:
        """The definition of the function that a call names, if the file has exactly one by that name."""
        functions = self._functions_by_name.get(self.name(call).rpartition("::")[2], [])
        return functions[0] if len(functions) == 1 else None

    def is_first_use(self, name: Node) -> bool:
        """Whether the code of the file does not have the word before, live under the same conditions."""
        guards = self.guards(name)
        return not any(use.start < name.start and self.guards(use) == guards for use in self.uses(name))

    def is_read_elsewhere(self, name: str) -> bool:
        """Whether a file that includes this header uses a name; True where nobody is known to include it."""
        return self.includes.is_read_elsewhere(name)

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
        """The macros, functions, types, external variables and namespace-level constants of the file."""
        root = Node(self.source, self.source.tree.root_node)
        functions = {self.name(one).rpartition("::")[2] for one in root.walk("function_definition")}
        variables = constants_of(self.masked) | externs_of(self.masked)
        return frozenset(functions | self.preprocessor.macros.keys() | variables | types_of(self.masked))


_TEMPLATES = ("template_function", "template_method")
_QUALIFIED = ("qualified_identifier", "field_expression", "dependent_name")


def _called_by(name: Node) -> Node | None:
    """The call that a name is the function of, or the declarator that it is declared by; None for other uses."""
    used, parent = name, name.parent
    while parent is not None and (
        (parent.type in _TEMPLATES and parent.children[0] == used)
        or (parent.type in _QUALIFIED and parent.end == used.end)
    ):
        used, parent = parent, parent.parent
    if parent is None or parent.type not in ("call_expression", "function_declarator"):
        return None
    if any(True for _ in parent.ancestors("template_instantiation")):
        return None  # compiled whoever calls it
    return parent if parent.children[0] == used else None


def _services_of(users: list[str], name: str, without: str) -> list[CxxServices] | None:
    """The services for those that mention a name, of some files and of the headers that they bring in.

    None where they are too many to read, or one cannot be read: what it calls is not known.
    """
    brought = (header.path for user in users for header in headers_of_file(user))
    named = [one for one in dict.fromkeys((*users, *brought)) if one != without and mentions(one, name)]
    sources = [nearby.opened(one, "cuda") for one in named] if len(named) <= _MOST_CALLING else [None]
    found = [source.analysis for source in sources if source is not None]
    return [one for one in found if isinstance(one, CxxServices)] if len(found) == len(sources) else None


def _keeps_32_bits(services: CxxServices, node: Node) -> bool:
    keeper = services.storage.keeper(node)
    return keeper is not None and services.storage.has_32_bits(keeper)


def _is_compared_with_the_device(services: CxxServices, size: Node) -> bool:
    """Whether a function of the file compares the constant that a size is with the shared memory of the device."""
    for _ in range(_DEPTH):
        if size.type != "identifier":
            return False
        if any(_is_compared_in_query(services, use) for use in services.uses(size)):
            return True
        values = services._declared_values(size)
        if len(values) != 1:
            return False
        size = values[0]
    return False


def _is_compared_in_query(services: CxxServices, use: Node) -> bool:
    """Whether a name is one side of a comparison in a function that asks the device for its shared memory."""
    around = use.parent
    if around is None or around.type != "binary_expression" or around["operator"].text not in _BOUNDS:
        return False
    function = services.enclosing_function(use)
    return function is not None and _SHARED_OF_DEVICE.search(function.text) is not None


def _is_torch_extension(services: CxxServices, node: Node) -> bool:
    """Whether PyTorch's hipify translates the file: it includes PyTorch's headers, or a setup.py speaks of torch."""
    del node
    if "torch/extension.h" in services.source.headers:
        return True
    if re.search(rb"#\s*include\s*[<\"](torch|ATen|c10)/", services.source.text):
        return True
    setup = nearby.find(services.source.file, "setup.py", levels=_DEEPEST_TREE)
    return setup is not None and builds_with_torch(setup)


def _is_for_every_hip(services: CxxServices, node: Node) -> bool:
    guards = services.guards(node)
    return is_every_hip(guards) and not asks_for_architecture(guards)


def _is_of_the_toolkit(services: CxxServices, call: Node) -> bool:
    """Whether a call means the toolkit's function: the tree at most renames it, `#define cudaFree hipFree`."""
    name = services.name(call).rpartition("::")[2]
    if not services.defines(name):
        return True
    directives = (services.preprocessor, *(header.preprocessor for header in services.includes.headers))
    macros = [macro for one in directives for macro in one.macros.get(name, ())]
    return bool(macros) and all(macro.parameters is None for macro in macros)


def _runs_on_the_device_only(services: CxxServices, node: Node) -> bool:
    """Whether the function around a node says that it runs on the device, and not on the host as well."""
    function = services.function(node)
    return function is not None and (function.is_kernel or (function.is_device and not function.is_host))


def _is_written_for_hip(services: CxxServices, node: Node) -> bool:
    """Whether the file, or a header that it brings in, includes HIP's headers whatever the platform."""
    del node
    return services.source.file.endswith(".hip") or services.includes.brings("hip/")


def _is_of_the_tree(services: CxxServices, path: Node) -> bool:
    """Whether the tree holds the header that an include names, or its library's main one: it is being ported."""
    header = path.text[1:-1]
    library, _, rest = header.partition("/")
    names = (header, f"{library}/{library}.h") if rest else (header,)
    return any(nearby.find(services.source.file, name, INCLUDE_ROOTS, _DEEPEST_TREE) is not None for name in names)


def _is_behind_an_architecture(services: CxxServices, node: Node) -> bool:
    """Whether a constant that is computed from the architecture, in a way that cannot be followed, decides about it."""
    asked = frozenset[str]().union(*(names(guard.condition) for guard in services.guards(node)))
    found = (one.value for name in asked for one in services.definitions.declared(name, node.start))
    return any(value is not None and _OF_ARCHITECTURE.search(value.text or b"") for value in found)


def _is_stored_to(services: CxxServices, node: Node) -> bool:
    del services
    parent = node.parent
    return parent is not None and parent.type == "assignment_expression" and parent["left"] == node


def _is_for_every_architecture(services: CxxServices, branch: Node) -> bool:
    """Whether an `#if` holds wherever `__CUDA_ARCH__` is defined, whatever part it stands for, and nowhere else."""
    if len(branch.children) < 2:
        return False
    inside = services.preprocessor.guards_at(branch.children[1].start)
    outside = services.preprocessor.guards_at(branch.start)
    own = inside[len(outside) :]
    if len(own) != 1 or names(own[0].condition) != {_ARCHITECTURE}:
        return False
    built = (is_live(own, Environment({_ARCHITECTURE: number * 10})) for number in PARTS)
    return all(one is True for one in built) and is_live(own, Environment({}, frozenset([_ARCHITECTURE]))) is False


ROLES: dict[str, Callable[[CxxServices, Node], bool]] = {
    "compared-with-the-device": _is_compared_with_the_device,
    "unsigned": widening.is_unsigned,
    "may-be-64-bit": widening.may_widen,
    "may-be-declared-64-bit": widening.may_be_declared_wide,
    "32-bit": lambda services, node: services.storage.has_32_bits(node),
    "kept-in-32-bits": _keeps_32_bits,
    "stored-to": _is_stored_to,
    "device-only": _runs_on_the_device_only,
    "written-for-hip": _is_written_for_hip,
    "of-the-toolkit": _is_of_the_toolkit,
    "kernel-value": lambda services, node: services.kernels.is_kernel_value(node),
    "torch-extension": _is_torch_extension,
    "behind-an-architecture": _is_behind_an_architecture,
    "header-of-the-tree": _is_of_the_tree,
    "defined-by-the-project": lambda services, name: is_defined_for(services.source.file, name.text),
    "at-most-32-threads": lambda services, node: services.warps.is_one_group(node),
    "groups-of-32": lambda services, node: services.warps.works_in_groups(node),
    "linear-thread": lambda services, node: services.roles.has(node.raw, "linear"),
    "shuffle": lambda services, node: services.warps.is_shuffle(node),
    "group-width": lambda services, node: services.warps.has_group_width(node),
    "first-32-threads": lambda services, node: services.warps.is_in_first_group(node),
    "chosen-lane": lambda services, node: services.warps.is_chosen_lane(node),
    "several-lanes": lambda services, node: services.warps.is_in_several_lanes(node),
    "hardware-lane": lambda services, node: services.warps.is_hardware_lane(node),
    "bounded": lambda services, node: services.warps.is_bounded(node),
    "admits-32-threads": lambda services, node: services.warps.admits_first_group(node),
    "every-hip": _is_for_every_hip,
    "by-architecture": lambda services, node: asks_for_architecture(services.guards(node)),
    "by-wave-width": lambda services, node: asks_for_wave_width(services.guards(node)),
    "by-device-pass": lambda services, node: differs_between_passes(services.guards(node)),
    "for-every-architecture": _is_for_every_architecture,
}
"""roles of values and functions beside those that follow the dataflow"""
