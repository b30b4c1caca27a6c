"""What the files say that decide what gets installed and built: requirements, container files, manifests, workflows.

Each format has a parser of its own; what they say is the same, and comes out as `Entry`s: a package, an index of
packages, a container image, a setting of a build, a device that a container gets.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from portlint.condition import Guard
from portlint.regex import regex
from portlint.source import Analysis
from portlint.source.language import by_name
from portlint.source.node import Node
from portlint.source.recipe import distributions, twins

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.condition import Value

LANGUAGES = frozenset(("requirements", "dockerfile", "toml", "yaml", "bash"))
"""the languages of recipes; a `setup.py` is one as well"""


_CLAUSE = regex(r"(===?|~=|<=?|>=?|!=)\s*v?(\d+)\.(\d+)([\w.*]*)|(<)\s*v?(\d+)(?![\d.])")
_LAST = {("torch", 1): 13, ("triton", 2): 3}
"""the last minor release of a major one"""


_OTHERS = twins.WORDS | {"radeon", "intel", "libtpu"}
"""words in the addresses of indexes of other machines' wheels"""


class Entry(msgspec.Struct, frozen=True):
    """One thing that a recipe asks for."""

    kind: str
    """package | conda | index | image | setting | device"""
    name: str
    """of a package, normalised, with its extras (`jax[cuda12]`); of an image, a variable or an option;
    of an index, the option that names it, "" in a manifest"""
    value: str
    """what is asked of it: `==2.5.1+cu121`, an address, a tag, a variable's value"""
    node: Node
    """where it is written"""
    guards: tuple[Guard, ...] = ()
    choice: bool = False
    """whether it is one of several that whoever builds chooses from"""
    marked: bool = False
    """whether a marker of the environment restricts it to some machines"""

    @property
    def is_in_manifest(self) -> bool:
        """Whether every installation gets it, not only an image, a script or whoever asks for it."""
        source = self.node.source
        return source.language not in ("dockerfile", "bash") and not twins.is_optional(source.file or source.path)

    @property
    def newest(self) -> tuple[int, int] | None:
        """The newest release of a package, major and minor, that its clauses let in; None where they set no bound."""
        bounds = (_bound(self.name, *clause) for clause in _CLAUSE.findall(self.value))
        return min((one for one in bounds if one is not None), default=None)

    @property
    def is_of_another_build(self) -> bool:
        """Of an index: whether it is called by a platform other than NVIDIA's, or belongs to its vendor."""
        return self.kind == "index" and not _OTHERS.isdisjoint(re.split(r"[^a-z]+", self.value.lower()))

    def is_required_on(self, *words: str) -> bool:
        """Whether the project requires it by name where the platform is called one of these words."""
        source, platform = self.node.source, frozenset(words)
        return distributions.chooses(source, self.name, platform) or distributions.is_required_on(
            source.file or source.path, self.name, platform
        )

    def is_subject(self, module: str) -> bool:
        """Whether the recipe is about a package: it asks for nothing else, or most modules of the project import it."""
        source = self.node.source
        packages = [one for one in source.entries if one.kind == "package"]
        alone = source.language == "requirements" and len(packages) == 1
        return alone or distributions.is_built_on(source.file or source.path, module)

    @property
    def language(self) -> str:
        """What it concerns: a container, or what Python programs run on."""
        in_container = self.kind in ("image", "device") or by_name(self.node.source.path) == "dockerfile"
        return "container" if in_container else "python"


class RecipeAnalysis(Analysis):
    """The services of one recipe. What a recipe says is in its entries; its nodes say nothing by themselves."""

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that the recipe asks for, not asked where a file of another name serves the platform."""
        file = self.source.file or self.source.path
        if twins.is_for_itself(file):
            return ()
        ours = twins.guards(file)
        asked = [one for one in self.read() if not _is_own(one, file)]
        return tuple(msgspec.structs.replace(one, guards=(*ours, *one.guards)) for one in asked)

    def read(self) -> Iterator[Entry]:
        """The entries as the file has them."""
        raise NotImplementedError

    def constant(self, node: Node) -> Value:
        """The text without its quotes."""
        return unquoted(node.text)

    def name(self, node: Node) -> str:
        """Recipes have no names."""
        del node
        return ""

    def guards(self, node: Node) -> tuple[Guard, ...]:
        """An entry has its guards, a node none."""
        del node
        return ()

    def role(self, node: Node, role: str) -> bool:
        """Recipes have no roles."""
        raise ValueError(f"no such role in a recipe: {role} (of {node!r})")

    def imports(self, module: str) -> bool:
        """Recipes import nothing."""
        del module
        return False

    def arguments(self, node: Node) -> list[Node]:
        """Recipes have no calls."""
        del node
        return []

    def argument(self, node: Node, position: int | None, keyword: str) -> Node | None:
        """Recipes have no calls."""
        del node, position, keyword
        return None


def _bound(
    package: str, operator: str, major: str, minor: str, rest: str, below: str, whole: str
) -> tuple[int, int] | None:
    """The newest release, major and minor, that a clause lets in."""
    version = (int(major or whole), int(minor or 0))
    if below or (operator == "<" and not rest.strip(".0*")):
        before = version[0] - 1
        return (version[0], version[1] - 1) if version[1] else (before, _LAST.get((package, before), 99))
    if operator == "~=" and not rest:
        return None
    return version if operator in ("==", "===", "~=", "<", "<=") else None


def _is_own(entry: Entry, file: str) -> bool:
    """Whether a recipe asks for what its own project makes: whoever ports the project has it."""
    return entry.kind == "package" and entry.name.partition("[")[0] in distributions.own(file)


def unquoted(text: str) -> str:
    """A text without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
