"""Jupyter notebooks: the code cells as one Python program, and where each of its lines stands in the file."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import msgspec

from portlint.regex import regex
from portlint.source.decode import NotText, line_starts, position


class Place(msgspec.Struct, frozen=True):
    """Where a line of the program stands. Lines and cells count from 1."""

    line: int
    """the line of the `.ipynb` file"""
    column_shift: int
    """add it to a column of the program for the column in the file; exact up to the first JSON escape in the line"""
    cell: int
    """the cell, counted among all cells"""
    cell_line: int


class Notebook(msgspec.Struct, frozen=True):
    """The code cells of a notebook, one after the other."""

    text: bytes
    """a Python program in UTF-8; IPython's own syntax is blanked to equal length, so columns are those of the cells"""
    places: tuple[Place, ...]
    """one for each line of the text"""
    unread_cells: tuple[int, ...]
    """cells left out: they open a bracket or a quote that would swallow the cells after them"""
    commands: bytes = b""
    """the shell commands of the cells where the text has blanks, at the same places, and all else blank"""
    shown: bytes = b""
    """the cells as they are written, at the same places"""

    file: bytes = b""
    """the JSON, without a byte order mark"""
    anchors: tuple[tuple[int, int], ...] = ()
    """pairs (offset in the text, offset in the JSON) from which both count on alike, up to the next"""

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """Where the bytes [start, end) of the text stand in the JSON; None where that is not in one string."""
        if start == end:
            if start and self.shown[start - 1 : start] not in (b"\n", b"\r"):
                before = self.span(start - 1, start)
                return before and (before[1], before[1])
            place = self._in_file(start)
            return place, place
        first = self._in_file(start)
        at = bisect_left(self.anchors, end, key=lambda anchor: anchor[0])
        ends = [in_file for in_text, in_file in self.anchors[at : at + 1] if in_text == end]
        in_text, in_file = self.anchors[at - 1]
        for last in (*ends, in_file + end - in_text):
            if _is_spelled(self.shown[start:end], self.file[first:last]):
                return first, last
        return None

    def _in_file(self, offset: int) -> int:
        in_text, in_file = self.anchors[bisect_right(self.anchors, offset, key=lambda anchor: anchor[0]) - 1]
        return in_file + offset - in_text

    def place(self, line: int) -> Place:
        """Where a line of the text stands; the end of the text counts to its last line."""
        return self.places[min(line, len(self.places)) - 1]


def read(data: bytes) -> Notebook:
    """Read a notebook of format 3 or 4. Raises NotText if it is broken, or not a notebook in Python."""
    data = data.removeprefix(codecs.BOM_UTF8)
    _check(data)
    file_lines = line_starts(data)
    program: list[bytes] = []
    commands: list[bytes] = []
    shown: list[bytes] = []
    places: list[Place] = []
    unread: list[int] = []
    all_anchors: list[tuple[int, int]] = []
    size = 0
    for number, cell in enumerate(_cells(data), start=1):
        text, anchors = cell.source()
        if cell.type != "code" or not text:
            continue
        if b"\0" in text:
            raise NotText(f"binary: cell {number} holds a NUL character")
        python = blank_magics(text)
        if python is None:
            unread.append(number)
            continue
        shell = shell_commands(text, python)
        if not python.endswith((b"\n", b"\r")):
            python += b"\n"
            shell += b"\n"
            text += b"\n"
        all_anchors += [(size + in_text, in_file) for in_text, in_file in anchors]
        size += len(text)
        program.append(python)
        commands.append(shell)
        shown.append(text)
        for cell_line, start in enumerate(line_starts(python)[:-1], start=1):
            in_text, in_file = anchors[bisect_right(anchors, start, key=lambda anchor: anchor[0]) - 1]
            line, column = position(data, file_lines, in_file + start - in_text)
            places.append(Place(line, column - 1, number, cell_line))
    texts = (b"".join(commands), b"".join(shown))
    return Notebook(b"".join(program), tuple(places), tuple(unread), *texts, data, tuple(all_anchors))


# ---- JSON -----------------------------------------------------------------------------------------------------------


class _Language(msgspec.Struct):
    name: str = ""
    language: str = ""


class _Metadata(msgspec.Struct):
    language_info: _Language | None = None
    kernelspec: _Language | None = None


class _File(msgspec.Struct):
    nbformat: int
    metadata: _Metadata | None = None


_KERNELS = regex(r"(ir|bash|javascript|scala|octave|matlab)$|julia|xcpp|\.net-|rust|spark", re.IGNORECASE)
"""names of kernels of other languages, for files that do not name the language"""


def _check(data: bytes) -> None:
    """Raise NotText unless the data is well-formed JSON and a notebook of a format and a language that we read."""
    try:
        data.decode()
        file = msgspec.json.decode(data, type=_File)
    except msgspec.ValidationError as error:
        raise NotText(f"not a Jupyter notebook: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotText(f"not valid JSON: {error}") from None
    if file.nbformat not in (3, 4):
        raise NotText(f"a notebook of format {file.nbformat}; formats 3 and 4 are read")
    metadata = file.metadata or _Metadata()
    kernel = metadata.kernelspec or _Language()
    language = (metadata.language_info or _Language()).name or kernel.language
    if not language and _KERNELS.match(kernel.name):
        language = kernel.name
    if language and not language.lower().startswith(("python", "ipython")):
        raise NotText(f"a notebook in '{language}', not in Python")


_TOKEN = regex(rb'(?P<string>"(?:[^"\\]++|\\.)*+")(?P<colon>\s*+:)?|(?P<open>[{\[])|(?P<close>[}\]])')
_ESCAPE = regex(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.")
_CELL_LISTS = (["cells", ""], ["worksheets", "", "cells", ""])
"""the keys on the way to a cell, "" for a list; format 3 has worksheets"""


class _Cell:
    """A cell as it stands in the file."""

    def __init__(self) -> None:
        self.type = ""
        self.literals: list[tuple[int, bytes]] = []
        """the string literals of the source without their quotes, each with its offset in the file"""

    def source(self) -> tuple[bytes, list[tuple[int, int]]]:
        """The source, and pairs (offset in it, offset in the file) for the places from which both count on alike."""
        parts: list[bytes] = []
        anchors: list[tuple[int, int]] = []
        size = 0
        for start, raw in self.literals:
            done = 0
            anchors.append((size, start))
            for match in _ESCAPE.finditer(raw):
                plain, done = raw[done : match.start()] + _unescape(match[0]).encode(), match.end()
                parts.append(plain)
                size += len(plain)
                anchors.append((size, start + done))
            parts.append(raw[done:])
            size += len(raw) - done
        return b"".join(parts), anchors


def _is_spelled(text: bytes, raw: bytes) -> bool:
    """Whether a text stands for itself in a string of the JSON."""
    try:
        return _unescape(raw).encode() == text
    except NotText:
        return False


def _unescape(raw: bytes) -> str:
    try:
        return msgspec.json.decode(b'"%b"' % raw, type=str)
    except msgspec.DecodeError as error:
        raise NotText(f"not valid JSON: {error}") from None


def _cells(data: bytes) -> Iterator[_Cell]:
    """The cells of well-formed JSON in order. The parser keeps no positions, so the tokens are read here once more."""
    keys: list[str] = []
    cell: _Cell | None = None
    depth = 0
    for token in _TOKEN.finditer(data):
        if token["open"]:
            if cell is None and keys in _CELL_LISTS and token["open"] == b"{":
                cell, depth = _Cell(), len(keys)
            keys.append("")
        elif token["close"]:
            keys.pop()
            if cell is not None and len(keys) == depth:
                yield cell
                cell = None
        elif token["colon"]:
            keys[-1] = _unescape(token["string"][1:-1])
        elif cell is not None:
            _note(cell, keys[depth:], token)


def _note(cell: _Cell, keys: list[str], token: re.Match[bytes]) -> None:
    raw = token["string"][1:-1]
    if keys == ["cell_type"]:
        cell.type = _unescape(raw)
    elif keys in (["source"], ["source", ""], ["input"], ["input", ""]):
        cell.literals.append((token.start() + 1, raw))


# ---- IPython --------------------------------------------------------------------------------------------------------

_CELL_MAGIC = regex(rb"\s*+%%")
_SHELL_CELL = regex(rb"\s*+%%(?:bash|sh)\b")
_SHELL = regex(rb"!|%(?:pip|conda|mamba)\b")
_PYTHON_CELL = regex(
    rb"\s*+%%(?:(?:time|timeit|capture|prun|python|python3|debug)\b|(?:writefile|file)\b[^\r\n]*\.py[ \t]*+[\r\n])"
)
"""cell magics after which the cell goes on in Python"""
_MAGIC = regex(
    rb"[ \t]*+(?=[%!?])"  # %magic, !command, ?name
    rb"|[^\r\n=#'\"(]*+=[ \t]*+(?=[%!])"  # name = %magic, name = !command
    rb"|[ \t]*+(?=[\w.]++\?)"  # name?
)
_LINE = regex(rb"(?:[^\\\r\n]++|\\(?:\r\n|(?s:.))?)*+(?:\r\n|\r|\n)?")
"""a line with the lines that a backslash joins to it"""
_PIECE = regex(
    rb"""
      (?P<end>\r\n|\r|\n)
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | \#[^\r\n]*+
    | '''(?:[^'\\]++|\\(?s:.)|'(?!''))*+'''
    | \"""(?:[^"\\]++|\\(?s:.)|"(?!""))*+\"""
    | (?P<cut>'''|\"""|\\(?:\r\n|\r|\n)?\Z)
    | '(?:[^'\\\r\n]++|\\(?:\r\n|(?s:.)))*+'?
    | "(?:[^"\\\r\n]++|\\(?:\r\n|(?s:.)))*+"?
    | \\(?:\r\n|\r|\n)
    """,
    re.VERBOSE,
)
"""what decides where a statement ends"""


def blank_magics(text: bytes) -> bytes | None:
    """The text of a cell with IPython's own syntax made harmless: the same length, the same lines.

    A magic becomes `0` and blanks, so that a block that holds nothing else is not empty; a cell in another language
    becomes blank. None for a cell that is cut off in brackets, in a triple-quoted string or after a backslash.
    """
    if _CELL_MAGIC.match(text) and not _PYTHON_CELL.match(text):
        return _blank(text)
    parts: list[bytes] = []
    start = 0
    while start < len(text):
        if magic := _MAGIC.match(text, start):
            line = _LINE.match(text, start)
            end = line.end() if line else len(text)
            parts += text[start : magic.end()], b"0", _blank(text[magic.end() + 1 : end])
        else:
            found = _statement_end(text, start)
            if found is None:
                return None
            end = found
            parts.append(text[start:end])
        start = end
    return b"".join(parts)


def shell_commands(text: bytes, python: bytes) -> bytes:
    """What a cell gives to the shell, all else made blank: `!command`, `%pip`, and the whole of a `%%bash` cell.

    A command inside a block of Python is left out: what the block asks is not known to the shell.
    """
    if _CELL_MAGIC.match(text) and not _PYTHON_CELL.match(text):
        head, newline, body = text.partition(b"\n")
        return _blank(head) + newline + (body if _SHELL_CELL.match(text) else _blank(body))
    parts: list[bytes] = []
    start = 0
    while start < len(text):
        line = _LINE.match(text, start)
        end = line.end() if line else len(text)
        given = text[start:end]
        is_shell = _SHELL.match(given) and python[start : start + 1] == b"0"
        parts.append(b" " + given[1:] if is_shell else _blank(given))
        start = end
    return b"".join(parts)


def _statement_end(text: bytes, start: int) -> int | None:
    """The offset after the line on which a statement ends, None if the text ends before."""
    depth = 0
    for piece in _PIECE.finditer(text, start):
        match piece.lastgroup:
            case "open":
                depth += 1
            case "close":
                depth = max(0, depth - 1)
            case "cut":
                return None
            case "end" if not depth:
                return piece.end()
    return None if depth else len(text)


def _blank(text: bytes) -> bytes:
    return re.sub(rb"[^\r\n]", b" ", text)
