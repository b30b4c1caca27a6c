"""The text of `asm` statements, put together from literals, macros and stringified arguments.

Read from the text, never from the tree: where a macro stands among the literals the grammar loses the statement. What
is not known, such as a parameter of the macro that the statement is in, stands as `_` in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from portlint.condition import PLATFORM_WORDS, Environment, is_live, names, words_of
from portlint.regex import regex
from portlint.source.cxx.constants import unescape
from portlint.source.cxx.lexer import blank
from portlint.source.node import Node

if TYPE_CHECKING:
    from portlint.condition import Guard
    from portlint.source.cxx import CxxAnalysis
    from portlint.source.cxx.preprocessor import Macro

_KEYWORD = regex(
    rb"\b(?:asm|__asm__|__asm)(?:(?:\s|\\\r?\n)+|(?<=\w)(?=\())(?:(?:volatile|__volatile__|__volatile|inline|goto)(?:\s|\\\r?\n)*)*\("
)
_BRACKET = regex(rb"[()\[\]{}]|::?")
_TOKEN = regex(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\((?P<inside>.*?)\)(?P=mark)")'
    r'|(?:u8|[uUL])?"(?P<string>(?:[^"\\]|\\.)*)"|(?P<name>[A-Za-z_$][\w$]*)|(?P<other>##?|\S)',
    re.DOTALL,
)
_DIRECTIVE = regex(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else|endif|pragma)\b[^\n]*", re.MULTILINE)
_CONTINUATION = regex(r"\\\r?\n")
_UNKNOWN = "_"
_DEEPEST = 8
_MOST_READINGS = 4
_MOST_CALLS = 200
_LONGEST = 100_000


class Assembly(msgspec.Struct, frozen=True):
    """One `asm` statement."""

    node: Node
    """its template, or as much of it as the tree has"""
    text: str
    """what the template comes to"""
    guards: tuple[Guard, ...]
    """the conditions under which it is compiled with that text"""


class _Reading:
    """One way to read a template: of a macro with several definitions it takes the same one throughout."""

    def __init__(self, analysis: CxxAnalysis, at: int, number: int) -> None:
        self._analysis = analysis
        self._at = at
        self._number = number
        self.most = 1
        """the number of definitions of the macro that has the most"""
        self.guards: list[Guard] = []

    def text(self, code: str, depth: int = _DEEPEST) -> str:
        """The characters that a sequence of literals, macros and calls of macros stands for."""
        tokens = [one for one in _TOKEN.finditer(_DIRECTIVE.sub("", code)) if one["comment"] is None]
        pieces: list[str] = []
        length = index = 0
        while index < len(tokens) and length <= _LONGEST:
            token = tokens[index]
            index += 1
            known = len(pieces)
            if token["string"] is not None:
                pieces.append(unescape(_CONTINUATION.sub("", token["string"])) or "")
            elif token["raw"] is not None:
                pieces.append(token["inside"])
            elif token["name"] is not None:
                arguments, after = _arguments(tokens, index, token.string)
                macro = self._macro(token["name"], arguments is not None) if depth else None
                if macro is None:
                    pieces.append(_UNKNOWN)
                else:
                    bound = dict(zip(macro.parameters or (), arguments or (), strict=False))
                    pieces.append(self.text(self.body(macro, bound), depth - 1))
                index = after
            length += sum(map(len, pieces[known:]))
        return "".join(pieces)

    def body(self, macro: Macro, bound: Mapping[str, str]) -> str:
        """The body of a macro with its parameters replaced, stringified and pasted."""
        code = self._analysis.source.text[macro.body_start : macro.body_end].decode(errors="replace")
        return _substituted(_CONTINUATION.sub(" ", code), {name: self._value(text) for name, text in bound.items()})

    def _macro(self, name: str, called: bool) -> Macro | None:
        found = [
            one
            for one in self._analysis.definitions.macros(name, self._at)
            if (one.parameters is not None) is called and one.body
        ]
        if not found:
            return None
        self.most = max(self.most, len(found))
        macro = found[min(self._number, len(found) - 1)]
        self.guards += self._analysis.guards_at(macro.start)
        return macro

    def _value(self, argument: str) -> tuple[str, str]:
        """An argument as it is written, and expanded if it is the name of a macro for one token."""
        name = argument.strip()
        macros = self._analysis.definitions.macros(name, self._at) if name.isidentifier() else []
        expanded = macros[-1].body if macros and macros[-1].parameters is None and '"' not in macros[-1].body else name
        return name, expanded


def _arguments(tokens: list[re.Match[str]], index: int, code: str) -> tuple[list[str] | None, int]:
    """The arguments in parentheses from a token on, and the index after them; None where there are none."""
    if index >= len(tokens) or tokens[index]["other"] != "(":
        return None, index
    given: list[str] = []
    depth, start = 0, tokens[index].end()
    for at in range(index, len(tokens)):
        symbol = tokens[at]["other"]
        if symbol in ("(", "[", "{"):
            depth += 1
        elif symbol in (")", "]", "}"):
            depth -= 1
            if not depth:
                return [*given, code[start : tokens[at].start()]], at + 1
        elif symbol == "," and depth == 1:
            given.append(code[start : tokens[at].start()])
            start = tokens[at].end()
    return None, index


def _substituted(code: str, bound: Mapping[str, tuple[str, str]]) -> str:
    pieces: list[str] = []
    done = 0
    stringify = paste = False
    for token in _TOKEN.finditer(code):
        if token["other"] in ("#", "##"):
            pieces.append(code[done : token.start()])
            done = token.end()
            stringify, paste = token["other"] == "#", token["other"] == "##"
            if paste:
                pieces[-1] = pieces[-1].rstrip()
            continue
        if token["name"] in bound:
            written, expanded = bound[token["name"]]
            quoted = '"' + written.replace("\\", "\\\\").replace('"', '\\"') + '"'
            pieces += ["" if paste else code[done : token.start()], quoted if stringify else expanded]
            done = token.end()
        elif stringify and token["name"]:
            pieces.append(f'"{_UNKNOWN}"')
            done = token.end()
        elif paste:
            done = token.start()
        stringify = paste = False
    return "".join([*pieces, code[done:]])


def _without_options(analysis: CxxAnalysis, start: int, end: int, outer: tuple[Guard, ...]) -> bytes:
    """A template without the lines that only an option of the project's, off unless it is given, lets in."""
    text = analysis.source.text[start:end]
    if b"#" not in text:
        return text
    lines: list[bytes] = []
    at = start
    for line in text.splitlines(keepends=True):
        inner = [guard for guard in analysis.guards_at(at) if guard not in outer]
        asked = frozenset[str]().union(*(names(guard.condition) for guard in inner))
        off = bool(asked) and all(_is_option(name) for name in asked) and is_live(inner, _NOTHING_GIVEN) is False
        lines.append(blank(line) if off else line)
        at += len(line)
    return b"".join(lines)


def _is_option(name: str) -> bool:
    """Whether a macro is the project's own, and says nothing about a platform."""
    return not name.startswith("__") and not PLATFORM_WORDS & set(words_of(name)) and "ARCH" not in name


_NOTHING_GIVEN = Environment({}, guess=lambda _: 0)


def statements(analysis: CxxAnalysis) -> list[Assembly]:
    """The `asm` statements of a file, in order; one in a macro for each call if only the calls say what it is."""
    found: list[Assembly] = []
    for start, end, at in _templates(analysis.masked):
        code = _without_options(analysis, start, end, analysis.guards_at(at)).decode(errors="replace")
        macro = _around(analysis, start)
        if macro is not None:
            code = _substituted(_CONTINUATION.sub(" ", code), {})
        own = list(_read(analysis, start, end, code, analysis.guards_at(at)))
        if (
            macro is not None
            and macro.parameters
            and all(one.text.lstrip("{ \n\t").startswith(_UNKNOWN) for one in own)
        ):
            own = list(_at_calls(analysis, macro, start, end))
        found += own
    return found


def _starts_unknown(one: Assembly) -> bool:
    return one.text.lstrip("{ \n\t").startswith(_UNKNOWN)


def _templates(masked: bytes) -> Iterator[tuple[int, int, int]]:
    """(start, end) of the templates of `asm` statements, and where their keywords stand."""
    for keyword in _KEYWORD.finditer(masked):
        depth, start = 0, keyword.end()
        while start < len(masked) and masked[start : start + 1] in b" \t\r\n\\":
            start += 1
        for bracket in _BRACKET.finditer(masked, start):
            if bracket[0] in (b"(", b"[", b"{"):
                depth += 1
            elif bracket[0].startswith(b":"):
                if not depth:
                    break
            else:
                depth -= 1
                if depth < 0:
                    break
        else:
            return
        end = start + len(masked[start : bracket.start()].rstrip(b" \t\r\n\\"))
        if end > start:
            yield start, end, keyword.start()


def _around(analysis: CxxAnalysis, offset: int) -> Macro | None:
    """The macro whose body an offset is in."""
    every = (one for many in analysis.preprocessor.macros.values() for one in many)
    return next((one for one in every if one.body_start <= offset < one.body_end), None)


def _read(
    analysis: CxxAnalysis, start: int, end: int, code: str, guards: tuple[Guard, ...], where: int = -1
) -> Iterator[Assembly]:
    """Each way to read a template; `where` is the place from which macros are seen, if not its own."""
    seen: set[str] = set()
    number, most = 0, 1
    node: Node | None = None
    while number < min(most, _MOST_READINGS):
        # a macro's body sees what is defined before its calls, which is mostly the whole file
        reading = _Reading(analysis, len(analysis.source.text) if where < 0 else where, number)
        text = reading.text(code)
        number, most = number + 1, reading.most
        if text not in seen and text.strip():
            seen.add(text)
            node = node or _node(analysis, start, end)
            yield Assembly(node, text, (*guards, *(one for one in reading.guards if one not in guards)))


def _node(analysis: CxxAnalysis, start: int, end: int) -> Node:
    """The node of a template; of its first token where the tree has none for the whole."""
    root = analysis.roots()[-1 if _around(analysis, start) is not None else 0]
    code = analysis.source.text[start:end].decode("latin-1")
    first = _TOKEN.search(_DIRECTIVE.sub(lambda line: " " * len(line[0]), code))
    raw = root.descendant_for_byte_range(start, end)
    if first is not None and (raw is None or (raw.start_byte, raw.end_byte) != (start, end)):
        raw = root.descendant_for_byte_range(start + first.start(), start + first.end())
    return Node(analysis.source, raw if raw is not None else root)


def _at_calls(analysis: CxxAnalysis, macro: Macro, start: int, end: int) -> Iterator[Assembly]:
    """What a statement in a macro comes to where the macro is called."""
    text = analysis.source.text
    calls = list(re.finditer(rb"\b" + re.escape(macro.name.encode()) + rb"\s*\(", analysis.masked))
    for call in calls[:_MOST_CALLS]:
        tokens = list(_TOKEN.finditer(text[call.start() : call.start() + _LONGEST // 10].decode("latin-1")))
        arguments, _ = _arguments(tokens, 1, tokens[0].string)
        if arguments is None or _around(analysis, call.start()) is not None:
            continue
        reading = _Reading(analysis, call.start(), 0)
        bound = dict(zip(macro.parameters or (), arguments, strict=False))
        code = _substituted(
            _CONTINUATION.sub(" ", text[start:end].decode(errors="replace")),
            {name: (value.strip(), value) for name, value in bound.items()},
        )
        guards = (*analysis.guards_at(call.start()), *analysis.guards_at(macro.start))
        if (came_to := reading.text(code)).strip():
            name = analysis.roots()[0].descendant_for_byte_range(call.start(), call.start() + len(macro.name))
            if name is not None:
                yield Assembly(Node(analysis.source, name), came_to, (*guards, *reading.guards))
