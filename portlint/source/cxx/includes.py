"""What a file learns from the headers of its own tree: macros, and shims for builtins that a platform lacks.

Includes are followed to files next to the including one, and those in quotes below an `include`-like root that the same
tree has; system headers say nothing. A header's macros hold under the conditions around its `#include`.
"""

from __future__ import annotations

import os
import re
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from portlint.condition import Guard, Literal, Name, Op
from portlint.regex import regex
from portlint.source import nearby
from portlint.source.architectures import Built, runs_on_device
from portlint.source.cxx.conditions import fits
from portlint.source.cxx.jit import with_macros
from portlint.source.cxx.lexer import mask, strings
from portlint.source.cxx.preprocessor import Preprocessor
from portlint.source.cxx.users import INCLUDE, INCLUDE_ROOTS, all_users_of, users_of

if TYPE_CHECKING:
    from portlint.condition import Expression

_CONSTANT = regex(rb"\b(?:constexpr|const)\b[^;(){}=]{0,80}?\b(\w+)\s*=")
_TYPE = regex(
    rb"\b(?:struct|class|union|enum(?:\s+class)?)\s+(\w+)\s*(?::[^;{]{0,80})?\{|\busing\s+(\w+)\s*=|\btypedef\b[^;{}()]{1,120}?\b(\w+)\s*;"
    rb"|\bnamespace\s+(?:\w+\s*::\s*)*(\w+)\s*[={]"
    rb"|\}\s*(\w+)\s*[,;]"
)
_FUNCTION = regex(rb"\b(?:inline|static|__device__|__forceinline__)\b[^;(){}=]{0,80}?\b(\w+)\s*\([^;{}]{0,300}\)\s*\{")
_EXTERN = regex(rb"\bextern\b[^;(){}=\"]{0,120}?\b(\w+)\s*;")
_ASKS = regex(rb"-|arch=|(?:sm|compute)_\d+[af]?\Z")
_ASKED = regex(rb"(?<![a-zA-Z])(?:sm|compute)_(\d{2,3})([af]?)(?![0-9a-z])")
"""an architecture in a literal that is a flag for the compiler"""
_OF_THE_BUILD = frozenset(("USE_ROCM", "USE_CUDA", "NDEBUG"))
_DEEPEST = 6
_MOST_HEADERS = 60
"""of one file; a tree with more than that is not read to its end"""
_USERS_UP = 3
"""folders whose files a header may lean on: its own and those above it"""
_MOST_LEANT_ON = 60


class Header(msgspec.Struct, frozen=True):
    """A header that a file includes, directly or through others."""

    path: str
    guards: tuple[Guard, ...]
    """the conditions under which it is included"""
    preprocessor: Preprocessor
    names: frozenset[str]
    """what it gives a meaning: macros, constants, external variables, types and functions"""


class Includes:
    """The headers that one file of a tree includes, and what they say of names that the file does not define."""

    def __init__(self, file: str, text: bytes, preprocessor: Preprocessor) -> None:
        self.headers = headers_of(file, text, preprocessor)
        self.file = file
        self._text = text
        self._preprocessor = preprocessor
        self._resolved: dict[Expression, Expression] = {}

    def defines(self, name: str) -> bool:
        """Whether some header gives a name a meaning, one that files of its folder include before this one counted."""
        return name in self._names

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset().union(*(header.names for header in (*self.headers, *self._beside)))

    def brings(self, folder: str) -> bool:
        """Whether a header of a folder, such as `hip/`, is included without a condition, here or by a header."""
        wanted = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]' + re.escape(folder.encode()), re.MULTILINE)
        own = [(self._text, self._preprocessor)]
        read = (_read(header.path) for header in self.headers if not header.guards)
        texts = own + [(parts[0], parts[1]) for parts in read if parts is not None]
        return any(not one.guards_at(match.start()) for text, one in texts for match in wanted.finditer(text))

    def is_read_elsewhere(self, name: str) -> bool:
        """Whether a file that includes this one, directly or not, mentions a name; True where there is none to ask."""
        users = all_users_of(self.file)
        return not users or any(mentions(user, name) for user in users)

    @cached_property
    def _beside(self) -> list[Header]:
        """What the files that include this header include as well: a header leans on what its users bring."""
        found: list[Header] = []
        for user in _users_near(self.file)[:_MOST_LEANT_ON]:
            parts = _read(user)
            if parts is not None:
                found += [Header(user, (), parts[1], parts[2]), *headers_of_file(user)]
        return found

    def resolve(self, guard: Guard) -> Guard:
        """A guard with the macros of headers replaced by what they are defined as, and under which conditions."""
        if not self.headers:
            return guard
        if guard.condition not in self._resolved:
            self._resolved[guard.condition] = self._expand(guard.condition, _DEEPEST)
        return msgspec.structs.replace(guard, condition=self._resolved[guard.condition])

    def _expand(self, expression: Expression, depth: int) -> Expression:
        if not depth or isinstance(expression, Literal):
            return expression
        if isinstance(expression, Name):
            return self._value(expression, depth)
        if expression.operator == "defined":
            return self._defined(expression, depth)
        return Op(expression.operator, tuple(self._expand(one, depth) for one in expression.operands))

    def _defined(self, test: Op, depth: int) -> Expression:
        name = test.operands[0]
        assert isinstance(name, Name)
        defining = self._defining(name.text)
        if not defining:
            return test
        tests = (Op("and", (*_held(one), one.preprocessor.defined(name.text))) for one in defining)
        return self._expand_within_limits(Op("or", tuple(tests)), test, depth)

    def _value(self, name: Name, depth: int) -> Expression:
        value: Expression = Literal(0)
        for header in reversed(self._defining(name.text)):
            held = Op("and", (*_held(header), header.preprocessor.defined(name.text)))
            value = Op("if", (held, header.preprocessor.value(name.text), value))
        return name if value == Literal(0) else self._expand_within_limits(value, name, depth)

    def _expand_within_limits(self, expression: Expression, otherwise: Expression, depth: int) -> Expression:
        """The expression with its own names resolved; the original where that grows out of hand."""
        expanded = self._expand(expression, depth - 1) if fits(expression) else otherwise
        return expanded if fits(expanded) else otherwise

    def _defining(self, name: str) -> list[Header]:
        """The headers that define a macro.

        What compilers and builds define is theirs, whatever a header says, and so is what a name itself says: CUTLASS
        names its macros for an architecture, and computes them in ways that cannot be followed.
        """
        if name.startswith(("__", "CUTLASS_ARCH_MMA_SM", "CUTE_ARCH_")) or name in _OF_THE_BUILD:
            return []
        return [header for header in self.headers if name in header.preprocessor.macros]


def _held(header: Header) -> tuple[Expression, ...]:
    return tuple(one.condition if one.expected else Op("not", (one.condition,)) for one in header.guards)


def headers_of(path: str, text: bytes, preprocessor: Preprocessor) -> list[Header]:
    """The headers that a file of the tree includes, nearest first."""
    found: dict[str, Header] = {}
    own = _followed(path, text)
    waiting: list[tuple[list[tuple[int, str]], Preprocessor, tuple[Guard, ...], int]] = [(own, preprocessor, (), 0)]
    while waiting and len(found) < _MOST_HEADERS:
        included, directives, outer, depth = waiting.pop(0)
        for start, header in included:
            if header in found or header == path or depth >= _DEEPEST:
                continue
            parts = _read(header)
            if parts is None:
                continue
            _, inner, names = parts
            guards = (*outer, *directives.guards_at(start))
            found[header] = Header(header, guards, inner, names)
            waiting.append((_followed_in(header), inner, guards, depth + 1))
    return list(found.values())


@nearby.remembered
def headers_of_file(path: str) -> list[Header]:
    """The headers of the tree that a file includes, read from the file itself."""
    parts = _read(path)
    return headers_of(path, parts[0], parts[1]) if parts is not None else []


@nearby.remembered
def _followed_in(path: str) -> list[tuple[int, str]]:
    parts = _read(path)
    return _followed(path, parts[0]) if parts is not None else []


def mentions(path: str, name: str) -> bool:
    """Whether a file of the tree has a word at all."""
    parts = _read(path)
    return parts is not None and name.encode() in parts[0]


@nearby.remembered
def include_guards(user: str, header: str) -> tuple[Guard, ...]:
    """The conditions around the `#include` by which a file brings a header in; nothing where it does so twice."""
    parts = _read(user)
    base = os.path.basename(header).encode()
    places = [one.start() for one in INCLUDE.finditer(parts[0]) if one[2].endswith(base)] if parts is not None else []
    if parts is None or len(places) != 1:
        return ()
    return (*with_macros(parts[1].guards_at(places[0]), user), *_guards_of_text(user, places[0]))


def _guards_of_text(user: str, place: int) -> tuple[Guard, ...]:
    """For an `#include` in a text that the file hands to a compiler, the architectures in the flags beside it."""
    text, spans = _literals(user)
    if not any(start <= place < end for start, end in spans):
        return ()
    flags = (text[start:end] for start, end in spans)
    found = (one for flag in flags if _ASKS.match(flag) for one in _ASKED.findall(flag))
    built = frozenset(Built(int(number), suffix.decode(), ptx=not suffix) for number, suffix in found)
    name = f"the architectures that {os.path.basename(user)} compiles it for"
    return (Guard(runs_on_device(built), True, name, 0),) if built else ()


@nearby.remembered
def _literals(path: str) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    """What a file holds, and where its string literals stand in that."""
    text = nearby.read(path) or b""
    return text, tuple(strings(text))


def _followed(path: str, text: bytes) -> list[tuple[int, str]]:
    """The headers of the tree that a text includes itself, each with where it does."""
    named = (
        (match.start(), _resolve(path, os.fsdecode(match[2]), quoted=match[1] == b'"'))
        for match in INCLUDE.finditer(text)
    )
    return [(start, header) for start, header in named if header is not None]


@nearby.remembered
def _read(path: str) -> tuple[bytes, Preprocessor, frozenset[str]] | None:
    text = nearby.read(path)
    if text is None or b"\0" in text:
        return None
    masked = mask(text)
    own = Preprocessor(masked)
    names = constants_of(masked) | externs_of(masked) | types_of(masked) | functions_of(masked)
    return text, own, names | own.macros.keys()


def functions_of(masked: bytes) -> frozenset[str]:
    """The names that code defines as functions of its own."""
    return frozenset(name.decode() for name in _FUNCTION.findall(masked))


def constants_of(masked: bytes) -> frozenset[str]:
    """The names that code declares as constants with a value, wherever they stand."""
    return frozenset(name.decode() for name in _CONSTANT.findall(masked))


def externs_of(masked: bytes) -> frozenset[str]:
    """The variables that code declares as defined in some file of its own: pointers to functions that it loads."""
    return frozenset(name.decode() for name in _EXTERN.findall(masked))


@nearby.remembered
def builds_with_torch(setup: str) -> bool:
    """Whether a setup.py speaks of torch."""
    return b"torch" in (nearby.read(setup) or b"")


def types_of(masked: bytes) -> frozenset[str]:
    """The names that code defines as types or namespaces, aliases of either included."""
    return frozenset(name.decode() for groups in _TYPE.findall(masked) for name in groups if name)


def _users_near(header: str) -> list[str]:
    near = set(nearby.folders(header, _USERS_UP))
    return [user for user in users_of(header) if os.path.dirname(user) in near]


def _resolve(includer: str, name: str, *, quoted: bool) -> str | None:
    """The file that an include means: next to the including file; in quotes, below a root above it as well.

    `<library/part.h>` in a file of that library is looked for like one in quotes.
    """
    if os.path.isabs(name):
        return None
    own = name.partition("/")[0] in os.path.dirname(includer).split(os.sep)
    return nearby.find(includer, name, INCLUDE_ROOTS) if quoted or own else nearby.find(includer, name, levels=1)
