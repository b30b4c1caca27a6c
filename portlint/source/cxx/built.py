"""For which platforms the build of the tree compiles a C++ file, where its build files or Python code say so.

A file that CMake lists only under `if(LANGUAGE STREQUAL "CUDA")`, or setup.py under `if not IS_ROCM:`, never reaches
hipcc, and neither does a header that only such files include, or that nobody includes in a folder of such files. Files
that no list names, or that a list names without a condition, are compiled everywhere.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING

from portlint.condition import Guard, any_way
from portlint.regex import regex
from portlint.source import nearby
from portlint.source.architectures import Built, from_gencode, runs_on_device
from portlint.source.cxx.conditions import fits
from portlint.source.cxx.includes import include_guards
from portlint.source.cxx.jit import jit_guards
from portlint.source.cxx.users import sources_in, users_of
from portlint.source.kept import with_source
from portlint.source.language import CXX_HEADERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source import Source
    from portlint.source.node import Node

_SOURCE = regex(r"[\w./*+-]+\.(?:cu|hip|cpp|cc|cxx|c|cuh|h|hpp)")
_HERE = regex(r"^\$\{(?:CMAKE_CURRENT_SOURCE_DIR|PROJECT_SOURCE_DIR|CMAKE_SOURCE_DIR)\}/")
_BUILDS = (("CMakeLists.txt", "cmake", "argument"), ("setup.py", "python", "string"))
"""the files that list sources: name, language, and the node that a path is written as"""
_MOST_FILES = 600
"""that are looked at between a header and the source files that bring it in"""


@nearby.remembered
def build_guards(file: str) -> tuple[Guard, ...]:
    """The condition under which the build compiles a file; nothing where that is not known."""
    ways = dict.fromkeys(_ways(file)) if file else {}
    if not ways:
        return ()
    listed = any_way(ways, "the build's list of sources", 0)
    return (listed,) if fits(listed.condition) else ()


def _ways(file: str) -> list[tuple[Guard, ...]]:
    """The conditions of every place that has the build compile a file; nothing where it may be compiled anyway."""
    ways: list[tuple[Guard, ...]] = []
    start: tuple[str, tuple[Guard, ...]] = (file, ())
    seen, waiting = {start}, [start]
    while waiting:
        one, around = waiting.pop()
        is_header = one.endswith(CXX_HEADERS)
        users = users_of(one) if is_header else []
        named = [] if users else _listed(one)
        users = users or ([] if named else users_of(one))
        beside = sources_in(os.path.dirname(one)) if is_header and not (named or users) else []
        ways += [(*around, *way) for way in named]
        if not (named or users or beside or is_header):
            ways.append((*around, *_guards_of_setup(one)))
        if len(seen) > _MOST_FILES or not all(ways):
            return []
        # a header that nobody includes takes it nowhere
        found = [(user, (*around, *include_guards(user, one))) for user in users] + [(user, around) for user in beside]
        waiting += [each for each in dict.fromkeys(found) if each not in seen]
        seen.update(found)
    return ways


@nearby.remembered
def _listed(file: str) -> list[tuple[Guard, ...]]:
    """The conditions of the lists and of the Python that name a file."""
    return [*_named(file), *jit_guards(file)]


def _named(file: str) -> Iterator[tuple[Guard, ...]]:
    """The conditions of the lists that name a file, in the builds of the folders above it."""
    for folder in nearby.folders(file):
        relative = os.path.relpath(file, folder or ".").replace(os.sep, "/")
        for name, language, kind in _BUILDS:
            for pattern, written in _lists(os.path.join(folder, name), language, kind):
                if _glob(pattern).fullmatch(relative):
                    setup = _guards_of_setup(file) if name == "setup.py" else ()
                    yield (*_guards_of_folder(folder), *written.guards, *setup)


def _guards_of_setup(file: str) -> tuple[Guard, ...]:
    """The architectures of the nearest setup.py, where it builds for variants and leaves nothing to the user."""
    setup = next(
        (one for folder in nearby.folders(file) if nearby.is_file(one := os.path.join(folder, "setup.py"))), ""
    )
    built = _architectures_of(setup) if setup else frozenset()
    return (Guard(runs_on_device(built), True, "the architectures of setup.py", 0),) if built else ()


@nearby.remembered
def _architectures_of(setup: str) -> frozenset[Built]:
    """The architectures that a setup.py always builds for; a list without variants may only be an old one."""
    source = nearby.opened(setup, "python")
    if source is None or b"ARCH_LIST" in source.text or b"compute_{" in source.text:
        return frozenset()
    texts = (one.text for one in source.root.walk("string_content") if "arch=compute_" in one.text)
    built = frozenset[Built]().union(*map(from_gencode, texts))
    return built if any(one.suffix for one in built) else frozenset()


@nearby.remembered
def is_listed_near(file: str) -> bool:
    """Whether a build of the folders above a file lists sources at all."""
    return any(
        _lists(os.path.join(folder, name), language, kind)
        for folder in nearby.folders(file)
        for name, language, kind in _BUILDS
    )


@nearby.remembered
def _guards_of_folder(folder: str) -> tuple[Guard, ...]:
    """The conditions under which CMake lists of the folders above bring in that of a folder."""
    for above in nearby.folders(folder):
        relative = os.path.relpath(folder, above or ".").replace(os.sep, "/")
        found = [guards for name, guards in _subfolders(os.path.join(above, "CMakeLists.txt")) if name == relative]
        if found:
            return (*_guards_of_folder(above), *found[0]) if len(found) == 1 else ()
    return ()


@nearby.remembered
def _subfolders(path: str) -> tuple[tuple[str, tuple[Guard, ...]], ...]:
    """The folders that a CMake list adds, and the tests around that."""
    source = nearby.opened(path, "cmake")
    commands = source.root.walk("normal_command") if source is not None else ()
    added = [one for one in commands if one.name == "add_subdirectory" and one.arguments]
    return tuple((_plain(one.arguments[0].text), one.guards) for one in added)


def _lists(path: str, language: str, kind: str) -> tuple[tuple[str, Node], ...]:
    """Every source file that a build names: a pattern relative to its folder, and where it is written."""
    source = nearby.opened(path, language)
    return _all_named(source, kind) if source is not None else ()


@with_source
def _all_named(source: Source, kind: str) -> tuple[tuple[str, Node], ...]:
    named = ((_plain(node.text), node) for node in source.root.walk(kind))
    return tuple((_at_any_depth(name, node), node) for name, node in named if _SOURCE.fullmatch(name))


def _at_any_depth(pattern: str, node: Node) -> str:
    """A pattern of CMake's `file(GLOB_RECURSE ...)`, which goes into every folder below."""
    command = next(node.ancestors("normal_command"), None) if "*" in pattern else None
    folder, slash, name = pattern.rpartition("/")
    recursive = command is not None and command.arguments[0].text == "GLOB_RECURSE" and "**" not in pattern
    return f"{folder}{slash}**/{name}" if recursive else pattern


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    """What a pattern of a build matches: `*` stays in its folder, `**/` is any number of folders."""
    parts = re.split(r"(\*\*/|\*)", pattern)
    return re.compile("".join({"**/": "(?:.*/)?", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts))


def _plain(name: str) -> str:
    """A path as a build writes it, without quotes and the variables that stand for the build's own folder."""
    return _HERE.sub("", name.strip("\"'")).removeprefix("./")
