"""Tiles in NKI kernels: where they lie, how many partitions and elements they take, and what is multiplied into them.

NKI has two spellings: `neuronxcc.nki`, where indices come from `mgrid` and `arange` and a call returns its tile, and
`nki` since Neuron 2.27, with slices, and tiles that are allocated first and given as `dst`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from portlint.source.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source.python.scopes import Scopes

_HOMES = ("neuronxcc.nki.", "nki.")
_MAKERS = {f"language.{name}": 1 for name in ("ndarray", "zeros", "ones", "empty", "zeros_like")} | {"language.full": 2}
"""what makes a tile, and the position of its dtype"""
_PARTS = ("language.ds", "language.dslice")
_PRODUCTS = ("isa.nc_matmul", "language.matmul")
_COPIES = ("isa.dma_copy", "isa.dma_start")
_BYTES = {
    **dict.fromkeys(("int8", "uint8", "bool", "bool_", "float8_e4m3", "float8_e5m2", "float8_e4m3fn"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32", "tfloat32"), 4),
}
_DTYPE_HOMES = ("numpy.", "jax.numpy.", "torch.", "ml_dtypes.")


class Tile(msgspec.Struct, frozen=True):
    """A tile in the memories of a core, as far as it is known."""

    buffer: str
    """sbuf | psum | hbm"""
    rows: int | None
    """the partitions that it takes"""
    place: Node
    """where its rows are written"""
    free: int | None
    """its elements in one partition"""
    dtype: str
    """ "" where it is not known"""
    is_masked: bool = False
    """whether it was loaded with a mask, and holds nothing in the rows that this leaves out"""
    copies: int = 1
    """how many are allocated side by side"""
    offset: int = 0
    """the address of the first"""
    allocation: Node | None = None
    """where the number of copies is written"""

    @property
    def item_bytes(self) -> int | None:
        """The bytes of an element."""
        return _BYTES.get(self.dtype)


class Nki:
    """The NKI kernels of one file."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes

    def member(self, node: Node) -> str:
        """The name of something of NKI within its package: `language.load`; "" for anything else."""
        name = node.name
        return next((name[len(home) :] for home in _HOMES if name.startswith(home)), "")

    def tile(self, node: Node) -> Tile | None:
        """The tile that an expression is: one that is made, one that is loaded, or a name that is given one."""
        if node.type == "identifier":
            bound = self.scopes.binding(node.text, node)
            node = bound.value if bound is not None and bound.kind == "assign" and bound.value is not None else node
        if node.type != "call":
            return None
        member = self.member(node)
        if member in _MAKERS:
            return self._made(node, _MAKERS[member])
        return self._loaded(node) if member == "language.load" else None

    def index_rows(self, node: Node) -> Node | None:
        """The extent along the partitions of an index grid, `mgrid[0:256, ...]` or `arange(256)[:, None]`.

        Only where something but a copy between memories uses the index.
        """
        grid = node.parent
        parts = _indices(grid) if grid is not None and grid.type == "subscript" and grid["value"] == node else []
        if not parts or grid is None or not any(map(self._is_computed_with, self._names_of(grid))):
            return None
        if self.member(node) == "language.mgrid":
            return parts[0]
        is_column = parts[0].type == "slice" and len(parts) > 1 and all(one.type == "none" for one in parts[1:])
        return node.arguments[-1] if is_column and node.arguments else None

    def extent(self, part: Node) -> int | None:
        """How many elements an index selects along its dimension; 1 for a number."""
        if part.type == "slice":
            bounds = [one.constant for one in part.children]
            start, end = bounds if len(bounds) == 2 else (0, bounds[0] if bounds else None)
            if isinstance(start, int) and isinstance(end, int):
                return end - start
            return _distance(*part.children) if len(bounds) == 2 else None
        if part.type == "call" and self.member(part) in _PARTS:
            size = part.argument(1, "size")
            return _int(size)
        if part.type == "call" and self.member(part) == "language.arange":
            ends = [_int(one) for one in part.arguments]
            if ends and ends[-1] is not None and len(ends) < 3:
                return ends[-1] - (ends[0] or 0) if len(ends) == 2 else ends[-1]
        return 1 if part.type == "integer" else self._extent_of_names(part)

    def product_into(self, tile: Node) -> list[Node]:
        """The matrix products that are accumulated in a tile: `dst` as a whole, or what is added to it."""
        statement = tile.parent
        if statement is None or statement.type != "assignment" or statement["left"].type != "identifier":
            return []
        name = statement["left"]
        calls = [call for use in self.scopes.uses(name.text) if (call := self._into(use)) is not None]
        calls = [call for call in calls if self._given(name.text, call) == statement.end]
        transposes = (call.argument(None, "is_transpose") for call in calls)
        return [] if any(one is not None and one.constant is not False for one in transposes) else calls

    def _given(self, name: str, at: Node) -> int | None:
        """Where a name was last given a value as a whole, by which a place knows it."""
        starts = [one.start for one in self.scopes.bindings(name, at) if one.kind != "augmented"]
        return max((start for start in starts if start <= at.start), default=None)

    # ---- tiles ----------------------------------------------------------------------------------------------------

    def _made(self, call: Node, dtype: int) -> Tile | None:
        shape, buffer = call.argument(0, "shape"), call.argument(None, "buffer")
        sides = self._sides(shape) if shape is not None else []
        if not sides:
            return None
        marked = [index for index, one in enumerate(sides) if one.type == "call" and one.name.endswith("par_dim")]
        first = marked[0] if marked else 0
        place = sides[first].arguments[0] if marked and sides[first].arguments else sides[first]
        free = [_int(one) for one in sides[first + 1 :]]
        tile = Tile(
            buffer=self._buffer(buffer),
            rows=_int(place),
            place=place,
            free=math.prod(one for one in free if one is not None) if None not in free else None,
            dtype=self._dtype(call.argument(dtype, "dtype")),
        )
        return tile if buffer is None or buffer.type != "call" else self._allocated(tile, buffer)

    def _allocated(self, tile: Tile, buffer: Node) -> Tile:
        """A tile whose address and copies its kernel states: `sbuf.mod_alloc(base_addr=0, num_free_tiles=(4,))`."""
        given, base = buffer.argument(None, "num_free_tiles"), buffer.argument(None, "base_addr")
        sizes = given.items if given is not None else ()
        copies = math.prod(one for one in sizes if isinstance(one, int)) if given is not None else 1
        return msgspec.structs.replace(
            tile, copies=copies, offset=(_int(base) or 0) if base is not None else 0, allocation=given
        )

    def _loaded(self, call: Node) -> Tile | None:
        source = call.argument(0, "src")
        parts = _indices(source) if source is not None and source.type == "subscript" else []
        if not parts:
            return None
        free = [self.extent(one) for one in parts[1:]]
        return Tile(
            buffer="sbuf",
            rows=self.extent(parts[0]) if self._is_range(parts[0]) else None,
            place=parts[0],
            free=math.prod(one for one in free if one is not None) if None not in free else None,
            dtype=self._dtype(call.argument(None, "dtype")),
            is_masked=call.argument(None, "mask") is not None,
        )

    def _sides(self, shape: Node) -> list[Node]:
        bound = self.scopes.only(shape.text, shape) if shape.type == "identifier" else None
        shape = bound.value if bound is not None and bound.kind == "assign" and bound.value is not None else shape
        return shape.children if shape.type in ("tuple", "list") else []

    def _buffer(self, given: Node | None) -> str:
        """The memory that a tile is in; SBUF where nothing is said, "" where it is not known."""
        if given is None:
            return "sbuf"
        text = given.constant if isinstance(given.constant, str) else self.member(given)
        words = text.replace("shared_hbm", "hbm").replace("private_hbm", "hbm").split(".")
        return next((one for one in ("sbuf", "psum", "hbm") if one in words), "")

    def _dtype(self, given: Node | None) -> str:
        if given is None:
            return ""
        if isinstance(given.constant, str):
            return given.constant
        name = self.member(given).removeprefix("language.") or given.name
        home = next((home for home in _DTYPE_HOMES if name.startswith(home)), "")
        return name.removeprefix(home) if "." not in name.removeprefix(home) else ""

    # ---- indices --------------------------------------------------------------------------------------------------

    def _is_range(self, part: Node) -> bool:
        return part.type == "slice" or (part.type == "call" and self.member(part) in _PARTS)

    def _extent_of_names(self, part: Node) -> int | None:
        """Of `t * 128 + i`: the extent of the index grid that `i` is of."""
        extents = []
        for name in part.walk("identifier"):
            bound = self.scopes.only(name.text, name)
            grid = bound.value if bound is not None and bound.kind in ("assign", "item") else None
            if bound is None or grid is None or grid.type != "subscript":
                continue
            member, parts = self.member(grid["value"]), _indices(grid)
            if member == "language.mgrid" and bound.kind == "item" and bound.index < len(parts):
                extents.append(self.extent(parts[bound.index]))
            elif member == "language.arange":
                extents.append(self.extent(grid["value"]))
        return extents[0] if len(extents) == 1 else None

    def _names_of(self, grid: Node) -> Iterator[Node]:
        """The uses of an index along the partitions: itself, or the first name that the grid is given to."""
        yield grid
        statement = grid.parent
        if statement is None or statement.type != "assignment" or statement["right"] != grid:
            return
        left = statement["left"]
        first = left if left.type == "identifier" else next(iter(left.children), None)
        if first is not None and first.type == "identifier":
            yield from (use for use in self.scopes.uses(first.text) if use.start > statement.end)

    def _is_computed_with(self, index: Node) -> bool:
        """Whether the nearest call around an index is one that works on tiles."""
        call = next((self.member(one) for one in index.ancestors("call") if self.member(one) not in _PARTS), "")
        return call.startswith(("language.", "isa.")) and call not in _COPIES

    def _into(self, use: Node) -> Node | None:
        """The product that a use of a name puts into it."""
        at = use
        parent = use.parent
        if parent is not None and parent.type == "subscript" and parent["value"] == use:
            if [one.type for one in _indices(parent)] != ["ellipsis"]:
                return None
            at, parent = parent, parent.parent
        if parent is not None and parent.type == "augmented_assignment" and parent["left"] == at:
            right = parent["right"]
            return right if right.type == "call" and self.member(right) in _PRODUCTS else None
        call = next(at.ancestors("call"), None)
        if call is None or self.member(call) != "isa.nc_matmul":
            return None
        has_target = call.argument(None, "dst") is not None or len(call.arguments) > 2
        return call if has_target and call.argument(0, "dst") == at else None


def _distance(start: Node, end: Node) -> int | None:
    """How far apart the bounds of a slice are, `t:t + size` or `i * size:(i + 1) * size`."""
    if end.type != "binary_operator":
        return None
    left, right = end["left"], end["right"]
    while left.type == "parenthesized_expression" and left.children:
        left = left.children[0]
    if end["operator"].text == "+" and left.text == start.text:
        return _int(right)
    next_one = left if left.type == "binary_operator" and left["operator"].text == "+" else None
    is_next = next_one is not None and next_one["right"].text == "1" and end["operator"].text == "*"
    if next_one is None or not is_next or start.type != "binary_operator" or start["operator"].text != "*":
        return None
    return _int(right) if (start["left"].text, start["right"].text) == (next_one["left"].text, right.text) else None


def _indices(subscript: Node) -> list[Node]:
    return subscript.children[1:]


def _int(node: Node | None) -> int | None:
    value = node.constant if node is not None else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
