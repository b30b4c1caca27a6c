"""What CMake files mean: commands, their arguments with variables expanded, and the `if()` blocks around them."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from portlint.condition import PLATFORM_WORDS, UNANSWERABLE, Guard, Name, Op, words_of
from portlint.regex import regex
from portlint.source import Analysis, architectures, nearby
from portlint.source.node import Node

if TYPE_CHECKING:
    from portlint.condition import Expression, Value

_VARIABLE = regex(r"\$\{(\w+)\}")
_DEPTH = 8


class CMakeAnalysis(Analysis):
    """The services of one CMake file."""

    @cached_property
    def variables(self) -> dict[str, list[str]]:
        """Every variable that is set once in the file, with its items; one that is set twice is not known."""
        found: dict[str, list[str] | None] = {}
        for command in self.source.root.walk("normal_command"):
            items = [one.text.strip('"') for one in self.arguments(command)]
            if self.name(command) == "set" and items:
                found[items[0]] = None if items[0] in found else items[1:]
        return {name: items for name, items in found.items() if items is not None}

    def expand(self, text: str, depth: int = _DEPTH) -> list[str]:
        """The items of an argument: variables of the file replaced, lists split at semicolons."""
        match = _VARIABLE.fullmatch(text.strip('"'))
        if match and depth:
            items = self.variables.get(match[1])
            return [text] if items is None else [one for item in items for one in self.expand(item, depth - 1)]
        return [item for item in text.strip('"').split(";") if item]

    def constant(self, node: Node) -> Value:
        """The items of an argument as a tuple."""
        return tuple(self.expand(node.text))

    def name(self, node: Node) -> str:
        """The lower-case name of a command."""
        identifier = next((child for child in node.children if child.type == "identifier"), None)
        return identifier.text.lower() if identifier is not None else ""

    def guards(self, node: Node) -> tuple[Guard, ...]:
        """The `if()` blocks around a command, the keyword that it follows, and the tests before it that end the build.

        Tests of one plain variable, and of a variable that names a platform, can be answered.
        """
        guards = [*self._keyword(node), *self._ends_before(node)]
        for block in node.ancestors("if_condition"):
            branch = [one for one in block.children if one.type in _BRANCHES and one.start <= node.start]
            for index, one in enumerate(branch):
                if one.type != "else_command":
                    guards.append(self._guard(one, index == len(branch) - 1))
        return tuple(reversed(guards))

    def _guard(self, test: Node, expected: bool) -> Guard:
        """What an `if()` or `elseif()` says of where its test came to this; brackets in it group, and are not read."""
        text = " ".join(argument.text for argument in self.arguments(test))
        condition = UNANSWERABLE if test.text.count("(") > 1 else self._condition(text, test.start)
        return Guard(condition, expected, text, test.line)

    def _keyword(self, argument: Node) -> list[Guard]:
        """`CUDA_SPECIFIC_SRCS` before a list, or as the keyword that the variable with the list is given to."""
        command = next(argument.ancestors("normal_command"), None) if argument.type == "argument" else None
        if command is None:
            return []
        given = self.arguments(command)
        words = [one.text for one in given if one.start < argument.start]
        if self.name(command) in ("set", "file"):
            variable = next((word for word in words if not word.startswith("GLOB")), "")
            words += self._given_to.get(variable, [])
        specific = next((found for word in reversed(words) if (found := _SPECIFIC.fullmatch(word))), None)
        if specific is None:
            return []
        return [Guard(_is_platform(specific[1].lower()), True, specific[0], argument.line)]

    @cached_property
    def _given_to(self) -> dict[str, list[str]]:
        """Variables with lists, and the keywords that they directly follow."""
        found: dict[str, list[str]] = {}
        for command in self.source.root.walk("normal_command"):
            given = [one.text for one in self.arguments(command)]
            for keyword, variable in pairwise(given):
                if match := _VARIABLE.fullmatch(variable):
                    found.setdefault(match[1], []).append(keyword)
        return found

    def _ends_before(self, node: Node) -> list[Guard]:
        """That the tests did not hold, behind which the build ends with an error before a command is reached."""
        guards: list[Guard] = []
        for around in (node, *node.ancestors("normal_command", "if_condition")):
            body = around.parent
            for block in body.children if body is not None and body.type in ("body", "source_file") else ():
                if block.start >= node.start:
                    break
                if block.type == "if_condition" and self._ends(block):
                    guards.append(self._guard(block.children[0], False))
        return guards

    def _ends(self, block: Node) -> bool:
        """Whether an `if()` without other branches ends the build."""
        bodies = [one for one in block.children if one.type == "body"]
        if len(bodies) != 1 or any(one.type in ("else_command", "elseif_command") for one in block.children):
            return False
        commands = [one for one in bodies[0].children if one.type == "normal_command"]
        return any(
            self.name(one) == "message" and self.arguments(one) and self.arguments(one)[0].text == "FATAL_ERROR"
            for one in commands
        )

    @cached_property
    def _knows_amd(self) -> bool:
        """Whether the build asks for AMD by name somewhere, so that its CUDA means NVIDIA alone."""
        tests = self.source.root.walk("if_command", "elseif_command")
        return any({"hip", "rocm"} & set(words_of(word)) for test in tests for word in test.text.split())

    def _condition(self, text: str, place: int) -> Expression:
        """A test without brackets as CMake reads it where it stands: OR binds least, then AND, then NOT."""
        for word, operator in ((" OR ", "or"), (" AND ", "and")):
            if word in text:
                return Op(operator, tuple(self._condition(part, place) for part in text.split(word)))
        if text.startswith("NOT "):
            return Op("not", (self._condition(text.removeprefix("NOT "), place),))
        if naming := _NAMING.fullmatch(text):
            return _is_platform(naming[1].lower())
        if (built := self._architectures(text, place)) is not None:
            return architectures.runs_on_device(built)
        if " " in text:
            return UNANSWERABLE
        return Name(text.replace("CUDA", "NVIDIA") if self._knows_amd else text)

    def _architectures(self, text: str, place: int) -> frozenset[architectures.Built] | None:
        """The architectures that a test lets in: `ARCHS MATCHES 90a`, `"9.0a" IN_LIST ARCHS`, or a list cut to them."""
        if match := _MATCHES.fullmatch(text):
            return architectures.from_pattern(match[1])
        if match := _IN_LIST.fullmatch(text):
            return architectures.from_torch(match[1]) or architectures.from_pattern(match[1])
        before = [one for one in self._cut_lists.get(text, ()) if one[0].start < place]
        last = [built for command, built in before if _is_in_another_branch(command, before[-1][0])] + [
            built for _, built in before[-1:]
        ]
        return frozenset().union(*filter(None, last)) if last and all(last) else None

    @cached_property
    def _cut_lists(self) -> dict[str, list[tuple[Node, frozenset[architectures.Built] | None]]]:
        """Variables that a function of the project sets to those of a list of architectures that the build is for."""
        found: dict[str, list[tuple[Node, frozenset[architectures.Built] | None]]] = {}
        for command in self.source.root.walk("normal_command"):
            given = [one.text.strip('"') for one in self.arguments(command)]
            if "arch" in self.name(command) and len(given) > 2 and "ARCH" in given[0]:
                found.setdefault(given[0], []).append((command, architectures.from_torch(given[1].strip(";"))))
        return found

    def role(self, node: Node, role: str) -> bool:
        """The one role of CMake nodes: "test", in a build of tests alone."""
        if role == "test":
            return nearby.is_of_tests(self.source.place)
        raise ValueError(f"no such role in CMake: {role} (of {node!r})")

    def imports(self, module: str) -> bool:
        """Whether the file includes, or finds, a package."""
        return any(
            self.name(command) in ("include", "find_package") and self.arguments(command)[0].text == module
            for command in self.source.root.walk("normal_command")
            if self.arguments(command)
        )

    def enclosing_function(self, node: Node) -> Node | None:
        """The function or macro definition around a command."""
        return next(node.ancestors("function_def", "macro_def"), None)

    def arguments(self, node: Node) -> list[Node]:
        """The arguments of a command."""
        lists = (child for child in node.children if child.type == "argument_list")
        return [argument for one in lists for argument in one.children if argument.type == "argument"]

    def argument(self, node: Node, position: int | None, keyword: str) -> Node | None:
        """The argument after a keyword, else the one at a position."""
        given = self.arguments(node)
        for index, one in enumerate(given[:-1]):
            if keyword and one.text == keyword:
                return given[index + 1]
        return given[position] if position is not None and position < len(given) else None


_BRANCHES = frozenset(("if_command", "elseif_command", "else_command"))


_SPECIFIC = regex(r"(CUDA|HIP|ROCM)_(?:SPECIFIC|ONLY)_\w+")
_MATCHES = regex(r'\$?\{?\w*ARCH\w*\}? MATCHES "?([\daf|]+)"?')
_IN_LIST = regex(r'"?([\d.af]+)"? IN_LIST \w*ARCH\w*')
_NAMING = regex(r'\$?\{?\w+\}? STREQUAL "?(\w+)"?')


def _is_in_another_branch(command: Node, other: Node) -> bool:
    """Whether two commands stand in two branches of the same `if()`."""
    one, two = command.parent, other.parent
    return one is not None and two is not None and one != two and one.parent == two.parent and one.type == "body"


def _is_platform(name: str) -> Expression:
    """That the build is for a platform, `cuda` or `VARIANT_CUDA`; CUDA as what a build is for means NVIDIA's."""
    named = PLATFORM_WORDS.intersection(words_of(name))
    if len(named) != 1:
        return UNANSWERABLE
    (word,) = named
    return Name("is_nvidia" if word == "cuda" else f"is_{word}")
