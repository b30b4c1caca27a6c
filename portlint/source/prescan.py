"""What is not parsed at all: texts too large, too deep or too wide to be code that people write.

Parsers take minutes, gigabytes or a segmentation fault on such input, so it is refused before, in linear time. The
bracket and indentation limits of Python are those of CPython itself: no valid program is refused for its depth.
"""

from __future__ import annotations

import re
from itertools import accumulate
from operator import sub

import msgspec

from portlint.regex import regex


class Limits(msgspec.Struct, frozen=True):
    """The limits of one run. Sizes and lengths are in bytes, times in CPU seconds."""

    python_bytes: int = 1_000_000
    """also of every other text that is not CUDA and not a notebook"""
    cuda_bytes: int = 5_000_000
    notebook_bytes: int = 10_000_000
    lines: int = 200_000
    line_bytes: int = 100_000
    average_line_bytes: int = 500
    average_from_bytes: int = 20_000
    """a shorter text may have lines of any average length"""
    python_brackets: int = 200
    cuda_brackets: int = 1_000
    indents: int = 99
    parse_seconds: float = 5
    rule_seconds: float = 5
    """for each rule on each file"""
    file_seconds: float = 30
    seconds_are_for_bytes: int = 1_000_000
    """a longer file gets more of the three times above, in proportion"""
    rule_timeouts: int = 3
    """after so many, the whole file is given up"""
    memory_bytes: int = 2 << 30
    """address space of a worker"""
    stack_bytes: int = 64 << 20
    recursion: int = 20_000
    query_match_limit: int = 4096

    def most_bytes(self, kind: str) -> int:
        """The most bytes that a file of a kind may have."""
        by_kind = {"cuda": self.cuda_bytes, "cxx?": self.cuda_bytes, "notebook": self.notebook_bytes}
        return by_kind.get(kind, self.python_bytes)

    def for_size(self, size: int) -> Limits:
        """The limits for a file of `size` bytes."""
        factor = size / self.seconds_are_for_bytes
        if factor <= 1:
            return self
        return msgspec.structs.replace(
            self,
            parse_seconds=round(self.parse_seconds * factor, 1),
            rule_seconds=round(self.rule_seconds * factor, 1),
            file_seconds=round(self.file_seconds * factor, 1),
        )


def refuse_size(size: int, kind: str, limits: Limits) -> str | None:
    """Why a file of `size` bytes is not read, or None if it is."""
    most = limits.most_bytes(kind)
    return f"it has {size:,} bytes, more than the {most:,} that are analysed" if size > most else None


def refuse(text: bytes, kind: str, limits: Limits) -> str | None:
    """Why a text is not parsed, or None if it is. A notebook's program is judged as "python", not as "notebook"."""
    reason = refuse_size(len(text), kind, limits)
    if reason or kind == "notebook":
        return reason
    reason = _refuse_lines(text, limits)
    if reason is None and kind == "python":
        return _refuse_brackets(text, _PYTHON_QUOTED, limits.python_brackets) or _refuse_indents(text, limits.indents)
    if reason is None and kind == "yaml":
        return _refuse_nesting(text, limits.indents)
    if reason is None and kind == "cuda":
        return _refuse_brackets(text, _CXX_QUOTED, limits.cuda_brackets)
    return reason


def _refuse_lines(text: bytes, limits: Limits) -> str | None:
    ends = text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
    count = ends + bool(text and text[-1] not in b"\r\n")
    if count > limits.lines:
        return f"it has {count:,} lines, more than the {limits.lines:,} that are analysed"
    lines = text.splitlines()
    longest = max(map(len, lines), default=0)
    if longest > limits.line_bytes:
        return f"a line of {longest:,} bytes: it looks generated, and lines up to {limits.line_bytes:,} are analysed"
    if len(text) > limits.average_from_bytes and len(text) > limits.average_line_bytes * len(lines):
        return f"its lines have {len(text) // len(lines):,} bytes on average: it looks minified or generated"
    return None


# Comments and literals, so that brackets in them do not count. Repetitions are possessive or bounded, and what does not
# close is taken to the end of the line or of the text, so that no input makes the search more than linear. Each branch
# starts with a character, not with an assertion: only so can the search skip ahead.
_PYTHON_QUOTED = regex(
    rb"""
      \#[^\r\n]*+
    | '''(?:[^'\\]++|\\(?s:.)|'(?!''))*+(?:'''|\\?\Z)
    | \"""(?:[^"\\]++|\\(?s:.)|"(?!""))*+(?:\"""|\\?\Z)
    | '(?:[^'\\\r\n]++|\\(?:\r\n|(?s:.)))*+'?
    | "(?:[^"\\\r\n]++|\\(?:\r\n|(?s:.)))*+"?
    """,
    re.VERBOSE,
)
_CXX_QUOTED = regex(
    rb"""
      //(?:[^\\\n]++|\\(?:\r\n|(?s:.)))*+
    | /\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)
    | "(?<=R")([^()\\\s"]{0,16})\((?s:.*?)(?:\)\1"|\Z)
    | "(?:[^"\\\r\n]++|\\(?:\r\n|(?s:.)))*+"?
    | '(?<![0-9A-Fa-f]')(?:[^'\\\r\n]|\\[^\r\n]){1,12}+'
    """,
    re.VERBOSE,
)
_OPENING, _CLOSING = b"([{", b")]}"
_NOT_BRACKETS = bytes(set(range(256)) - set(_OPENING + _CLOSING))
_STEPS = bytes.maketrans(_OPENING + _CLOSING, b"\x01" * 3 + b"\xff" * 3)


def _refuse_brackets(text: bytes, quoted: re.Pattern[bytes], limit: int) -> str | None:
    if sum(map(text.count, (b"(", b"[", b"{"))) <= limit:
        return None
    brackets = quoted.sub(b"", text).translate(_STEPS, _NOT_BRACKETS)
    sums = list(accumulate(memoryview(brackets).cast("b"), initial=0))
    if max(sums) - min(sums) <= limit:
        return None
    # A closing bracket too many starts again from 0: the depth is the sum of the steps above its lowest value so far.
    deepest = max(map(sub, sums, accumulate(sums, min)))
    return f"brackets are nested {deepest:,} deep; {limit:,} is the limit" if deepest > limit else None


_BLANKS = b" \t\f"
_MARKS = regex(rb"(?:[-?:][ \t]++)*+")
"""the marks of YAML that begin lists and keys inside one another on one line"""


def _refuse_nesting(text: bytes, limit: int) -> str | None:
    """YAML nested by indentation and by marks on one line: its parser dies of about 250 levels."""
    widths = [0]
    for line in text.splitlines():
        body = line.lstrip(b" ")
        if not body:
            continue
        width = len(line) - len(body)
        while widths[-1] > width:
            widths.pop()
        if widths[-1] < width:
            widths.append(width)
        marks = _MARKS.match(body)
        if len(widths) + len((marks[0] if marks else b"").split()) > limit:
            return f"more than {limit} levels of nesting"
    return None


def _refuse_indents(text: bytes, limit: int) -> str | None:
    # Each level takes a column at least, so without a line that starts with that many blanks there is nothing to count.
    if not re.search(rb"[\r\n][ \t\f]{%d}" % (limit + 1), text):
        return None
    plain = _PYTHON_QUOTED.sub(lambda match: b"" if match[0].startswith(b"#") else b"_", text)
    widths, brackets, continued = [0], 0, False
    for line in plain.splitlines():
        body = line.lstrip(_BLANKS)
        if not body and not continued:
            continue
        if not brackets and not continued:
            indent = line[: len(line) - len(body)].rpartition(b"\f")[2]
            width = len(indent.expandtabs(8))
            while widths[-1] > width:
                widths.pop()
            if widths[-1] < width:
                widths.append(width)
            if len(widths) - 1 > limit:
                return f"more than {limit} levels of indentation"
        steps = memoryview(body.translate(_STEPS, _NOT_BRACKETS)).cast("b")
        brackets = max(0, brackets + sum(steps))
        continued = body.endswith(b"\\")
    return None
