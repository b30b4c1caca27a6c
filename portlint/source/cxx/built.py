"""For which platforms the build of the tree compiles a C++ file, where its build files or Python code say so.

A file that CMake lists only under `if(LANGUAGE STREQUAL "CUDA")`, or setup.py under `if not IS_ROCM:`, never reaches
hipcc, and neither does a header that only such files include, or that nobody includes in a folder of such files. Files
that no list names, or that a list names without a condition, are compiled everywhere.
"""

from __future__ import annotations

import fnmatch
import os
import re
from functools import cache
from typing import TYPE_CHECKING

from portlint.condition import Guard, any_way
from portlint.source import nearby
from portlint.source.cxx.conditions import fits
from portlint.source.cxx.jit import jit_guards
from portlint.source.cxx.users import sources_in, users_of
from portlint.source.language import CXX_HEADERS

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE = re.compile(r"[\w./*+-]+\.(?:cu|hip|cpp|cc|cxx|c|cuh|h|hpp)")
_HERE = re.compile(r"^\$\{(?:CMAKE_CURRENT_SOURCE_DIR|PROJECT_SOURCE_DIR|CMAKE_SOURCE_DIR)\}/")
_BUILDS = (("CMakeLists.txt", "cmake", "argument"), ("setup.py", "python", "string"))
"""the files that list sources: name, language, and the node that a path is written as"""
_DEEPEST = 6
"""how many headers may stand between a header and the source files that bring it in"""
_LARGEST_LIST = 1 << 19


@cache
def build_guards(file: str) -> tuple[Guard, ...]:
    """The condition under which the build compiles a file; nothing where that is not known."""
    ways = _ways(file, _DEEPEST) if file else None
    if ways is None or any(not way for way in ways):
        return ()
    listed = any_way(dict.fromkeys(ways), "the build's list of sources", 0)
    return (listed,) if fits(listed.condition) else ()


def _ways(file: str, depth: int) -> list[tuple[Guard, ...]] | None:
    """The conditions of every place that has the build compile a file; None where there is no such place."""
    named = [*_named(file), *jit_guards(file)]
    if named or not depth:
        return named or None
    ways: list[tuple[Guard, ...]] = []
    beside = sources_in(os.path.dirname(file)) if file.endswith(CXX_HEADERS) else []
    for user in users_of(file) or beside:
        brought = _ways(user, depth - 1)
        if brought is None:
            return None
        ways += brought
    return ways or None


def _named(file: str) -> Iterator[tuple[Guard, ...]]:
    """The conditions of the lists that name a file, in the builds of the folders above it."""
    for folder in nearby.folders(file):
        relative = os.path.relpath(file, folder or ".").replace(os.sep, "/")
        for name, language, kind in _BUILDS:
            for pattern, guards in _lists(os.path.join(folder, name), language, kind):
                if fnmatch.fnmatchcase(relative, pattern):
                    yield guards


@cache
def _lists(path: str, language: str, kind: str) -> tuple[tuple[str, tuple[Guard, ...]], ...]:
    """Every source file that a build names: a pattern relative to its folder, and the tests around it."""
    from portlint.source import Source
    from portlint.source.prescan import Limits, refuse

    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST_LIST + 1)
    except OSError:
        return ()
    if len(text) > _LARGEST_LIST or refuse(text, language, Limits()):
        return ()
    named = ((_plain(node.text), node) for node in Source(path, text, language, path).root.walk(kind))
    return tuple((name, node.guards) for name, node in named if _SOURCE.fullmatch(name))


def _plain(name: str) -> str:
    """A path as a build writes it, without quotes and the variables that stand for the build's own folder."""
    return _HERE.sub("", name.strip("\"'")).removeprefix("./")
