"""CUDA and HIP C++: what nodes mean there.

Everything is computed when first asked for. Guards come from the text; structure (which function, which block) comes
from a second parse of a normalised text where the file's own tree has errors; macro bodies have a tree of their own.
Nodes of all three trees have the offsets of the file, so every service works for each of them.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from portlint.regex import regex
from portlint.source import Analysis
from portlint.source.cxx.branches import Branches
from portlint.source.cxx.constants import Constants, literal_value
from portlint.source.cxx.definitions import Definitions
from portlint.source.cxx.functions import FunctionInfo, Functions, Parameter
from portlint.source.cxx.launches import LaunchConfig, launch
from portlint.source.cxx.lexer import mask
from portlint.source.cxx.macros import has_tree, lay_out
from portlint.source.cxx.names import Names
from portlint.source.cxx.normalise import branches_of, left_out, normalise, without_directives
from portlint.source.cxx.preprocessor import Macro, Preprocessor
from portlint.source.cxx.roles import EXPRESSION_ROLES, Roles
from portlint.source.cxx.scopes import Reading, Scopes
from portlint.source.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import tree_sitter

    from portlint.condition import Guard, Value
    from portlint.source import Source

_MOST_READINGS = 4
_IDENTIFIER = regex(rb"[A-Za-z_]\w+")

__all__ = ["CxxAnalysis", "FunctionInfo", "LaunchConfig", "MacroBody", "Parameter"]


class MacroBody(msgspec.Struct, frozen=True):
    """The code that a macro stands for."""

    macro: Macro
    node: Node | None
    """the expression, or the block of its statements; None for a body of at most one token"""


class CxxAnalysis(Analysis):
    """The services for one file of CUDA or HIP C++."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._bodies: dict[int, tree_sitter.Node | None] = {}

    # ---- trees ----------------------------------------------------------------------------------------------------

    def roots(self) -> list[tree_sitter.Node]:
        """The trees that queries run over: the file's own, and that of its macro bodies if it has any to parse."""
        file = self.source.tree.root_node
        return [file, self._macro_tree.root_node] if self._macro_tree else [file]

    def structure(self) -> tree_sitter.Tree:
        """The tree to read functions and blocks from: the file's own unless it has errors."""
        return self._structure

    def macro_bodies(self) -> list[MacroBody]:
        """Every macro of the file with the node of its body, in source order."""
        macros = [one for many in self.preprocessor.macros.values() for one in many]
        return [MacroBody(one, self._node(self._body_of(one))) for one in sorted(macros, key=lambda one: one.start)]

    def identifiers(self, wanted: Callable[[str], bool]) -> Iterator[tree_sitter.Node]:
        """The identifiers of the code that `wanted` takes, those of macro bodies included, in source order."""
        words = [word for word in set(_IDENTIFIER.findall(self.masked)) if wanted(word.decode())]
        if not words:
            return
        file = self.source.tree.root_node
        for place in re.finditer(rb"\b(?:" + b"|".join(sorted(words)) + rb")\b", self.masked):
            raw = file.descendant_for_byte_range(*place.span())
            if raw is not None and raw.type == "preproc_arg" and self._macro_tree is not None:
                within = self._macro_tree.root_node.descendant_for_byte_range(*place.span())
                raw = within if within is not None and within.start_byte == place.start() else raw
            if raw is not None and (raw.end_byte == place.end() or raw.type == "preproc_arg"):
                yield raw

    # ---- the services of `Analysis` -------------------------------------------------------------------------------

    def constant(self, node: Node) -> Value:
        """The value of an expression if it has exactly one where it stands; None otherwise."""
        if (value := literal_value(node.raw)) is not None:
            return value
        return self.constants.constant(node.raw, self.preprocessor.guards_at(node.start))

    def values(self, node: Node) -> tuple[tuple[Value, tuple[Guard, ...]], ...]:
        """Every value that an expression can have where it stands, with the guards that it needs beside the node's own.

        Empty where some part of it is not known.
        """
        return self.constants.values(node.raw, self.preprocessor.guards_at(node.start))

    def name(self, node: Node) -> str:
        """The qualified name of what a node refers to, template arguments dropped; of a call, the function's."""
        return self.names.name(node.raw)

    def guards(self, node: Node) -> tuple[Guard, ...]:
        """The conditions under which a node is live: preprocessor conditionals, then `if constexpr`."""
        return self.guards_at(node.start)

    def guards_at(self, offset: int) -> tuple[Guard, ...]:
        """The conditions under which the code at an offset is live."""
        return self.preprocessor.guards_at(offset) + self._branches.guards_at(offset)

    def role(self, node: Node, role: str) -> bool:
        """Whether a node has a role: one of `roles.EXPRESSION_ROLES`, or kernel, device-code, host-code."""
        if role in EXPRESSION_ROLES:
            return self.roles.has(node.raw, role)
        if role == "kernel":
            return self.functions.is_kernel(node)
        if role in ("device-code", "host-code"):
            return self.functions.runs_on(node.start) == role.removesuffix("-code")
        raise ValueError(f"C++ code has no role '{role}'")

    def arguments(self, node: Node) -> list[Node]:
        """The arguments of a call or a launch, or those that a variable is initialised with."""
        listed = node.get("arguments") or node.get("value")
        return listed.children if listed and listed.type in ("argument_list", "initializer_list") else []

    def argument(self, node: Node, position: int | None, keyword: str) -> Node | None:  # noqa: ARG002
        """The argument of a call at a position; C++ has no keywords."""
        arguments = self.arguments(node)
        return arguments[position] if position is not None and position < len(arguments) else None

    # ---- functions and launches -----------------------------------------------------------------------------------

    def enclosing_function(self, node: Node) -> Node | None:
        """The function definition around a node, or the node itself if it is one."""
        return self.functions.own(node) or self.functions.enclosing(node.start)

    def function(self, node: Node) -> FunctionInfo | None:
        """What the function around a node, or the node itself if it is one, says of itself."""
        return self.functions.info(node)

    def launch(self, node: Node) -> LaunchConfig | None:
        """The configuration of a `kernel<<<...>>>(...)` or of a call that launches; None for any other node."""
        return launch(node)

    # ---- parts ----------------------------------------------------------------------------------------------------

    @cached_property
    def masked(self) -> bytes:
        """The text without comments and the insides of literals."""
        return mask(self.source.text)

    @cached_property
    def preprocessor(self) -> Preprocessor:
        """The directives of the file."""
        return Preprocessor(self.masked)

    @cached_property
    def scopes(self) -> Scopes:
        """The blocks, functions and types of the file and of its macro bodies."""
        bodies = [(one.body_start, one.body_end) for one in self._parsed_macros]
        macros = self._macro_tree.root_node if self._macro_tree else None
        return Scopes(self.source, self._readings, macros, bodies)

    @cached_property
    def definitions(self) -> Definitions:
        """What the names of the file are defined as."""
        roots = [reading.root for reading in self._readings]
        if self._structure is not self.source.tree:
            roots.append(self.source.tree.root_node)  # what is in no reading
        macros = self._macro_tree.root_node if self._macro_tree else None
        return Definitions(self.source, roots, macros, self.scopes, self.preprocessor)

    @cached_property
    def names(self) -> Names:
        """Aliases and `using` declarations."""
        return Names(self.definitions, self.scopes)

    @cached_property
    def constants(self) -> Constants:
        """Values of expressions."""
        return Constants(self.definitions, self.preprocessor.guards_at, self._body_of, self.masked)

    @cached_property
    def functions(self) -> Functions:
        """Functions and where they run."""
        code = without_directives(self.masked, self.preprocessor)
        return Functions(self.source, self.scopes, self.names, code, self.preprocessor.macros)

    @cached_property
    def roles(self) -> Roles:
        """Roles of expressions."""
        return Roles(
            source=self.source,
            definitions=self.definitions,
            names=self.names,
            constants=self.constants,
            functions=self.functions,
            body_of=self._body_of,
            roots=self.roots(),
        )

    @cached_property
    def _branches(self) -> Branches:
        return Branches(self.scopes, self.masked, self.constants, self.preprocessor)

    @cached_property
    def _structure(self) -> tree_sitter.Tree:
        tree = self.source.tree
        if not tree.root_node.has_error:
            return tree
        return self._normalised(0)

    def _normalised(self, branch: int) -> tree_sitter.Tree:
        return self.source.parsed(normalise(self.source.text, self.masked, self.preprocessor, branch))

    @cached_property
    def _readings(self) -> list[Reading]:
        """The structure, and where branches had to be chosen the trees that have the others."""
        if self._structure is self.source.tree:
            return [Reading(self._structure.root_node, [])]
        count = max([1, *map(len, branches_of(self.preprocessor))])
        readings = []
        for branch in range(min(count, _MOST_READINGS)):
            tree = self._structure if branch == 0 else self._normalised(branch)
            ranges = list(left_out(self.preprocessor, len(self.source.text), branch))
            readings.append(Reading(tree.root_node, ranges))
        return readings

    @cached_property
    def _parsed_macros(self) -> list[Macro]:
        macros = [one for many in self.preprocessor.macros.values() for one in many if has_tree(one)]
        return sorted(macros, key=lambda one: one.start)

    @cached_property
    def _macro_tree(self) -> tree_sitter.Tree | None:
        if not self._parsed_macros:
            return None
        return self.source.parsed(lay_out(self.source.text, self.masked, self._parsed_macros))

    def _body_of(self, macro: Macro) -> tree_sitter.Node | None:
        """The node of a macro's body: the expression, or the block that wraps the statements."""
        if macro.start not in self._bodies:
            self._bodies[macro.start] = self._find_body(macro)
        return self._bodies[macro.start]

    def _find_body(self, macro: Macro) -> tree_sitter.Node | None:
        if self._macro_tree is None or not has_tree(macro):
            return None
        return self._macro_tree.root_node.descendant_for_byte_range(macro.body_start, macro.body_end)

    def _node(self, raw: tree_sitter.Node | None) -> Node | None:
        return Node(self.source, raw) if raw is not None else None
