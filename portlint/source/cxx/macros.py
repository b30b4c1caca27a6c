"""The bodies of macros as code.

The grammar leaves what a `#define` defines opaque. Here all bodies of a file are laid out in a text of their own, each
at its offset in the file and everything else blank, so that one more parse gives them a tree in which every node knows
its place in the file. The room that `#define NAME` leaves is enough for what makes a body parse alone.
"""

from __future__ import annotations

import re

import msgspec

from portlint.regex import regex
from portlint.source.cxx.lexer import blank
from portlint.source.cxx.preprocessor import Macro

_TOKENS = regex(r"[A-Za-z_$][\w$]*|[0-9](?:[\w.]|'(?=\w))*|\S", re.ASCII)
_STATEMENT = regex(
    r"\s*(?:asm|break|case|class|const|constexpr|continue|default|do|else|enum|extern|for|goto|if|inline|namespace|return"
    r"|static|struct|switch|template|throw|try|typedef|using|void|while|__\w+__)\b|\[\[|.*[;{}]",
    re.ASCII | re.DOTALL,
)
_PASTE = regex(rb"(?<=\w)##(?=\w)")
_HASH = regex(rb"#+")
_CONTINUATION = regex(rb"\\(?=\r?\n)")
_PAIRS = {b"(": b")", b"[": b"]", b"{": b"}"}
_BRACKET = regex(rb"[(){}\[\]]")


class Wrapper(msgspec.Struct, frozen=True):
    """What stands before and after a body so that it parses."""

    head: bytes
    tail: bytes


# A tail and the next head share the room before a body: ten bytes in `#define A x`. `auto` keeps the wrapper from being
# mistaken for a variable of some width.
_EXPRESSION = Wrapper(b"auto v=", b";")
_STATEMENTS = Wrapper(b"int f(){", b";}")


def has_tree(macro: Macro) -> bool:
    """Whether a body has more to it than one token, which speaks for itself."""
    tokens = _TOKENS.findall(macro.body)
    return len(tokens) > 1 or (macro.parameters is not None and len(tokens) == 1)


def is_expression(macro: Macro) -> bool:
    """Whether a body reads as an expression, as far as its first and its last tokens tell."""
    return not _STATEMENT.match(macro.body)


def lay_out(text: bytes, masked: bytes, macros: list[Macro]) -> bytes:
    """The text of the bodies alone, each at its offset and wrapped; longer than `text` if the last body ends it."""
    page = bytearray(blank(text))
    tail, free = b"", 0
    for macro in sorted(macros, key=lambda one: one.start):
        wrapper = _EXPRESSION if is_expression(macro) else _STATEMENTS
        start, end = macro.body_start, macro.body_end
        line_end = page.find(b"\n", macro.start, start)  # a head must not write over the end of a line
        head_end = start if line_end < 0 else line_end - (page[line_end - 1 : line_end] == b"\r")
        head_start = max(head_end - len(wrapper.head), macro.start)
        if not _write(page, tail, free, head_start) and head_start - len(tail) >= macro.start:
            page[head_start - len(tail) : head_start] = tail
        if head_start + len(wrapper.head) <= head_end:
            page[head_start : head_start + len(wrapper.head)] = wrapper.head
        page[start:end] = _readable(text[start:end], masked[start:end])
        tail, free = wrapper.tail, end
    if tail and not _write(page, tail, free, len(page)):
        page += tail
    return bytes(page)


def _write(page: bytearray, tail: bytes, start: int, end: int) -> bool:
    """Put a tail into the first blanks between two offsets, if there is room on one line."""
    room = page.find(b" " * len(tail), start, end) if tail else start
    if room < 0:
        return False
    page[room : room + len(tail)] = tail
    return True


def _readable(body: bytes, masked: bytes) -> bytes:
    """A body without continuations, comments, `#` operators and brackets that have no partner."""
    code = bytearray(body)
    for match in _CONTINUATION.finditer(body):
        code[match.start()] = 0x20
    for match in _PASTE.finditer(masked):
        code[match.start() : match.end()] = b"__"
    for match in _HASH.finditer(masked):
        if not _PASTE.match(masked, match.start()):
            code[match.start() : match.end()] = b" " * len(match[0])
    for offset in _unpaired(masked):
        code[offset] = 0x20
    return bytes(code)


def _unpaired(masked: bytes) -> list[int]:
    open_brackets: list[tuple[bytes, int]] = []
    unpaired = []
    for match in _BRACKET.finditer(masked):
        bracket = match[0]
        if bracket in _PAIRS:
            open_brackets.append((bracket, match.start()))
        elif open_brackets and _PAIRS[open_brackets[-1][0]] == bracket:
            open_brackets.pop()
        else:
            unpaired.append(match.start())
    return unpaired + [offset for _, offset in open_brackets]
