"""Requirements of Python packages, as files of pip's and as the strings that manifests hold (PEP 508)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from portlint.condition import UNANSWERABLE, Expression, Guard, Literal, Name, Op
from portlint.source import Source
from portlint.source.recipe import Entry, RecipeAnalysis, unquoted
from portlint.source.recipe.distributions import normalised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source.node import Node

INDEX_OPTIONS = frozenset(("-i", "--index-url", "--extra-index-url", "-f", "--find-links"))
_QUERIES = {
    "sys_platform": "sys.platform",
    "platform_system": "platform.system",
    "platform_machine": "platform.machine",
    "os_name": "os.name",
}
"""variables of markers, and the queries of Python that answer the same"""
_COMPARISONS: dict[type[ast.cmpop], str] = {ast.Eq: "==", ast.NotEq: "!=", ast.In: "in"}


class RequirementsAnalysis(RecipeAnalysis):
    """One requirements or constraints file."""

    def read(self) -> Iterator[Entry]:
        """Its packages and indexes."""
        for child in self.source.root.children:
            if child.type == "requirement":
                yield _entry(child, child)
            elif child.type == "url":
                yield Entry("package", "", f"@ {child.text}", child)
            elif child.type == "global_opt" and (option := child.children[0].text) in INDEX_OPTIONS:
                yield from (Entry("index", option, one.text, one) for one in child.children if one.type == "url")


def requirement(text: str, node: Node) -> Iterator[Entry]:
    """The package that a string elsewhere requires; `node` is where it is written."""
    source = Source(node.source.path, f"{text}\n".encode(), "requirements")  # a bare name needs the end of its line
    found = source.root.children
    if len(found) == 1 and found[0].type == "requirement":
        yield _entry(found[0], node)


def _entry(found: Node, node: Node) -> Entry:
    parts = {child.type: child for child in found.children}
    name = normalised(parts["package"].text) if "package" in parts else ""
    extras = parts["extras"].text.replace(" ", "") if "extras" in parts else ""
    wanted = next((parts[kind].text.strip() for kind in ("version_spec", "url_spec") if kind in parts), "")
    marker = parts.get("marker_spec")
    place = parts["package"] if node == found and "requirement_opt" in parts else node  # hashes may fill many lines
    if marker is None:
        return Entry("package", name + extras, wanted, place)
    text = marker.text.strip().removeprefix(";").strip()
    marked = any(variable in text for variable in _QUERIES)
    return Entry("package", name + extras, wanted, place, (marker_guard(text, node.line),), marked=marked)


def marker_guard(text: str, line: int) -> Guard:
    """A marker of the environment; its syntax is that of Python's expressions."""
    try:
        condition = _condition(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        condition = UNANSWERABLE
    return Guard(condition, True, text, line)


def _condition(node: ast.expr) -> Expression:
    match node:
        case ast.BoolOp(op=operator, values=values):
            return Op("and" if isinstance(operator, ast.And) else "or", tuple(map(_condition, values)))
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARISONS:
            return Op(_COMPARISONS[type(operator)], (_operand(left), _operand(right)))
    return UNANSWERABLE


def _operand(node: ast.expr) -> Expression:
    match node:
        case ast.Constant(value=str() as value):
            return Literal(value)
        case ast.Name(id=name) if name in _QUERIES:
            return Name(_QUERIES[name])
    return UNANSWERABLE


def words(texts: list[tuple[str, Node]]) -> Iterator[Entry]:
    """What the arguments of `pip install` ask for: packages, and indexes to look in."""
    option = ""
    for text, node in texts:
        if option:
            if option in INDEX_OPTIONS:
                yield Entry("index", option, text, node)
            option = ""
        elif text.startswith("-"):
            name, is_given, value = text.partition("=")
            if is_given and name in INDEX_OPTIONS:
                yield Entry("index", name, unquoted(value), node)
            option = name if not is_given and name in _WITH_VALUE else ""
        else:
            yield from requirement(text, node)


_WITH_VALUE = INDEX_OPTIONS | frozenset(
    "-r --requirement -c --constraint -e --editable -t --target --prefix --root --python --python-version --platform"
    " --abi --implementation --src --cache-dir --timeout --retries --trusted-host --progress-bar --no-binary"
    " --only-binary --config-settings -C --global-option --report --index-strategy --torch-backend --proxy".split()
)
"""options of pip and uv whose value is the next word"""
