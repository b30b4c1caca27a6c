"""pyproject.toml, and the `setup()` call of a setup.py."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from portlint.condition import any_way
from portlint.source.recipe import Entry, RecipeAnalysis, twins, unquoted
from portlint.source.recipe.distributions import is_setup, normalised, static, table_of
from portlint.source.recipe.requirements import marker_guard, requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.condition import Guard
    from portlint.source import Source
    from portlint.source.node import Node


class ManifestAnalysis(RecipeAnalysis):
    """One pyproject.toml."""

    def read(self) -> Iterator[Entry]:
        """What an installation without extras needs, and the indexes that it looks in."""
        indexes: list[Entry] = []
        for pair in self.source.root.walk("pair"):
            table, key, value = table_of(pair), pair.children[0].text, pair.children[-1]
            if (table, key) in (("project", "dependencies"), ("build-system", "requires")):
                for one in value.walk("string"):
                    yield from requirement(unquoted(one.text), one)
            elif table == "tool.poetry.dependencies" and value.type == "string":
                version = unquoted(value.text)
                yield Entry("package", normalised(key), version if version[:1] in "<>=" else f"=={version}", value)
            elif table in ("tool.uv.index", "tool.poetry.source") and key == "url":
                guards = self._asked(pair)
                if guards is not None:
                    indexes.append(Entry("index", "", unquoted(value.text), value, guards))
        # several indexes for one machine each are chosen from by markers, extras or the command line
        choice = len([one for one in indexes if re.search(r"/(?:cu\d|cpu|rocm|xpu)", one.value)]) > 1
        yield from (msgspec.structs.replace(one, choice=choice) for one in indexes)

    def _asked(self, url: Node) -> tuple[Guard, ...] | None:
        """Where an installation without extras looks into an index; None where nobody asks for an explicit one."""
        around = url.parent
        given = _values(around.children[1:]) if around is not None else {}
        if given.get("explicit") != "true":
            return ()
        tables = [_values(one.children) for one in self.source.root.walk("inline_table")]
        markers = [one.get("marker", "") for one in tables if one.get("index") == given.get("name")]
        plain = [one for one in markers if "extra" not in one]
        if not plain or not all(plain):
            return () if plain else None
        return (any_way(((marker_guard(one, url.line),) for one in plain), plain[0], url.line),)


def _values(pairs: list[Node]) -> dict[str, str]:
    """The keys and values of a table."""
    return {one.children[0].text: unquoted(one.children[-1].text) for one in pairs if one.type == "pair"}


def of_setup(source: Source) -> Iterator[Entry]:
    """What an installation by a setup.py needs; nothing where the pyproject.toml beside it has a list of its own."""
    file = source.file or source.path
    if static(os.path.join(os.path.dirname(file), "pyproject.toml"), "project.dependencies") is not None:
        return  # setuptools takes that one, and leaves out what setup() is given
    for call in source.root.walk("call"):
        given = call.argument(None, "install_requires")
        if given is not None and is_setup(call):
            for one in _lists(given):
                yield from _required(one)


def _lists(value: Node) -> Iterator[Node]:
    """The expressions that a list of requirements is put together from."""
    yield value
    names = {one.text for one in value.walk("identifier")}
    for change in value.source.root.walk("assignment", "augmented_assignment", "call"):
        changed = change.get("left") or (change.get("function") or change).get("object")
        given = change.get("right") or change.get("arguments")
        if changed is not None and changed.text in names and given is not None:
            yield given


def _required(value: Node) -> Iterator[Entry]:
    ours = twins.guards(value.source.file or value.source.path)
    for string in value.walk("string"):
        around = string.parent
        text = string.constant
        if isinstance(text, str) and around is not None and around.type in _HOLDING:
            for one in requirement(text, string):
                yield msgspec.structs.replace(one, guards=(*ours, *string.guards, *one.guards))


_HOLDING = frozenset(("list", "tuple", "argument_list", "conditional_expression"))
"""what a requirement stands in; other strings are keys, paths and sides of comparisons"""
