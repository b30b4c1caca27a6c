"""Container files: their base images, their settings, and what their RUN instructions do."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from portlint.condition import PLATFORM_WORDS
from portlint.source.recipe import Entry, RecipeAnalysis, requirements, shell, unquoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source.node import Node


class ContainerAnalysis(RecipeAnalysis):
    """One Dockerfile or Containerfile."""

    def read(self) -> Iterator[Entry]:
        """What each stage is built on, sets and installs; stages for several machines are a choice."""
        for instruction in self.source.root.children:
            for one in self._instruction(instruction):
                yield msgspec.structs.replace(one, choice=self._is_chosen)

    def _instruction(self, instruction: Node) -> Iterator[Entry]:
        match instruction.type:
            case "from_instruction":
                yield from _image(instruction)
            case "env_instruction" | "arg_instruction":
                for pair in (one for one in instruction.children if one.type.endswith("_pair")):
                    if len(pair.children) == 2:
                        name, value = pair.children
                        yield Entry("setting", name.text, shell.default_of(unquoted(value.text)), value)
            case "run_instruction":
                yield from _commands(instruction)

    @cached_property
    def _is_chosen(self) -> bool:
        """Whether the stages are for several machines, one of which whoever builds asks for."""
        stages = [one.text.lower() for one in self.source.root.children if one.type == "from_instruction"]
        named = [frozenset(re.split(r"[^a-z]+", one)) & PLATFORM_WORDS for one in stages]
        others = {word for words in named for word in words} - {"cuda", "nvidia", "cudart", "nvcc"}
        return bool(others)


def _image(instruction: Node) -> Iterator[Entry]:
    for image in (one for one in instruction.children if one.type == "image_spec"):
        name, _, tag = image.text.partition(":")
        yield Entry("image", name, tag, image)


def _commands(instruction: Node) -> Iterator[Entry]:
    for child in instruction.children:
        if child.type == "shell_command":
            yield from shell.commands(_joined(child), child)
        elif child.type == "heredoc_block":
            yield from shell.commands(child.text.encode(), child)
        elif child.type == "json_string_array":
            words = [(unquoted(one.text), one) for one in child.children]
            texts = [text for text, _ in words]
            if "pip" in "".join(texts[:3]) and "install" in texts:
                yield from requirements.words(words[texts.index("install") + 1 :])


def _joined(command: Node) -> bytes:
    """The command as the shell gets it, at its length: comment lines between continued lines are none of it."""
    text = bytearray(command.text.encode())
    for comment in (raw for raw in command.raw.children if raw.type == "comment"):
        start, end = comment.start_byte - command.start, comment.end_byte - command.start
        body = text[start:end]
        blank = b" " * (len(body.rstrip(b"\n")) - 1) + b"\\"
        text[start:end] = blank + body[len(body.rstrip(b"\n")) :]
    return bytes(text)
