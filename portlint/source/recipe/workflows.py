"""YAML that builds or installs: workflows of GitHub and GitLab, compose files, environments of conda."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from portlint.condition import PLATFORM_WORDS, words_of
from portlint.source.recipe import Entry, RecipeAnalysis, shell, unquoted
from portlint.source.recipe.requirements import requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source.node import Node

_PAIRS = ("block_mapping_pair", "flow_pair")
_SCALARS = ("plain_scalar", "double_quote_scalar", "single_quote_scalar", "block_scalar")
_RELEASING = frozenset("release releases publish wheel wheels deploy package packages nightly dist".split())
"""words of workflows that make what users get; all others run on the project's own machines"""
_NVIDIA = frozenset(("cuda", "nvidia", "cudart", "nvcc"))


class YamlAnalysis(RecipeAnalysis):
    """One YAML file of a kind that `language.by_name` knows."""

    def read(self) -> Iterator[Entry]:
        """Of a workflow that makes what users get, the settings of its builds; else images, devices and packages."""
        folder, name = os.path.split(self.source.file or self.source.path)
        if folder.endswith("workflows") or "gitlab" in name:
            yield from self._workflow()
        elif "compose" in name:
            yield from self._compose()
        else:
            yield from self._environment()

    def _workflow(self) -> Iterator[Entry]:
        if _RELEASING.isdisjoint(re.split(r"[^a-z]+", os.path.basename(self.source.path).lower())):
            return
        for pair in self.source.root.walk(*_PAIRS):
            path = _path(pair)
            value = _scalar(pair)
            if value is None:
                continue
            if path[-2:-1] in (("env",), ("variables",)):
                yield Entry("setting", path[-1], shell.default_of(unquoted(value.text)), value)
            elif path[-1] == "run":
                for one in shell.commands(_script(value), value):
                    if one.kind == "setting":
                        yield one

    def _compose(self) -> Iterator[Entry]:
        services = {path[1] for pair in self.source.root.walk(*_PAIRS) if len(path := _path(pair)) > 1}
        others = {word for name in services for word in words_of(name)} & (PLATFORM_WORDS - _NVIDIA)
        for one in self._services():
            yield msgspec.structs.replace(one, choice=bool(others))

    def _services(self) -> Iterator[Entry]:
        for pair in self.source.root.walk(*_PAIRS):
            path, value = _path(pair), _scalar(pair)
            if value is None or path[0] != "services":
                continue
            text = unquoted(value.text)
            match path[2:]:
                case ("image",):
                    name, _, tag = text.partition(":")
                    yield Entry("image", name, tag, value)
                case ("runtime",) | ("gpus",):
                    yield Entry("device", f"--{path[-1]}", text, value)
                case ("environment", name) | ("build", "args", name):
                    yield Entry("setting", name, text, value)
                case ("deploy", "resources", "reservations", "devices", "driver"):
                    yield Entry("device", "driver", text, value)
        for item in self.source.root.walk("block_sequence_item"):
            value = _only(item)
            if value is not None and _path(item)[-1:] == ("environment",):
                name, is_given, text = unquoted(value.text).partition("=")
                if is_given:
                    yield Entry("setting", name, text, value)

    def _environment(self) -> Iterator[Entry]:
        for item in self.source.root.walk("block_sequence_item"):
            value = _only(item)
            if value is None:
                continue
            text = unquoted(value.text)
            match _path(item):
                case ("dependencies",):
                    yield Entry("conda", *shell.conda(text), value)
                case ("dependencies", "pip") if text.startswith("-"):
                    option, _, address = text.replace("=", " ", 1).partition(" ")
                    if "index" in option or option in ("-i", "-f", "--find-links"):
                        yield Entry("index", option, address.strip(), value)
                case ("dependencies", "pip"):
                    yield from requirement(text, value)


def _path(node: Node) -> tuple[str, ...]:
    """The keys that lead to a pair, its own included; list items have none."""
    pairs = [one for one in (node, *node.ancestors(*_PAIRS)) if one.type in _PAIRS]
    return tuple(unquoted(one.children[0].text) for one in reversed(pairs) if one.children)


def _scalar(pair: Node) -> Node | None:
    """The value of a pair where it is a text."""
    value = pair.get("value")
    return _only(value) if value is not None else None


def _only(node: Node) -> Node | None:
    """The one text that a node holds."""
    while node.type not in _SCALARS:
        if len(node.children) != 1 or node.type in _PAIRS:
            return None
        node = node.children[0]
    return node


def _script(value: Node) -> bytes:
    """A step's commands, at their length: the mark of a block of lines and the quotes are none of them."""
    text = value.text.encode()
    if value.type == "block_scalar":
        head, newline, body = text.partition(b"\n")
        return b" " * len(head) + newline + body
    return b" " + text[1:-1] + b" " if value.type.endswith("quote_scalar") else text
