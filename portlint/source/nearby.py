"""Files of the same tree, found from one of its files: a header that it includes, a package that it imports."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache

_LEVELS_UP = 6
"""how many folders above a file are looked at"""
_LEVELS_OF_A_PROJECT = 12
_BUILD_FILES = ("pyproject.toml", "setup.py", "CMakeLists.txt")


def find(file: str, name: str, roots: Iterable[str] = ("",), levels: int = _LEVELS_UP) -> str | None:
    """The file `name` next to `file`, or below one of `roots` in a folder above it.

    A file in the working directory finds nothing outside it, and no links.
    """
    return _find(os.path.dirname(file), file.startswith(os.getcwd() + os.sep), name, tuple(roots), levels)


@cache
def _find(folder: str, inside: bool, name: str, roots: tuple[str, ...], levels: int) -> str | None:
    here = os.getcwd() + os.sep
    for above in _upwards(folder, levels):
        for root in roots:
            candidate = os.path.normpath(os.path.join(above, root, name))
            if inside and not candidate.startswith(here):
                continue  # a scan reads nothing outside the folder that it is run in
            if os.path.isfile(candidate) and not os.path.islink(candidate):
                return candidate
    return None


def folders(file: str, levels: int = _LEVELS_UP) -> Iterator[str]:
    """The folder of a file and those above it; for a file in the working directory, none outside it."""
    here = os.getcwd()
    inside = file.startswith(here + os.sep)
    for folder in _upwards(os.path.dirname(file), levels):
        if inside and not (folder + os.sep).startswith(here + os.sep):
            return
        yield folder


def project(file: str) -> str | None:
    """The top folder of the project of a file: its repository, else the outermost folder above it with a build file."""
    return _project(os.path.dirname(file)) if file else None


@cache
def _project(folder: str) -> str | None:
    outermost: str | None = None
    for one in folders(os.path.join(folder, ""), _LEVELS_OF_A_PROJECT):
        if os.path.exists(os.path.join(one, ".git")):
            return one
        if any(os.path.isfile(os.path.join(one, name)) for name in _BUILD_FILES):
            outermost = one
    return outermost


def _upwards(folder: str, levels: int) -> Iterator[str]:
    for _ in range(levels):
        yield folder
        if os.path.dirname(folder) == folder:
            return
        folder = os.path.dirname(folder)
