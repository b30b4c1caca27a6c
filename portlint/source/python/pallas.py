"""Pallas kernels of JAX: what launches them, over which grid, and the blocks that specs cut arrays into."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from portlint.source.node import Node
from portlint.source.python.queries import calls_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source.python.scopes import Scopes

PACKAGE = "jax.experimental.pallas"
LAUNCH = f"{PACKAGE}.pallas_call"

GPU_MODULES = ("triton", "mosaic_gpu", "gpu")

_GRIDS = (f"{PACKAGE}.GridSpec", f"{PACKAGE}.tpu.PrefetchScalarGridSpec")
_PIPELINES = (f"{PACKAGE}.tpu.emit_pipeline", f"{PACKAGE}.mosaic_gpu.emit_pipeline")
_SQUEEZED = (f"{PACKAGE}.squeezed", f"{PACKAGE}.Squeezed")
_CONTAINERS = (
    "argument_list", "keyword_argument", "list", "tuple", "dictionary", "pair", "parenthesized_expression",
    "conditional_expression", "list_splat", "binary_operator", "list_comprehension", "expression_list",
)  # fmt: skip
_BACKENDS = {"triton": "triton", "mosaic_gpu": "mosaic_gpu", "mosaic_tpu": "tpu"}
_LOOP = "jax.lax.fori_loop"
_MAKERS = {
    ("jax", "ShapeDtypeStruct"): 1,
    **{("jax.numpy", name): 1 for name in ("zeros", "ones", "empty")},
    ("jax.numpy", "full"): 2,
}
"""what makes an array of a shape that it is given first, and where it takes the dtype"""
_CARE = frozenset(("where", "select", "iota", "broadcasted_iota", "mask"))
"""what a kernel that minds its last, ragged slice makes use of"""
_DEPTH = 6


class Side(msgspec.Struct, frozen=True):
    """One dimension of a block."""

    size: int | None
    """None where it is not known"""
    is_part: bool
    """whether the grid moves the block along it, so that the array is longer"""


class Array(msgspec.Struct, frozen=True):
    """What the file says of an array that a launch takes or makes."""

    shape: tuple[int | None, ...] = ()
    """() where its rank is not known"""
    dtype: str = ""
    """float32, bfloat16, ... or "" where it is not known"""


class Cut(msgspec.Struct, frozen=True):
    """An array of a launch, and the spec by which it gets to the kernel."""

    spec: Node | None
    """None where the kernel gets it as a whole"""
    array: Array


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
    cuts: tuple[Cut, ...] = ()
    """its inputs and outputs, as far as they are written out"""
    scratch: tuple[Node, ...] = ()
    """the scratch memory that holds something from one step of the grid to the next, or what is copied there"""

    @property
    def is_for_gpu(self) -> bool:
        """Whether it says itself that it is for GPUs."""
        return not self.modules.isdisjoint(GPU_MODULES)


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

    def is_in_kernel(self, node: Node, module: str = "") -> bool:
        """Whether a node runs in a kernel that the file launches, or in a function that one calls.

        With a module, whether a launch of that kernel takes something from it.
        """
        around = {one.start for one in node.ancestors("function_definition")}
        launches = [launch for start in around for launch in self._by_function.get(start, ())]
        return any(not module or module in launch.modules for launch in launches)

    @cached_property
    def _by_function(self) -> dict[int, list[Launch]]:
        """Where a function starts -> the launches that run it."""
        found: dict[int, list[Launch]] = defaultdict(list)
        for launch in self._every_launch():
            waiting = [launch.kernel] if launch.kernel is not None else []
            seen: set[int] = set()
            while waiting:
                function = waiting.pop()
                if function.start in seen:
                    continue
                seen.add(function.start)
                found[function.start].append(launch)
                for call in function["body"].walk("call"):
                    called = call["function"]
                    bound = self.scopes.only(called.text, called) if called.type == "identifier" else None
                    if bound is not None and bound.kind == "function" and bound.value is not None:
                        waiting.append(bound.value)
        return found

    def launches(self, node: Node) -> list[Launch]:
        """The launches that get a value, be it through names, lists and grid specs; of a launch itself, that one.

        What only the interpreter runs is left out.
        """
        calls = [node] if self._is_launch(node) else self._receivers(node, _DEPTH)
        return [self._launch(one) for one in calls if self._is_launch(one) and not _is_interpreted(one)]

    def revisits(self, call: Node) -> list[Node]:
        """Where the kernel of a launch adds to an output block that a later step of the grid gets again."""
        found: list[Node] = []
        for launch in self.launches(call):
            for output, spec in self._outputs(launch):
                if launch.kernel is not None and self._is_revisited(spec, launch):
                    found += [one for one in launch.kernel["body"].walk(*_WRITES) if _adds_to(one, output)]
        return found

    def runs_past_end(self, part: Node) -> bool:
        """Whether a slice `ds(i * size, size)` in a loop of `cdiv(n, size)` rounds ends after the last element.

        Only where neither the kernel nor the code that launches it says anything about a rest.
        """
        start, size = part.argument(0, "start"), part.argument(1, "size")
        kernel = next(iter(list(part.ancestors("function_definition"))[::-1]), None)
        if start is None or size is None or kernel is None:
            return False
        index = self._index_of_slice(start, size)
        rounds = self._rounds(index) if index is not None else None
        if rounds is None or not self._is_rounded_up(rounds, size) or _minds_the_rest(kernel):
            return False
        launches = [one for one in self._every_launch() if one.kernel == kernel]
        return bool(launches) and not any(one.in_specs or self._divides(one.call) for one in launches)

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

    # ---- outputs that steps of the grid share ---------------------------------------------------------------------

    def _outputs(self, launch: Launch) -> list[tuple[str, Node | None]]:
        """The parameters of a kernel that are outputs, each with its block spec; scratch memory comes after them."""
        given = launch.call.argument(None, "scratch_shapes")
        scratch = self._listed(given) if given is not None else []
        shapes, specs = launch.call.argument(1, "out_shape"), launch.out_specs
        outputs = self._listed(specs) if specs is not None else [None] * len(self._listed(shapes))
        if launch.kernel is None or not outputs or (given is not None and not scratch):
            return []
        names = [name for name in _parameters(launch.kernel) if name not in self._bound(launch.call)]
        if any(name.startswith("*") for name in names):
            return []
        names = names[: len(names) - len(scratch)]
        return list(zip(names[-len(outputs) :], outputs, strict=False)) if len(names) > len(outputs) else []

    def _listed(self, given: Node | None) -> list[Node]:
        """The elements of a list, or the one thing that stands in its place; none where that is not written."""
        given = self.written(given) if given is not None else None
        if given is None or given.type == "identifier":
            return []
        elements = given.children if given.type in ("list", "tuple") else [given]
        elements = [self.written(one) for one in elements]
        return [] if any(one.type not in ("call", "attribute") for one in elements) else elements

    def _bound(self, call: Node) -> set[str]:
        """The parameters of a kernel that `partial` gives a value."""
        first = self.written(call.arguments[0]) if call.arguments else None
        if first is None or first.type != "call":
            return set()
        return {one["name"].text for one in first["arguments"].children if one.type == "keyword_argument"}

    def _is_revisited(self, spec: Node | None, launch: Launch) -> bool:
        """Whether a grid has an axis along which the block of an output stays where it is."""
        axes = self.axes(launch.grid)
        index = self._index(spec) if spec is not None else None
        parts = _results(index) if index is not None else []
        if spec is not None and not parts:
            return False
        names = _parameters(index) if index is not None else []
        used = {names.index(one.text) for part in parts for one in part.walk("identifier") if one.text in names}
        is_rest = any(name.startswith("*") for name in names)
        return not is_rest and any(axis not in used and size.constant != 1 for axis, size in enumerate(axes))

    # ---- slices in loops ------------------------------------------------------------------------------------------

    def _index_of_slice(self, start: Node, size: Node) -> Node | None:
        """The `i` of a start `i * size`."""
        start = self.written(start)
        if start.type == "call" and start.name == f"{PACKAGE}.multiple_of" and start.arguments:
            start = self.written(start.arguments[0])
        if start.type != "binary_operator" or start["operator"].text != "*":
            return None
        for one, other in ((start["left"], start["right"]), (start["right"], start["left"])):
            if one.type == "identifier" and _is_same(other, size):
                return one
        return None

    def _rounds(self, index: Node) -> Node | None:
        """How many rounds the loop has that counts an index: of `fori_loop(0, rounds, body, ...)`, or of `range`."""
        bound = self.scopes.only(index.text, index)
        if bound is None:
            return None
        if bound.kind == "loop" and bound.value is not None:
            over = bound.value
            return self.written(over.arguments[-1]) if over.name == "range" and len(over.arguments) < 3 else None
        around = next(index.ancestors("function_definition", "lambda"))
        for call in calls_of(self.scopes.source, ("fori_loop",)):
            given = call.arguments
            if call.name == _LOOP and len(given) == 4 and given[0].constant == 0:
                body = self.scopes.binding(given[2].text, given[2]) if given[2].type == "identifier" else None
                if given[2] == around or (body is not None and body.value == around):
                    return self.written(given[1])
        return None

    def _is_rounded_up(self, rounds: Node, size: Node) -> bool:
        """Whether a number of rounds is `cdiv(n, size)`, and `n` not known to be whole in `size`."""
        if rounds.type != "call" or not rounds.name.endswith("cdiv") or len(rounds.arguments) != 2:
            return False
        whole, part = rounds.arguments
        length, width = whole.constant, size.constant
        is_whole = isinstance(length, int) and isinstance(width, int) and width > 0 and length % width == 0
        return _is_same(part, size) and not is_whole

    def _every_launch(self) -> list[Launch]:
        calls = calls_of(self.scopes.source, ("pallas_call", "partial"))
        return [launch for call in calls if self._is_launch(call) for launch in self.launches(call)]

    def _divides(self, launch: Node) -> bool:
        """Whether the function around a launch, or one that calls it, pads its arrays or asks for a remainder."""
        function = self.scopes.function(launch)
        callers = self.scopes.callers(function) if function is not None else []
        functions = [function, *(self.scopes.function(one) for one in callers)]
        return any(one is not None and _asks_for_remainder(one) for one in functions)

    # ---- how a value gets there -----------------------------------------------------------------------------------

    def _launch(self, call: Node) -> Launch:
        spec = call.argument(None, "grid_spec")
        grids = self.written(spec) if spec is not None else call
        grid = grids.argument(0 if grids.name == _GRIDS[0] else None, "grid") if grids.type == "call" else None
        ins, outs = [grids.argument(None, name) if grids.type == "call" else None for name in ("in_specs", "out_specs")]
        prefetched = grids.argument(None, "num_scalar_prefetch") if grids.type == "call" else None
        cuts = self._cuts(ins, self._operands(call, prefetched), is_whole=grid is None)
        cuts += self._cuts(outs, self._outcomes(call), is_whole=grid is None)
        kernel = self.kernel(call)
        shapes = call.argument(None, "scratch_shapes") or (
            grids.argument(None, "scratch_shapes") if grids.type == "call" else None
        )
        scratch = self._scratch(call, kernel, self._elements(shapes))
        return Launch(call, grid, kernel, ins, outs, self._modules(call), tuple(cuts), scratch)

    def _scratch(self, call: Node, kernel: Node | None, shapes: list[Node]) -> tuple[Node, ...]:
        """The scratch memory that the compiler cannot do without.

        What each step writes before it reads it may stay in registers, and what is not read is left out.
        """
        if kernel is None or not shapes:
            return ()
        names = [name for name in _parameters(kernel) if name not in self._bound(call)]
        if any(name.startswith("*") for name in names) or len(names) < len(shapes):
            return ()
        last = zip(names[-len(shapes) :], shapes, strict=True)
        return tuple(shape for name, shape in last if _is_kept(kernel, name))

    def _cuts(self, specs: Node | None, arrays: list[Node], *, is_whole: bool) -> list[Cut]:
        """The arrays that go through block specs; without specs and a grid, whole arrays."""
        if specs is None:
            return [Cut(None, self._array(one)) for one in arrays] if is_whole else []
        listed = self._elements(specs)
        known = [self._array(one) for one in arrays] if len(arrays) == len(listed) else [Array()] * len(listed)
        return [Cut(spec, array) for spec, array in zip(listed, known, strict=True) if spec.type == "call"]

    def _elements(self, given: Node | None) -> list[Node]:
        """What stands in a list, or in its place, names resolved."""
        given = self.written(given) if given is not None else None
        if given is None:
            return []
        return [self.written(one) for one in (given.children if given.type in ("list", "tuple") else [given])]

    def _operands(self, call: Node, prefetched: Node | None) -> list[Node]:
        """The arrays that a launch is called with, those left out that are fetched before the grid starts."""
        around = call.parent
        is_called = around is not None and around.type == "call" and around["function"] == call
        given = around.arguments if around is not None and is_called else []
        first = prefetched.constant if prefetched is not None else 0
        return given[first:] if isinstance(first, int) else []

    def _outcomes(self, call: Node) -> list[Node]:
        """The shapes of what a launch makes."""
        return self._elements(call.argument(1, "out_shape"))

    # ---- arrays ---------------------------------------------------------------------------------------------------

    def _array(self, node: Node, depth: int = _DEPTH) -> Array:
        """An array by how the file makes it: where it is a parameter, by what the one call in the file gives."""
        node = self.written(node)
        if not depth:
            return Array()
        if node.type == "identifier":
            bound = self.scopes.only(node.text, node)
            function = self.scopes.function(node)
            callers = self.scopes.callers(function) if function is not None else []
            if bound is None or bound.kind != "parameter" or function is None or len(callers) != 1:
                return Array()
            names = _parameters(function)
            given = callers[0].argument(names.index(node.text), node.text) if node.text in names else None
            return self._array(given, depth - 1) if given is not None else Array()
        if node.type != "call":
            return Array()
        module, _, name = node.name.rpartition(".")
        if module == "jax.random" or (module, name) in _MAKERS:
            at, typed = (1, 2) if module == "jax.random" else (0, _MAKERS[module, name])
            usual = "" if name in ("full", "ShapeDtypeStruct") else "float32"
            dtype = node.argument(typed, "dtype")
            shape = self._shape_of(node.argument(at, "shape"), depth)
            return Array(shape, self._dtype(dtype, depth) if dtype is not None else usual)
        method = node["function"]
        if method.type == "attribute" and method["attribute"].text == "astype":
            dtype = node.argument(0, "dtype")
            return Array(self._array(method["object"], depth - 1).shape, self._dtype(dtype, depth) if dtype else "")
        return Array()

    def _shape_of(self, node: Node | None, depth: int) -> tuple[int | None, ...]:
        node = self.written(node) if node is not None else None
        if node is None:
            return ()
        if node.type == "attribute" and node["attribute"].text == "shape":
            return self._array(node["object"], depth - 1).shape
        is_written = node.type == "tuple" and not any(one.type == "list_splat" for one in node.children)
        return tuple(self._size(one) for one in node.children) if is_written else ()

    def _dtype(self, node: Node, depth: int) -> str:
        node = self.written(node)
        if node.type == "attribute" and node["attribute"].text == "dtype":
            return self._array(node["object"], depth - 1).dtype
        value = node.constant
        return value if isinstance(value, str) else node.name.rpartition(".")[2]

    def _modules(self, call: Node) -> frozenset[str]:
        given = [self.written(one) for each in call["arguments"].children for one in (each.get("value") or each,)]
        names = (one.name for each in given for one in each.walk("attribute"))
        modules = {name.split(".")[3] for name in names if name.startswith(f"{PACKAGE}.") and name.count(".") > 3}
        backend = call.argument(None, "backend")  # later releases no longer have it
        named = _BACKENDS.get(str(backend.constant)) if backend is not None else None
        return frozenset(modules | {named} if named is not None else modules)

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


_WRITES = ("augmented_assignment", "assignment")


def _is_interpreted(call: Node) -> bool:
    given = call.argument(None, "interpret")
    return given is not None and given.constant is True


def _adds_to(statement: Node, output: str) -> bool:
    """Whether a statement is `output[...] += x`, or `output[...] = ... output[...] ...`."""
    left, right = statement["left"], statement.get("right")
    if left.type != "subscript" or left["value"].text != output or right is None:
        return False
    reads = (one["value"].text == output for one in right.walk("subscript"))
    return statement.type == "augmented_assignment" or any(reads)


def _is_kept(kernel: Node, name: str) -> bool:
    """Whether a reference is added to, used under a condition on the step, or copied to."""
    for use in kernel["body"].walk("identifier"):
        if use.text != name:
            continue
        around = use.parent
        statement = around.parent if around is not None and around.type == "subscript" else None
        if next(use.ancestors("function_definition", "lambda")) != kernel:
            return True
        if statement is not None and statement.type == "augmented_assignment" and statement["left"] == around:
            return True
        call = next(use.ancestors("call"), None)
        if call is not None and call.name.startswith(f"{PACKAGE}.tpu."):
            return True
    return False


def _is_same(one: Node, other: Node) -> bool:
    return one.text == other.text or (one.constant is not None and one.constant == other.constant)


def _minds_the_rest(kernel: Node) -> bool:
    return any(one.text in _CARE or "mask" in one.text for one in kernel.walk("identifier"))


def _asks_for_remainder(function: Node) -> bool:
    is_rest = any(one["operator"].text == "%" for one in function.walk("binary_operator"))
    return is_rest or any("pad" in one.text.lower() for one in function.walk("identifier"))


def _parameters(function: Node) -> list[str]:
    """The names of a function's positional parameters; those that take the rest keep their star."""
    parameters = function.get("parameters")
    found = []
    for one in parameters.children if parameters is not None else []:
        if one.type == "keyword_separator":
            break
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
