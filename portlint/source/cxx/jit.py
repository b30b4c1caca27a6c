"""For which architectures Python code compiles a C++ source at run time, and defines macros for it.

Projects that compile kernels when they are first used keep a function for each module: it names the sources, and the
architectures as flags (`-gencode=arch=compute_100a,...`), as names of flags (`sm100a_nvcc_flags`) or as a list of major
versions (`supported_major_versions=[10, 11]`), itself or in a table or a function of its file that it reads.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from portlint.condition import Guard, Name, Op, names
from portlint.regex import regex
from portlint.source import nearby
from portlint.source.architectures import Built, from_gencode, runs_on_device
from portlint.source.cxx.users import files_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.condition import Expression
    from portlint.source.node import Node

_SOURCE = regex(rb"[\"'/\\]([\w.-]+)\.(?:cu|cuh|cpp|cc|jinja|j2)[\"']")
_ENDINGS = (b".cu", b".cpp", b".cc", b".jinja", b".j2")
_IS_SOURCE = regex(r"[\w./-]+\.(?:cu|cuh|cpp|cc)")
_NAME = regex(rb"[\"']([a-zA-Z]\w{9,})[\"']")
"""a string that may be the name of a source without its extension"""
_MACRO = regex(rb"[\"']-D(\w+)(?:=\w*)?[\"']")
_DEFINED = regex(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_FLAGS = regex(rb"^(\w*(?<![a-zA-Z])sm_?\d{2,3}_\w*flags)[ \t]*(?::[^=\n]*)?=", re.MULTILINE)
_OF_FLAGS = regex(r"(?:^|_)sm_?(\d{2,3})([af])(?=_|$)")
_OF_PLAIN_FLAGS = regex(r"(?:\w*_)?sm_?(\d{2,3})_\w*flags")
_WRITTEN = regex(r"(?<![a-zA-Z])(?:sm|compute)_?(\d{2,3})([af]?)(?![0-9])")
_FLAG = regex(r"(?:sm|compute)_?\d{2,3}[af]?|(?:-|arch=|code=).*")
"""a string that an architecture is asked for with; in any other, `gemm_sm90`, it is part of a name"""
_MAJORS = regex(r"(?:^|_)majors?(?:_versions?)?$")


class _Scripts(msgspec.Struct, frozen=True):
    """The Python files of a project that have to do with its C++ sources."""

    naming: dict[str, list[str]]
    """those that may name a source, by its name without the extension"""
    defining: dict[str, list[str]]
    """those that have a flag `-DNAME`, by that name"""
    flags: dict[str, list[str]]
    """those that give a name like `sm89_nvcc_flags` a value"""


@nearby.remembered
def jit_guards(file: str) -> list[tuple[Guard, ...]]:
    """The conditions of each place that has Python compile a file: the devices that its architectures run on."""
    root = nearby.project(file)
    stem = os.path.splitext(os.path.basename(file))[0]
    scripts = _scripts(root).naming.get(stem, ()) if root is not None else ()
    return [way for script in scripts for way in _named_in(script, file, stem)]


def with_macros(guards: tuple[Guard, ...], file: str) -> tuple[Guard, ...]:
    """Guards of a file, where macros that Python defines for some architectures alone hold nowhere else."""
    return tuple(_with_macros(guard, file) for guard in guards)


def _with_macros(guard: Guard, file: str) -> Guard:
    asked = names(guard.condition)
    root = nearby.project(file) if any(name.isupper() for name in asked) else None
    known = {name: built for name in asked if (built := _macro(root, name))} if root is not None else {}
    return msgspec.structs.replace(guard, condition=_limited(guard.condition, known)) if known else guard


def _limited(expression: Expression, known: dict[str, frozenset[Built]]) -> Expression:
    if not isinstance(expression, Op):
        return expression
    name = expression.operands[0] if expression.operator == "defined" else None
    if isinstance(name, Name):
        built = known.get(name.text)
        return expression if built is None else Op("and", (expression, runs_on_device(built)))
    return Op(expression.operator, tuple(_limited(one, known) for one in expression.operands))


@nearby.remembered
def _macro(root: str, name: str) -> frozenset[Built]:
    """The architectures for which Python defines a macro; nothing where others may define it, or define it for all."""
    ways = [
        built
        for script in _scripts(root).defining.get(name, ())
        for built, text in _strings(script)
        if text.partition("=")[0] == f"-D{name}"
    ]
    if not ways or not all(ways) or name in _macros_of(root):
        return frozenset()
    return frozenset().union(*ways)


@nearby.remembered
def _macros_of(root: str) -> frozenset[str]:
    """The macros that the C++ files of a project define, and every word of its CMake files."""
    found: set[bytes] = set()
    for path in files_of(root):
        found.update(_DEFINED.findall(nearby.read(path) or b""))
    for path in nearby.below(root, ("CMakeLists.txt", ".cmake")):
        found.update(re.findall(rb"(?:-D)?(\w+)", nearby.read(path) or b""))
    return frozenset(map(os.fsdecode, found))


@nearby.remembered
def _scripts(root: str) -> _Scripts:
    found = _Scripts({}, {}, {})
    for path in nearby.below(root, (".py",)):
        inside = path.removeprefix(root)
        if nearby.is_of_tests(inside):
            continue
        text = nearby.read(path) or b""
        for name in set(_MACRO.findall(text)) if b"-D" in text else ():
            found.defining.setdefault(name.decode(), []).append(path)
        for name in set(_FLAGS.findall(text)) if b"flags" in text else ():
            found.flags.setdefault(name.decode(), []).append(path)
        may_name = not inside.endswith("/setup.py") and any(ending in text for ending in _ENDINGS)
        with_extension = set(_SOURCE.findall(text)) if may_name else set()
        for stem in with_extension | (set(_NAME.findall(text)) if with_extension or b".cu" in text else set()):
            found.naming.setdefault(stem.decode(), []).append(path)
    return found


def _named_in(script: str, file: str, stem: str) -> Iterator[tuple[Guard, ...]]:
    """The conditions under which a Python file compiles a source; none for a name that no architecture goes with."""
    for built, text in _strings(script):
        folder, base = os.path.split(text.lstrip("./"))
        if os.path.splitext(base)[0] != stem or (base != stem and folder and not file.endswith(f"/{folder}/{base}")):
            continue
        if built:
            yield (Guard(runs_on_device(built), True, f"the architectures of {os.path.basename(script)}", 0),)
        elif base != stem:
            yield ()


@nearby.remembered
def _strings(script: str) -> tuple[tuple[frozenset[Built], str], ...]:
    """The strings of a Python file that may be a path or a flag, each with the architectures that go with it."""
    source = nearby.opened(script, "python")
    return tuple(_Script(script, source.root).strings()) if source is not None else ()


class _Mention(msgspec.Struct, frozen=True):
    """Architectures that are named somewhere in a function."""

    branches: tuple[_Branch, ...]
    built: frozenset[Built]


class _Branch(msgspec.Struct, frozen=True):
    """One branch of an `if` statement, and how many of its branches there are to go."""

    statement: int
    test: str
    """as it is written; "" for `else`"""
    of: int
    """the branches that do not raise, a missing `else` counted"""


class _Script:
    """One Python file, and the architectures that go with what it names."""

    def __init__(self, path: str, root: Node) -> None:
        self.root = root
        self.project = nearby.project(path)
        self.functions = list(root.walk("function_definition"))
        self.words = {one.start: {word.text for word in one.walk("identifier")} for one in self.functions}
        self.tables = {
            assignment["left"].text: assignment
            for statement in root.children
            if statement.type == "expression_statement"
            for assignment in statement.walk("assignment")
        }
        self.parts = {name: self._in(table) for name, table in self.tables.items()}
        self.module = frozenset[Built]().union(*self.parts.values())
        helpers = {one["name"].text: one for one in self.functions if _is_helper(one)}
        self.parts.update((name, self._in(one)) for name, one in helpers.items() if name not in self.parts)
        self.mentions = {one.start: list(self._mentions(one)) for one in self.functions}

    def strings(self) -> Iterator[tuple[frozenset[Built], str]]:
        """Every string that may be a path or a flag, and the architectures that go with it."""
        by_table = {name: self.parts[name] or self._reading(name, ()) for name in self.tables}
        in_names = frozenset[Built]().union(*(_in_names(table) for table in self.tables.values()))
        for node in self.root.walk("string_content"):
            if re.fullmatch(r"[\w./=-]+", node.text):
                function = next(node.ancestors("function_definition"), None)
                if function is None:
                    tables = (one for one, table in self.tables.items() if table.start <= node.start < table.end)
                    yield next((by_table[name] for name in tables), self.module) or in_names, node.text
                elif self.mentions[function.start]:
                    yield self._beside(function, _branches(node)), node.text
                else:
                    yield _in_names(function), node.text

    def _beside(self, function: Node, branches: tuple[_Branch, ...] = ()) -> frozenset[Built]:
        """The architectures that go with what stands in a branch of a function; nothing where there may be others.

        Those in another branch of the same test do not; where a test has some and the name is outside it, all its
        branches need some.
        """
        here = {one.statement: one for one in branches}
        tests = {one.test for one in branches}
        found: set[Built] = set()
        sure = False
        partly: dict[int, set[_Branch]] = {}
        for mention in self.mentions[function.start]:
            if any(here.get(one.statement, one) != one for one in mention.branches):
                continue
            found |= mention.built
            open_tests = [one for one in mention.branches if one.statement not in here and one.test not in tests]
            sure = sure or not open_tests
            for one in open_tests[:1]:
                partly.setdefault(one.statement, set()).add(one)
        sure = sure or any(len(some) >= next(iter(some)).of for some in partly.values())
        return frozenset(found) if sure else frozenset()

    def _mentions(self, function: Node) -> Iterator[_Mention]:
        """What a function names itself, and in the tables and in the functions without sources that it reads."""
        own = function["name"]
        for node in function.walk("identifier", "string_content", "keyword_argument"):
            read = self.parts.get(node.text) if node.type == "identifier" and node.text != own.text else None
            built = self._asked(node) | (read or frozenset())
            if built:
                yield _Mention(_branches(node), built)

    def _reading(self, name: str, seen: tuple[str, ...]) -> frozenset[Built]:
        """The architectures of the functions that read a table, for private ones of those that call them.

        Nothing where that is not known of one of them.
        """
        found: list[frozenset[Built]] = []
        for one in self.functions:
            own = one["name"].text
            if name in self.words[one.start] and own not in (name, *seen):
                private = own.startswith("_") and not self.mentions[one.start]
                found.append(self._reading(own, (*seen, name)) if private else self._beside(one))
        return frozenset().union(*found) if all(found) else frozenset()

    def _in(self, part: Node) -> frozenset[Built]:
        found = (self._asked(node) for node in part.walk("identifier", "string_content", "keyword_argument"))
        return frozenset[Built]().union(*found)

    def _asked(self, node: Node) -> frozenset[Built]:
        """The architectures that a node asks for; one without a suffix stands for its PTX as well."""
        if node.type == "keyword_argument":
            return frozenset(_majors(node))
        if node.type == "identifier":
            return self._flags(node.text)
        if _FLAG.fullmatch(node.text) is None or _is_prose(node):
            return frozenset()
        return from_gencode(node.text) or _written(node.text)

    def _flags(self, name: str) -> frozenset[Built]:
        """The architectures of a name for flags: those it says, `sm90a_nvcc_flags`, or those it is given somewhere."""
        said = frozenset(Built(int(number), suffix, ptx=False) for number, suffix in _OF_FLAGS.findall(name))
        plain = None if said else _OF_PLAIN_FLAGS.fullmatch(name)
        if plain is None or self.project is None:
            return said
        given = _given(self.project, name)
        return given or frozenset((Built(int(plain[1]), "", ptx=True),))


@nearby.remembered
def _given(root: str, name: str) -> frozenset[Built]:
    """The architectures in the flags that Python files of a project give a name."""
    found: set[Built] = set()
    for script in _scripts(root).flags.get(name, ()):
        source = nearby.opened(script, "python")
        for assignment in source.root.walk("assignment") if source is not None else ():
            if assignment["left"].text == name:
                found.update(*(from_gencode(one.text) for one in assignment.walk("string_content")))
    return frozenset(found)


def _written(text: str) -> frozenset[Built]:
    return frozenset(Built(int(number), suffix, ptx=not suffix) for number, suffix in _WRITTEN.findall(text))


def _in_names(part: Node) -> frozenset[Built]:
    """The architectures in the names of a part, `gemm_sm90`: they count where no flags are."""
    names = (one.text for one in part.walk("string_content") if not _is_prose(one))
    return frozenset[Built]().union(*(_written(name) for name in names if not _FLAG.fullmatch(name)))


def _branches(node: Node) -> tuple[_Branch, ...]:
    """The branches of `if` statements that a node stands in, up to its function."""
    found: list[_Branch] = []
    child = node
    for parent in node.ancestors():
        if parent.type == "function_definition":
            break
        if parent.type == "if_statement" and child.type in ("block", "elif_clause", "else_clause"):
            test = (child if child.type == "elif_clause" else parent).get("condition")
            text = "" if child.type == "else_clause" or test is None else test.text
            clauses = [one for one in parent.children if one.type in ("block", "elif_clause", "else_clause")]
            has_else = any(one.type == "else_clause" for one in clauses)
            of = sum(not _raises(one) for one in clauses) + (not has_else)
            found.append(_Branch(parent.start, text, of))
        child = parent
    return tuple(found)


def _raises(clause: Node) -> bool:
    """Whether a branch ends in an error."""
    body = clause if clause.type == "block" else clause.children[-1]
    return bool(body.children) and body.children[-1].type == "raise_statement"


def _is_helper(function: Node) -> bool:
    """Whether a function names no sources, and so compiles nothing of its own."""
    return not any(_IS_SOURCE.fullmatch(one.text) for one in function.walk("string_content"))


def _majors(argument: Node) -> Iterator[Built]:
    """`supported_major_versions=[10, 11]`: the families of those capabilities."""
    versions = argument["value"].constant
    if _MAJORS.search(argument["name"].text) and isinstance(versions, tuple):
        yield from (Built(one * 10, "f", ptx=False) for one in versions if isinstance(one, int) and 5 <= one < 20)


def _is_prose(content: Node) -> bool:
    """A documentation string says what the code is for, not how it is built."""
    statement = content.parent.parent if content.parent is not None else None
    return statement is not None and statement.type == "expression_statement"
