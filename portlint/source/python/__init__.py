"""What Python code means: names, constants, guards and roles, for PyTorch, Triton, JAX, NKI and build scripts alike."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from portlint.source import Analysis
from portlint.source.node import Node
from portlint.source.python import devices, users
from portlint.source.python.choices import choices, origin, variants
from portlint.source.python.conditions import condition
from portlint.source.python.constants import constant
from portlint.source.python.guards import Guards
from portlint.source.python.kernels import Kernels
from portlint.source.python.nki import Nki, Tile
from portlint.source.python.pallas import Launch, Pallas, Side
from portlint.source.python.roles import Roles
from portlint.source.python.scopes import Scopes
from portlint.source.python.tiles import Tiles
from portlint.source.python.triton import Triton
from portlint.source.python.values import Values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from portlint.condition import Expression, Guard, Value
    from portlint.source.python.pipelines import Stage
    from portlint.source.python.tiles import Shape
    from portlint.source.python.triton import Configuration, Tuned
    from portlint.source.recipe import Entry


class PythonAnalysis(Analysis):
    """The services of one Python source."""

    @cached_property
    def scopes(self) -> Scopes:
        """Imports and bindings."""
        return Scopes(self.source)

    @cached_property
    def _guards(self) -> Guards:
        return Guards(self.scopes, self._values)

    @cached_property
    def _roles(self) -> Roles:
        return Roles(self.scopes, self._values, self._kernels, self._pallas)

    @cached_property
    def _values(self) -> Values:
        return Values(self.scopes)

    @cached_property
    def _kernels(self) -> Kernels:
        return Kernels(self.scopes)

    @cached_property
    def _triton(self) -> Triton:
        return Triton(self.scopes)

    @cached_property
    def _tiles(self) -> Tiles:
        return Tiles(self.scopes, self._triton, self._roles.values)

    @cached_property
    def _pallas(self) -> Pallas:
        return Pallas(self.scopes)

    @cached_property
    def _nki(self) -> Nki:
        return Nki(self.scopes)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """What an installation by this file needs, where it is a setup.py."""
        from portlint.source.recipe.manifests import of_setup

        return tuple(of_setup(self.source))

    def constant(self, node: Node) -> Value:
        """The value of an expression, folded through named constants; None where it is not known."""
        return constant(self.scopes, node)

    def by_default(self, function: Node, expression: Node) -> Value:
        """The value of an expression of a function that is called without arguments."""
        defaults: dict[str, Value] = {}
        for parameter in function["parameters"].children:
            default = parameter.get("value") if parameter.type.endswith("default_parameter") else None
            if default is not None:
                defaults[parameter["name"].text] = self.constant(default)
        return constant(self.scopes, expression, known=defaults)

    def declaration(self, name: Node) -> Node | None:
        """The function or class of the file that a name means, if it means nothing else."""
        binding = self.scopes.only(name.text, name) if name.type == "identifier" else None
        return binding.value if binding is not None and binding.kind in ("function", "class") else None

    def name(self, node: Node) -> str:
        """The qualified name with import aliases resolved: `t.cuda.synchronize` after `import torch as t`."""
        return self.scopes.qualified(node)

    def condition(self, node: Node) -> Expression:
        """The condition that a Python test amounts to."""
        return condition(self.scopes, node)

    def guards(self, node: Node) -> tuple[Guard, ...]:
        """The tests that must have gone one way for this node to run."""
        return self._guards.of(node)

    def role(self, node: Node, role: str) -> bool:
        """See `roles.py` for the list."""
        return self._roles.has(node, role)

    def imports(self, module: str) -> bool:
        """Whether any import of the file reaches into a package."""
        return any(name == module or name.startswith(f"{module}.") for name in self.scopes.imports.values())

    def defines(self, name: str) -> bool:
        """Whether the file has a function, method or class of that name."""
        return self.scopes.defines(name)

    def enclosing_function(self, node: Node) -> Node | None:
        """The function definition around a node."""
        return self.scopes.function(node)

    def uses(self, name: Node) -> list[Node]:
        """The uses of a name in the same file, what defines it left out."""
        return [use for use in self.scopes.uses(name.text) if use != name]

    def callers(self, function: Node) -> list[Node]:
        """The calls of a function by its bare name, or as a method of `self`, in the same file."""
        return self.scopes.callers(function)

    def is_unused(self, function: Node) -> bool:
        """Whether a private function is named nowhere else in the project."""
        return users.is_unused(function)

    def choices(self, node: Node) -> list[Node]:
        """The expressions that a value may come from: elements of a list looped over, arms of a conditional."""
        return choices(self.scopes, node)

    def asked_for(self, call: Node, dtype: str) -> list[tuple[Node, tuple[Guard, ...]]]:
        """The arguments by which `torch.zeros(..., device=d, dtype=t)` or `x.to(t)` asks for a dtype on the device."""
        function = call["function"]
        converts = function.type == "attribute" and function["attribute"].text in ("to", "type")
        made_there = converts or self.argument(call, None, "device") is not None
        if not made_there or not self.imports("torch"):
            return []
        given = self.argument(call, None, "dtype")
        arguments = [*(self.arguments(call)[:2] if converts else []), *([given] if given is not None else [])]
        asked = [
            (argument, place)
            for argument in arguments
            for named, place in self.dtypes(argument)
            if named == dtype and place.name.startswith("torch.")
        ]
        if not asked or not self.role(call, "on-device"):
            return []
        return [(argument, (*call.guards, *place.guards)) for argument, place in asked]

    def dtypes(self, node: Node) -> list[tuple[str, Node]]:
        """The dtypes that an expression may name: both arms of a conditional, by the name that it was given."""
        return self._values.dtypes(node)

    def assigned(self, name: Node) -> Node | None:
        """The expression that a name was last given before, where that is known."""
        binding = self.scopes.binding(name.text, name) if name.type == "identifier" else None
        return binding.value if binding is not None and binding.kind == "assign" else None

    def annotation(self, name: Node) -> str:
        """The annotation of a name, where it is bound once."""
        binding = self.scopes.only(name.text, name) if name.type == "identifier" else None
        return binding.annotation if binding is not None else ""

    def device_nearby(self, node: Node) -> str:
        """A name, known where a node stands, of the device that the code works on."""
        return devices.nearby(node)

    def unpacked(self, name: Node) -> tuple[Node, int, int] | None:
        """What a name is unpacked from: the whole, the name's place, and how many there are."""
        binding = self.scopes.binding(name.text, name) if name.type == "identifier" else None
        statement = binding.value.parent if binding is not None and binding.value is not None else None
        if binding is None or binding.value is None or binding.kind != "item" or statement is None:
            return None
        names = statement.get("left")
        return None if names is None else (binding.value, binding.index, len(names.children))

    def compiled(self, mark: Node) -> Node | None:
        """The function that a mark such as `numba.cuda.jit` compiles for the device."""
        return self._kernels.compiled(mark)

    def warp_operations(self, function: Node) -> list[Node]:
        """What a device function does over the whole warp, however many lanes that has."""
        return self._kernels.operations(function)

    def launched_block(self, call: Node) -> Node | None:
        """The size of the blocks of a launch `kernel[grid, block](...)`."""
        return next(iter(self._kernels.configuration(call)[1:2]), None)

    def launched_bytes(self, call: Node) -> Node | None:
        """The dynamic shared memory that a launch `kernel[grid, block, stream, bytes](...)` asks for."""
        return next(iter(self._kernels.configuration(call)[3:4]), None)

    def configurations(self, call: Node) -> tuple[Configuration, ...]:
        """Of a `triton.Config` call, the configurations that it stands for; of a launch, the one that it asks for."""
        return self._triton.configurations(call)

    def tunings(self, config: Node) -> list[Tuned]:
        """The kernels of the file that a `triton.Config` call is listed for."""
        return self._triton.tunings(config)

    def compilations(self, kernel: Node) -> list[Configuration]:
        """The ways in which a Triton kernel is compiled, as far as the file says."""
        return self._triton.compilations(kernel)

    def launched(self, launch: Node) -> Node | None:
        """The Triton kernel of a launch, where the file defines it."""
        return self._triton.launched(launch)

    def grid(self, launch: Node) -> Node | None:
        """The grid of a launch of a Triton kernel, where it is written out."""
        return self._triton.grid(launch)

    def shape_under(self, node: Node, values: Mapping[str, Value]) -> Shape | None:
        """The shape of an expression in a Triton kernel under a configuration's values."""
        return self._tiles.shape(node, values)

    def staged(self, kernel: Node, values: Mapping[str, Value]) -> Stage:
        """What the pipelined loop of a Triton kernel that loads most for products needs shared memory for."""
        return self._tiles.staged(kernel, values)

    def block_sizes(self, block: Node) -> list[tuple[int, tuple[Guard, ...]]]:
        """The threads that a block size comes to."""
        return [(threads, ()) for threads in self._kernels.threads(block)]

    def extent(self, array: Node) -> int | None:
        """The number of elements in the first dimension of a shared array."""
        made = self._kernels.shared_array(array)
        return next(iter(self._kernels.shape(made)), None) if made is not None else None

    def storage_bytes(self, array: Node) -> int | None:
        """The bytes that a shared array takes, where its type and all dimensions are known."""
        made = self._kernels.shared_array(array)
        return self._kernels.bytes_of(made) if made is not None else None

    def launches(self, node: Node) -> list[Launch]:
        """The Pallas launches that get a value."""
        return self._pallas.launches(node)

    def revisits(self, call: Node) -> list[Node]:
        """Where the kernel of a Pallas launch adds to a block that a later step of the grid gets again."""
        return self._pallas.revisits(call)

    def sides(self, spec: Node) -> list[Side]:
        """The dimensions of the blocks of a Pallas spec."""
        return self._pallas.sides(spec)

    def tile(self, node: Node) -> Tile | None:
        """The tile that an expression is in an NKI kernel."""
        return self._nki.tile(node)

    def index_rows(self, grid: Node) -> Node | None:
        """The extent along the partitions of an index grid of NKI."""
        return self._nki.index_rows(grid)

    def extent_of(self, part: Node) -> int | None:
        """How many elements an index of NKI selects."""
        return self._nki.extent(part)

    def products_into(self, tile: Node) -> list[Node]:
        """The matrix products that are accumulated in a tile of NKI."""
        return self._nki.product_into(tile)

    def variants(self, string: Node) -> list[str]:
        """The texts that an f-string may be."""
        return variants(self.scopes, string)

    def origin(self, string: Node) -> Node:
        """Where an f-string's text is decided."""
        return origin(self.scopes, string)

    def arguments(self, node: Node) -> list[Node]:
        """The positional arguments of a call; none where it unpacks a sequence."""
        given = node.get("arguments")
        if given is None or given.type != "argument_list":
            return []
        positional = [child for child in given.children if child.type not in ("keyword_argument", "dictionary_splat")]
        return [] if any(child.type == "list_splat" for child in positional) else positional

    def argument(self, node: Node, position: int | None, keyword: str) -> Node | None:
        """One argument of a call, by keyword, else by position."""
        given = node.get("arguments")
        if given is None:
            return None
        if keyword:
            for child in given.children:
                if child.type == "keyword_argument" and child["name"].text == keyword:
                    return child["value"]
        positional = self.arguments(node)
        return positional[position] if position is not None and position < len(positional) else None
