"""Which name, where a node stands, is that of the device that the code works on."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from portlint.regex import regex
from portlint.source.kept import with_source

if TYPE_CHECKING:
    from portlint.source import Source
    from portlint.source.node import Node

_NAMES = ("device", "torch_device")
_OPTIONAL = regex(r"\b(?:None|Optional)\b")
_CUDA = regex(r"(?:torch\.device\(\s*)?[fF]?['\"]cuda\b")
_CHOICE = regex(r"\b(?:if|or)\b")


def nearby(node: Node) -> str:
    """`device`, if it surely has a value by then; "" if nothing is called so."""
    for function in node.ancestors("function_definition"):
        if function["body"].start <= node.start < function["body"].end:
            for name in _NAMES:
                if name in _given(function) or _is_assigned(function["body"], name, node):
                    return name
        if _has_such_a_name(node.source, function):
            return ""  # it is something here, and not surely the device
    return next((name for name in _NAMES if _is_assigned(node.source.root, name, node)), "")


@with_source
def _has_such_a_name(_source: Source, function: Node) -> bool:
    """Whether a function has a name that is that of a device elsewhere."""
    return any(one.text in _NAMES and not _is_member(one) for one in function.walk("identifier"))


def _is_member(name: Node) -> bool:
    """Whether an identifier is the last part of `x.device`, or the name of an argument."""
    parent = name.parent
    if parent is None:
        return False
    return name in (parent.get("attribute"), parent["name"] if parent.type == "keyword_argument" else None)


def _given(function: Node) -> frozenset[str]:
    """The parameters of a function that are a device, be it the one that is given where nothing is said."""
    found: list[str] = []
    for one in function["parameters"].children:
        name = one.get("name") or (one.children[0] if one.type == "typed_parameter" and one.children else one)
        kind, default = one.get("type"), one.get("value")
        is_optional = kind is not None and _OPTIONAL.search(kind.text) is not None
        if name.type == "identifier" and not is_optional and (default is None or _is_device(default)):
            found.append(name.text)
    return frozenset(found)


def _is_assigned(body: Node, name: str, node: Node) -> bool:
    """Whether a statement before a node, which is run whenever the node is, gives a name its value."""
    for block in node.ancestors("block", "module"):
        if block.start < body.start or block.end > body.end:
            return False
        if _is_of_a_class(block) and node.function is not None and node.function.start > block.start:
            continue  # methods do not see the names of their class
        given = _assignments(node.source, block, name)
        before = bisect_right(given, node.start, key=_end)
        if before:
            value = given[before - 1][1]
            return value is not None and _is_device(value) and not _is_cuda(value)
    return False


@with_source
def _assignments(_source: Source, block: Node, name: str) -> list[tuple[int, Node | None]]:
    """(the end of a statement of a block that gives a name its value, the value), in order."""
    found = []
    for statement in block.children:
        assignment = next(iter(statement.children), statement)
        if assignment.type == "assignment" and assignment["left"].text == name:
            found.append((statement.end, assignment.get("right")))
    return found


def _end(given: tuple[int, Node | None]) -> int:
    return given[0]


def _is_of_a_class(block: Node) -> bool:
    return block.parent is not None and block.parent.type == "class_definition"


def _is_device(value: Node) -> bool:
    """Whether a value is a device, and not the CPU whatever the machine."""
    return value.type != "none" and ("cpu" not in value.text or _CHOICE.search(value.text) is not None)


def _is_cuda(value: Node) -> bool:
    """Whether a value is a CUDA device whatever the machine: its name says no more than "cuda" does."""
    return _CUDA.match(value.text) is not None and _CHOICE.search(value.text) is None
