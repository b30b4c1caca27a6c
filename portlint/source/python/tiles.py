"""Tiles of a Triton kernel: the shapes of its blocks, and which of them its products take from memory.

Everything is asked under a configuration, which gives the kernel's parameters their values. A shape that is not known
is None; so is one dimension of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from portlint.source.python.constants import constant
from portlint.source.python.pipelines import Load, Product, Stage
from portlint.source.python.queries import calls_of
from portlint.source.python.triton import OPTIONS
from portlint.source.python.values import dtype_bytes

if TYPE_CHECKING:
    from portlint.condition import Value
    from portlint.source.node import Node
    from portlint.source.python.scopes import Binding, Scopes
    from portlint.source.python.triton import Triton
    from portlint.source.python.values import Values

_DEPTH = 96
"""how far a shape is followed; every expression is looked at once"""
_LANGUAGE = "triton.language."
_SCALARS = frozenset(("program_id", "num_programs", "cdiv", "multiple_of"))
_FILLED = {"zeros": "shape", "full": "shape", "broadcast_to": "shape", "reshape": "shape", "view": "shape"}
_ELEMENTWISE = frozenset(
    "where maximum minimum exp exp2 log log2 sqrt rsqrt abs fma clamp sigmoid sin cos cast max_contiguous multiple_of"
    " math.exp math.exp2 math.log math.log2 math.rsqrt math.sqrt".split()
)
_REDUCTIONS = frozenset(("sum", "max", "min", "argmax", "argmin", "xor_sum"))
_BUILTINS = frozenset(("min", "max", "sum", "len", "int", "float"))
_KEEPING = frozenset(("to", "cast"))
_PIPELINED = frozenset(("range", "triton.language.range"))
"""the loops that are pipelined: not `while`, and not `tl.static_range`, which is unrolled"""

_MASKS = ((1, "mask"), (3, "boundary_check"))
"""where `tl.load` takes what bounds it"""

Shape: TypeAlias = "tuple[int | None, ...]"
Key: TypeAlias = "frozenset[tuple[str, Value]]"


class _Loaded(msgspec.Struct, frozen=True):
    """A call of `tl.load`, and whether what uses the tile takes it transposed."""

    call: Node
    is_turned: bool = False


class Tiles:
    """The tiles of the kernels of one file."""

    def __init__(self, scopes: Scopes, triton: Triton, host: Values) -> None:
        self.scopes = scopes
        self.triton = triton
        self.host = host
        self._shapes: dict[tuple[Key, int, int], Shape | None] = {}
        self._stages: dict[tuple[Key, int], Stage] = {}

    # ---- shapes ----------------------------------------------------------------------------------------------------

    def shape(self, node: Node, values: Mapping[str, Value], depth: int = _DEPTH) -> Shape | None:
        """The shape of an expression of a kernel; () for a scalar, None where it is not known."""
        if not depth:
            return None
        key = _key(values), node.start, node.end
        if key not in self._shapes:
            self._shapes[key] = None  # what depends on itself is not known
            self._shapes[key] = self._infer(node, values, depth)
        return self._shapes[key]

    def _infer(self, node: Node, values: Mapping[str, Value], depth: int) -> Shape | None:
        def inner(child: Node) -> Shape | None:
            return self.shape(child, values, depth - 1)

        match node.type:
            case "integer" | "float" | "true" | "false" | "string":
                return ()
            case "parenthesized_expression" | "unary_operator" | "not_operator":
                child = node.get("argument") or next(iter(node.children), None)
                return inner(child) if child is not None else None
            case "binary_operator":
                return _broadcast(inner(node["left"]), inner(node["right"]))
            case "comparison_operator" | "boolean_operator":
                return self._elementwise(node.children, values, depth)
            case "subscript":
                return self._indexed(node, inner(node["value"]))
            case "attribute":
                owner = inner(node["object"]) if node["attribute"].text == "T" else None
                return owner[::-1] if owner is not None else None
            case "identifier":
                return self._named(node, values, depth)
            case "call":
                return self._called(node, values, depth)
        return None

    def _named(self, node: Node, values: Mapping[str, Value], depth: int) -> Shape | None:
        if node.text in values:
            return ()
        binding = self.scopes.binding(node.text, node)
        if binding is None:
            return None
        if binding.kind == "augmented":  # `a += BLOCK_K` keeps the shape that `a` had
            earlier = [one for one in self.scopes.bindings(node.text, node) if one.kind != "augmented"]
            binding = earlier[0] if earlier else None
        if binding is None:
            return None
        if binding.kind == "parameter":
            return self._parameter(node, binding)
        if binding.kind == "loop":
            return ()
        return self.shape(binding.value, values, depth - 1) if binding.kind == "assign" and binding.value else None

    def _parameter(self, node: Node, binding: Binding) -> Shape | None:
        """A parameter of a kernel that the host launches is a pointer or a number; that of a helper may be a block."""
        function = self.scopes.function(node)
        if function is None or "constexpr" in binding.annotation:
            return ()
        is_launched = bool(self.scopes.launches(function)) or any(one.kernel == function for one in self.triton.tuned)
        return () if is_launched else None

    def _indexed(self, node: Node, shape: Shape | None) -> Shape | None:
        """`x[:, None]`: a colon keeps a dimension, None adds one."""
        if shape is None:
            return None
        rest = list(shape)
        result: list[int | None] = []
        for index in node.children[1:]:
            if index.type == "none":
                result.append(1)
            elif index.type == "slice" and rest:
                result.append(rest.pop(0))
            else:
                return None
        return (*result, *rest)

    def _called(self, call: Node, values: Mapping[str, Value], depth: int) -> Shape | None:
        function = call["function"]
        name = call.name
        arguments = call.arguments
        if name in _BUILTINS:
            return self._elementwise(arguments, values, depth)
        if not name.startswith(_LANGUAGE):
            return self._method(call, values, depth) if function.type == "attribute" else None
        name = name.removeprefix(_LANGUAGE)
        first = arguments[0] if arguments else None
        if name in _SCALARS and name != "multiple_of":
            return ()
        if name == "arange":
            start, end = (self._number(call.argument(i, word), values) for i, word in enumerate(("start", "end")))
            return None if start is None or end is None else (end - start,)
        if name in _FILLED:
            return self._dimensions(call.argument(0 if name in ("zeros", "full") else 1, "shape"), values)
        if name == "make_block_ptr":
            return self._dimensions(call.argument(4, "block_shape"), values)
        if name == "make_tensor_descriptor":
            return self._dimensions(call.argument(3, "block_shape"), values)
        if first is None:
            return None
        if name in ("load", "advance", "load_tensor_descriptor"):
            return self.shape(first, values, depth - 1)
        if name == "trans" and len(arguments) == 1:
            turned = self.shape(first, values, depth - 1)
            return turned[::-1] if turned is not None else None
        if name == "dot":
            left, right = (self.shape(one, values, depth - 1) for one in self.operands(call) or (first, first))
            return (left[-2], right[-1]) if left and right and len(left) == len(right) == 2 else None
        if name in _REDUCTIONS and call.argument(None, "keep_dims") is None:
            return self._reduced(call.argument(1, "axis"), self.shape(first, values, depth - 1))
        if name == "expand_dims":
            return self._expanded(call, self.shape(first, values, depth - 1))
        return self._elementwise(arguments, values, depth) if name in _ELEMENTWISE else None

    def _elementwise(self, operands: list[Node], values: Mapping[str, Value], depth: int) -> Shape | None:
        result: Shape | None = ()
        for one in operands:
            result = _broadcast(result, self.shape(one, values, depth - 1))
        return result

    def _method(self, call: Node, values: Mapping[str, Value], depth: int) -> Shape | None:
        owner = call["function"]["object"]
        method = call["function"]["attribute"].text
        shape = self.shape(owner, values, depth - 1) if method in (*_KEEPING, "load", "trans") else None
        return shape[::-1] if method == "trans" and shape is not None else shape

    def _reduced(self, axis: Node | None, shape: Shape | None) -> Shape | None:
        at = axis.constant if axis is not None else None
        if shape is None or not isinstance(at, int) or not -len(shape) <= at < len(shape):
            return () if axis is None and shape is not None else None
        return (*shape[: at % len(shape)], *shape[at % len(shape) + 1 :])

    def _expanded(self, call: Node, shape: Shape | None) -> Shape | None:
        axis = call.argument(1, "axis")
        at = axis.constant if axis is not None else None
        if shape is None or not isinstance(at, int):
            return None
        at = at if at >= 0 else len(shape) + 1 + at
        return (*shape[:at], 1, *shape[at:])

    def _dimensions(self, node: Node | None, values: Mapping[str, Value]) -> Shape | None:
        """A shape that is written: each dimension that is known."""
        if node is None:
            return None
        parts = node.children if node.type in ("tuple", "list") else [node]
        return tuple(self._number(part, values) for part in parts)

    def _number(self, node: Node | None, values: Mapping[str, Value]) -> int | None:
        """A number under the configuration, followed through names that the kernel gives a value."""
        value = constant(self.scopes, node, known=values) if node is not None else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    # ---- products --------------------------------------------------------------------------------------------------

    def operands(self, dot: Node) -> tuple[Node, Node] | None:
        """The two factors of `tl.dot`."""
        left, right = dot.argument(0, "input"), dot.argument(1, "other")
        return None if left is None or right is None else (left, right)

    def products(self, kernel: Node) -> list[Node]:
        """The calls of `tl.dot` in a kernel."""
        named = calls_of(self.scopes.source, ("dot",))
        return [call for call in named if kernel.start < call.start < kernel.end and call.name == f"{_LANGUAGE}dot"]

    def staged(self, kernel: Node, values: Mapping[str, Value]) -> Stage:
        """What the loop of a kernel that loads most for `tl.dot` needs shared memory for, as far as it is known."""
        key = _key(values), kernel.start
        if key not in self._stages:
            loops: dict[int, list[Node]] = {}
            for dot in self.products(kernel):
                loop = next(dot.ancestors("for_statement", "while_statement"), None)
                if loop is not None and loop.type == "for_statement" and _is_pipelined(loop):
                    loops.setdefault(loop.start, []).append(dot)
            stages = [self._stage(dots, values) for dots in loops.values()]
            self._stages[key] = max(stages, key=lambda stage: stage.elements, default=Stage())
        return self._stages[key]

    def _stage(self, dots: list[Node], values: Mapping[str, Value]) -> Stage:
        loop = next(dots[0].ancestors("for_statement"))
        seen: set[int] = set()
        products = tuple(self._product(dot, loop, values, seen) for dot in dots)
        return Stage(products, len(dots) == 2 and self._may_be_chained(dots, loop))

    def _product(self, dot: Node, loop: Node, values: Mapping[str, Value], seen: set[int]) -> Product:
        """A product, with the loads that no product before it has."""
        height, width = (self.shape(dot, values) or (None, None))[-2:]
        loads: dict[str, Load] = {}
        held: Load | None = None
        depth = 0
        for side, operand in zip(("left", "right"), self.operands(dot) or (), strict=False):
            if (found := self._loaded(operand, loop)) is not None:
                if found.call.start not in seen and not self._is_indirect(found.call, loop):
                    seen.add(found.call.start)
                    if (load := self._load(found, values)) is not None:
                        loads[side] = load
            elif (before := self._loaded(operand, loop, is_before=True)) is not None:
                held = self._load(before, values)
            elif side == "left" and self._is_computed_from_a_product(operand, loop):
                depth = (self.shape(operand, values) or (None,))[-1] or 0
        return Product(height or 0, width or 0, loads.get("left"), loads.get("right"), held, depth)

    def _load(self, found: _Loaded, values: Mapping[str, Value]) -> Load | None:
        shape = self.shape(found.call, values)
        if shape is None or len(shape) != 2 or shape[0] is None or shape[1] is None:
            return None
        is_masked = any(found.call.argument(at, name) is not None for at, name in _MASKS)
        return Load(shape[0], shape[1], dtype_bytes(self._dtype(found.call), 0), found.is_turned, is_masked)

    def _may_be_chained(self, dots: list[Node], loop: Node) -> bool:
        """Whether the second of two products may take what the first computes: as a factor, or to add to it."""
        into = [_targets(dot) for dot in dots]
        if into[0] & into[1]:
            return True
        operands = [operand for dot in dots for operand in self.operands(dot) or ()]
        return any(self._loaded(one, loop) is None and self._is_of_the_loop(one, loop) for one in operands)

    def _loaded(self, operand: Node, loop: Node, depth: int = 6, *, is_before: bool = False) -> _Loaded | None:
        """The load in a loop, or before it, whose result an operand is, transposed at most."""
        if not depth:
            return None

        def inner(node: Node) -> _Loaded | None:
            return self._loaded(node, loop, depth - 1, is_before=is_before)

        match operand.type:
            case "attribute" if operand["attribute"].text == "T":
                return _turned(inner(operand["object"]))
            case "call" if operand.name == f"{_LANGUAGE}load":
                around = next(operand.ancestors("for_statement", "while_statement", "if_statement"), None)
                if is_before:
                    is_there = operand.start < loop.start and (around is None or around.end >= loop.end)
                else:
                    is_there = around == loop
                return _Loaded(operand) if is_there else None
            case "call" if operand.name == f"{_LANGUAGE}trans" and len(operand.arguments) == 1:
                return _turned(inner(operand.arguments[0]))
            case "call" if operand["function"].type == "attribute":
                method, found = operand["function"]["attribute"].text, inner(operand["function"]["object"])
                if method == "trans":
                    return _turned(found)
                return (
                    found if method == "to" and found is not None and not self._is_converted(found, operand) else None
                )
            case "identifier":
                # one value in the whole kernel: a second one means that it may have been changed
                bindings = self.scopes.bindings(operand.text, operand)
                if not is_before:
                    bindings = [one for one in bindings if loop.start <= one.start <= loop.end]
                value = bindings[0].value if len(bindings) == 1 and bindings[0].kind == "assign" else None
                return inner(value) if value is not None else None
        return None

    def _is_converted(self, found: _Loaded, cast: Node) -> bool:
        """Whether a cast surely makes another type of what is loaded."""
        loaded, asked = self._dtype(found.call), self.host.dtype(cast.argument(0, "dtype"))
        return bool(loaded and asked) and loaded != asked

    def _dtype(self, load: Node) -> str:
        """The type of what is loaded, where all launches in the file give the pointer of one tensor; else ""."""
        base = self._base(load.argument(0, "pointer"))
        function = self.scopes.function(load)
        names = _parameters(function) if function is not None else []
        if base is None or function is None or base.text not in names:
            return ""
        given = [one.argument(names.index(base.text), base.text) for one in self.scopes.launches(function)]
        found = {self.host.of(one).dtype if one is not None else "" for one in given}
        return found.pop() if len(found) == 1 else ""

    def _base(self, pointer: Node | None, depth: int = _DEPTH) -> Node | None:
        """The parameter of a kernel that an address starts from."""
        while pointer is not None and depth:
            depth -= 1
            match pointer.type:
                case "parenthesized_expression":
                    pointer = pointer.children[0]
                case "binary_operator":
                    pointer = pointer["left"]
                case "call" if pointer.name in (f"{_LANGUAGE}make_block_ptr", f"{_LANGUAGE}advance"):
                    pointer = pointer.argument(0, "base")
                case "identifier":
                    bindings = [one for one in self.scopes.bindings(pointer.text, pointer) if one.kind != "augmented"]
                    if not bindings or bindings[0].kind == "parameter":
                        return pointer if len(bindings) == 1 else None
                    value = bindings[0].value if bindings[0].kind == "assign" else None
                    pointer = value if value != pointer else None
                case _:
                    return None
        return None

    def _is_computed_from_a_product(self, operand: Node, loop: Node, depth: int = 8) -> bool:
        """Whether an operand is surely made of the result of another product of the same round."""
        waiting, seen = [operand], set[str]()
        while waiting and depth:
            depth -= 1
            names: list[Node] = []
            for node in waiting:
                if any(call.name == f"{_LANGUAGE}dot" for call in node.walk("call")):
                    return True
                names += [one for one in node.walk("identifier") if one.text not in seen]
            seen |= {one.text for one in names}
            waiting = [
                one.value
                for name in names
                for one in self.scopes.bindings(name.text, name)
                if one.value is not None and one.kind == "assign" and loop["body"].start <= one.start <= loop.end
            ]
        return False

    def _is_of_the_loop(self, operand: Node, loop: Node) -> bool:
        """Whether an operand is given its value in a loop."""
        names = operand.walk("identifier")
        return any(
            loop["body"].start <= one.start <= loop.end
            for name in names
            for one in self.scopes.bindings(name.text, name)
        )

    def _is_indirect(self, load: Node, loop: Node, depth: int = 4) -> bool:
        """Whether where a load reads depends on another load in the same loop: such a load has fewer stages."""
        places = list(load["arguments"].walk("identifier"))
        for _ in range(depth):
            found: list[Node] = []
            for place in places:
                for one in self.scopes.bindings(place.text, place):
                    if one.value is not None and loop.start <= one.start <= loop.end and one.kind == "assign":
                        if any(call.name == "triton.language.load" for call in one.value.walk("call")):
                            return True
                        found += one.value.walk("identifier")
            places = found[:64]
        return any(call.name == "triton.language.load" for call in load["arguments"].walk("call"))


def _key(values: Mapping[str, Value]) -> Key:
    """What shapes depend on: the parameters, and none of the options."""
    return frozenset((name, value) for name, value in values.items() if name not in OPTIONS)


def _turned(found: _Loaded | None) -> _Loaded | None:
    return msgspec.structs.replace(found, is_turned=not found.is_turned) if found is not None else None


def _targets(value: Node) -> set[str]:
    """The names that the assignment around an expression gives a value."""
    statement = next(value.ancestors("assignment", "augmented_assignment"), None)
    return {name.text for name in statement["left"].walk("identifier")} if statement is not None else set()


def _parameters(function: Node) -> list[str]:
    """The names of a kernel's parameters, in order."""
    named = [
        one if one.type == "identifier" else one.get("name") or one.children[0]
        for one in function["parameters"].children
    ]
    return [one.text for one in named]


def _is_pipelined(loop: Node) -> bool:
    over = loop["right"]
    return over.type == "call" and over.name in _PIPELINED and over.argument(None, "num_stages") is None


def _broadcast(one: Shape | None, other: Shape | None) -> Shape | None:
    """The shape of an elementwise operation over two blocks."""
    if one is None or other is None:
        return None
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    if not shorter:
        return longer
    padded = (1,) * (len(longer) - len(shorter)) + tuple(shorter)
    return tuple(b if a == 1 else a if b in (1, a) else a or b for a, b in zip(longer, padded, strict=True))
