"""Preprocessor directives: which conditions hold where, and what the file's own macros stand for.

Everything is read from the masked text, never from the syntax tree: a directive may stand in the middle of an
expression or split a pair of braces, and then the tree is wrong.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

import msgspec

from portlint.condition import Expression, Guard, Literal, Name, Op
from portlint.naming import declared
from portlint.regex import regex
from portlint.source.cxx.conditions import (
    FALSE,
    UNREADABLE,
    choice,
    conjunction,
    disjunction,
    fits,
    mentions,
    negation,
    parse_condition,
)

_DIRECTIVE = regex(rb"^[ \t]*#[ \t]*([A-Za-z]+)((?:[^\\\r\n]|\\\r?\n|\\.|\r(?!\n))*)", re.MULTILINE)
_CONTINUATION = regex(rb"\\\r?\n")
_DEFINE = regex(
    rb"(?:\s|\\\r?\n)*([A-Za-z_$][\w$]*)(\((?:[^()\\]|\\\r?\n)*\))?((?:[^\\]|\\.)*)\Z", re.ASCII | re.DOTALL
)
_NAME = regex(r"[A-Za-z_$][\w$]*", re.ASCII)
_MOST_GUARDS = 60
"""a definition nested deeper is not followed"""
_SET = regex(r"(?:defined\s*\(?\s*)?(\w+)\s*\)?")
_CONDITIONALS = frozenset(("if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"))
_INCLUDE_GUARD = regex(r"!\s*defined\s*\(?\s*([A-Za-z_]\w*)\s*\)?", re.ASCII)


class Directive(msgspec.Struct, frozen=True):
    """One directive with its continuation lines."""

    kind: str
    text: str
    """what follows the keyword, as one line without comments"""
    start: int
    """offset of the `#`, white space before it included"""
    argument: int
    """offset after the keyword"""
    end: int
    """offset of the end of its last line"""


class Macro(msgspec.Struct, frozen=True):
    """One `#define`."""

    name: str
    parameters: tuple[str, ...] | None
    """None for an object-like macro"""
    body: str
    start: int
    """offset of the directive"""
    body_start: int
    """the body's offsets, white space around it left out"""
    body_end: int


class _Frame(msgspec.Struct, frozen=True):
    """A guard on top of others; frames share their tails, so that deep nesting costs no more than its length."""

    guard: Guard
    outer: _Frame | None
    depth: int


def _are_alternatives(first: Directive, other: Directive) -> bool:
    """Whether two directives test whether macros are set whose names differ in one word: `USE_CUDA` and `USE_HIP`."""
    names = [_SET.fullmatch(one.text) if one.kind not in ("ifndef", "elifndef") else None for one in (first, other)]
    if names[0] is None or names[1] is None:
        return False
    words, others = names[0][1].split("_"), names[1][1].split("_")
    return len(words) == len(others) and sum(one != two for one, two in zip(words, others, strict=True)) == 1


def _stack(guard: Guard, outer: _Frame | None) -> _Frame:
    return _Frame(guard, outer, outer.depth + 1 if outer else 1)


def _unstack(frame: _Frame | None) -> tuple[Guard, ...]:
    guards = []
    while frame is not None:
        guards.append(frame.guard)
        frame = frame.outer
    return tuple(reversed(guards))


class _Conditional(msgspec.Struct):
    """An `#if` that is still open."""

    outer: _Frame | None
    earlier: _Frame | None
    """the guards that say that no earlier branch was taken"""
    guard: Guard | None
    """the branch being read; None after `#else` and for an include guard"""


class _MacroStates:
    """What is known of each macro at the point that the scan has reached."""

    def __init__(self) -> None:
        self._states: dict[str, tuple[Expression, Expression]] = {}
        self._undone: set[str] = set()

    def defined(self, name: str) -> Expression:
        """Whether the macro is defined, in terms of macros that the file does not define."""
        state = self._state(name)
        return state[0] if state else Op("defined", (Name(name),))

    def value(self, name: str) -> Expression:
        """What the macro comes to, in terms of names that the file does not define."""
        state = self._state(name)
        return state[1] if state else Name(name)

    def _state(self, name: str) -> tuple[Expression, Expression] | None:
        """What the file's definitions say; nothing of what the project has declared."""
        return None if name in self._undone or declared(name) is not None else self._states.get(name)

    def define(self, macro: Macro, guards: tuple[Guard, ...]) -> None:
        """Take note of a definition under its guards."""
        held = conjunction(*(guard.condition if guard.expected else negation(guard.condition) for guard in guards))
        external = fits(held) and mentions(held, macro.name)
        defined, value = self._states.get(
            macro.name, (Op("defined", (Name(macro.name),)), Name(macro.name)) if external else (FALSE, Literal(0))
        )
        body = UNREADABLE if macro.parameters is not None else parse_condition(macro.body, self)
        defined, value = disjunction(held, defined), choice(held, body, value)
        if not fits(defined) or not fits(value):
            self._undone.add(macro.name)
        self._states[macro.name] = (defined, value)

    def undefine(self, name: str) -> None:
        """Give up on a macro: what it means depends on where, or on more than can be followed."""
        self._undone.add(name)


class Preprocessor:
    """The directives of one file, given its code (`lexer.mask`)."""

    def __init__(self, masked: bytes) -> None:
        self._masked = masked
        self._states = _MacroStates()
        self._starts = [0]
        self._frames: list[_Frame | None] = [None]
        self.macros: dict[str, list[Macro]] = {}
        """every `#define` of the file by name, in source order"""
        self.undefined: set[str] = set()
        """the names in some `#undef`"""
        self._scan()

    @cached_property
    def directives(self) -> tuple[Directive, ...]:
        """All directives in source order."""
        return tuple(self._find_directives())

    def guards_at(self, offset: int) -> tuple[Guard, ...]:
        """The conditions under which the code at an offset is live, the outermost first."""
        return _unstack(self._frames[bisect_right(self._starts, offset) - 1])

    def defined(self, name: str) -> Expression:
        """Whether a macro is defined at the end of the file."""
        return self._states.defined(name)

    def value(self, name: str) -> Expression:
        """What a name comes to at the end of the file."""
        return self._states.value(name)

    # ---- reading --------------------------------------------------------------------------------------------------

    def _find_directives(self) -> Iterator[Directive]:
        for match in _DIRECTIVE.finditer(self._masked):
            text = _CONTINUATION.sub(b" ", match[2]).decode(errors="replace").strip()
            yield Directive(match[1].decode(), text, match.start(), match.start(2), match.end())

    def _scan(self) -> None:
        include_guard = self._include_guard()
        others = self._other_back_ends()
        open_conditionals: list[_Conditional] = []
        frame: _Frame | None = None
        line, counted = 1, 0
        for directive in self.directives:
            if directive.kind == "define":
                self._define(directive, frame)
            elif directive.kind == "undef" and (name := _NAME.match(directive.text)):
                self.undefined.add(name[0])
                self._states.undefine(name[0])
            elif directive.kind in _CONDITIONALS:
                line += self._masked.count(b"\n", counted, directive.start)
                counted = directive.start
                if directive.kind.startswith("if"):
                    guard = None if directive is include_guard else self._guard(directive, line)
                    open_conditionals.append(_Conditional(frame, frame, guard))
                    frame = _stack(guard, frame) if guard else frame
                    for other in others.get(directive.start, ()):
                        frame = _stack(msgspec.structs.replace(self._guard(other, line), expected=False), frame)
                elif not open_conditionals:
                    continue
                elif directive.kind == "endif":
                    frame = open_conditionals.pop().outer
                else:
                    frame = self._next_branch(open_conditionals[-1], directive, line)
                self._enter(directive.end, frame)

    def _other_back_ends(self) -> dict[int, list[Directive]]:
        """Start of an `#if` -> its `#elif` branches for other back ends.

        `#if defined(LIB_CUDA)` with `#elif defined(LIB_HIP)` is a choice of one: where the second is set, the first is
        not, whatever its name may say of a target.
        """
        found: dict[int, list[Directive]] = {}
        open_ifs: list[Directive] = []
        for directive in self.directives:
            if directive.kind.startswith("if"):
                open_ifs.append(directive)
            elif directive.kind == "endif":
                del open_ifs[-1:]
            elif directive.kind.startswith("elif") and open_ifs and _are_alternatives(open_ifs[-1], directive):
                found.setdefault(open_ifs[-1].start, []).append(directive)
        return found

    def _next_branch(self, conditional: _Conditional, directive: Directive, line: int) -> _Frame | None:
        """The frame of an `#elif` or `#else` branch."""
        if past := conditional.guard:
            negated = msgspec.structs.replace(past, expected=not past.expected)
            conditional.earlier = _stack(negated, conditional.earlier)
        if directive.kind == "else":
            conditional.guard = None
            return conditional.earlier
        self._enter(directive.start, conditional.earlier)
        conditional.guard = self._guard(directive, line)
        return _stack(conditional.guard, conditional.earlier)

    def _enter(self, offset: int, frame: _Frame | None) -> None:
        self._starts.append(offset)
        self._frames.append(frame)

    def _guard(self, directive: Directive, line: int) -> Guard:
        kind = directive.kind.removeprefix("el")
        if kind == "if":
            condition = parse_condition(directive.text, self._states)
        else:
            name = _NAME.match(directive.text)
            condition = self._states.defined(name[0]) if name else UNREADABLE
            condition = negation(condition) if kind == "ifndef" else condition
        if not fits(condition):
            condition = UNREADABLE
        return Guard(condition, True, " ".join(f"#{directive.kind} {directive.text}".split()), line)

    def _define(self, directive: Directive, frame: _Frame | None) -> None:
        match = _DEFINE.match(self._masked, directive.argument, directive.end)
        if not match:
            return
        parameters = None
        if match[2] is not None:
            inside = _CONTINUATION.sub(b" ", match[2][1:-1]).decode(errors="replace")
            parameters = tuple(one.strip() for one in inside.split(",") if one.strip())
        lines = _CONTINUATION.sub(lambda ends: b" " * len(ends[0]), match[3]).decode("latin-1")
        body = lines.strip(" \t\r\n")
        start = match.start(3) + len(lines) - len(lines.lstrip(" \t\r\n"))
        macro = Macro(match[1].decode(), parameters, body, directive.start, start, start + len(body))
        self.macros.setdefault(macro.name, []).append(macro)
        if frame and frame.depth > _MOST_GUARDS:
            self._states.undefine(macro.name)
        else:
            self._states.define(macro, _unstack(frame))

    def _include_guard(self) -> Directive | None:
        """The `#ifndef` of an include guard around the whole file: it is no condition on anything."""
        significant = [one for one in self.directives if one.kind not in ("pragma", "include", "error", "warning")][:2]
        if len(significant) < 2 or significant[1].kind != "define":
            return None
        first, define = significant
        name = _NAME.match(define.text)
        tested = _NAME.fullmatch(first.text) if first.kind == "ifndef" else None
        if first.kind == "if" and (negated := _INCLUDE_GUARD.fullmatch(first.text)):
            tested = _NAME.fullmatch(negated[1])
        if not name or not tested or name[0] != tested[0] or len(define.text.split()) > 2:
            return None
        return first if self._spans_file(first) else None

    def _spans_file(self, first: Directive) -> bool:
        """Whether there is no code before a conditional, nor after its `#endif`."""
        depth = 0
        end = len(self._masked)
        for directive in self.directives:
            if directive.kind in ("if", "ifdef", "ifndef"):
                depth += 1
            elif directive.kind == "endif":
                depth -= 1
                if depth == 0:
                    end = directive.end
                    break
            elif depth == 1 and directive.kind in _CONDITIONALS:
                return False
        return not self._masked[end:].strip() and not _DIRECTIVE.sub(b"", self._masked[: first.start]).strip()
