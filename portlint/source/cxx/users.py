"""Which files of a project include a header, and which sources lie beside it.

The `#include` lines of the whole project are read for it once: the folder of a header says little about its users.
"""

from __future__ import annotations

import os
import re

from portlint.regex import regex
from portlint.source import nearby
from portlint.source.language import CXX_COMPILED, CXX_HEADERS

INCLUDE = regex(rb'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]{1,200}\.(?:h|cuh|hpp|hh|inl|cu))[">]', re.MULTILINE)
INCLUDE_ROOTS = ("", "include", "csrc", "src")
"""folders above an including file in which a quoted path is looked for as well"""
_TEMPLATES = (".jinja", ".j2")
"""that a build makes sources of"""
_MOST_USERS = 60
"""of one header, those of its users included; one with more is for everybody"""


@nearby.remembered
def users_of(header: str) -> list[str]:
    """The files that include a header; of a header outside any project, those of its folder."""
    if not header:
        return []
    root = nearby.project(header)
    included = _included(os.path.dirname(header), below=False) if root is None else _included(root, below=True)
    named = included.get(os.path.basename(header), ())
    return [user for user, path in named if user != header and _means(user, path, header)]


@nearby.remembered
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


@nearby.remembered
def sources_in(folder: str) -> list[str]:
    """The files of a folder that a build compiles, headers left out."""
    return _files_in(folder, CXX_COMPILED)


def _means(user: str, path: str, header: str) -> bool:
    """Whether an included path is this header: near its user, or somewhere below a folder that compilers search."""
    if not header.endswith(os.sep + os.path.normpath(path).lstrip("./")):
        return False
    near = _near(os.path.dirname(user), path)
    return near == header if near is not None else True


@nearby.remembered
def _near(folder: str, path: str) -> str | None:
    return nearby.find(os.path.join(folder, ""), path, INCLUDE_ROOTS)


@nearby.remembered
def _included(folder: str, *, below: bool) -> dict[str, list[tuple[str, str]]]:
    """For the headers that files of a folder include: base name -> the including file, and the path it includes."""
    users: dict[str, list[tuple[str, str]]] = {}
    endings = CXX_COMPILED + CXX_HEADERS + _TEMPLATES
    for file in nearby.below(folder, endings) if below else _files_in(folder, endings):
        for match in INCLUDE.finditer(nearby.read(file) or b""):
            path = os.fsdecode(match[2])
            users.setdefault(os.path.basename(path), []).append((file, path))
    return users


@nearby.remembered
def files_of(root: str) -> list[str]:
    """The C++ files of a project."""
    return list(nearby.below(root, CXX_COMPILED + CXX_HEADERS))


def _files_in(folder: str, endings: tuple[str, ...]) -> list[str]:
    try:
        return sorted(entry.path for entry in os.scandir(folder or ".") if entry.name.endswith(endings))
    except OSError:
        return []
