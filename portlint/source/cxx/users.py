"""Which files of a project include a header, and which sources lie beside it.

The `#include` lines of the whole project are read for it once: the folder of a header says little about its users.
"""

from __future__ import annotations

import os
import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from portlint.source import nearby
from portlint.source.language import CXX_COMPILED, CXX_HEADERS

if TYPE_CHECKING:
    from collections.abc import Iterator

INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]{1,200}\.(?:h|cuh|hpp|hh|inl|cu))[">]', re.MULTILINE)
INCLUDE_ROOTS = ("", "include", "csrc", "src")
"""folders above an including file in which a quoted path is looked for as well"""
_MOST_USERS = 60
"""of one header, those of its users included; one with more is for everybody"""
_MOST_FILES = 20_000
"""and folders, of a project"""
_LARGEST_FILE = 1 << 20


def users_of(header: str) -> list[str]:
    """The files that include a header; of a file outside any project, those of its folder."""
    return _users_in(nearby.project(header) or os.path.dirname(header), header) if header else []


@cache
def all_users_of(header: str) -> list[str]:
    """The files that include a header, directly or through others; nothing where there are too many to read."""
    found: list[str] = []
    waiting = list(users_of(header))
    while waiting:
        user = waiting.pop()
        if user not in found and user != header:
            found.append(user)
            waiting += users_of(user)
        if len(found) > _MOST_USERS:
            return []
    return found


@cache
def sources_in(folder: str) -> list[str]:
    """The files of a folder that a build compiles, headers left out."""
    try:
        return sorted(entry.path for entry in os.scandir(folder or ".") if entry.name.endswith(CXX_COMPILED))
    except OSError:
        return []


@cache
def _users_in(root: str, header: str) -> list[str]:
    named = _included(root).get(os.path.basename(header), ())
    return [user for user, path in named if user != header and _means(user, path, header)]


def _means(user: str, path: str, header: str) -> bool:
    """Whether an included path is this header: near its user, or somewhere below a folder that compilers search."""
    if not header.endswith(os.sep + os.path.normpath(path).lstrip("./")):
        return False
    near = _near(os.path.dirname(user), path)
    return near == header if near is not None else True


@cache
def _near(folder: str, path: str) -> str | None:
    return nearby.find(os.path.join(folder, ""), path, INCLUDE_ROOTS)


@cache
def _included(root: str) -> dict[str, list[tuple[str, str]]]:
    """For the headers that files of a project include: base name -> the including file, and the path it includes."""
    users: dict[str, list[tuple[str, str]]] = {}
    for file in files_of(root):
        for match in INCLUDE.finditer(_start_of(file)):
            path = os.fsdecode(match[2])
            users.setdefault(os.path.basename(path), []).append((file, path))
    return users


@cache
def files_of(root: str) -> list[str]:
    """The C++ files below a folder, hidden folders left out; of a very large tree, the first."""
    return list(islice(_files(root), _MOST_FILES))


def _files(root: str) -> Iterator[str]:
    for folder, folders, names in islice(os.walk(root), _MOST_FILES):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        yield from (os.path.join(folder, one) for one in sorted(names) if one.endswith(CXX_COMPILED + CXX_HEADERS))


def _start_of(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read(_LARGEST_FILE)
    except OSError:
        return b""
