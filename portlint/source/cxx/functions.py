"""Functions and kernel launches: what a definition says of itself, and what a launch passes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Node as RawNode

    from portlint.source.node import Node

_LONGEST_HEAD = 1000
_KERNEL = re.compile(rb"\b(?:__global__|(?:[A-Z0-9_]*_)?GLOBAL(?:_FUNCTION)?)\b")
_DEVICE = re.compile(rb"\b(?:__device__|(?:[A-Z0-9_]*_)?(?:DEVICE|DEV|HOSTDEVICE)(?:_[A-Z_]*)?)\b")
_HOST = re.compile(rb"\b(?:__host__|(?:[A-Z0-9_]*_)?(?:HOST|HOSTDEVICE)(?:_[A-Z_]*)?)\b")
_MACRO_NAME = re.compile(rb"\b[A-Za-z_]\w*\b")


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a function."""

    name: str
    """"" where it has none"""
    type: str
    """as it is written, without the name"""
    node: Node


class FunctionInfo(msgspec.Struct, frozen=True):
    """A function definition."""

    name: str
    is_kernel: bool
    is_device: bool
    """whether it runs on the device when called from there (`__device__`); kernels too"""
    is_host: bool
    parameters: tuple[Parameter, ...]
    body: Node
    launch_bounds: tuple[Node, ...]
    """the arguments of `__launch_bounds__`"""
    template_parameters: tuple[str, ...]
    node: Node


class LaunchConfig(msgspec.Struct, frozen=True):
    """What a kernel is launched with."""

    kernel: Node
    """the expression that names the kernel, template arguments included"""
    template_arguments: tuple[Node, ...]
    grid: Node
    block: Node
    shared: Node | None
    """dynamic shared memory in bytes"""
    stream: Node | None


class Qualifiers(msgspec.Struct, frozen=True):
    """Where a function runs, as its head says."""

    kernel: bool
    device: bool
    host: bool


def head_of(code: bytes, start: int, body: int) -> bytes:
    """The text before a function's body, from the end of what comes before; `code` has no comments and directives."""
    earliest = max(0, start - _LONGEST_HEAD)
    boundary = max(code.rfind(mark, earliest, start) for mark in (b";", b"{", b"}"))
    return code[max(boundary + 1, earliest) : body]


def qualifiers(head: bytes, macro_bodies: dict[str, list[str]]) -> Qualifiers:
    """What the words of a head say; names of the file's own macros count as what they stand for."""
    words = [head]
    for name in set(_MACRO_NAME.findall(head)):
        words += (body.encode() for body in macro_bodies.get(name.decode(), ()))
    text = b" ".join(words)
    kernel = bool(_KERNEL.search(text))
    device = bool(_DEVICE.search(text))
    return Qualifiers(kernel, kernel or device, bool(_HOST.search(text)) or not (kernel or device))


def function_declarator(definition: RawNode) -> RawNode | None:
    """The declarator with the parameter list, under pointers and references."""
    at = definition.child_by_field_name("declarator")
    for _ in range(8):
        if at is None or at.type == "function_declarator":
            return at
        at = at.child_by_field_name("declarator") or (at.named_children[-1] if at.named_children else None)
    return None


def template_parameters(definition: RawNode) -> tuple[str, ...]:
    """The names of the template parameters of a function, those of templates around it included, outermost first."""
    names: list[str] = []
    around = definition.parent
    while around is not None and around.type == "template_declaration":
        found = around.child_by_field_name("parameters")
        own = (_parameter_name(parameter) for parameter in (found.named_children if found else ()))
        names = [*(name for name in own if name), *names]
        around = around.parent
    return tuple(names)


def _parameter_name(parameter: RawNode) -> str:
    name = parameter.child_by_field_name("declarator") or parameter.child_by_field_name("name")
    if name is None and parameter.type.endswith("type_parameter_declaration"):
        name = next((one for one in reversed(parameter.named_children) if one.type == "type_identifier"), None)
    return (name.text or b"").decode(errors="replace").lstrip(". ") if name is not None else ""
