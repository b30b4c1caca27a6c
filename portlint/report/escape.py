"""Text from the linted files, made harmless for a terminal and for strict JSON."""

from __future__ import annotations

import json
import re

import msgspec

from portlint.regex import regex

_UNSAFE = regex(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0 with ESC, DEL, C1: they steer a terminal
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls: they show code in another order
    "\u2028\u2029"  # line and paragraph separators: some readers break lines at them
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"  # no width or no ink
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ud800-\udfff"  # lone surrogates: bytes of a path that are not UTF-8, or halves of a character
    "]"
    r"|(?<=#)#(?=\[)"  # `##[name]` is a command to GitHub's runner and to Azure's, wherever it stands in a log
)
_COMMAND = regex(r"^((?:[^\S\n]|\x1b\[[0-9;]*m)*):(?=:[\w-]+(?: [^\n]*?)?::)", re.MULTILINE)


def printable(text: str, *, keep: str = "") -> str:
    r"""Spell out the control, invisible and bidirectional characters of the text as `\x1b` or `\u{202e}`.

    A byte that was not UTF-8 (PEP 383) is shown as that byte. `keep` lists characters to leave alone, such as "\n".
    """
    return _UNSAFE.sub(lambda match: match[0] if match[0] in keep else _spelled(match[0]), text)


def printable_characters(line: str) -> list[str]:
    """What `printable` makes of each character of a line."""
    shown = list(line)
    for match in _UNSAFE.finditer(line):
        shown[match.start()] = _spelled(match[0])
    return shown


def without_commands(text: str) -> str:
    r"""The text of a report without lines that start as `::name::`, which GitHub's runner would obey: `\x3a:name::`."""
    return _COMMAND.sub(r"\1\\x3a", text)


def _spelled(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"


def strict_json(value: object, *, one_line: bool = False) -> str:
    r"""Write a value of plain lists, dictionaries and scalars as indented JSON, or on one line, that any parser takes.

    Characters that are unsafe on a terminal become JSON escapes, which a parser undoes. A lone surrogate, which strict
    JSON cannot hold, becomes the text that `printable` makes of it. The same value gives the same bytes.
    """
    text = _UNSAFE.sub(_json_spelled, json.dumps(value, ensure_ascii=False))
    return msgspec.json.format(text, indent=0 if one_line else 1) + "\n"


def _json_spelled(match: re.Match[str]) -> str:
    char = match[0]
    if char == "#":
        return "\\u0023"
    lone = "\ud800" <= char <= "\udfff"
    return json.dumps(_spelled(char) if lone else char)[1:-1]
