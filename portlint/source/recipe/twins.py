"""For which platforms a recipe is, by its name and by the names of the other recipes of its project.

`Dockerfile.rocm`, `docker/rocm/Dockerfile`, `requirements-hpu.txt` and `environment_xpu.yml` serve their platforms, so
that the recipes beside them are not read there.
"""

from __future__ import annotations

import os
import re
from functools import cache

from portlint.condition import PLATFORM_WORDS, Guard, Name, Op
from portlint.source import nearby
from portlint.source.language import by_name

_NVIDIA = frozenset(("cuda", "nvidia", "nvcc", "cudart"))
_WORDS = PLATFORM_WORDS - _NVIDIA
_SETUP = "setup.py"


@cache
def guards(file: str) -> tuple[Guard, ...]:
    """That the platform is one that the recipe is named for; else, that it is none that another is named for."""
    root = nearby.project(file)
    own = platforms(os.path.relpath(file, root) if root else os.path.basename(file))
    if own:
        return (Guard(one_of(own), True, f"{os.path.basename(file)} is for {', '.join(sorted(own))}", 0),)
    others = _served(root) if root else {}
    kind = "requirements" if os.path.basename(file) == _SETUP else _kind(file)
    return tuple(
        Guard(Name(f"is_{word}"), False, f"{name} takes its place there", 0)
        for (other, word), name in sorted(others.items())
        if other == kind
    )


def platforms(path: str) -> frozenset[str]:
    """The platforms other than NVIDIA's that a path is named for; none where it names NVIDIA's as well."""
    named = frozenset(re.split(r"[^a-z]+", path.lower()))
    return frozenset() if named & _NVIDIA else named & _WORDS


def one_of(words: frozenset[str]) -> Op:
    """That the platform is one of these."""
    return Op("or", tuple(Name(f"is_{word}") for word in sorted(words)))


@cache
def _served(root: str) -> dict[tuple[str, str], str]:
    """(kind of recipe, platform) -> the recipe of the project that is named for it."""
    found: dict[tuple[str, str], str] = {}
    for path in nearby.below(root, ("",)):
        kind = _kind(path)
        if kind:
            name = os.path.relpath(path, root)
            found.update({(kind, word): name for word in platforms(name)})
    return found


def _kind(file: str) -> str:
    """What takes the place of what: an image that of an image, requirements that of requirements."""
    language = by_name(file)
    if language == "yaml":
        return "dockerfile" if "compose" in os.path.basename(file) else "requirements"
    return {"toml": "requirements", "requirements": "requirements", "dockerfile": "dockerfile"}.get(language or "", "")
