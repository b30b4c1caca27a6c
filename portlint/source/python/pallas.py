"""Pallas kernels of JAX: what launches them, over which grid, and the blocks that specs cut arrays into."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from portlint.source.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source.python.scopes import Scopes

PACKAGE = "jax.experimental.pallas"
LAUNCH = f"{PACKAGE}.pallas_call"

_GRIDS = (f"{PACKAGE}.GridSpec", f"{PACKAGE}.tpu.PrefetchScalarGridSpec")
_PIPELINES = (f"{PACKAGE}.tpu.emit_pipeline", f"{PACKAGE}.mosaic_gpu.emit_pipeline")
_SQUEEZED = (f"{PACKAGE}.squeezed", f"{PACKAGE}.Squeezed")
_CONTAINERS = (
    "argument_list", "keyword_argument", "list", "tuple", "dictionary", "pair", "parenthesized_expression",
    "conditional_expression", "list_splat", "binary_operator", "list_comprehension", "expression_list",
)  # fmt: skip
_DEPTH = 6


class Side(msgspec.Struct, frozen=True):
    """One dimension of a block."""

    size: int | None
    """None where it is not known"""
    is_part: bool
    """whether the grid moves the block along it, so that the array is longer"""


class Launch(msgspec.Struct, frozen=True):
    """What runs a kernel."""

    call: Node
    """`pallas_call(...)`, or `partial(pallas_call, ...)`"""
    grid: Node | None
    kernel: Node | None
    """the function that runs for each step of the grid, where the file has it"""
    in_specs: Node | None
    out_specs: Node | None
    modules: frozenset[str]
    """the modules for one backend that its arguments come from: "tpu", "triton", "mosaic_gpu" """

    @property
    def is_for_gpu(self) -> bool:
        """Whether it says itself that it is for GPUs."""
        return not self.modules.isdisjoint(("triton", "mosaic_gpu", "gpu"))


class Pallas:
    """The Pallas kernels of one file."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes

    def sides(self, spec: Node) -> list[Side]:
        """The dimensions of a block spec that reaches a launch in the file; none where the shape is not written."""
        shape, index = self.shape(spec), self._index(spec)
        if shape is None or not (launches := self.launches(spec)):
            return []
        moves = [self._moves(index, position, launches) for position in range(len(shape.children))]
        return [Side(self._size(one), moved) for one, moved in zip(shape.children, moves, strict=True)]

    def shape(self, spec: Node) -> Node | None:
        """The tuple that a block spec gives as its shape; before JAX 0.4.31 the index map came first."""
        for position in (0, 1):
            given = spec.argument(position, "block_shape")
            shape = self.written(given) if given is not None else None
            if shape is not None and shape.type == "tuple":
                return None if any(one.type == "list_splat" for one in shape.children) else shape
        return None

    def launches(self, node: Node) -> list[Launch]:
        """The launches that get a value, be it through names, lists and grid specs; of a launch itself, that one."""
        if self._is_launch(node):
            return [self._launch(node)]
        return [self._launch(one) for one in self._receivers(node, _DEPTH) if self._is_launch(one)]

    def unused_axes(self, spec: Node | None, launch: Launch) -> list[int]:
        """The axes of a grid along which an output keeps its place, so that its block is written again."""
        axes = self.axes(launch.grid)
        index = self._index(spec) if spec is not None else None
        used: set[int] = set()
        if spec is not None and (index is None or not (parts := _results(index))):
            return []
        if index is not None:
            names = _parameters(index)
            if any(name.startswith("*") for name in names):
                return []
            used = {names.index(one.text) for part in parts for one in part.walk("identifier") if one.text in names}
        return [axis for axis, size in enumerate(axes) if axis not in used and size.constant != 1]

    def axes(self, grid: Node | None) -> list[Node]:
        """The sizes of a grid; none where they are not written."""
        grid = self.written(grid) if grid is not None else None
        if grid is None:
            return []
        if grid.type == "tuple":
            return grid.children
        is_number = grid.type in ("integer", "binary_operator") or grid.name == f"{PACKAGE}.cdiv"
        return [grid] if is_number else []

    def written(self, node: Node, depth: int = _DEPTH) -> Node:
        """The expression behind a name that is given one value only."""
        while depth and node.type == "identifier":
            depth -= 1
            bound = self.scopes.only(node.text, node)
            if bound is None or bound.kind != "assign" or bound.value is None:
                break
            node = bound.value
        return node

    def kernel(self, launch: Node) -> Node | None:
        """The function that a launch runs: by name, through `partial`, or the one that it decorates."""
        first = next(iter(launch.arguments), None)
        if first is not None and first.name == LAUNCH:  # partial(pallas_call, ...)
            around = launch.parent
            decorated = around.parent if around is not None and around.type == "decorator" else None
            return decorated["definition"] if decorated is not None else None
        first = self.written(first) if first is not None else None
        if first is not None and first.type == "call" and first.name == "functools.partial" and first.arguments:
            first = first.arguments[0]
        bound = self.scopes.binding(first.text, first) if first is not None and first.type == "identifier" else None
        return bound.value if bound is not None and bound.kind == "function" else None

    # ---- how a value gets there -----------------------------------------------------------------------------------

    def _launch(self, call: Node) -> Launch:
        spec = call.argument(None, "grid_spec")
        grids = self.written(spec) if spec is not None else call
        grid = grids.argument(0 if grids.name == _GRIDS[0] else None, "grid") if grids.type == "call" else None
        specs = [grids.argument(None, name) if grids.type == "call" else None for name in ("in_specs", "out_specs")]
        return Launch(call, grid, self.kernel(call), *specs, self._modules(call))

    def _modules(self, call: Node) -> frozenset[str]:
        given = [self.written(one) for each in call["arguments"].children for one in (each.get("value") or each,)]
        names = (one.name for each in given for one in each.walk("attribute"))
        return frozenset(name.split(".")[3] for name in names if name.startswith(f"{PACKAGE}.") and name.count(".") > 3)

    def _is_launch(self, node: Node) -> bool:
        if node.type != "call":
            return False
        return node.name == LAUNCH or (
            node.name == "functools.partial" and bool(node.arguments) and node.arguments[0].name == LAUNCH
        )

    def _receivers(self, node: Node, depth: int) -> Iterator[Node]:
        """The calls that a value is an argument of, directly or by name; a pipeline inside a kernel keeps it."""
        at, parent = node, node.parent
        while parent is not None and parent.type in _CONTAINERS:
            at, parent = parent, parent.parent
        if parent is None or not depth:
            return
        if parent.type == "call" and at.type == "argument_list":
            yield parent
            if parent.name not in _PIPELINES and not self._is_launch(parent):
                kept = parent["function"]
                is_method = kept.type == "attribute" and kept["object"].type == "identifier"
                is_kept = is_method and kept["attribute"].text in ("append", "extend", "insert")
                yield from self._by_name(kept["object"], depth - 1) if is_kept else self._receivers(parent, depth - 1)
        elif parent.type in ("assignment", "augmented_assignment") and parent.get("right") == at:
            if parent["left"].type == "identifier":
                yield from self._by_name(parent["left"], depth - 1)
        elif parent.type == "return_statement" and (function := self.scopes.function(parent)) is not None:
            for call in self.scopes.callers(function):
                yield from self._receivers(call, depth - 1)

    def _by_name(self, name: Node, depth: int) -> Iterator[Node]:
        """The calls that get what a name is given, in the same function or in those inside it."""
        function = self.scopes.function(name)
        for use in self.scopes.uses(name.text):
            is_inside = function is None or function.start <= use.start < function.end
            if use.start > name.end and is_inside and use != name:
                yield from self._receivers(use, depth)

    # ---- what a spec says -----------------------------------------------------------------------------------------

    def _size(self, side: Node) -> int | None:
        if side.type == "none" or side.name in _SQUEEZED:
            return 1
        value = side.constant
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def _index(self, spec: Node) -> Node | None:
        """The lambda or function that places a block."""
        for position in (1, 0):
            given = spec.argument(position, "index_map")
            if given is None:
                continue
            given = self.written(given)
            if given.type == "lambda":
                return given
            bound = self.scopes.only(given.text, given) if given.type == "identifier" else None
            if bound is not None and bound.kind == "function":
                return bound.value
        return None

    def _moves(self, index: Node | None, position: int, launches: list[Launch]) -> bool:
        """Whether a block lies elsewhere along a dimension in another step of the grid."""
        parts = _results(index) if index is not None else []
        if index is None or position >= len(parts) or any(one.type == "list_splat" for one in parts):
            return False
        names = _parameters(index)
        axes = [names.index(one.text) for one in parts[position].walk("identifier") if one.text in names]
        return any(self._has_steps(axis, launch) for axis in axes for launch in launches)

    def _has_steps(self, axis: int, launch: Launch) -> bool:
        """Whether a grid has more than one step along an axis, as far as that is known."""
        axes = self.axes(launch.grid)
        return axis >= len(axes) or axes[axis].constant != 1


def _parameters(function: Node) -> list[str]:
    """The names of a function's positional parameters; those that take the rest keep their star."""
    parameters = function.get("parameters")
    found = []
    for one in parameters.children if parameters is not None else []:
        name = one if one.type == "identifier" else one.get("name") or next(iter(one.children), None)
        star = "*" if one.type in ("list_splat_pattern", "dictionary_splat_pattern") else ""
        found.append(star + (name.text if name is not None else ""))
    return found


def _results(function: Node) -> list[Node]:
    """The parts of the only value that a function returns; none where there are several."""
    body = function["body"]
    if function.type == "function_definition":
        returned = [
            one for one in body.walk("return_statement") if next(one.ancestors("function_definition")) == function
        ]
        if len(returned) != 1 or not returned[0].children:
            return []
        body = returned[0].children[0]
    while body.type == "parenthesized_expression" and body.children:
        body = body.children[0]
    return body.children if body.type in ("tuple", "expression_list", "list") else [body]
