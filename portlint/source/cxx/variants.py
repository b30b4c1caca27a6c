"""Whether a project builds for some parts as `sm_120a` or `sm_120f` alone, never as the plain `sm_120`.

Projects that compile when they are first used make the flags from the capability of the device, and a function that
spells it for nvcc adds the suffix: `if major == 12: return "0f"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from portlint.condition import Environment, Guard, Literal, Name, Op, is_live
from portlint.regex import regex
from portlint.source import nearby
from portlint.source.architectures import PARTS
from portlint.source.cxx.built import is_listed_near

if TYPE_CHECKING:
    from portlint.source.node import Node

_MADE_OF_PARTS = regex(rb"compute_\{")
_PLAIN = regex(rb"arch=compute_(\d{2,3})(?![0-9af])")
_SUFFIX = regex(r"\d?[af]")
_CLAUSES = ("block", "elif_clause", "else_clause")


@nearby.remembered
def variant_guards(file: str) -> tuple[Guard, ...]:
    """That the build is not the plain one of a part for which the project always adds a suffix."""
    root = nearby.project(file) if file else None
    parts = _suffixed(root) if root is not None else ()
    if not parts or is_listed_near(file):
        return ()
    other = Op("not", (Op("in", (Name("device.capability"), Literal(parts))),))
    condition = Op("or", (other, Op("not", (Name("build.is_plain"),))))
    return (Guard(condition, True, "the project builds for architecture-specific variants", 0),)


@nearby.remembered
def _suffixed(root: str) -> tuple[tuple[int, int], ...]:
    """The capabilities that every script of a project which makes flags from one gives a suffix."""
    scripts: list[str] = []
    plain: set[int] = set()
    for path in nearby.below(root, (".py",)):
        if not nearby.is_of_tests(path.removeprefix(root)):
            text = nearby.read(path) or b""
            plain |= set(map(int, _PLAIN.findall(text)))
            scripts += [path] if _MADE_OF_PARTS.search(text) else []
    found = [_suffixed_in(script) for script in scripts]
    kept = frozenset.intersection(*found) if found else frozenset()
    return tuple(divmod(part, 10) for part in PARTS if part in kept - plain)


def _suffixed_in(script: str) -> frozenset[int]:
    """The parts whose capability a function of a file always returns with a suffix."""
    source = nearby.opened(script, "python")
    functions = source.root.walk("function_definition") if source is not None else ()
    spelling = [one for one in functions if {"major", "minor"} <= {word.text for word in one.walk("identifier")}]
    return frozenset(part for part in PARTS if any(_always_adds(one, part) for one in spelling))


def _always_adds(function: Node, part: int) -> bool:
    major, minor = divmod(part, 10)
    returned, _ = _returned(function["body"], Environment({"major": major, "minor": minor}))
    return bool(returned) and all(
        any(_SUFFIX.fullmatch(text.text) for text in one.walk("string_content")) for one in returned
    )


def _returned(block: Node, environment: Environment) -> tuple[list[Node], bool]:
    """The `return` statements that a block may reach, and whether it always ends in one or in an error."""
    found: list[Node] = []
    for statement in block.children:
        if statement.type in ("return_statement", "raise_statement"):
            return [*found, statement] if statement.type == "return_statement" else found, True
        if statement.type == "if_statement":
            inner, leaves = _returned_by_branches(statement, environment)
            found += inner
            if leaves:
                return found, True
    return found, False


def _returned_by_branches(statement: Node, environment: Environment) -> tuple[list[Node], bool]:
    found: list[Node] = []
    leaves = True
    for clause in (one for one in statement.children if one.type in _CLAUSES):
        body = clause if clause.type == "block" else clause.children[-1]
        live = is_live(body.children[0].guards[len(statement.guards) :], environment) if body.children else True
        if live is False:
            continue
        inner, ends = _returned(body, environment)
        found += inner
        leaves = leaves and ends
        if live is True or clause.type == "else_clause":
            return found, leaves
    return found, False
