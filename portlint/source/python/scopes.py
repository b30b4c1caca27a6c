"""Imports, bindings and scopes of a Python file: what an identifier refers to.

One pass over the tree gathers every binding; everything after that is looked up. Flow inside a scope is approximated by
source order: a use refers to the last binding before it, or to the only one there is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from portlint.source.node import Node

if TYPE_CHECKING:
    import tree_sitter

    from portlint.source import Source

_SCOPES = ("function_definition", "lambda", "class_definition", "module")
_BRANCHES = frozenset(
    "if_statement elif_clause else_clause for_statement while_statement try_statement except_clause case_clause".split()
)
_DEPTH = 12
"""how far a name is followed through other names"""
_MOST_REACHING = 64
"""bindings that may reach one use: the nearest ones, so that looking at all uses takes no quadratic time"""

_BUILTINS = frozenset(
    "bool float int str len print open sum min max abs round any all range list tuple dict set next getattr"
    " hasattr".split()
)


class Binding(msgspec.Struct, frozen=True):
    """One place where a name gets a value."""

    kind: str
    """assign | item (element `index` of the value) | loop | parameter | with | function | class | import | augmented"""
    start: int
    """byte offset from which it holds: after the value, so that `x = x + 1` reads the x before"""
    value: Node | None = None
    """the expression bound; for a parameter its default, for a function or class its definition"""
    index: int = 0
    annotation: str = ""


Bind: TypeAlias = Callable[[str, Binding, int], None]
"""notes a binding of a name in a scope"""


class Scopes:
    """The names of one file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._uses: dict[str, list[Node]] = {}

    @cached_property
    def imports(self) -> dict[str, str]:
        """Local name -> qualified name, for every import anywhere in the file."""
        return self._gathered[0]

    @cached_property
    def _gathered(self) -> tuple[dict[str, str], dict[str, dict[int, list[Binding]]]]:
        return _gather(self.source, self._binders)

    @cached_property
    def _binders(self) -> list[Node]:
        """Every node that may bind a name, in source order."""
        return [Node(self.source, raw) for raw in _statements(self.source.tree.root_node)]

    @cached_property
    def _nested(self) -> tuple[list[int], list[list[Node]]]:
        """The starts of the scopes, and each scope with those around it, the nearest first."""
        chain = [self.source.root]
        starts, chains = [-1], [chain]
        for node in self._binders:
            if node.type in _SCOPES:
                chain = [node, *(outer for outer in chain if outer.type == "module" or outer.end > node.start)]
                starts.append(node.start)
                chains.append(chain)
        return starts, chains

    def bindings(self, name: str, at: Node) -> list[Binding]:
        """The bindings of a name that a use at `at` may see: those of the nearest scope that binds it."""
        by_scope = self._gathered[1].get(name)
        if not by_scope:
            return []
        first = True
        for scope in self.around(at):
            if scope.type == "class_definition" and not first:
                continue  # a method does not see its class's names
            first = False
            if found := by_scope.get(scope.start if scope.type != "module" else -1):
                return found
        return []

    def binding(self, name: str, at: Node) -> Binding | None:
        """The binding that a use at `at` most likely refers to."""
        found = self.bindings(name, at)
        if not found:
            return None
        before = bisect_left(found, at.start, key=_start)
        if before:
            return found[before - 1]
        return found[0] if len(found) == 1 else None

    def reaching(self, name: str, at: Node) -> list[Binding]:
        """The bindings before `at` that it may see, the nearest first: back to one that no branch can pass by."""
        bindings = self.bindings(name, at)
        before = bisect_left(bindings, at.start, key=_start)
        found: list[Binding] = []
        for binding in reversed(bindings[max(before - _MOST_REACHING, 0) : before]):
            found.append(binding)
            if not _is_passed_by(binding, at):
                break
        return found

    def defines(self, name: str) -> bool:
        """Whether a function or class of that name stands anywhere in the file."""
        scoped = self._gathered[1].get(name, {})
        return any(one.kind in ("function", "class") for bindings in scoped.values() for one in bindings)

    def sees(self, module: str, at: Node) -> bool:
        """Whether the plain name of a module surely stands for it at a place: nothing else binds it there."""
        found = self.bindings(module, at)
        if self.imports.get(module) != module or any(one.kind != "import" for one in found):
            return False
        root = self.source.tree.root_node
        for one in found:
            raw = root.descendant_for_byte_range(one.start, one.start + 1)
            statement = Node(self.source, raw) if raw is not None else at
            is_done = one.start < at.start or statement.function != at.function
            if is_done and not _is_in_other_branch(statement, at):
                return True
        return False

    def only(self, name: str, at: Node) -> Binding | None:
        """The binding of a name that is bound exactly once in its scope."""
        found = self.bindings(name, at)
        return found[0] if len(found) == 1 else None

    def uses(self, name: str) -> list[Node]:
        """Every use of a name, as an identifier or as an attribute; not as that of a definition or a keyword."""
        if name not in self._uses:
            found = self.source.identifiers(name.encode())
            nodes = [Node(self.source, raw) for raw in found if raw.type == "identifier"]
            self._uses[name] = [one for one in nodes if one.parent is None or one.parent.get("name") != one]
        return self._uses[name]

    def callers(self, function: Node) -> list[Node]:
        """The calls of a function by its bare name, or as a method of `self` or `cls`."""
        found: list[Node] = []
        for use in self.uses(function["name"].text):
            called, parent = use, use.parent
            if parent is not None and parent.type == "attribute" and parent["object"].text in ("self", "cls"):
                called, parent = parent, parent.parent
            if parent is not None and parent.type == "call" and parent["function"] == called:
                found.append(parent)
        return found

    def launches(self, kernel: Node) -> list[Node]:
        """The launches `kernel[grid](...)` of a Triton kernel."""
        found: list[Node] = []
        for use in self.uses(kernel["name"].text):
            at = use.parent
            if at is not None and at.type == "subscript" and at["value"] == use:
                call = at.parent
                if call is not None and call.type == "call" and call["function"] == at:
                    found.append(call)
        return found

    def around(self, node: Node) -> list[Node]:
        """The scopes around a node, the nearest first, the module last."""
        if node.type == "module":
            return [node]
        starts, chains = self._nested
        start, end = node.start, node.end
        nearest = chains[bisect_right(starts, start) - 1]
        return [
            scope
            for scope in nearest
            if scope.type == "module" or (scope.end >= end and not (scope.start == start and scope.end == end))
        ]

    def function(self, node: Node) -> Node | None:
        """The function definition around a node."""
        return next(node.ancestors("function_definition"), None)

    def qualified(self, node: Node, depth: int = _DEPTH) -> str:
        """The qualified name that an expression refers to, or ""."""
        attributes: list[str] = []
        while True:
            if node.type == "attribute":
                attributes.append(node["attribute"].text)
                node = node["object"]
            elif node.type == "call":
                if attributes:
                    return ""
                node = node["function"]
            else:
                break
        if node.type != "identifier":
            return ""
        head = self._head(node, depth)
        return ".".join([head, *reversed(attributes)]) if head else ""

    def _head(self, identifier: Node, depth: int) -> str:
        name = identifier.text
        binding = self.binding(name, identifier)
        if binding is None or binding.kind == "import" or _is_none(binding):
            return self.imports.get(name) or (name if name in _BUILTINS else "")
        if binding.kind == "assign" and binding.value is not None and depth:
            value = binding.value
            if value.type in ("attribute", "identifier") and value != identifier:
                return self.qualified(value, depth - 1)
        return ""


def _start(binding: Binding) -> int:
    return binding.start


def _is_passed_by(binding: Binding, at: Node) -> bool:
    """Whether a binding stands in a branch or a loop that `at` is not in."""
    return binding.value is not None and _is_in_other_branch(binding.value, at)


def _is_in_other_branch(node: Node, at: Node) -> bool:
    for block in node.ancestors("block"):
        around = block.parent
        if around is None or around.type == "function_definition":
            return False
        if around.type in _BRANCHES and not block.start <= at.start < block.end:
            return True
    return False


def _is_none(binding: Binding) -> bool:
    """Whether a name is given None, as that of a module is where it could not be imported."""
    return binding.kind == "assign" and binding.value is not None and binding.value.type == "none"


def _gather(source: Source, binders: Iterable[Node]) -> tuple[dict[str, str], dict[str, dict[int, list[Binding]]]]:
    """Imports and bindings by name and scope (a scope is its start byte, the module is -1)."""
    imports: dict[str, str] = {}
    table: dict[str, dict[int, list[Binding]]] = defaultdict(lambda: defaultdict(list))
    scopes: list[tuple[int, int]] = []  # (end, key) of the scopes around the cursor

    def bind(name: str, binding: Binding, scope: int) -> None:
        table[name][scope].append(binding)

    for node in binders:
        raw = node.raw
        while scopes and raw.start_byte >= scopes[-1][0]:
            scopes.pop()
        scope = scopes[-1][1] if scopes else -1
        match raw.type:
            case "import_statement":
                for child in node.children:
                    if child.type == "aliased_import":
                        imports[child["alias"].text] = child["name"].text
                        bind(child["alias"].text, Binding("import", raw.start_byte), scope)
                    else:
                        root = child.text.partition(".")[0]
                        imports.setdefault(root, root)
                        bind(root, Binding("import", raw.start_byte), scope)
            case "import_from_statement":
                module = node["module_name"].text
                for one in (Node(source, child) for child in raw.children_by_field_name("name")):
                    imported = one["name"].text if one.type == "aliased_import" else one.text
                    local = one["alias"].text if one.type == "aliased_import" else one.text
                    imports[local] = f"{module}.{imported}"
                    bind(local, Binding("import", raw.start_byte), scope)
            case "function_definition" | "class_definition":
                name = node.get("name")
                if name is not None:
                    kind = "function" if raw.type == "function_definition" else "class"
                    bind(name.text, Binding(kind, raw.start_byte, node), scope)
                scopes.append((raw.end_byte, raw.start_byte))
                _bind_parameters(node, raw.start_byte, bind)
            case "lambda":
                scopes.append((raw.end_byte, raw.start_byte))
                _bind_parameters(node, raw.start_byte, bind)
            case "assignment" | "named_expression":
                left, right = node.get("left") or node.get("name"), node.get("right") or node.get("value")
                annotation = node.get("type")
                if left is not None:
                    _bind_target(
                        left, right, raw.end_byte, scope, bind, annotation=annotation.text if annotation else ""
                    )
            case "augmented_assignment":
                if node["left"].type == "identifier":
                    bind(node["left"].text, Binding("augmented", raw.end_byte, node["right"]), scope)
            case "for_statement" | "for_in_clause":
                for name in _identifiers(node["left"]):
                    bind(name.text, Binding("loop", node["right"].end, node["right"]), scope)
            case "as_pattern":
                alias = node.get("alias")
                if alias is not None and node.children:
                    bind(alias.text, Binding("with", raw.start_byte, node.children[0]), scope)
    for scoped in table.values():
        for bindings in scoped.values():
            bindings.sort(key=lambda one: one.start)
    return imports, table


_BINDERS = frozenset(
    "import_statement import_from_statement function_definition class_definition lambda assignment named_expression"
    " augmented_assignment for_statement for_in_clause as_pattern".split()
)


@cache
def binder_query() -> tree_sitter.Query:
    """What binds names, compiled once for all files."""
    from tree_sitter import Query

    from portlint.source.grammar import language

    return Query(language("python"), "[" + " ".join(f"({kind})" for kind in sorted(_BINDERS)) + "] @binder")


def _statements(root: tree_sitter.Node) -> list[tree_sitter.Node]:
    """Every node that may bind a name, in source order."""
    from tree_sitter import QueryCursor

    found = QueryCursor(binder_query()).captures(root).get("binder", [])
    return sorted(found, key=lambda raw: (raw.start_byte, -raw.end_byte))


def _identifiers(pattern: Node) -> list[Node]:
    return [pattern] if pattern.type == "identifier" else list(pattern.walk("identifier"))


def _bind_target(left: Node, right: Node | None, start: int, scope: int, bind: Bind, *, annotation: str) -> None:
    if left.type == "identifier":
        bind(left.text, Binding("assign", start, right, annotation=annotation), scope)
    elif left.type in ("pattern_list", "tuple_pattern", "list_pattern"):
        elements = right.children if right is not None and right.type in ("expression_list", "tuple", "list") else []
        for index, child in enumerate(left.children):
            if child.type != "identifier":
                continue
            if len(elements) == len(left.children):
                bind(child.text, Binding("assign", start, elements[index]), scope)
            else:
                bind(child.text, Binding("item", start, right, index), scope)


def _bind_parameters(definition: Node, scope: int, bind: Bind) -> None:
    parameters = definition.get("parameters")
    for child in parameters.children if parameters is not None else []:
        name = child if child.type == "identifier" else child.get("name")
        if name is None:
            name = next(iter(child.children), None)
        if name is not None and name.type == "identifier":
            annotation = child.get("type") if child.type != "identifier" else None
            default = child.get("value") if child.type != "identifier" else None
            bind(
                name.text,
                Binding("parameter", child.start, default, annotation=annotation.text if annotation else ""),
                scope,
            )
