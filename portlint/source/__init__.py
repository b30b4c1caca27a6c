"""Source files as rules see them: text, language, tree, and what the syntax alone does not say.

`load` makes a `Source` from a file; `analysis` answers what an expression means there (`Analysis`), one implementation
per grammar: `source/cxx/` for CUDA and HIP C++, `source/python/` for everything in Python.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from portlint.condition import UNANSWERABLE
from portlint.regex import regex
from portlint.source.node import Node
from portlint.source.text import occurrences

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    import tree_sitter

    from portlint.condition import Expression, Guard, Value
    from portlint.source.cxx.assembly import Assembly
    from portlint.source.python.nki import Tile
    from portlint.source.python.pallas import Launch, Side
    from portlint.source.python.pipelines import Stage
    from portlint.source.python.tiles import Shape
    from portlint.source.python.triton import Configuration, Tuned
    from portlint.source.recipe import Entry
    from portlint.source.text import Lines


class Analysis:
    """The services that rules live on, one implementation per grammar. Each answer is computed when first asked.

    What a language does not have answers as if it were absent.
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    def roots(self) -> list[tree_sitter.Node]:
        """The trees that queries run over: the file's own, and that of macro bodies where the language has them."""
        return [self.source.tree.root_node]

    def identifiers(self, wanted: Callable[[str], bool]) -> Iterator[tree_sitter.Node]:
        """The identifiers of the code that `wanted` takes, in source order."""
        del wanted
        return iter(())

    def constant(self, node: Node) -> Value:
        """The value of an expression, folded through named constants and arithmetic; None where it is not known."""
        raise NotImplementedError

    def values(self, node: Node) -> tuple[tuple[Value, tuple[Guard, ...]], ...]:
        """Every value of an expression with the guards that it needs beside the node's own; none where unknown."""
        value = self.constant(node)
        return () if value is None else ((value, ()),)

    def name(self, node: Node) -> str:
        """The qualified name an expression refers to, or ""."""
        raise NotImplementedError

    def condition(self, node: Node) -> Expression:
        """The condition that a test amounts to, in queries that a target can answer."""
        del node
        return UNANSWERABLE

    def guards(self, node: Node) -> tuple[Guard, ...]:
        """The conditions under which a node is live, the outermost first."""
        raise NotImplementedError

    def role(self, node: Node, role: str) -> bool:
        """Whether an expression has a role; ValueError for a role that the language does not have."""
        raise NotImplementedError

    def arguments(self, node: Node) -> list[Node]:
        """The positional arguments of a call."""
        raise NotImplementedError

    def argument(self, node: Node, position: int | None, keyword: str) -> Node | None:
        """One argument of a call, by keyword, else by position."""
        raise NotImplementedError

    def imports(self, module: str) -> bool:
        """Whether the file imports a Python package, or includes a C++ header, of that name."""
        raise NotImplementedError

    def choices(self, node: Node) -> list[Node]:
        """The expressions that a value may come from, where they are written in the file."""
        return [node]

    def asked_for(self, call: Node, dtype: str) -> list[tuple[Node, tuple[Guard, ...]]]:
        """The arguments by which a call asks for a tensor of a dtype on the device."""
        del call, dtype
        return []

    def dtypes(self, node: Node) -> list[tuple[str, Node]]:
        """The dtypes that an expression may name, each with the expression that decides for it."""
        del node
        return []

    def assigned(self, name: Node) -> Node | None:
        """The expression that a name was last given before, where that is known."""
        del name
        return None

    def declaration(self, name: Node) -> Node | None:
        """The declarator that a name means, if there is only one."""
        del name
        return None

    def compiled(self, mark: Node) -> Node | None:
        """The function that a mark such as `numba.cuda.jit` compiles for the device."""
        del mark
        return None

    def launched_bytes(self, call: Node) -> Node | None:
        """The dynamic shared memory that a kernel launch asks for."""
        del call
        return None

    def launched_block(self, call: Node) -> Node | None:
        """The size of the blocks of a kernel launch."""
        del call
        return None

    def block_sizes(self, block: Node) -> list[tuple[int, tuple[Guard, ...]]]:
        """The threads that a block size comes to, each number with the guards that it needs."""
        del block
        return []

    def block_written(self, block: Node) -> Node:
        """Where a block size is written."""
        return block

    def is_first_use(self, name: Node) -> bool:
        """Whether a word stands in the code for the first time under its conditions."""
        del name
        return True

    def is_read_elsewhere(self, name: str) -> bool:
        """Whether another file of the tree may use a name that this one defines."""
        del name
        return True

    def extent(self, array: Node) -> int | None:
        """The number of elements in the first dimension of a declared array."""
        del array
        return None

    def storage_bytes(self, array: Node) -> int | None:
        """The bytes that a declared array takes, where its type and all dimensions are known."""
        del array
        return None

    def instance_bytes(self, array: Node) -> dict[tuple[Guard, ...], int]:
        """The most bytes that an array of a template takes in the instances that the file names, by their guards."""
        del array
        return {}

    def ladder(self, node: Node) -> list[tuple[Node, tuple[Guard, ...]]]:
        """What a value comes to by the compute capability, each with the guards that it and its place need."""
        return [(node, self.guards(node))]

    def launches(self, node: Node) -> list[Launch]:
        """The Pallas launches that get a value."""
        del node
        return []

    def revisits(self, call: Node) -> list[Node]:
        """Where the kernel of a Pallas launch adds to a block that a later step of the grid gets again."""
        del call
        return []

    def sides(self, spec: Node) -> list[Side]:
        """The dimensions of the blocks of a Pallas spec."""
        del spec
        return []

    def tile(self, node: Node) -> Tile | None:
        """The tile that an expression is in an NKI kernel."""
        del node
        return None

    def index_rows(self, grid: Node) -> Node | None:
        """The extent along the partitions of an index grid of NKI."""
        del grid
        return None

    def extent_of(self, part: Node) -> int | None:
        """How many elements an index of NKI selects."""
        del part
        return None

    def products_into(self, tile: Node) -> list[Node]:
        """The matrix products that are accumulated in a tile of NKI."""
        del tile
        return []

    def variants(self, node: Node) -> list[str]:
        """The texts that a string may be."""
        value = self.constant(node)
        return [value] if isinstance(value, str) else []

    def origin(self, node: Node) -> Node:
        """Where a value is decided: the list that is looped over, the constant's definition, or the node itself."""
        return node

    def enclosing_function(self, node: Node) -> Node | None:
        """The function definition around a node."""
        del node
        return None

    def uses(self, name: Node) -> list[Node]:
        """The uses of a name in the same file, its definition left out."""
        del name
        return []

    def callers(self, function: Node) -> list[Node]:
        """The calls of a function in the same file."""
        del function
        return []

    def is_unused(self, function: Node) -> bool:
        """Whether a function is private, and nothing in the project names it."""
        del function
        return False

    def called(self, call: Node) -> Node | None:
        """The definition of the function that a call names, if the file has exactly one."""
        del call
        return None

    def by_default(self, function: Node, expression: Node) -> Value:
        """The value of an expression of a function that is called without arguments."""
        del function, expression
        return None

    def annotation(self, name: Node) -> str:
        """The annotation of a name."""
        del name
        return ""

    def device_nearby(self, node: Node) -> str:
        """A name, known where a node stands, of the device that the code works on."""
        del node
        return ""

    def unpacked(self, name: Node) -> tuple[Node, int, int] | None:
        """What a name is unpacked from."""
        del name
        return None

    def configurations(self, call: Node) -> tuple[Configuration, ...]:
        """The configurations of a Triton kernel that a call stands for."""
        del call
        return ()

    def tunings(self, config: Node) -> list[Tuned]:
        """The Triton kernels that a configuration is listed for."""
        del config
        return []

    def compilations(self, kernel: Node) -> list[Configuration]:
        """The ways in which a Triton kernel is compiled."""
        del kernel
        return []

    def launched(self, launch: Node) -> Node | None:
        """The Triton kernel of a launch."""
        del launch
        return None

    def grid(self, launch: Node) -> Node | None:
        """The grid of a launch of a Triton kernel."""
        del launch
        return None

    def shape_under(self, node: Node, values: Mapping[str, Value]) -> Shape | None:
        """The shape of an expression in a Triton kernel."""
        del node, values
        return None

    def staged(self, kernel: Node, values: Mapping[str, Value]) -> Stage:
        """What the pipelined loop of a Triton kernel needs shared memory for."""
        raise NotImplementedError

    def warp_operations(self, function: Node) -> list[Node]:
        """What a function does over the whole warp: votes, ballots, shuffles without a width, reads of `warpSize`."""
        del function
        return []

    def defines(self, name: str) -> bool:
        """Whether the file itself gives that name a meaning of its own: a function, a class, a macro."""
        del name
        return False

    @property
    def assembly(self) -> Sequence[Assembly]:
        """The `asm` statements of the file."""
        return ()

    @property
    def entries(self) -> Sequence[Entry]:
        """What the file, as a recipe, asks to be installed and built."""
        return ()


_RECIPES = {
    "bash": ("shell", "ShellAnalysis"),
    "dockerfile": ("containers", "ContainerAnalysis"),
    "requirements": ("requirements", "RequirementsAnalysis"),
    "toml": ("manifests", "ManifestAnalysis"),
    "yaml": ("workflows", "YamlAnalysis"),
}


_ASKED_OFTEN = 3_000
"""parents, after which all are remembered: in a deep tree each costs what the whole of a flat one does"""
_LONE_RETURN = regex(rb"\r(?!\n)")


def prepare(language: str) -> None:
    """Compile what the services of a language ask every tree, once for all processes that are forked later."""
    if language == "cuda":
        from portlint.source.cxx.query import compiled

        compiled()
    elif language == "python":
        from portlint.source.python.scopes import binder_query

        binder_query()


class Source:
    """One file, or one notebook as one program, or one kernel text inside a string."""

    def __init__(
        self, path: str, text: bytes, language: str, file: str = "", *, offset: int = 0, headers: tuple[str, ...] = ()
    ) -> None:
        self.path = path
        """as reports show it"""
        self.file = file
        """where the text is, for what stands next to it; "" for text that is in no file"""
        self.text = text
        """UTF-8, whatever the file's own encoding was; line ends as they are"""
        self.language = language
        """python | cuda | cmake | ...: see `source/language.py`"""
        self._mentioned: dict[str, bool] = {}
        self._parents: dict[int, tree_sitter.Node | None] = {}
        self._asked = 0
        """how often the parser was asked for a parent"""
        self._trees: list[tree_sitter.Tree] = []
        self.answers: dict[Hashable, object] = {}
        """see `source/kept.py`"""
        self.offset = offset
        """where the text starts in that of the file, for a kernel inside a string"""
        self.headers = headers
        """what the compiler includes before the text"""

    @cached_property
    def tree(self) -> tree_sitter.Tree:
        """The syntax tree of the text as it stands, errors and all."""
        # A lone carriage return ends a line in Python, and none for the grammar: a comment would go on behind it.
        is_python = self.language == "python" and b"\r" in self.text
        return self.parsed(_LONE_RETURN.sub(b"\n", self.text) if is_python else self.text)

    def parsed(self, text: bytes) -> tree_sitter.Tree:
        """A tree of the text, or of what is made of it, at its length."""
        from portlint.source.grammar import parse

        tree = parse(text, self.language)
        self._trees.append(tree)
        return tree

    def close(self) -> None:
        """Let go of the trees, and of all that was worked out, at once: nobody asks any more."""
        if "analysis" in vars(self):
            vars(self.analysis).clear()  # whose parts know it, as it knows them
        vars(self).clear()

    def parent(self, raw: tree_sitter.Node) -> tree_sitter.Node | None:
        """The node around one; remembered, since the parser looks for it from the top of the tree down."""
        if raw.id not in self._parents:
            if self._asked == _ASKED_OFTEN:
                from portlint.source.grammar import edges

                self._parents.update((child.id, node) for tree in self._trees for node, child in edges(tree))
            self._asked += 1
            self._parents[raw.id] = self._parents.get(raw.id) or raw.parent
        return self._parents[raw.id]

    def mentions(self, word: str) -> bool:
        """Whether the text has a word at all; a cheap question before a dear one."""
        if word not in self._mentioned:
            self._mentioned[word] = word.encode() in self.text
        return self._mentioned[word]

    def identifiers(self, word: bytes) -> list[tree_sitter.Node]:
        """The nodes that are a word, wherever the text has it outside of longer ones, in each of its trees."""
        places = list(occurrences(self.text, word))
        found = [
            root.descendant_for_byte_range(at, at + len(word))
            for root in (self.analysis.roots() if places else ())
            for at in places
        ]
        return [raw for raw in found if raw is not None and raw.end_byte - raw.start_byte == len(word)]

    @cached_property
    def place(self) -> str:
        """Its path below the top of its project: what the folders above are called says nothing of it."""
        from portlint.source import nearby

        return nearby.within(self.file, self.path)

    @property
    def root(self) -> Node:
        """The whole file."""
        return Node(self, self.tree.root_node)

    @cached_property
    def analysis(self) -> Analysis:
        """The services for this file's language."""
        if self.language == "cuda":
            from portlint.source.cxx.services import CxxServices

            return CxxServices(self)
        if self.language == "cmake":
            from portlint.source.cmake import CMakeAnalysis

            return CMakeAnalysis(self)
        if self.language in _RECIPES:
            module, name = _RECIPES[self.language]
            made: Analysis = getattr(import_module(f"portlint.source.recipe.{module}"), name)(self)
            return made
        from portlint.source.python import PythonAnalysis

        return PythonAnalysis(self)

    def imports(self, module: str) -> bool:
        """Whether the file imports a Python package, or includes a C++ header, of that name."""
        return self.analysis.imports(module)

    @property
    def assembly(self) -> Sequence[Assembly]:
        """The `asm` statements of a C++ file, with what their templates come to."""
        return self.analysis.assembly

    @property
    def entries(self) -> Sequence[Entry]:
        """What the file, as a recipe, asks to be installed and built."""
        return self.analysis.entries

    def defines(self, name: str) -> bool:
        """Whether the file itself gives that name a meaning of its own, as a shim does for a missing builtin."""
        return self.analysis.defines(name)

    def comments(self) -> list[tuple[int, int]]:
        """The byte ranges of the comments, in order."""
        from portlint.source.grammar import comments

        return comments(self.tree)

    def logical_end(self, line: int, lines: Lines) -> int:
        """The last line of the statement that starts on a line; of a compound statement, of its header.

        `lines` are those of the file, also for a kernel inside a string.
        """
        text = lines.line(line)
        offset = max(0, lines.starts[line - 1] + len(text) - len(text.lstrip()) - self.offset)
        while line < len(lines) and lines.line(line).endswith("\\"):
            line += 1
        raw = self.tree.root_node.descendant_for_byte_range(offset, offset)
        while raw is not None and (around := self.parent(raw)) is not None and around.start_byte == raw.start_byte:
            if self.parent(around) is None or around.type in ("block", "compound_statement"):
                break
            raw = around
        if raw is None:
            return line
        body = next(
            (raw.child_by_field_name(name) for name in ("body", "consequence") if raw.child_by_field_name(name)), None
        )
        end = (body.start_byte - 1) if body is not None else raw.end_byte
        return max(line, lines.position(self.offset + max(offset, end))[0])
