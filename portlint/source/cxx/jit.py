"""For which architectures Python code compiles a C++ source at run time.

Projects that compile kernels when they are first used keep a function for each module: it names the sources, and the
architectures as flags (`-gencode=arch=compute_100a,...`), as names of flags (`sm100a_nvcc_flags`) or as a list of major
versions (`supported_major_versions=[10, 11]`), itself or in a table of its file that it reads.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING

from portlint.condition import Guard
from portlint.source import nearby
from portlint.source.architectures import Built, runs_on_device

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source.node import Node

_SOURCE = re.compile(rb"[\"'/\\]([\w.-]+)\.(?:cu|cuh|cpp|cc)[\"']")
_NAME = re.compile(rb"[\"']([a-zA-Z]\w{9,})[\"']")
"""a string that may be the name of a source without its extension"""
_OF_FLAGS = re.compile(r"(?:^|_)sm_?(\d{2,3})([af])(?=_|$)")
_WRITTEN = re.compile(r"(?<![a-zA-Z])(?:sm|compute)_?(\d{2,3})([af]?)(?![0-9])")
_MAJORS = re.compile(r"(?:^|_)majors?(?:_versions?)?$")
_NOT_FOR_IT = re.compile(r"[/\\]test[^/\\]*[/\\]|[/\\]setup\.py$")
"""tests; and what is read as a list of sources in its own right"""


@cache
def jit_guards(file: str) -> list[tuple[Guard, ...]]:
    """The conditions of each place that has Python compile a file: the devices that its architectures run on."""
    root = nearby.project(file)
    stem = os.path.splitext(os.path.basename(file))[0]
    return [] if root is None else [way for script in _scripts(root).get(stem, ()) for way in _named_in(script, stem)]


@cache
def _scripts(root: str) -> dict[str, list[str]]:
    """The Python files of a project that may name a C++ source, by its name without the extension."""
    found: dict[str, list[str]] = {}
    for path in nearby.below(root, (".py",)):
        if _NOT_FOR_IT.search(path.removeprefix(root)):
            continue
        text = nearby.read(path) or b""
        with_extension = set(_SOURCE.findall(text))
        for stem in with_extension | (set(_NAME.findall(text)) if with_extension or b".cu" in text else set()):
            found.setdefault(stem.decode(), []).append(path)
    return found


def _named_in(script: str, stem: str) -> Iterator[tuple[Guard, ...]]:
    """The conditions under which a Python file compiles a source; none for a name that no architecture goes with."""
    for built, text in _strings(script):
        base = os.path.basename(text)
        if os.path.splitext(base)[0] != stem:
            continue
        if built:
            yield (Guard(runs_on_device(built), True, f"the architectures of {os.path.basename(script)}", 0),)
        elif base != stem:
            yield ()


@cache
def _strings(script: str) -> tuple[tuple[frozenset[Built], str], ...]:
    """The strings of a Python file that may be a path, each with the architectures that go with it."""
    source = nearby.opened(script, "python")
    if source is None:
        return ()
    root = source.root
    tables = _tables(root)
    module = frozenset[Built]().union(*tables.values())
    found: list[tuple[frozenset[Built], str]] = []
    by_function: dict[int, frozenset[Built]] = {}
    for node in root.walk("string_content"):
        if re.fullmatch(r"[\w./-]+", node.text):
            function = next(node.ancestors("function_definition"), None)
            if function is not None and function.start not in by_function:
                asked = {one.text for one in function.walk("identifier")}
                of_tables = (built for name, built in tables.items() if name in asked)
                by_function[function.start] = _architectures(function).union(*of_tables)
            found.append((module if function is None else by_function[function.start], node.text))
    return tuple(found)


def _tables(root: Node) -> dict[str, frozenset[Built]]:
    """The names that a file gives values with architectures at its left margin."""
    found: dict[str, frozenset[Built]] = {}
    for statement in root.children:
        for assignment in statement.walk("assignment") if statement.type == "expression_statement" else ():
            found[assignment["left"].text] = _architectures(assignment)
    return found


def _architectures(part: Node) -> frozenset[Built]:
    """Every architecture that a part of a file names in code; one without a suffix stands for its PTX as well."""
    built: set[Built] = set()
    for node in part.walk("identifier", "string_content", "keyword_argument"):
        if node.type == "keyword_argument":
            built.update(_majors(node))
        elif node.type == "identifier":
            built.update(Built(int(number), suffix, ptx=False) for number, suffix in _OF_FLAGS.findall(node.text))
        elif not _is_prose(node):
            found = _WRITTEN.findall(node.text)
            built.update(Built(int(number), suffix, ptx=not suffix) for number, suffix in found)
    return frozenset(built)


def _majors(argument: Node) -> Iterator[Built]:
    """`supported_major_versions=[10, 11]`: the families of those capabilities."""
    versions = argument["value"].constant
    if _MAJORS.search(argument["name"].text) and isinstance(versions, tuple):
        yield from (Built(one * 10, "f", ptx=False) for one in versions if isinstance(one, int) and 5 <= one < 20)


def _is_prose(content: Node) -> bool:
    """A documentation string says what the code is for, not how it is built."""
    statement = content.parent.parent if content.parent is not None else None
    return statement is not None and statement.type == "expression_statement"
