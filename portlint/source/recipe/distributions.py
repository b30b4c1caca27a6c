"""What the manifests around a recipe make: the project's own distributions, and what these are built on."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from portlint.condition import words_of
from portlint.regex import regex
from portlint.source import nearby
from portlint.source.kept import with_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source import Source
    from portlint.source.node import Node

_SETUP_CALLS = ("setuptools.setup", "setup", "distutils.core.setup")
_NEGATIVE = regex(r"\bnot\b|!=|\bis None\b")
_FEW = 5
"""modules of which a majority says nothing"""


def normalised(name: str) -> str:
    """A package's name as indexes compare them."""
    return re.sub(r"[-_.]+", "-", name).lower()


@nearby.remembered
def own(file: str) -> frozenset[str]:
    """The distributions that the manifests beside a recipe and above it make, by their normalised names."""
    root = nearby.project(file)
    names: set[str] = set()
    for folder in nearby.folders(file) if root is not None else ():
        for key in ("project.name", "tool.poetry.name"):
            value = static(os.path.join(folder, "pyproject.toml"), key)
            if value is not None:
                names.add(value.text.strip("\"'"))
        for call in setups(os.path.join(folder, "setup.py")):
            name = call.argument(None, "name")
            if name is not None and isinstance(name.constant, str):
                names.add(name.constant)
        if folder == root:
            break
    return frozenset(map(normalised, names))


def static(manifest: str, key: str) -> Node | None:
    """What a pyproject.toml says under a dotted key, where it says that itself."""
    return _pairs(manifest).get(key)


def _pairs(manifest: str) -> dict[str, Node]:
    source = nearby.opened(manifest, "toml") if nearby.is_file(manifest) else None
    return _pairs_of(source) if source is not None else {}


@with_source
def _pairs_of(source: Source) -> dict[str, Node]:
    return {f"{table_of(pair)}.{pair.children[0].text}": pair.children[-1] for pair in source.root.walk("pair")}


def table_of(pair: Node) -> str:
    """The table that a pair stands directly in."""
    around = pair.parent
    if around is None or around.type not in ("table", "table_array_element"):
        return ""
    return around.children[0].text.replace(" ", "")


def setups(script: str) -> Iterator[Node]:
    """The calls of `setup()` in a setup.py."""
    source = nearby.opened(script, "python") if nearby.is_file(script) else None
    for call in source.root.walk("call") if source is not None else ():
        if call.name in _SETUP_CALLS:
            yield call


def is_setup(call: Node) -> bool:
    """Whether a call is that of `setup()`."""
    return call.name in _SETUP_CALLS


@nearby.remembered
def is_built_on(file: str, module: str) -> bool:
    """Whether most modules below the folder of a manifest import a module first of all, on whatever machine."""
    if os.path.basename(file) not in ("pyproject.toml", "setup.py"):
        return False
    importing = re.compile(rb"^(?:import|from)[ \t]+" + re.escape(module.encode()) + rb"\b", re.MULTILINE)
    texts = [nearby.read(path) or b"" for path in nearby.modules(os.path.dirname(file))]
    return len(texts) >= _FEW and 2 * sum(importing.search(text) is not None for text in texts) > len(texts)


@nearby.remembered
def is_required_on(file: str, package: str, words: frozenset[str]) -> bool:
    """Whether a manifest of the project requires a package by name where the platform is one of these words."""
    root = nearby.project(file)
    for path in nearby.below(root, ("setup.py", "pyproject.toml")) if root is not None else ():
        if path.endswith(".py"):
            source = nearby.opened(path, "python")
            if source is not None and chooses(source, package, words):
                return True
        elif any(_names(one.text.strip("\"'"), package) for one in _extras(path, words)):
            return True
    return False


def chooses(source: Source, package: str, words: frozenset[str]) -> bool:
    """Whether a script requires a package where it has asked for one of these platforms."""
    strings = source.root.walk("string") if source.language == "python" and source.mentions(package) else ()
    return any(_names(one.constant, package) and _is_for(one, words) for one in strings)


def _extras(manifest: str, words: frozenset[str]) -> Iterator[Node]:
    for key, value in _pairs(manifest).items():
        table, _, extra = key.rpartition(".")
        if table == "project.optional-dependencies" and words.intersection(words_of(extra)):
            yield from value.walk("string")


def _names(requirement: object, package: str) -> bool:
    found = re.match(r"[\w.-]+", requirement) if isinstance(requirement, str) else None
    return found is not None and normalised(found[0]) == package


def _is_for(node: Node, words: frozenset[str]) -> bool:
    """Whether a test around a node names a platform that it is for: `platform == "rocm"`."""
    positive = (one for one in node.guards if one.expected and not _NEGATIVE.search(one.text))
    return any(words.intersection(words_of(one.text)) for one in positive)
