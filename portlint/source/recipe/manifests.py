"""pyproject.toml, and the `setup()` call of a setup.py."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from portlint.source.recipe import Entry, RecipeAnalysis, twins, unquoted
from portlint.source.recipe.requirements import normalised, requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source import Source
    from portlint.source.node import Node


class ManifestAnalysis(RecipeAnalysis):
    """One pyproject.toml."""

    def read(self) -> Iterator[Entry]:
        """What an installation without extras needs, and the indexes that it looks in."""
        indexes: list[Entry] = []
        for pair in self.source.root.walk("pair"):
            table, key, value = _table(pair), pair.children[0].text, pair.children[-1]
            if (table, key) in (("project", "dependencies"), ("build-system", "requires")):
                for one in value.walk("string"):
                    yield from requirement(unquoted(one.text), one)
            elif table == "tool.poetry.dependencies" and value.type == "string":
                version = unquoted(value.text)
                yield Entry("package", normalised(key), version if version[:1] in "<>=" else f"=={version}", value)
            elif table in ("tool.uv.index", "tool.poetry.source") and key == "url" and self._is_used(pair):
                indexes.append(Entry("index", "", unquoted(value.text), value))
        # several indexes for one machine each are chosen from by markers, extras or the command line
        choice = len([one for one in indexes if re.search(r"/(?:cu\d|cpu|rocm|xpu)", one.value)]) > 1
        yield from (msgspec.structs.replace(one, choice=choice) for one in indexes)

    def _is_used(self, url: Node) -> bool:
        """Whether an installation without extras looks into an index; an explicit one is asked for by name."""
        around = url.parent
        given = {one.children[0].text: unquoted(one.children[-1].text) for one in around.children[1:]} if around else {}
        if given.get("explicit") != "true":
            return True
        asking = [one for one in self.source.root.walk("inline_table") if f'"{given.get("name")}"' in one.text]
        return any("extra" not in one.text for one in asking)


def _table(pair: Node) -> str:
    """The table that a pair stands directly in."""
    around = pair.parent
    if around is None or around.type not in ("table", "table_array_element"):
        return ""
    return around.children[0].text.replace(" ", "")


def of_setup(source: Source) -> Iterator[Entry]:
    """What an installation by a setup.py needs."""
    for call in source.root.walk("call"):
        given = call.argument(None, "install_requires")
        if given is not None and call.name in ("setuptools.setup", "setup", "distutils.core.setup"):
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
