"""CUDA and HIP C++: what nodes mean there.

Everything is computed when first asked for. Guards come from the text; structure (which function, which block) comes
from a second parse of a normalised text where the file's own tree has errors; macro bodies have a tree of their own.
Nodes of all three trees have the offsets of the file, so every service works for each of them.
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from typing import TYPE_CHECKING

import msgspec

from portlint.source.cxx.functions import (
    FunctionInfo,
    LaunchConfig,
    Parameter,
    Qualifiers,
    function_declarator,
    head_of,
    qualifiers,
    template_parameters,
)
from portlint.source.node import Node

if TYPE_CHECKING:
    import tree_sitter

    from portlint.condition import Expression, Guard, Value
    from portlint.source import Source
    from portlint.source.cxx.constants import Constants
    from portlint.source.cxx.definitions import Definitions
    from portlint.source.cxx.names import Names
    from portlint.source.cxx.preprocessor import Macro, Preprocessor
    from portlint.source.cxx.roles import Roles
    from portlint.source.cxx.scopes import Scope, Scopes

__all__ = ["CxxAnalysis", "FunctionInfo", "LaunchConfig", "MacroBody", "Parameter"]

_DEVICE_BUILTIN = re.compile(
    rb"\b(?:threadIdx|blockIdx|blockDim|gridDim|hipThreadIdx_[xyz]|hipBlockIdx_[xyz]|__syncthreads|__syncwarp|__shfl\w*"
    rb"|__ballot\w*|__activemask|__ldg|__builtin_amdgcn_\w+|__nv_\w+)\b"
)
_LAUNCH_CALLS = {"hipLaunchKernelGGL": (3, 4), "cudaLaunchKernel": (4, 5), "hipLaunchKernel": (4, 5)}
"""Launch functions -> the positions of shared memory and stream; kernel, grid and block are the first three."""
_SYNC_MASKS = """
(call_expression function: (identifier) @_name arguments: (argument_list . (identifier) @mask)
    (#match? @_name "^__(shfl|ballot|any|all|match|reduce|syncwarp)"))
"""
_LAUNCH_BOUNDS = """
(launch_bounds) @bounds
(call_expression function: (identifier) @_name arguments: (argument_list) @bounds
    (#match? @_name "LAUNCH_BOUNDS|launch_bounds"))
(init_declarator declarator: (identifier) @_name value: (argument_list) @bounds
    (#match? @_name "LAUNCH_BOUNDS|launch_bounds"))
"""


class MacroBody(msgspec.Struct, frozen=True):
    """The code that a macro stands for."""

    macro: Macro
    node: Node | None
    """None for a body of one token, and where it did not parse"""


class CxxAnalysis:
    """The services for one file of CUDA or HIP C++."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._qualifiers_at: dict[int, Qualifiers] = {}
        self._uses_device_at: dict[int, bool] = {}

    # ---- trees ----------------------------------------------------------------------------------------------------

    def roots(self) -> list[tree_sitter.Node]:
        """The trees that queries run over: the file's own, and that of its macro bodies if it has any to parse."""
        file = self._source.tree.root_node
        return [file, self._macro_tree.root_node] if self._macro_tree else [file]

    def structure(self) -> tree_sitter.Tree:
        """The tree to read functions and blocks from: the file's own unless it has errors."""
        return self._structure

    def macro_bodies(self) -> list[MacroBody]:
        """Every macro of the file with the node of its body, in source order."""
        macros = sorted((one for many in self.preprocessor.macros.values() for one in many), key=lambda one: one.start)
        return [MacroBody(one, self._wrap(self._body_of(one))) for one in macros]

    def enclosing_function(self, node: Node) -> Node | None:
        """The function definition around a node, or the node itself if it is one."""
        for scope in self.scopes.at(node.start).chain():
            if scope.kind == "function":
                return self._wrap(scope.node)
        return None

    # ---- the services of `Analysis` -------------------------------------------------------------------------------

    def constant(self, node: Node) -> Value:
        """The value of an expression if it has exactly one where it stands; None otherwise."""
        return self.constants.constant(node.raw, self.preprocessor.guards_at(node.start))

    def values(self, node: Node) -> tuple[tuple[Value, tuple[Guard, ...]], ...]:
        """Every value that an expression can have, with the guards that it holds under beside the node's own."""
        return self.constants.values(node.raw, self.preprocessor.guards_at(node.start))

    def name(self, node: Node) -> str:
        """The qualified name of what a node refers to, template arguments dropped; of a call, the function's."""
        return self.names.name(node.raw)

    def guards(self, node: Node) -> tuple[Guard, ...]:
        """The conditions under which a node is live: preprocessor conditionals, then `if constexpr`."""
        return self.guards_at(node.start)

    def guards_at(self, offset: int) -> tuple[Guard, ...]:
        """The conditions under which the code at an offset is live, the outermost first."""
        return self.preprocessor.guards_at(offset) + self._compile_time_tests(offset)

    def role(self, node: Node, role: str) -> bool:
        """Whether a node has a role: those of `roles`, or kernel, device-code, host-code."""
        from portlint.source.cxx.roles import EXPRESSION_ROLES

        if role in EXPRESSION_ROLES:
            return self.roles.has(node.raw, role)
        if role == "kernel":
            function = self._own_function(node)
            return function is not None and self._qualifiers(function).kernel
        if role in ("device-code", "host-code"):
            return self._runs_on(node) == role.removesuffix("-code")
        raise ValueError(f"C++ expressions have no role '{role}'")

    def arguments(self, node: Node) -> list[Node]:
        """The arguments of a call, a launch, or a variable's initialisation in parentheses."""
        listed = node.raw.child_by_field_name("arguments") or node.raw.child_by_field_name("value")
        if listed is None or listed.type not in ("argument_list", "initializer_list"):
            return []
        return [Node(self._source, raw) for raw in listed.named_children if raw.type != "comment"]

    def argument(self, node: Node, position: int | None, keyword: str) -> Node | None:  # noqa: ARG002
        """The argument of a call at a position; C++ has no keywords."""
        arguments = self.arguments(node)
        return arguments[position] if position is not None and position < len(arguments) else None

    # ---- functions and launches -----------------------------------------------------------------------------------

    def function(self, node: Node) -> FunctionInfo | None:
        """What the function around a node, or the node itself if it is one, says of itself."""
        function = self._own_function(node) or self.enclosing_function(node)
        if function is None or function.get("body") is None:
            return None
        where = self._qualifiers(function)
        declarator = function_declarator(function.raw)
        listed = declarator.child_by_field_name("parameters") if declarator else None
        parameters = [
            self._parameter(one) for one in (listed.named_children if listed else ()) if one.type != "comment"
        ]
        return FunctionInfo(
            self.name(function),
            where.kernel,
            where.device,
            where.host,
            tuple(parameters),
            function["body"],
            self._launch_bounds(function),
            template_parameters(function.raw),
            function,
        )

    def launch(self, node: Node) -> LaunchConfig | None:
        """The configuration of a `kernel<<<...>>>(...)` or of a call that launches; None for any other node."""
        if node.type != "call_expression":
            return None
        syntax = next((child for child in node.children if child.type == "kernel_call_syntax"), None)
        if syntax is not None:
            kernel, given = node.get("function"), syntax.children
            shared, stream = 2, 3
        elif (called := self.name(node).rpartition("::")[2]) in _LAUNCH_CALLS:
            arguments = self.arguments(node)
            kernel, given = (arguments[0], arguments[1:]) if arguments else (None, [])
            shared, stream = (position - 1 for position in _LAUNCH_CALLS[called])
        else:
            return None
        if kernel is None or len(given) < 2:
            return None
        more = [given[one] if one < len(given) else None for one in (shared, stream)]
        return LaunchConfig(kernel, self._template_arguments(kernel), given[0], given[1], *more)

    def _template_arguments(self, kernel: Node) -> tuple[Node, ...]:
        while kernel.type in ("qualified_identifier", "parenthesized_expression", "pointer_expression"):
            inner = [kernel.get("name"), kernel.get("argument"), *kernel.children]
            kernel = next((one for one in inner if one is not None), kernel["name"])
        listed = kernel.get("arguments") if kernel.type == "template_function" else None
        return tuple(listed.children) if listed else ()

    def _parameter(self, raw: tree_sitter.Node) -> Parameter:
        declarator = raw.child_by_field_name("declarator")
        name = declarator
        while name is not None and name.type not in ("identifier", "field_identifier"):
            name = name.child_by_field_name("declarator") or (name.named_children[-1] if name.named_children else None)
        end = raw.end_byte
        if default := raw.child_by_field_name("default_value"):
            end = self.masked.rfind(b"=", raw.start_byte, default.start_byte)
        text = self.masked[raw.start_byte : end]
        if name is not None:
            text = self.masked[raw.start_byte : name.start_byte] + self.masked[name.end_byte : end]
        return Parameter(
            (name.text or b"").decode(errors="replace") if name is not None else "",
            " ".join(text.decode(errors="replace").split()),
            Node(self._source, raw),
        )

    def _launch_bounds(self, function: Node) -> tuple[Node, ...]:
        head_start = function["body"].start - len(self._head(function))
        for raw in self._all_launch_bounds:
            if head_start <= raw.start_byte < function["body"].start:
                return tuple(Node(self._source, one) for one in raw.named_children if one.type != "comment")
        return ()

    @cached_property
    def _all_launch_bounds(self) -> list[tree_sitter.Node]:
        """The argument lists of launch bounds, whatever the file's own tree takes them for."""
        return _capture(_LAUNCH_BOUNDS, "bounds", [self._source.tree.root_node])

    def _own_function(self, node: Node) -> Node | None:
        while node.type in ("template_declaration", "linkage_specification") and node.children:
            node = node.children[-1]
        return node if node.type == "function_definition" else None

    def _head(self, function: Node) -> bytes:
        body = function.get("body")
        return head_of(self._code, function.start, body.start if body else function.end)

    def _qualifiers(self, function: Node) -> Qualifiers:
        if function.start not in self._qualifiers_at:
            self._qualifiers_at[function.start] = qualifiers(self._head(function), self._macro_texts)
        return self._qualifiers_at[function.start]

    def _runs_on(self, node: Node) -> str:
        """`device`, `host`, or "" for a node outside functions."""
        for scope in self.scopes.at(node.start).chain():
            if scope.kind == "lambda" and scope.node is not None:
                body = scope.node.child_by_field_name("body")
                if body and b"__device__" in self.masked[scope.start : body.start_byte]:
                    return "device"
            elif scope.kind == "macro":
                return "device" if self._uses_device(scope) else ""
            elif scope.kind == "function" and scope.node is not None:
                where = self._qualifiers(Node(self._source, scope.node))
                return "device" if where.device or self._uses_device(scope) else "host"
        return ""

    def _uses_device(self, scope: Scope) -> bool:
        if scope.start not in self._uses_device_at:
            self._uses_device_at[scope.start] = bool(_DEVICE_BUILTIN.search(self.masked, scope.start, scope.end))
        return self._uses_device_at[scope.start]

    # ---- `if constexpr` and tests of warpSize ---------------------------------------------------------------------

    def _compile_time_tests(self, offset: int) -> tuple[Guard, ...]:
        guards = []
        for scope in self.scopes.at(offset).chain():
            if scope.kind == "if" and scope.node is not None and (guard := self._test(scope.node, offset)):
                guards.append(guard)
        return tuple(reversed(guards))

    def _test(self, node: tree_sitter.Node, offset: int) -> Guard | None:
        """The guard that an `if` puts on an offset in one of its branches."""
        from portlint.condition import Guard, names
        from portlint.source.cxx.conditions import UNREADABLE, parse_condition

        condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        if condition is None or then is None or offset < then.start_byte:
            return None
        head = " ".join(self.masked[node.start_byte : condition.start_byte].decode(errors="replace").split())
        text = self.masked[condition.start_byte : condition.end_byte].decode(errors="replace")
        static = head == "if constexpr"
        expression = parse_condition(text, _Known(self, node.start_byte))
        if expression == UNREADABLE or (not static and names(expression) != {"warpSize"}):
            return None
        written = " ".join(f"{head} {text}".split())
        return Guard(expression, offset < then.end_byte, written, node.start_point[0] + 1)

    # ---- parts ----------------------------------------------------------------------------------------------------

    @cached_property
    def masked(self) -> bytes:
        """The text without comments and the insides of literals."""
        from portlint.source.cxx.lexer import mask

        return mask(self._source.text)

    @cached_property
    def preprocessor(self) -> Preprocessor:
        """The directives of the file."""
        from portlint.source.cxx.preprocessor import Preprocessor

        return Preprocessor(self.masked)

    @cached_property
    def scopes(self) -> Scopes:
        """The blocks, functions and types of the file and of its macro bodies."""
        from portlint.source.cxx.scopes import Scopes

        bodies = [(one.body_start, one.body_end) for one in self._parsed_macros]
        return Scopes(self._structure.root_node, self._macro_tree.root_node if self._macro_tree else None, bodies)

    @cached_property
    def definitions(self) -> Definitions:
        """What the names of the file are defined as."""
        from portlint.source.cxx.definitions import Definitions

        roots = [self._source.tree.root_node]
        if self._structure is not self._source.tree:
            roots.append(self._structure.root_node)
        macros = self._macro_tree.root_node if self._macro_tree else None
        return Definitions(roots, macros, self.scopes, self.preprocessor)

    @cached_property
    def names(self) -> Names:
        """Aliases and `using` declarations."""
        from portlint.source.cxx.names import Names

        return Names(self.definitions, self.scopes)

    @cached_property
    def constants(self) -> Constants:
        """Values of expressions."""
        from portlint.source.cxx.constants import Constants

        return Constants(self.definitions, self.preprocessor.guards_at, self._body_of, self.masked)

    @cached_property
    def roles(self) -> Roles:
        """Roles of expressions."""
        from portlint.source.cxx.roles import Roles

        return Roles(
            self.definitions,
            self.names,
            self.constants,
            self._body_of,
            lambda: _capture(_SYNC_MASKS, "mask", self.roots()),
        )

    @cached_property
    def _structure(self) -> tree_sitter.Tree:
        from portlint.source.cxx.normalise import normalise
        from portlint.source.grammar import parse

        tree = self._source.tree
        if not tree.root_node.has_error:
            return tree
        return parse(normalise(self._source.text, self.masked, self.preprocessor), "cuda")

    @cached_property
    def _code(self) -> bytes:
        from portlint.source.cxx.normalise import without_directives

        return without_directives(self.masked, self.preprocessor)

    @cached_property
    def _parsed_macros(self) -> list[Macro]:
        from portlint.source.cxx.macros import has_tree

        macros = (one for many in self.preprocessor.macros.values() for one in many if has_tree(one))
        return sorted(macros, key=lambda one: one.start)

    @cached_property
    def _macro_tree(self) -> tree_sitter.Tree | None:
        from portlint.source.cxx.macros import lay_out
        from portlint.source.grammar import parse

        if not self._parsed_macros:
            return None
        return parse(lay_out(self._source.text, self.masked, self._parsed_macros), "cuda")

    @cached_property
    def _macro_texts(self) -> dict[str, list[str]]:
        return {name: [one.body for one in macros] for name, macros in self.preprocessor.macros.items()}

    def _body_of(self, macro: Macro) -> tree_sitter.Node | None:
        """The node of a macro's body: the expression, or the block that wraps the statements."""
        from portlint.source.cxx.macros import has_tree

        if self._macro_tree is None or not has_tree(macro):
            return None
        node = self._macro_tree.root_node.descendant_for_byte_range(macro.body_start, macro.body_end)
        while node is not None and node.parent is not None and node.start_byte == node.parent.start_byte:
            if node.type == "expression_statement" or node.parent.end_byte > macro.body_end:
                break
            node = node.parent
        return node

    def _wrap(self, raw: tree_sitter.Node | None) -> Node | None:
        return Node(self._source, raw) if raw is not None else None


class _Known:
    """What names in a compile-time test stand for."""

    def __init__(self, analysis: CxxAnalysis, at: int) -> None:
        self._analysis = analysis
        self._at = at

    def defined(self, name: str) -> Expression:
        """Whether a macro is defined."""
        return self._analysis.preprocessor.defined(name)

    def value(self, name: str) -> Expression:
        """What a constant or a macro comes to."""
        return self._analysis.constants.expression(name, self._at) or self._analysis.preprocessor.value(name)


def _capture(query: str, name: str, roots: list[tree_sitter.Node]) -> list[tree_sitter.Node]:
    from tree_sitter import QueryCursor

    return [node for root in roots for node in QueryCursor(_compiled(query)).captures(root).get(name, ())]


@cache
def _compiled(query: str) -> tree_sitter.Query:
    from tree_sitter import Query

    from portlint.source.grammar import language

    return Query(language("cuda"), query)
