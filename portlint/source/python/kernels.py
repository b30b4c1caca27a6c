"""Device code written in Python, what `numba.cuda.jit` and `cupyx.jit.rawkernel` compile, and how it uses its warp.

Shuffles up, down and across by less than 32 lanes stay within a group of 32 on any hardware; votes, ballots, broadcasts
and everything that asks for the width or the lane do not. `source/cxx/warps.py` asks the same of C++.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portlint.condition import Value
    from portlint.source.node import Node
    from portlint.source.python.scopes import Binding, Scopes

MARKS = ("numba.cuda.jit", "numba.hip.jit", "cupyx.jit.rawkernel")
"""what compiles a Python function for the device"""
GROUP = 32

_HOMES = ("numba.cuda.", "numba.hip.", "cupyx.jit.")
_OVER_THE_WARP = frozenset(
    "all_sync any_sync eq_sync ballot_sync match_any_sync match_all_sync activemask lanemask_lt shfl_sync".split()
)
_WIDTH_READS = frozenset(("warpsize", "laneid"))
_SPLITS = {"%": GROUP, "&": GROUP - 1, "//": GROUP, ">>": 5}
_BYTES = {
    **dict.fromkeys(("bool_", "boolean", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16", "float16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
_DTYPE_HOMES = ("numba", "numba.types", "numpy", "cupy")
_DEPTH = 6


class Kernels:
    """The device functions of one file."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self._is_small: dict[int, bool] = {}

    # ---- which functions ------------------------------------------------------------------------------------------

    def compiled(self, mark: Node) -> Node | None:
        """The function that a mark compiles: the one below it, or the one in `cuda.jit(...)(function)`."""
        called = _called(mark)
        around = (called or mark).parent
        if around is not None and around.type == "decorator" and around.parent is not None:
            return around.parent.get("definition")
        outer = _called(called) if called is not None else None
        for call in (outer, called):
            given = call.arguments[0] if call is not None and call.arguments else None
            bound = self.scopes.only(given.text, given) if given is not None and given.type == "identifier" else None
            if bound is not None and bound.kind == "function":
                return bound.value
        return None

    @cached_property
    def _compiled(self) -> dict[tuple[str, int], Node]:
        """Name and place of a binding -> the compiled function that it stands for."""
        found: dict[tuple[str, int], Node] = {}
        for use in [one for mark in MARKS for one in self.scopes.uses(mark.rpartition(".")[2])]:
            mark = use.parent if use.parent is not None and use.parent.type == "attribute" else use
            function = self.compiled(mark) if mark.name in MARKS else None
            if function is None or function.type != "function_definition":
                continue
            found[function["name"].text, function.start] = function
            statement = next(mark.ancestors("assignment", "decorator"), None)
            if statement is not None and statement.type == "assignment":
                found[statement["left"].text, statement.end] = function
        return found

    def _meant(self, name: Node) -> Node | None:
        """The function that a name means: a compiled one, or a plain one."""
        bound = self.scopes.binding(name.text, name) if name.type == "identifier" else None
        if bound is None:
            return None
        return self._compiled.get((name.text, bound.start), bound.value if bound.kind == "function" else None)

    def launches(self, function: Node) -> list[Node]:
        """The launches `kernel[grid, block](...)` of a function in the file."""
        names = {name for (name, _), one in self._compiled.items() if one == function}
        uses = (use for name in sorted(names) for use in self.scopes.uses(name) if self._meant(use) == function)
        return [call for use in uses if (call := _call_around(use)) is not None and self.configuration(call)]

    def configuration(self, call: Node) -> list[Node]:
        """Grid, block, stream and bytes of shared memory of a launch, as far as they are given; none for other calls.

        A kernel of CuPy can be launched as `kernel(grid, block, arguments)` as well.
        """
        function, given = call["function"], call.arguments
        kernel = function["value"] if function.type == "subscript" else function
        if kernel.type != "identifier" or self._meant(kernel) not in self._compiled.values():
            return []
        if function.type == "subscript":
            return function.children[1:]
        return given[:2] if len(given) > 2 and given[2].type == "tuple" else []

    def has_at_most_32_threads(self, function: Node) -> bool:
        """Whether every launch in the file that reaches a function has blocks of no more than 32 threads."""
        if function.start not in self._is_small:
            self._is_small[function.start] = False  # a function that calls itself is launched from elsewhere
            self._is_small[function.start] = self._is_launched_small(function)
        return self._is_small[function.start]

    def _is_launched_small(self, function: Node) -> bool:
        blocks = [self.configuration(call)[1:2] for call in self.launches(function)]
        calls = [call for call in self.scopes.callers(function) if self._meant(call["function"]) == function]
        calls = [call for call in calls if not self.configuration(call)]
        users = {user.start: user for call in calls if (user := call.function) not in (None, function)}
        if not blocks and not users:
            return False
        return all(block and 0 < max(self.threads(block[0]), default=0) <= GROUP for block in blocks) and all(
            self.has_at_most_32_threads(user) for user in users.values()
        )

    def threads(self, block: Node) -> list[int]:
        """The threads that a block size comes to: a number, a tuple of up to three, or a name of either."""
        values = [one.constant for one in block.choices] or [block.constant]
        return [math.prod(sides) for one in values if (sides := _ints(one))]

    # ---- how a function uses its warp -----------------------------------------------------------------------------

    def operations(self, function: Node) -> list[Node]:
        """What a function does whose result depends on how many lanes a warp really has."""
        reads = self._width_reads(function)
        calls = [call for call in function.walk("call") if self._covers_warp(call) and not self.is_in_first_group(call)]
        return reads + calls

    def works_in_groups(self, function: Node) -> bool:
        """Whether a function splits its threads into groups of 32 and never asks for the real width."""
        return not self._width_reads(function) and any(map(self.splits, function.walk("binary_operator")))

    def splits(self, expression: Node) -> bool:
        """Whether an expression is a thread's number within, or that of, a group of 32: `threadIdx.x % 32`."""
        operator = expression["operator"].text if expression.type == "binary_operator" else ""
        if operator not in _SPLITS or expression["right"].constant != _SPLITS[operator]:
            return False
        return self.is_thread_index(expression["left"])

    def is_in_first_group(self, node: Node) -> bool:
        """Whether a node runs in the first 32 threads of a block only."""
        return any(
            one["consequence"].start <= node.start < one["consequence"].end and self._admits_first_group(one)
            for one in node.ancestors("if_statement")
        )

    def only_names_first_group(self, expression: Node) -> bool:
        """Whether the number of a group is only compared with 0, which chooses 32 threads on any hardware."""
        holder = next((one for one in expression.ancestors() if one.type != "parenthesized_expression"), None)
        if holder is None or holder.type != "assignment" or holder["left"].type != "identifier":
            return holder is not None and _is_test_for_0(holder)
        function = self.scopes.function(expression)
        uses = [use for use in self.scopes.uses(holder["left"].text) if use != holder["left"]]
        own = [use.parent for use in uses if self.scopes.function(use) == function]
        return bool(own) and all(one is not None and _is_test_for_0(one) for one in own)

    def has_group_width(self, call: Node) -> bool:
        """Whether a shuffle states a width of its own, and not the hardware's."""
        width = call.argument(None, "width")
        return width is not None and "warpsize" not in width.text

    def _admits_first_group(self, statement: Node) -> bool:
        test = statement["condition"]
        if test.type != "comparison_operator" or len(test.children) != 2:
            return False
        number, limit = test.children[0], test.children[1].constant
        if _operator(test) in ("<", "<="):
            return limit in (GROUP, GROUP - 1) and self.is_thread_index(number)
        written = self._written(number)
        return _is_test_for_0(test) and self.splits(written) and written["operator"].text in ("//", ">>")

    def _covers_warp(self, call: Node) -> bool:
        function = self.member(call)
        return function in _OVER_THE_WARP and not (function == "shfl_sync" and self.has_group_width(call))

    def _width_reads(self, function: Node) -> list[Node]:
        named = (one for one in function.walk("attribute", "identifier") if one.text.endswith(tuple(_WIDTH_READS)))
        return [one for one in named if self.member(one) in _WIDTH_READS]

    # ---- what an expression is ------------------------------------------------------------------------------------

    def member(self, node: Node) -> str:
        """The name of an intrinsic within its package: `shfl_sync`, `threadIdx.x`; "" for anything else."""
        name = node.name
        return next((name[len(home) :] for home in _HOMES if name.startswith(home)), "")

    def is_thread_index(self, node: Node, depth: int = _DEPTH) -> bool:
        """Whether a value runs along the lanes of a warp: the thread's x in its block, or in the whole grid."""
        node = self._written(node)
        if node.type == "call":
            return self.member(node) == "grid" and bool(node.arguments) and node.arguments[0].constant == 1
        if node.type == "binary_operator" and node["operator"].text == "+" and depth:
            one, other = node["left"], node["right"]
            return (self.is_thread_index(one, depth - 1) and self._is_offset(other)) or (
                self.is_thread_index(other, depth - 1) and self._is_offset(one)
            )
        return self.member(node) == "threadIdx.x"

    def is_hardware_lane(self, node: Node) -> bool:
        """Whether a value is the lane as the hardware counts it, and so may reach 63."""
        node = self._written(node)
        if node.type == "binary_operator" and node["operator"].text == "%":
            return self.is_thread_index(node["left"]) and self.member(self._written(node["right"])) == "warpsize"
        return self.member(node) == "laneid"

    def is_bounded(self, index: Node) -> bool:
        """Whether a test around an index says that it is less than something."""
        for parent in index.ancestors("conditional_expression", "if_statement"):
            test = parent.get("condition") or parent.children[1]
            compared = test.walk("comparison_operator")
            if any(one.children[0].text == index.text and _operator(one) in ("<", "<=") for one in compared):
                return True
        return False

    def shared_array(self, node: Node) -> Node | None:
        """The call that makes a shared array, of the call itself or of a name that is given it."""
        node = self._written(node)
        return node if node.type == "call" and self.member(node) in ("shared.array", "shared_memory") else None

    def shape(self, array: Node) -> tuple[int, ...]:
        """The dimensions of a shared array; none where one is not known."""
        place = (0, "shape") if self.member(array) == "shared.array" else (1, "size")
        given = array.argument(*place)
        return _ints(given.constant) if given is not None else ()

    def bytes_of(self, array: Node) -> int | None:
        """The bytes of a shared array, where its type and all dimensions are known."""
        place = (1, "dtype") if self.member(array) == "shared.array" else (0, "dtype")
        dtype, shape = array.argument(*place), self.shape(array)
        if dtype is None or not shape:
            return None
        home, _, name = dtype.name.rpartition(".")
        width = _BYTES.get(name) if home in _DTYPE_HOMES else None
        if isinstance(dtype.constant, str):
            width = _BYTES.get(dtype.constant)
        return width * math.prod(shape) if width is not None else None

    def _is_offset(self, node: Node) -> bool:
        """Whether a value is a multiple of the width of a block, `blockIdx.x * blockDim.x`."""
        node = self._written(node)
        if node.type != "binary_operator" or node["operator"].text != "*":
            return False
        names = {self.member(self._written(node[side])) for side in ("left", "right")}
        return bool(names & {"blockIdx.x", "blockDim.x"})

    def _written(self, node: Node, depth: int = _DEPTH) -> Node:
        """The expression behind parentheses and names that are given one value only."""
        while depth:
            depth -= 1
            if node.type == "parenthesized_expression" and node.children:
                node = node.children[0]
                continue
            bound: Binding | None = self.scopes.only(node.text, node) if node.type == "identifier" else None
            if bound is None or bound.kind != "assign" or bound.value is None:
                break
            node = bound.value
        return node


def _called(node: Node) -> Node | None:
    """The call of a function by that expression."""
    parent = node.parent
    return parent if parent is not None and parent.type == "call" and parent["function"] == node else None


def _call_around(use: Node) -> Node | None:
    """The call `kernel(...)` or `kernel[...](...)` of a name."""
    at = use.parent
    return _called(at if at is not None and at.type == "subscript" and at["value"] == use else use)


def _ints(value: Value) -> tuple[int, ...]:
    """The dimensions that a number or a tuple gives; none where one is no integer."""
    given = value if isinstance(value, tuple) else (value,)
    dimensions = tuple(one for one in given if isinstance(one, int) and not isinstance(one, bool))
    return dimensions if len(dimensions) == len(given) else ()


def _operator(comparison: Node) -> str:
    operators = comparison.raw.children_by_field_name("operators")
    return operators[0].text.decode() if len(operators) == 1 and operators[0].text is not None else ""


def _is_test_for_0(test: Node) -> bool:
    return test.type == "comparison_operator" and _operator(test) == "==" and test.children[-1].constant == 0
