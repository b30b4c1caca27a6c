"""What the software pipelines of Triton's back ends keep in shared memory for the products in a loop.

Every number is a lower bound: what surely lies there at one time. The sizes were read in the passes of Triton 3.9
(`ScheduleLoops.cpp`, `LowerLoops.cpp`, `Utility.cpp` and `AccelerateAMDMatmul.cpp` of third_party/amd,
`AssignLatencies.cpp` and `AccelerateMatmul.cpp` of the NVIDIA side), and are held to its compiler by tests/oracle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from portlint.condition import Value

Pipeline: TypeAlias = Literal["mma", "wgmma", "mfma", "mfma-direct", "wmma"]
"""how a back end gets operands to its matrix units: see `bytes_kept`"""
PIPELINES: tuple[Pipeline, ...] = ("mma", "wgmma", "mfma", "mfma-direct", "wmma")

_WARPS_OF_A_GROUP = 4
"""warps that issue one wgmma together"""
_ROWS_OF_WGMMA = 64
_CHAINED_STAGES = 4
"""for so many stages, AMD's back end has a schedule of its own for loops with two products"""
_PADDED_FROM = 64
"""edges from which a tile is padded in any orientation, for any matrix instruction"""
_PADDING, _PADDED_BYTES = 8, 1024
"""bytes, at the least, after each so many that a wavefront of 64 lanes writes at once, 16 bytes a lane"""


class Load(msgspec.Struct, frozen=True):
    """A tile that a product takes as it comes from memory."""

    rows: int
    columns: int
    item: int = 0
    """the bytes of an element; 0 where they are not known"""
    is_turned: bool = False
    """whether the product takes it transposed"""
    is_masked: bool = False
    """whether something may keep the compiler from wide copies"""

    @property
    def elements(self) -> int:
        """How many elements a tile has."""
        return self.rows * self.columns


class Product(msgspec.Struct, frozen=True):
    """A `tl.dot` in a loop, as far as its sizes are known."""

    rows: int
    """0 where they are not known"""
    columns: int
    left: Load | None = None
    """what comes from memory in the loop and reaches the product as it is; an operand that is converted or scaled in
    between passes through registers"""
    right: Load | None = None
    held: Load | None = None
    """an operand that was loaded before the loop"""
    depth: int = 0
    """of a left operand that was computed from another product: its columns, else 0"""

    @property
    def loads(self) -> tuple[Load, ...]:
        """What is loaded for it in the loop."""
        return tuple(one for one in (self.left, self.right) if one is not None)


class Stage(msgspec.Struct, frozen=True):
    """What a loop with products needs shared memory for."""

    products: tuple[Product, ...] = ()
    """a load that several of them take is with the first"""
    is_chained: bool = False
    """whether they are two, of which one may take what the other computes"""

    @property
    def elements(self) -> int:
        """The elements that are loaded for one stage."""
        return sum(load.elements for product in self.products for load in product.loads)

    @property
    def item(self) -> int:
        """The bytes of the smallest element that is loaded; 0 where they are not known."""
        return min((load.item for product in self.products for load in product.loads), default=0)

    def bytes_kept(self, pipeline: Pipeline, options: Mapping[str, Value], item: int) -> int:
        """The bytes of shared memory that a pipeline surely takes, under the options of a configuration.

        `mma` (NVIDIA before Hopper, and consumer parts since) reads operands into registers before the last stage:
        it keeps one stage less than the pipeline has. `wgmma` reads them from shared memory while it runs, and needs
        that stage too. `mfma` and `wmma` load through registers, `mfma-direct` straight to LDS. Where warps share the
        rows of two products in different ways, what one computes for the other passes through shared memory.

        `item` is the size of elements whose type is not known.
        """
        stages = _option(options, "num_stages", 1)
        is_nvidia = pipeline in ("mma", "wgmma")
        held = [one.held.elements * (one.held.item or item) for one in self.products if one.held is not None]
        passed = [self._passed(one, pipeline, options, item) for one in self.products]
        staged = [self._staged(one, pipeline, options, item) for one in self.products]
        if stages > 1:
            in_loop = sum(map(sum, staged)) + max(passed, default=0)
        elif is_nvidia:
            in_loop = max((sum(loads) + more for loads, more in zip(staged, passed, strict=True)), default=0)
        else:
            in_loop = max([*passed, *(one for loads in staged for one in loads)], default=0)
        return in_loop + sum(held) if is_nvidia else max(in_loop, *held, 0)

    def _staged(self, product: Product, pipeline: Pipeline, options: Mapping[str, Value], item: int) -> list[int]:
        """The bytes of all buffers of each load of a product."""
        stages = _option(options, "num_stages", 1)
        is_grouped = pipeline == "wgmma" and _is_grouped(product, options)
        is_direct = pipeline == "mfma-direct"
        if self.is_chained and stages == _CHAINED_STAGES and pipeline not in ("mma", "wgmma"):
            count = 1 + is_direct
        else:
            count = max(stages - 1, 1) + (stages > 1 and (is_direct or is_grouped))
        found: list[int] = []
        for load, is_left in ((product.left, True), (product.right, False)):
            if load is None:
                continue
            each = load.item or item
            # wgmma takes bytes only with the inner dimension in a row: others pass through registers
            is_loose = is_grouped and each == 1 and not is_left and not load.is_turned
            # and WMMA has no instruction for more than two
            is_loose = is_loose or (pipeline == "wmma" and each > 2)
            if not is_loose and not self._may_skip_lds(product, pipeline, options, is_left=is_left):
                size = count * load.elements * each
                found.append(size + (_padding(load, size, each) if is_direct and stages > 1 else 0))
        return found

    def _passed(self, product: Product, pipeline: Pipeline, options: Mapping[str, Value], item: int) -> int:
        """The bytes of a left operand that one warp computes and another one needs."""
        if not product.depth or not product.rows:
            return 0
        if pipeline in ("mma", "wgmma"):
            is_grouped = pipeline == "wgmma" and _is_grouped(product, options)
            moves = product.rows < product.columns and not is_grouped
        else:
            # the first product has all warps one below the other, the second no more of them than it has rows for
            usual = 16 if pipeline == "wmma" or min(product.rows, product.columns) < 32 else 32
            edge = _option(options, "matrix_instr_nonkdim", 0) or usual
            moves = edge < product.rows < edge * _option(options, "num_warps", 4)
        each = (product.right.item if product.right is not None else 0) or item
        return product.rows * product.depth * each if moves else 0

    def _may_skip_lds(
        self, product: Product, pipeline: Pipeline, options: Mapping[str, Value], *, is_left: bool
    ) -> bool:
        """Whether AMD's back end may load an operand straight into the registers of the matrix unit.

        It does so for what is transposed after the load, where the instruction takes as many elements as a wide load
        has and no other warp needs them.
        """
        load = product.left if is_left else product.right
        takes_wide = pipeline in ("mfma-direct", "wmma") or (pipeline == "mfma" and _option(options, "kpack", 1) > 1)
        if load is None or not load.is_turned or not takes_wide:
            return False
        if any(other.depth and other.depth == product.columns for other in self.products):
            return is_left  # the warps of the first of two chained products all need the right operand
        rows, columns = (product.columns, product.rows) if is_left else (product.rows, product.columns)
        return not rows or rows * _option(options, "num_warps", 4) < 4 * columns


def _option(options: Mapping[str, Value], name: str, default: int) -> int:
    value = options.get(name)
    return value if isinstance(value, int) else default


def _is_grouped(product: Product, options: Mapping[str, Value]) -> bool:
    """Whether wgmma surely computes a product."""
    return product.rows >= _ROWS_OF_WGMMA and _option(options, "num_warps", 4) >= _WARPS_OF_A_GROUP


def _padding(load: Load, size: int, item: int) -> int:
    """The bytes that are surely added between the rows of a tile that is copied straight to LDS."""
    is_padded = item in (1, 2) and not load.is_masked and min(load.rows, load.columns) >= _PADDED_FROM
    return (size // _PADDED_BYTES - 1) * _PADDING if is_padded else 0
