"""What installed packages bring to portlint, named in their entry points: rules and targets.

`importlib.metadata` takes long to import, and to search. It is asked only where the `entry_points.txt` of an installed
package names one of our groups.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

RULES = "portlint.rules"
"""each value is a package that holds rules, `<pack>/<name>.py`"""
TARGETS = "portlint.targets"
"""each value is a package that holds profiles, `<name>.toml`"""

_METADATA = (".dist-info", ".egg-info", ".egg")


def entries(group: str) -> Sequence[EntryPoint]:
    """The entry points of a group."""
    if not _are_named(group.encode(), tuple(sys.path)):
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


@cache
def _are_named(group: bytes, path: tuple[str, ...]) -> bool:
    """Whether a package on this path may have entry points of a group; only True is ever wrong."""
    return any(group in text for text in _texts(path)) or any(map(os.path.isfile, path))  # archives hold packages, too


@cache
def _texts(path: tuple[str, ...]) -> tuple[bytes, ...]:
    """What the packages of the folders on a path say of their entry points."""
    return tuple(text for folder in dict.fromkeys(path) for text in _of_folder(folder or os.curdir))


def _of_folder(folder: str) -> Iterator[bytes]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    within = [os.path.join(folder, name) for name in names if name.endswith(_METADATA)]
    for place in (folder, *within):  # the folder itself can be an egg
        for part in ("EGG-INFO", "") if place.endswith(".egg") else ("",):
            try:
                with open(os.path.join(place, part, "entry_points.txt"), "rb") as file:
                    yield file.read()
            except OSError:
                continue
