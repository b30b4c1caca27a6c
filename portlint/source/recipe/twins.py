"""For which platforms a recipe is, by its name and by the names of the other recipes of its project.

`Dockerfile.rocm`, `docker/rocm/Dockerfile`, `requirements-hpu.txt` and `environment_xpu.yml` serve their platforms, so
that the recipes beside them are not read there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from portlint.condition import PLATFORM_WORDS, Guard, Name, Op
from portlint.source import nearby
from portlint.source.language import by_name
from portlint.source.recipe import processors

_NVIDIA = frozenset(("cuda", "nvidia", "nvcc", "cudart"))
WORDS = PLATFORM_WORDS - _NVIDIA
"""the words for platforms other than NVIDIA's"""
_SETUP = "setup.py"


_OWN = frozenset("ci test tests testing benchmark benchmarks bench buildkite circleci jenkins devcontainer".split())
"""words for what runs on the project's own machines"""
_FOR_ALL = frozenset(
    "requirements constraints base common core main default runtime prod install gpu cuda nvidia".split()
)
"""words in the names of requirements files that are for every installation"""


@nearby.remembered
def is_for_itself(file: str) -> bool:
    """Whether a recipe is for the project's own tests: what these run on says nothing of where the project runs."""
    of_github = "gh" in re.split(r"[^a-z0-9]+", nearby.within(file, file).lower())  # not gh200, which is a machine
    return of_github or not _OWN.isdisjoint(_words(file)[:-1])


@nearby.remembered
def is_optional(file: str) -> bool:
    """Whether a requirements file is for a part of the project that its name says, as `requirements-docs.txt`."""
    name = os.path.basename(file).lower().removesuffix(".txt").rpartition(".")[2]
    return by_name(file) == "requirements" and not _FOR_ALL.issuperset(re.findall(r"[a-z]+", name))


def _words(file: str) -> list[str]:
    """The words of a path below the top folder of its project, the ending last."""
    path = nearby.within(file, file)
    return [word for word in re.split(r"[^a-z]+", path.lower()) if word]


@nearby.remembered
def guards(file: str) -> tuple[Guard, ...]:
    """What the name of a recipe says of the processor and of the platform that it is for, and the names of others."""
    return (*processors.of_path(nearby.within(file, file)), *_by_platform(file))


def _by_platform(file: str) -> tuple[Guard, ...]:
    """That the platform is one that the recipe is named for; else, that it is none that another is named for."""
    root = nearby.project(file)
    own = platforms(_words(file))
    if own:
        return (Guard(one_of(own), True, f"{os.path.basename(file)} is for {', '.join(sorted(own))}", 0),)
    others = _served(root or os.path.dirname(file), root is not None)
    kind = "requirements" if os.path.basename(file) == _SETUP else _kind(file)
    if (
        by_name(file) == "requirements"
        and not _NVIDIA.isdisjoint(_words(file))
        and any(other == kind for other, _ in others)
    ):
        return (Guard(Name("is_nvidia"), True, f"{os.path.basename(file)} is one of several, and NVIDIA's", 0),)
    return tuple(
        Guard(Name(f"is_{word}"), False, f"{name} takes its place there", 0)
        for (other, word), name in sorted(others.items())
        if other == kind
    )


def platforms(words: Iterable[str]) -> frozenset[str]:
    """The platforms other than NVIDIA's that a path is named for; none where it names NVIDIA's as well."""
    named = frozenset(words)
    return frozenset() if named & _NVIDIA else named & WORDS


def one_of(words: frozenset[str]) -> Op:
    """That the platform is one of these."""
    return Op("or", tuple(Name(f"is_{word}") for word in sorted(words)))


@nearby.remembered
def _served(folder: str, whole: bool) -> dict[tuple[str, str], str]:
    """(kind of recipe, platform) -> the recipe that is named for it, in a whole project or just in a folder."""
    found: dict[tuple[str, str], str] = {}
    for path in nearby.below(folder, ("",)) if whole else nearby.beside(folder):
        kind = _kind(path)
        if kind:
            found.update({(kind, word): os.path.basename(path) for word in platforms(_words(path))})
    return found


def _kind(file: str) -> str:
    """What takes the place of what: an image that of an image, requirements that of requirements."""
    language = by_name(file)
    if language == "yaml":
        return "dockerfile" if "compose" in os.path.basename(file) else "requirements"
    return {"toml": "requirements", "requirements": "requirements", "dockerfile": "dockerfile"}.get(language or "", "")
