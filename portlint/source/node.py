"""A piece of a file, as rules see it: a tree-sitter node with the services of `source/` behind it.

Nodes are made when a rule looks, never for the whole tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from portlint.condition import UNKNOWN, Environment, Guard, evaluate, names

if TYPE_CHECKING:
    import tree_sitter

    from portlint.condition import Value
    from portlint.source import Source
    from portlint.source.python.nki import Tile
    from portlint.source.python.pallas import Launch, Side
    from portlint.source.python.pipelines import Stage
    from portlint.source.python.tiles import Shape
    from portlint.source.python.triton import Configuration, Tuned


class MissingField(KeyError):
    """A node lacks a field that its grammar gives it: the code is broken there, and says nothing to a rule."""


class Node:
    """One syntax node of a `Source`. Two nodes are equal if they are the same place in the same file."""

    __slots__ = ("raw", "source")

    def __init__(self, source: Source, raw: tree_sitter.Node) -> None:
        self.source = source
        self.raw = raw

    # ---- syntax ---------------------------------------------------------------------------------------------------

    @property
    def type(self) -> str:
        """The grammar's name for this kind of node."""
        return self.raw.type

    @property
    def start(self) -> int:
        """Byte offset in the source's UTF-8 text."""
        return self.raw.start_byte

    @property
    def end(self) -> int:
        """Byte offset after the last byte."""
        return self.raw.end_byte

    @property
    def line(self) -> int:
        """The line it starts on, counted from 1."""
        return self.raw.start_point[0] + 1

    @property
    def text(self) -> str:
        """The code."""
        return self.source.text[self.start : self.end].decode()

    @property
    def parent(self) -> Node | None:
        """The node around it."""
        raw = self.source.parent(self.raw)
        return None if raw is None else Node(self.source, raw)

    @property
    def children(self) -> list[Node]:
        """The named nodes directly in it, comments left out."""
        return [Node(self.source, raw) for raw in self.raw.named_children if raw.type != "comment"]

    def get(self, field: str) -> Node | None:
        """The child in that field of the grammar, or None."""
        raw = self.raw.child_by_field_name(field)
        return None if raw is None else Node(self.source, raw)

    def __getitem__(self, field: str) -> Node:
        """The child in that field of the grammar; raises MissingField where the code is too broken to have it."""
        child = self.get(field)
        if child is None:
            raise MissingField(f"{self.type} has no '{field}' at line {self.line}")
        return child

    def ancestors(self, *types: str) -> Iterator[Node]:
        """The nodes around it, the nearest first; only those of the given types if any are given."""
        parent = self.source.parent
        raw = parent(self.raw)
        while raw is not None:
            if not types or raw.type in types:
                yield Node(self.source, raw)
            raw = parent(raw)

    def walk(self, *types: str) -> Iterator[Node]:
        """Every named node in it, itself included, in source order; only those of the given types if any are given."""
        cursor = self.raw.walk()
        depth = 0
        while True:
            raw = cursor.node
            if raw is not None and raw.is_named and (not types or raw.type in types):
                yield Node(self.source, raw)
            if cursor.goto_first_child():
                depth += 1
                continue
            while depth and not cursor.goto_next_sibling():
                cursor.goto_parent()
                depth -= 1
            if not depth:
                return

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.source is other.source and self.raw == other.raw

    def __hash__(self) -> int:
        return hash((self.start, self.end, self.raw.type))

    def __repr__(self) -> str:
        return f"<{self.type} {self.source.path}:{self.line} {self.text[:40]!r}>"

    # ---- meaning: what the services of the language say -------------------------------------------------------------

    @property
    def constant(self) -> Value:
        """The value, where it is known without running anything; None where it is not."""
        return self.source.analysis.constant(self)

    @property
    def values(self) -> tuple[tuple[Value, tuple[Guard, ...]], ...]:
        """Every value that it may have, each with the guards that it needs beside the node's own; none if unknown."""
        return self.source.analysis.values(self)

    @property
    def items(self) -> tuple[Value, ...]:
        """The items of a constant list; none where it is not known."""
        value = self.constant
        return value if isinstance(value, tuple) else ()

    @property
    def name(self) -> str:
        """The qualified name that it refers to (`torch.cuda.synchronize`, `cub::BlockReduce`), aliases resolved.

        "" where it is not a name. Of a call: the name of the function.
        """
        return self.source.analysis.name(self)

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The conditions under which it is live, the outermost first."""
        return self.source.analysis.guards(self)

    @property
    def choices(self) -> list[Node]:
        """The expressions that its value may come from; none where that is not written in the file."""
        return self.source.analysis.choices(self)

    @property
    def last_name(self) -> str:
        """Of a Python call: the name of the function or method, without what it belongs to."""
        function = self["function"]
        return function["attribute"].text if function.type == "attribute" else function.text

    def asked_for(self, dtype: str) -> list[tuple[Node, tuple[Guard, ...]]]:
        """Of a call: the arguments by which it asks for a dtype on the device, and what must hold for that."""
        return self.source.analysis.asked_for(self, dtype)

    @property
    def dtypes(self) -> list[tuple[str, Node]]:
        """Of a dtype: those that it may name, each with the expression that decides for it."""
        return self.source.analysis.dtypes(self)

    @property
    def variants(self) -> list[str]:
        """Of a string: the texts that it may be, its interpolations replaced by what they loop over."""
        return self.source.analysis.variants(self)

    @property
    def origin(self) -> Node:
        """Where its value is decided: the list that is looped over, the constant's definition, or itself."""
        return self.source.analysis.origin(self)

    @property
    def holds(self) -> Guard:
        """Of a test: the guard of code that runs where it is true."""
        return Guard(self.source.analysis.condition(self), True, " ".join(self.text.split()), self.line)

    @property
    def fails(self) -> Guard:
        """Of a test: the guard of code that runs where it is not true."""
        return msgspec.structs.replace(self.holds, expected=False)

    def may_hold(self, answers: Mapping[str, Value]) -> bool:
        """Of a test: whether it can be true where queries are answered so."""
        return evaluate(self.source.analysis.condition(self), Environment(answers)) in (True, UNKNOWN)

    def must_hold(self, answers: Mapping[str, Value]) -> bool:
        """Of a test: whether it is true where queries are answered so, whatever others say."""
        outcome = evaluate(self.source.analysis.condition(self), Environment(answers))
        return outcome is not UNKNOWN and bool(outcome)

    def asks(self, query: str) -> bool:
        """Of a test: whether it asks for that query, such as "device.capability", in whatever spelling."""
        return query in names(self.source.analysis.condition(self))

    def role(self, role: str) -> bool:
        """Whether the value is derived from, or is, something of that role: see the language's `roles` module."""
        return self.source.analysis.role(self, role)

    @property
    def function(self) -> Node | None:
        """The function definition around it."""
        return self.source.analysis.enclosing_function(self)

    @property
    def uses(self) -> list[Node]:
        """Of a name: where the same file uses it, its definition left out."""
        return self.source.analysis.uses(self)

    @property
    def is_first_use(self) -> bool:
        """Of a word: whether the code of the file does not have it before, live under the same conditions."""
        return self.source.analysis.is_first_use(self)

    @property
    def is_read_elsewhere(self) -> bool:
        """Of a name that a header defines: whether a file that includes the header may use it."""
        return self.source.analysis.is_read_elsewhere(self.text)

    @property
    def callers(self) -> list[Node]:
        """Of a function definition: the calls by its name in the same file."""
        return self.source.analysis.callers(self)

    @property
    def is_in_unused(self) -> bool:
        """Whether it is in a private function that nothing in the project names again."""
        functions = self.ancestors("function_definition")
        return any(self.source.analysis.is_unused(one) for one in functions)

    @property
    def called(self) -> Node | None:
        """Of a call: the definition of the function, if the file has exactly one by its name."""
        return self.source.analysis.called(self)

    @property
    def warp_operations(self) -> list[Node]:
        """Of a function: what it does over the whole warp, however many lanes that has."""
        return self.source.analysis.warp_operations(self)

    @property
    def assigned(self) -> Node | None:
        """Of a name: the expression that it was last given before."""
        return self.source.analysis.assigned(self)

    def by_default(self, expression: Node) -> Value:
        """Of a function: the value of an expression in it, where the function is called without arguments."""
        return self.source.analysis.by_default(self, expression)

    @property
    def annotation(self) -> str:
        """Of a name in Python: its annotation, "" without one and where it is bound more than once."""
        return self.source.analysis.annotation(self)

    @property
    def device_nearby(self) -> str:
        """In Python: a name, known where it stands, of the device that the code works on; "" if there is none."""
        return self.source.analysis.device_nearby(self)

    @property
    def unpacked(self) -> tuple[Node, int, int] | None:
        """Of a name in Python: what it was last unpacked from, its place there, and how many names take it apart."""
        return self.source.analysis.unpacked(self)

    @property
    def declaration(self) -> Node | None:
        """Of a name: the declarator that it means, if there is only one."""
        return self.source.analysis.declaration(self)

    @property
    def extent(self) -> int | None:
        """Of an array: the number of elements in its first dimension, where that is known."""
        return self.source.analysis.extent(self)

    @property
    def storage_bytes(self) -> int | None:
        """Of an array: the bytes that it takes, where that is known."""
        return self.source.analysis.storage_bytes(self)

    @property
    def ladder(self) -> list[tuple[Node, tuple[Guard, ...]]]:
        """What it comes to by the compute capability, each value with the guards that it and its place need."""
        return self.source.analysis.ladder(self)

    @property
    def instance_bytes(self) -> dict[tuple[Guard, ...], int]:
        """Of an array in a template: the most bytes in the instances that the file names, by their guards."""
        return self.source.analysis.instance_bytes(self)

    @property
    def compiled(self) -> Node | None:
        """Of a mark such as `numba.cuda.jit`: the Python function that it compiles for the device."""
        return self.source.analysis.compiled(self)

    @property
    def launched_bytes(self) -> Node | None:
        """Of a kernel launch: the dynamic shared memory that it asks for."""
        return self.source.analysis.launched_bytes(self)

    @property
    def launched_block(self) -> Node | None:
        """Of a kernel launch: the size of its blocks."""
        return self.source.analysis.launched_block(self)

    @property
    def block_sizes(self) -> list[tuple[int, tuple[Guard, ...]]]:
        """Of a block size: the threads that it comes to, each number with the guards that it needs."""
        return self.source.analysis.block_sizes(self)

    @property
    def block_written(self) -> Node:
        """Of a block size: where it is written, at the variable's definition or in place."""
        return self.source.analysis.block_written(self)

    @property
    def launches(self) -> list[Launch]:
        """The Pallas launches that get a value, be it through names, lists and grid specs."""
        return self.source.analysis.launches(self)

    @property
    def revisits(self) -> list[Node]:
        """Of a Pallas launch: where its kernel adds to an output block that a later step of the grid gets again."""
        return self.source.analysis.revisits(self)

    @property
    def sides(self) -> list[Side]:
        """Of a Pallas block spec: the dimensions of its blocks, where the file says what they are for."""
        return self.source.analysis.sides(self)

    @property
    def tile(self) -> Tile | None:
        """Of an expression in an NKI kernel: the tile that it is."""
        return self.source.analysis.tile(self)

    @property
    def index_rows(self) -> Node | None:
        """Of `mgrid` or `arange` in an NKI kernel: the extent of the index along the partitions."""
        return self.source.analysis.index_rows(self)

    @property
    def selected(self) -> int | None:
        """Of an index in an NKI kernel: how many elements it selects."""
        return self.source.analysis.extent_of(self)

    @property
    def products(self) -> list[Node]:
        """Of the call that makes a tile in an NKI kernel: the matrix products that are accumulated in it."""
        return self.source.analysis.products_into(self)

    # ---- Triton -----------------------------------------------------------------------------------------------------

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """Of a `triton.Config` call, the configurations that it stands for; of a launch, the one that it asks for."""
        return self.source.analysis.configurations(self)

    @property
    def tunings(self) -> list[Tuned]:
        """Of a `triton.Config` call: the kernels that it is listed for; of `triton.autotune`, that which it tunes."""
        return self.source.analysis.tunings(self)

    @property
    def compilations(self) -> list[Configuration]:
        """Of a Triton kernel: the ways in which it is compiled, as far as the file says."""
        return self.source.analysis.compilations(self)

    @property
    def launched(self) -> Node | None:
        """Of a launch: the Triton kernel, where the file defines it."""
        return self.source.analysis.launched(self)

    @property
    def grid(self) -> Node | None:
        """Of a launch of a Triton kernel: the grid, where it is written out."""
        return self.source.analysis.grid(self)

    def shape_under(self, values: Mapping[str, Value]) -> Shape | None:
        """In a Triton kernel: the shape under a configuration's values, () for a scalar, None where not known."""
        return self.source.analysis.shape_under(self, values)

    def staged(self, values: Mapping[str, Value]) -> Stage:
        """Of a Triton kernel: what the pipelined loop that loads most for products needs shared memory for."""
        return self.source.analysis.staged(self, values)

    # ---- calls ------------------------------------------------------------------------------------------------------

    @property
    def arguments(self) -> list[Node]:
        """The positional arguments of a call, in order."""
        return self.source.analysis.arguments(self)

    def argument(self, position: int | None, keyword: str = "") -> Node | None:
        """The argument of a call by keyword, else by position; None where it is not given."""
        return self.source.analysis.argument(self, position, keyword)
