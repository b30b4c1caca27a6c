"""Which name, where a node stands, is that of the device that the code works on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portlint.source.node import Node

_NAMES = ("device", "torch_device")
_DEFAULTS = ("default_parameter", "typed_default_parameter")


def nearby(node: Node) -> str:
    """`device`, if it surely has a value by then; "" if nothing is called so."""
    for function in node.ancestors("function_definition"):
        if function["body"].start <= node.start < function["body"].end:
            for name in _NAMES:
                if name in _given(function) or _is_assigned(function["body"], name, node):
                    return name
        if any(one.text in _NAMES for one in function.walk("identifier") if not _is_member(one)):
            return ""  # it is something here, and not surely the device
    module = node.source.root
    for name in _NAMES:
        if _is_assigned(module, name, node):
            return name
    return ""


def _is_member(name: Node) -> bool:
    """Whether an identifier is the last part of `x.device`, or a keyword."""
    parent = name.parent
    return (parent is not None and parent.type in ("attribute", "keyword_argument") and parent.children[0] != name) or (
        parent is not None and parent.type == "keyword_argument" and parent["name"] == name
    )


def _given(function: Node) -> frozenset[str]:
    """The parameters of a function that cannot be None."""
    found: list[str] = []
    for one in function["parameters"].children:
        name = one.get("name") or (one.children[0] if one.type == "typed_parameter" and one.children else one)
        kind, default = one.get("type"), one.get("value") if one.type in _DEFAULTS else None
        optional = (default is not None and default.type == "none") or (kind is not None and "None" in kind.text)
        is_host = default is not None and _is_host(default)
        if (
            name.type == "identifier"
            and not optional
            and not is_host
            and "Optional" not in (kind.text if kind is not None else "")
        ):
            found.append(name.text)
    return frozenset(found)


def _is_assigned(body: Node, name: str, node: Node) -> bool:
    """Whether a statement before a node, which is run whenever the node is, gives a name its value."""
    blocks = [one for one in node.ancestors("block", "module") if body.start <= one.start and one.end <= body.end]
    for block in blocks:
        for statement in block.children:
            assignment = (
                statement.children[0] if statement.type == "expression_statement" and statement.children else None
            )
            if assignment is None or assignment.type != "assignment" or statement.end > node.start:
                continue
            value = assignment.get("right")
            if assignment["left"].text == name and value is not None and value.type != "none":
                return not _is_host(value)
    return False


def _is_host(value: Node) -> bool:
    """Whether a device is the CPU whatever the machine."""
    return "cpu" in value.text and "if" not in value.text.split() and " or " not in value.text
