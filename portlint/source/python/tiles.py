"""Tiles of a Triton kernel: the shapes of its blocks, and what the software pipeline keeps of them.

Everything is asked under a configuration, which gives the kernel's parameters their values. A shape that is not known
is None; so is one dimension of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from portlint.source.python.constants import constant
from portlint.source.python.queries import calls_of
from portlint.source.python.triton import OPTIONS

if TYPE_CHECKING:
    from portlint.condition import Value
    from portlint.source.node import Node
    from portlint.source.python.scopes import Binding, Scopes
    from portlint.source.python.triton import Triton

_DEPTH = 96
"""how far a shape is followed; every expression is looked at once"""
_LANGUAGE = "triton.language."
_SCALARS = frozenset(("program_id", "num_programs", "cdiv", "multiple_of"))
_FILLED = {"zeros": "shape", "full": "shape", "broadcast_to": "shape", "reshape": "shape", "view": "shape"}
_ELEMENTWISE = frozenset(
    "where maximum minimum exp exp2 log log2 sqrt rsqrt abs fma clamp sigmoid sin cos cast max_contiguous multiple_of"
    " math.exp math.exp2 math.log math.log2 math.rsqrt math.sqrt".split()
)
_BUILTINS = frozenset(("min", "max", "sum", "len", "int", "float"))
_KEEPING = frozenset(("to", "cast"))
_PIPELINED = frozenset(("range", "triton.language.range"))
"""the loops that are pipelined: not `while`, and not `tl.static_range`, which is unrolled"""

Shape: TypeAlias = "tuple[int | None, ...]"
Key: TypeAlias = "frozenset[tuple[str, Value]]"


class Stage(msgspec.Struct, frozen=True):
    """What one stage of a software pipeline keeps."""

    elements: int
    rows: int
    """the height of the smallest product in the loop; 0 where it is not known"""
    is_chained: bool = False
    """whether a product takes what the loop has computed, such as another product"""


class Tiles:
    """The tiles of the kernels of one file."""

    def __init__(self, scopes: Scopes, triton: Triton) -> None:
        self.scopes = scopes
        self.triton = triton
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
        """What a stage keeps for `tl.dot` in the loop of a kernel that keeps most, those operands that are known.

        Kept is what comes from memory in the loop and reaches the product as it is: an operand that is converted or
        scaled in between passes through registers.
        """
        key = _key(values), kernel.start
        if key not in self._stages:
            self._stages[key] = self._largest_stage(kernel, values)
        return self._stages[key]

    def _largest_stage(self, kernel: Node, values: Mapping[str, Value]) -> Stage:
        kept: dict[int, dict[int, int]] = {}
        rows: dict[int, int] = {}
        chained: set[int] = set()
        for dot in self.products(kernel):
            loop = next(dot.ancestors("for_statement", "while_statement"), None)
            if loop is None or loop.type != "for_statement" or not _is_pipelined(loop):
                continue
            loads = kept.setdefault(loop.start, {})
            height = (self.shape(dot, values) or (None,))[0]
            rows[loop.start] = min(rows.get(loop.start, height or 0), height or 0)
            for operand in self.operands(dot) or ():
                load = self._loaded(operand, loop)
                if load is None and self._is_of_the_loop(operand, loop):
                    chained.add(loop.start)
                if load is not None and not self._is_indirect(load, loop):
                    shape = self.shape(load, values)
                    if shape is not None and len(shape) == 2 and None not in shape:
                        loads[load.start] = math.prod(one for one in shape if one is not None)
        stages = [Stage(sum(loads.values()), rows[start], start in chained) for start, loads in kept.items()]
        return max(stages, key=lambda stage: stage.elements, default=Stage(0, 0))

    def _loaded(self, operand: Node, loop: Node, depth: int = 6) -> Node | None:
        """The load in a loop whose result an operand is, transposed at most."""
        if not depth:
            return None
        if operand.type == "attribute" and operand["attribute"].text == "T":
            return self._loaded(operand["object"], loop, depth - 1)
        if operand.type == "call":
            if operand.name == "triton.language.load":
                nearest = next(operand.ancestors("for_statement", "while_statement", "if_statement"), None)
                return operand if nearest == loop else None
            if operand.name == "triton.language.trans" and len(operand.arguments) == 1:
                return self._loaded(operand.arguments[0], loop, depth - 1)
            function = operand["function"]
            if function.type == "attribute" and function["attribute"].text in ("to", "trans"):
                return self._loaded(function["object"], loop, depth - 1)
            return None
        if operand.type != "identifier":
            return None
        # one value in the whole kernel: a second one means that it may have been changed
        inside = [one for one in self.scopes.bindings(operand.text, operand) if loop.start <= one.start <= loop.end]
        value = inside[0].value if len(inside) == 1 and inside[0].kind == "assign" else None
        return self._loaded(value, loop, depth - 1) if value is not None else None

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
