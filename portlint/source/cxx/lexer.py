"""The one lexical pass over a C++ file: what is code, and what is a comment or the inside of a literal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from portlint.regex import regex

_OPENING = regex(rb"//|/\*|\"|'|#[ \t]*(?:error|warning)\b")
_LINE = regex(rb"(?:[^\\\n]|\\\r\n|\\.?)*", re.DOTALL)
_COMMENT = regex(rb".*?(?:\*/|\Z)", re.DOTALL)
_STRING = regex(rb"(?:[^\"\\\n]|\\\r\n|\\.?)*", re.DOTALL)
_CHARACTER = regex(rb"(?:[^'\\\n]|\\.){1,10}(?=')", re.DOTALL)
_RAW_STRING = regex(rb"([^()\\\s\"]{0,16})\(.*?(?:\)\1(?=\")|\Z)", re.DOTALL)
_RAW_PREFIX = regex(rb"(?<![0-9A-Za-z_])(?:u8|[uUL])?R\Z")
_NUMBER = regex(rb"(?<![0-9A-Za-z_'.])[0-9][0-9A-Za-z_.']*\Z")
_NUMBER_REACH = 80
"""how far back the start of a number with digit separators is looked for"""
_PRINTED = regex(rb"[^\r\n]")


def blank(text: bytes) -> bytes:
    """The text with every byte but line ends turned into a space."""
    return _PRINTED.sub(b" ", text)


def mask(text: bytes) -> bytes:
    """The code alone, at the same offsets, in time linear in the length of the text.

    Comments, the insides of string and character literals and the messages of `#error` become spaces; line ends and
    quotes stay.
    """
    pieces: list[bytes] = []
    done = 0
    for start, end in _not_code(text):
        pieces += text[done:start], blank(text[start:end])
        done = end
    pieces.append(text[done:])
    return b"".join(pieces)


def strings(text: bytes) -> Iterator[tuple[int, int]]:
    """Where the insides of string literals stand."""
    for start, end in _not_code(text):
        if text[start - 1 : start] == b'"' and text[start : start + 2] not in (b"//", b"/*"):
            yield start, end


def _not_code(text: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while opening := _OPENING.search(text, at):
        start, at = opening.span()
        match opening[0]:
            case b"//":
                at = _end(_LINE, text, at)
                yield start, at
            case b"/*":
                at = _end(_COMMENT, text, at)
                yield start, at
            case b'"':
                body = _RAW_STRING.match(text, at) if _RAW_PREFIX.search(text, max(0, start - 4), start) else None
                end = body.end() if body else _end(_STRING, text, at)
                yield at, end
                at = end + (text[end : end + 1] == b'"')
            case b"'":
                separator = _NUMBER.search(text, max(0, start - _NUMBER_REACH), start)
                if not separator and (literal := _CHARACTER.match(text, at)):
                    yield at, literal.end()
                    at = literal.end() + 1
            case _:
                end = _end(_LINE, text, at)
                yield at, end
                at = end


def _end(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
