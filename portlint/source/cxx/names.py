"""Qualified names: what an expression refers to once the file's aliases and `using` declarations are applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portlint.source.cxx.query import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

    from portlint.source.cxx.definitions import Definitions
    from portlint.source.cxx.scopes import Scopes

_SIMPLE = frozenset(
    (
        *("identifier", "field_identifier", "type_identifier", "namespace_identifier", "primitive_type"),
        *("operator_name", "destructor_name", "sized_type_specifier", "this"),
    )
)
_TEMPLATES = frozenset(("template_function", "template_type", "template_method"))
_NAMED = frozenset(
    (
        "function_definition",
        "class_specifier",
        "struct_specifier",
        "enum_specifier",
        "preproc_def",
        "preproc_function_def",
    )
)
_DECLARATORS = frozenset(("function_declarator", "pointer_declarator", "reference_declarator", "init_declarator"))
_MOST_STEPS = 64

_MEMBERS = {
    "cooperative_groups": frozenset(
        (
            *("this_thread_block", "this_grid", "this_cluster", "this_multi_grid", "coalesced_threads", "thread_group"),
            *(
                "thread_block",
                "grid_group",
                "cluster_group",
                "multi_grid_group",
                "coalesced_group",
                "thread_block_tile",
            ),
            *("tiled_partition", "labeled_partition", "binary_partition", "memcpy_async", "invoke_one", "thread_rank"),
        )
    ),
    "nvcuda": frozenset(("wmma", "experimental")),
    "cub": frozenset(
        (
            *("WarpReduce", "WarpScan", "WarpExchange", "WarpLoad", "WarpStore", "WarpMergeSort", "BlockReduce"),
            *("BlockScan", "BlockLoad", "BlockStore", "BlockRadixSort", "BlockExchange", "DeviceReduce", "DeviceScan"),
            *("DeviceRadixSort", "DeviceSelect", "LaneId", "WarpId", "ShuffleDown", "ShuffleUp", "ShuffleIndex"),
        )
    ),
}
"""Names that a `using namespace` of these libraries brings in, as far as what they do depends on the device."""


class Names:
    """The names of one file."""

    def __init__(self, definitions: Definitions, scopes: Scopes) -> None:
        self._definitions = definitions
        self._scopes = scopes

    def name(self, node: Node) -> str:
        """The qualified name of what a node refers to, template arguments dropped; "" where it is not a name.

        Of a call or a launch it is the function's, of a method `object.method`, and `.method` where the object is no
        name itself.
        """
        base, fields = _without_fields(node)
        if base is None:
            return ""
        parts = _parts(base)
        qualified = "::".join(self._resolve(parts, base.start_byte)) if parts else ""
        return ".".join((qualified, *fields)) if fields else qualified

    def _resolve(self, parts: list[str], at: int) -> list[str]:
        seen = set()
        while parts[0] not in seen:
            seen.add(parts[0])
            aliases = [d for d in self._definitions.declared(parts[0], at) if d.kind == "alias"]
            target = _parts(aliases[-1].value) if aliases and aliases[-1].value is not None else []
            if not target:
                break
            parts = target + parts[1:]
        return self._from_namespaces(parts, at)

    def _from_namespaces(self, parts: list[str], at: int) -> list[str]:
        if not self._definitions.using:
            return parts
        scopes = {scope.key for scope in self._scopes.at(at).chain()}
        for scope, target in self._definitions.using:
            namespace = _parts(target)
            known = _MEMBERS.get("::".join(namespace), frozenset())
            if parts[0] in known and scope.key in scopes and target.start_byte <= at:
                return namespace + parts
        return parts


def _without_fields(node: Node) -> tuple[Node | None, list[str]]:
    """The node at the bottom of `a.b.c(...)`, and the fields on the way down to it."""
    fields: list[str] = []
    at: Node | None = node
    if node.type == "call_expression":
        at = node.child_by_field_name("function")
    for _ in range(_MOST_STEPS):
        if at is None:
            return None, fields
        if at.type in _NAMED or (at.type in _DECLARATORS and not fields):
            at = at.child_by_field_name("declarator") or at.child_by_field_name("name")
        elif at.type in ("declaration", "type_descriptor", "expression_statement") and not fields:
            at = at.named_children[-1] if at.type == "expression_statement" and at.named_children else _type_or_name(at)
        elif at.type == "field_expression":
            field = at.child_by_field_name("field")
            fields.insert(0, (_parts(field) or [""])[-1] if field else "")
            at = at.child_by_field_name("argument")
        else:
            break
    return at, fields


def _type_or_name(node: Node) -> Node | None:
    return node.child_by_field_name("type" if node.type == "type_descriptor" else "declarator")


def _parts(node: Node | None) -> list[str]:
    """The parts of a qualified name; [] where the node is none. A global name has no empty first part."""
    parts: list[str] = []
    for _ in range(_MOST_STEPS):
        if node is None:
            return parts
        if node.type == "qualified_identifier":
            if scope := node.child_by_field_name("scope"):
                parts += _parts_of_scope(scope)
            node = node.child_by_field_name("name")
        elif node.type in _TEMPLATES:
            node = node.child_by_field_name("name")
        elif node.type == "type_descriptor":
            node = node.child_by_field_name("type")
        elif node.type == "nested_namespace_specifier":
            return [*parts, *(part.strip() for part in text_of(node).split("::"))]
        elif node.type in ("dependent_type", "dependent_name"):
            node = node.named_children[-1] if node.named_children else None
        elif node.type in _SIMPLE:
            return [*parts, " ".join(text_of(node).split())]
        else:
            return []
    return []


def _parts_of_scope(scope: Node) -> list[str]:
    if scope.type in _TEMPLATES:
        name = scope.child_by_field_name("name")
        return _parts_of_scope(name) if name is not None and name.type not in _TEMPLATES else []
    return _parts(scope) if scope.type in _SIMPLE else []
