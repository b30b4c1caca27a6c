"""Shell commands: in scripts, in the RUN instructions of container files and in the steps of workflows."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from typing import TYPE_CHECKING

import msgspec

from portlint.condition import PLATFORM_WORDS, Guard, Name
from portlint.regex import regex
from portlint.source import Source
from portlint.source.kept import with_source
from portlint.source.recipe import Entry, RecipeAnalysis, requirements, unquoted
from portlint.source.recipe.processors import NAME, is_one_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source.node import Node

_TESTS = ("if_statement", "case_statement", "list")
_CONDA = ("conda", "mamba", "micromamba")
_PIP = regex(r"pip[\d.]*")
_PROCESSOR = regex(NAME)
_PROCESSOR_BYTES = regex(NAME.encode())
_COMPARED = regex(r"""(==?|!=)\s*["']?""" + NAME + r"""["']?(?=\s|$)""")
_ASKING_WORDS = r"(?<![a-z])(?:" + "|".join(sorted(PLATFORM_WORDS | {"gpu", "device", "smi"})) + r")(?![a-z]|64)"
_ASKING = regex(_ASKING_WORDS)
_ASKING_BYTES = regex(_ASKING_WORDS.encode())
"""words of a test that chooses by the machine; amd64 is none, it names a processor"""


class ShellAnalysis(RecipeAnalysis):
    """One shell script, or the commands of one step."""

    def read(self) -> Iterator[Entry]:
        """The variables that it sets, what it installs, and the devices that its containers get."""
        for node in self.source.root.walk("variable_assignment", "command"):
            guards = _chosen(node)
            for one in self._assigned(node) if node.type == "variable_assignment" else _run(node):
                yield msgspec.structs.replace(one, guards=(*guards, *one.guards))

    def _assigned(self, node: Node) -> Iterator[Entry]:
        value = node.get("value")
        if value is not None:
            yield Entry("setting", node["name"].text, default_of(unquoted(value.text)), value)


def commands(text: bytes, node: Node) -> Iterator[Entry]:
    """The entries of commands inside a file in another language; `text` is as long as what is written at `node`."""
    outer = node.source
    source = Source(outer.path, text, "bash", outer.file, offset=outer.offset + node.start)
    analysis = source.analysis
    assert isinstance(analysis, ShellAnalysis)
    return analysis.read()


def conda(text: str) -> tuple[str, str]:
    """The package that a specification of conda's names, and what is asked of it: `pytorch::pytorch-cuda=12.1`."""
    found = re.match(r"(?:[\w.-]+::)?([\w.-]+)\s*[=<>!]*(.*)", text)
    return (found[1].lower(), found[2]) if found else ("", "")


def default_of(text: str) -> str:
    """What a value comes to where nobody has set the variable: that of `${NAME:-8.0}` is `8.0`."""
    found = re.fullmatch(r"\$\{\w+:?-(.*)\}", text)
    return found[1] if found else text


def _run(command: Node) -> Iterator[Entry]:
    words = [(unquoted(one.text), one) for one in command.children if one.type != "variable_assignment"]
    program = os.path.basename(words[0][0]) if words else ""
    texts = [text for text, _ in words]
    if "install" in texts and _installs(program, texts[: texts.index("install")]):
        for one in requirements.words(words[texts.index("install") + 1 :]):
            is_first = "uv" in texts and one.name == "--extra-index-url"
            yield msgspec.structs.replace(one, name="--index") if is_first else one  # which uv asks before PyPI
    elif program in _CONDA and "install" in texts:
        yield from (Entry("conda", *conda(text), node) for text, node in words[2:] if not text.startswith("-"))
    elif program in ("docker", "podman") and {"run", "create"} & set(texts[1:3]):
        yield from _devices(words)


def _installs(program: str, before: list[str]) -> bool:
    """Whether `install` is pip's: `pip3 install`, `python -m pip install`, `uv pip install`."""
    if _PIP.fullmatch(program):
        return True
    return program.startswith(("python", "uv", "sudo")) and bool(_PIP.fullmatch(before[-1]))


def _devices(words: list[tuple[str, Node]]) -> Iterator[Entry]:
    for index, (text, node) in enumerate(words):
        name, _, value = text.partition("=")
        if name in ("--gpus", "--runtime"):
            following = words[index + 1][0] if index + 1 < len(words) else ""
            yield Entry("device", name, value or following, node)
            return  # the other option says the same of the same container


@with_source
def _guards_around(source: Source) -> dict[Node, tuple[tuple[Guard, ...], tuple[Guard, ...]]]:
    """What is known of the guards around nodes: of the tests that ask for the machine, and for the processor."""
    return {source.root: ((), ())}


def _chosen(node: Node) -> tuple[Guard, ...]:
    """The tests around a command that ask which machine or processor this is, the nearest first."""
    known = _guards_around(node.source)
    unknown: list[tuple[Node, Node]] = []
    inner = node
    for around in node.ancestors():
        if inner in known:
            break
        unknown.append((around, inner))
        inner = around
    for around, inner in reversed(unknown):
        machines, processors = known.get(around, ((), ()))
        known[inner] = (*_on_nvidia(around, inner), *machines), (*_on_machines(around, inner), *processors)
    machines, processors = known.get(node, ((), ()))
    return machines + processors


def _on_nvidia(around: Node, inner: Node) -> Iterator[Guard]:
    """That the machine is NVIDIA's, where the construct around a node asks which it is."""
    if around.type not in _TESTS or (around.type == "list" and inner.start < around.children[0].end):
        return  # a command is no test of itself
    if around.type == "list" and not _has(around.children[0], _asking_words(around.source)):
        return  # a long list is one in another for each command
    test = _test(around)
    if _ASKING.search(test.lower()):
        yield Guard(Name("is_nvidia"), True, " ".join(test.split())[:80], around.line)


def _on_machines(around: Node, inner: Node) -> Iterator[Guard]:
    """That the host's processor is one that a test around a node names, or none that an earlier branch is for."""
    if around.type == "if_statement":
        clauses = [one for one in around.children if one.type in ("elif_clause", "else_clause")]
        own = clauses.index(inner) + 1 if inner in clauses else 0
        for index, branch in enumerate([around, *clauses][: own + 1]):
            if branch.type != "else_clause" and inner != branch.children[0]:
                yield from _compared(branch.children[0], index == own)
    elif around.type == "list" and len(around.children) == 2 and inner == around.children[1]:
        between = around.source.text[around.children[0].end : inner.start]
        yield from _compared(around.children[0], b"&&" in between)
    elif around.type == "case_item":
        patterns = [unquoted(one.strip()) for one in around.text.partition(")")[0].lstrip("(").split("|")]
        machines = [_PROCESSOR.fullmatch(one) for one in patterns]
        if all(machines):
            yield is_one_of((one[1] for one in machines if one), True, around.children[0].text, around.line)


@with_source
def _asking_words(source: Source) -> list[int]:
    """Where words stand that ask for the machine."""
    return [found.start() for found in _ASKING_BYTES.finditer(source.text.lower())]


@with_source
def _processors(source: Source) -> list[int]:
    """Where processors are named."""
    return [found.start() for found in _PROCESSOR_BYTES.finditer(source.text)]


def _has(node: Node, places: list[int]) -> bool:
    """Whether one of some places, in order, lies in a node."""
    index = bisect_left(places, node.start)
    return index < len(places) and places[index] < node.end


def _compared(test: Node, expected: bool) -> Iterator[Guard]:
    """What a test says of the processor where it came to this; a test with other parts says less, or nothing."""
    if not _has(test, _processors(test.source)):
        return
    found = _COMPARED.findall(test.text)
    others = set(re.findall(r"&&|\|\||\s-[ao]\s|!\s", test.text))
    if len(found) == 1 and (not others or (expected and others == {"&&"})):
        ((operator, machine),) = found
        yield is_one_of((machine,), expected is not operator.startswith("!"), test.text, test.line)


def _test(around: Node) -> str:
    """What a construct asks: the tests of all its branches, the patterns of a case, what stands before `&&`."""
    if around.type == "list":
        return around.children[0].text
    if around.type == "case_statement":
        items = [one for one in around.children if one.type == "case_item"]
        return " ".join([around.children[0].text, *(item.children[0].text for item in items if item.children)])
    tests = [one.children[0] for one in (around, *around.walk("elif_clause")) if one.children]
    return " ".join(one.text for one in tests)
