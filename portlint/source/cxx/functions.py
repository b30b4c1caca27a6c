"""Functions: which one a node is in, what its definition says, and where it runs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from portlint.regex import regex
from portlint.source.cxx.query import captured, text_of
from portlint.source.node import Node

if TYPE_CHECKING:
    from tree_sitter import Node as RawNode

    from portlint.source import Source
    from portlint.source.cxx.names import Names
    from portlint.source.cxx.preprocessor import Macro
    from portlint.source.cxx.scopes import Scope, Scopes

_LONGEST_HEAD = 1000
KERNEL = regex(rb"\b(?:__global__|(?:[A-Z0-9_]*_)?GLOBAL(?:_FUNCTION)?)\b")
"""the words that make a function a kernel"""
_DEVICE = regex(rb"\b(?:__device__|(?:[A-Z0-9_]*_)?(?:DEVICE|DEV|HOSTDEVICE)(?:_[A-Z_]*)?)\b")
_HOST = regex(rb"\b(?:__host__|(?:[A-Z0-9_]*_)?(?:HOST|HOSTDEVICE)(?:_[A-Z_]*)?)\b")
_WORD = regex(rb"\b[A-Za-z_]\w*\b")
_DEVICE_BUILTIN = regex(
    rb"\b(?:threadIdx|blockIdx|blockDim|gridDim|hipThreadIdx_[xyz]|hipBlockIdx_[xyz]|__syncthreads|__syncwarp|__shfl\w*"
    rb"|__ballot\w*|__activemask|__ldg|__builtin_amdgcn_\w+)\b"
)


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a function."""

    name: str
    """"" where it has none"""
    type: str
    """as it is written, without the name and the default"""
    node: Node


class FunctionInfo(msgspec.Struct, frozen=True):
    """A function definition."""

    name: str
    is_kernel: bool
    is_device: bool
    """whether it runs on the device; kernels do"""
    is_host: bool
    parameters: tuple[Parameter, ...]
    body: Node
    launch_bounds: tuple[Node, ...]
    """the arguments of `__launch_bounds__`"""
    template_parameters: tuple[str, ...]
    node: Node


class Where(msgspec.Struct, frozen=True):
    """Where a function runs, as the words before its body say."""

    kernel: bool
    device: bool
    host: bool


class Functions:
    """The functions of one file. `code` is its text without comments and directives."""

    def __init__(
        self, source: Source, scopes: Scopes, names: Names, code: bytes, macros: dict[str, list[Macro]]
    ) -> None:
        self._source = source
        self._scopes = scopes
        self._names = names
        self._code = code
        self._macros = macros
        self._where: dict[int, Where] = {}
        self._builtins: dict[int, bool] = {}

    def enclosing(self, offset: int) -> Node | None:
        """The function definition around an offset, its template parameters included."""
        for scope in self._scopes.at(offset).chain():
            if scope.kind == "function" and scope.node is not None:
                return Node(self._source, scope.node)
            if scope.kind == "template" and scope.node is not None:
                templated = self.own(Node(self._source, scope.node))
                if templated is not None:
                    return templated
        return None

    def own(self, node: Node) -> Node | None:
        """The function definition that a node is, templates and linkage specifications looked through."""
        while node.type in ("template_declaration", "linkage_specification") and node.children:
            node = node.children[-1]
        return node if node.type == "function_definition" else None

    def is_kernel(self, node: Node) -> bool:
        """Whether a node is the definition of a kernel."""
        function = self.own(node)
        return function is not None and self._runs(function.raw).kernel

    def runs_on(self, offset: int) -> str:
        """`device`, `host`, or "" for an offset outside functions."""
        for scope in self._scopes.at(offset).chain():
            if scope.kind == "lambda" and scope.node is not None:
                body = scope.node.child_by_field_name("body")
                if body is not None and b"__device__" in self._code[scope.start : body.start_byte]:
                    return "device"
            elif scope.kind == "macro":
                return "device" if self._uses_builtins(scope) else ""
            elif scope.kind == "function" and scope.node is not None:
                return "device" if self._runs(scope.node).device or self._uses_builtins(scope) else "host"
        return ""

    def info(self, node: Node) -> FunctionInfo | None:
        """What the function that a node is, or lies in, says of itself."""
        function = self.own(node) or self.enclosing(node.start)
        body = function.get("body") if function else None
        if function is None or body is None:
            return None
        where = self._runs(function.raw)
        return FunctionInfo(
            self._names.name(function.raw),
            where.kernel,
            where.device,
            where.host,
            self._parameters(function.raw),
            body,
            self._bounds(function.raw, body.start),
            _template_parameters(function.raw),
            function,
        )

    # ---- the words before a body ----------------------------------------------------------------------------------

    def _runs(self, function: RawNode) -> Where:
        if function.start_byte not in self._where:
            body = function.child_by_field_name("body")
            head = self._code[self._head_start(function) : body.start_byte if body else function.end_byte]
            for name in set(_WORD.findall(head)):
                for macro in self._macros.get(name.decode(), ()):
                    if "{" not in macro.body:  # else it is a definition of its own that stands before this one
                        head += b" " + macro.body.encode()
            kernel = bool(KERNEL.search(head))
            device = kernel or bool(_DEVICE.search(head))
            self._where[function.start_byte] = Where(kernel, device, not device or bool(_HOST.search(head)))
        return self._where[function.start_byte]

    def _head_start(self, function: RawNode) -> int:
        """Where a definition starts, with what a broken tree may have left before it."""
        earliest = max(0, function.start_byte - _LONGEST_HEAD)
        return max(
            earliest, *(self._code.rfind(mark, earliest, function.start_byte) + 1 for mark in (b";", b"{", b"}"))
        )

    def _uses_builtins(self, scope: Scope) -> bool:
        if scope.start not in self._builtins:
            text = self._source.text if scope.kind == "macro" else self._code
            self._builtins[scope.start] = bool(_DEVICE_BUILTIN.search(text, scope.start, scope.end))
        return self._builtins[scope.start]

    def _bounds(self, function: RawNode, body: int) -> tuple[Node, ...]:
        start = self._head_start(function)
        for raw in self._all_bounds:
            if start <= raw.start_byte < body:
                return tuple(Node(self._source, one) for one in raw.named_children if one.type != "comment")
        return ()

    @cached_property
    def _all_bounds(self) -> list[RawNode]:
        """The arguments of launch bounds, whatever the tree takes them for; the normalised text has none left."""
        return captured(self._source, self._source.tree.root_node).get("bounds", [])

    # ---- parameters -----------------------------------------------------------------------------------------------

    def _parameters(self, function: RawNode) -> tuple[Parameter, ...]:
        declarator = function.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            inner = declarator.child_by_field_name("declarator")
            declarator = inner or (declarator.named_children[-1] if declarator.named_children else None)
        listed = declarator.child_by_field_name("parameters") if declarator else None
        return tuple(self._parameter(one) for one in listed.named_children if one.type != "comment") if listed else ()

    def _parameter(self, raw: RawNode) -> Parameter:
        name = raw.child_by_field_name("declarator")
        while name is not None and name.type != "identifier":
            name = name.child_by_field_name("declarator") or (name.named_children[-1] if name.named_children else None)
        default = raw.child_by_field_name("default_value")
        end = self._code.rfind(b"=", raw.start_byte, default.start_byte) if default else raw.end_byte
        before, after = (name.start_byte, name.end_byte) if name else (end, end)
        written = self._code[raw.start_byte : before] + b" " + self._code[after:end]
        return Parameter(text_of(name), " ".join(written.decode(errors="replace").split()), Node(self._source, raw))


def _template_parameters(function: RawNode) -> tuple[str, ...]:
    names: list[str] = []
    around = function.parent
    while around is not None and around.type == "template_declaration":
        listed = around.child_by_field_name("parameters")
        own = [_template_parameter(one) for one in listed.named_children] if listed else []
        names = [name for name in own if name] + names
        around = around.parent
    return tuple(names)


def _template_parameter(parameter: RawNode) -> str:
    name = parameter.child_by_field_name("declarator") or parameter.child_by_field_name("name")
    if name is None:
        name = next((one for one in parameter.named_children if one.type == "type_identifier"), None)
    return text_of(name).lstrip(". ")
