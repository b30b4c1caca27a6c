"""Files of the same tree, found from one of its files: a header that it includes, a package that it imports."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache

_LEVELS_UP = 6
"""how many folders above a file are looked at"""


def find(file: str, name: str, roots: Iterable[str] = ("",)) -> str | None:
    """The file `name` next to `file`, or below one of `roots` in a folder above it.

    A file in the working directory finds nothing outside it, and no links.
    """
    return _find(os.path.dirname(file), file.startswith(os.getcwd() + os.sep), name, tuple(roots))


@cache
def _find(folder: str, inside: bool, name: str, roots: tuple[str, ...]) -> str | None:
    here = os.getcwd() + os.sep
    for _ in range(_LEVELS_UP):
        for root in roots:
            candidate = os.path.normpath(os.path.join(folder, root, name))
            if inside and not candidate.startswith(here):
                continue  # a scan reads nothing outside the folder that it is run in
            if os.path.isfile(candidate) and not os.path.islink(candidate):
                return candidate
        folder = os.path.dirname(folder)
    return None
