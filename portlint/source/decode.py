"""Bytes of a file -> UTF-8 text, and offsets in that text -> lines and columns.

Line ends stay as they are, so an offset can be brought back to the file's own encoding.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from encodings import normalize_encoding
from encodings.aliases import aliases

import msgspec

from portlint.regex import regex


class NotText(Exception):
    """The bytes are no text that can be read; the message is the reason, for people."""


class Decoded(msgspec.Struct, frozen=True):
    """The text of a file and how the file spells it."""

    text: bytes
    """UTF-8 without a byte order mark"""
    encoding: str
    """the Python codec of the file"""
    bom: bool
    """whether the file starts with a byte order mark"""


_PYTHON_CODECS = frozenset(
    """
    ascii utf_8 latin_1 iso8859_2 iso8859_3 iso8859_4 iso8859_5 iso8859_6 iso8859_7 iso8859_8 iso8859_9 iso8859_13
    iso8859_15 cp437 cp850 cp866 cp932 cp949 cp950 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258
    koi8_r koi8_u mac_roman big5 gb2312 gbk gb18030 shift_jis euc_jp euc_kr
    """.split()
)
"""Codecs that a coding comment may name: stateless, defined for text, and without side effects."""

# PEP 263: in the first line, or in the second if the first is blank or a comment.
_COOKIE = regex(rb"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)")
_COOKIE_IN_FIRST_LINE = regex(rb"[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)")
_CONTROL = bytes({*range(0x20), 0x7F} - {*b"\t\n\v\f\r\x1a\x1b"})
_LINE_END = regex(rb"\r\n|\r|\n")


def decode(data: bytes, kind: str) -> Decoded:
    """Decode a file of the given kind (see `language.by_name`).

    Python, and a script whose name says nothing (""), is read as CPython reads it: UTF-8, or what a coding comment
    says. Everything else is UTF-8, UTF-16 with a byte order mark, or Windows-1252 and Latin-1 where it is not UTF-8.
    Raises NotText with the reason.
    """
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise NotText("the text is UTF-32; save it as UTF-8")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _utf16(data, kind)
    bom = data.startswith(codecs.BOM_UTF8)
    body = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in body:
        raise NotText(_name_nul(body))
    if kind in ("python", ""):
        return _python(body, bom)
    if _is_utf8(body):
        return Decoded(body, "utf_8", bom)
    if body.translate(None, _CONTROL) != body:
        raise NotText("binary: it holds control characters and is not UTF-8")
    encoding = "cp1252" if _decodes(body, "cp1252") else "latin_1"
    return Decoded(body.decode(encoding).encode(), encoding, bom)


def _utf16(data: bytes, kind: str) -> Decoded:
    if kind in ("python", ""):
        raise NotText("the text is UTF-16, which Python does not read; save it as UTF-8")
    encoding = "utf_16_le" if data.startswith(codecs.BOM_UTF16_LE) else "utf_16_be"
    try:
        text = data[2:].decode(encoding)
    except UnicodeDecodeError as error:
        raise NotText(f"the byte order mark says UTF-16, but byte {error.start + 2} does not fit") from None
    if "\0" in text:
        raise NotText("binary: it holds NUL characters")
    return Decoded(text.encode(), encoding, True)


def _name_nul(data: bytes) -> str:
    head = data[:1024]
    half = len(head) // 2
    for name, zeros in (("little", head[1::2]), ("big", head[::2])):
        if half and zeros.count(0) > half * 0.9 and head.count(0) < len(head) * 0.6:
            return f"the text looks like UTF-16 ({name}-endian) without a byte order mark; save it as UTF-8"
    return f"binary: it holds a NUL byte, the first at byte {data.index(0)}"


def _python(body: bytes, bom: bool) -> Decoded:
    cookie = _COOKIE_IN_FIRST_LINE.match(body) or _COOKIE.match(body)
    named = cookie[1].decode("ascii", "replace") if cookie else "utf-8"
    encoding = _codec(named)
    if encoding not in _PYTHON_CODECS:
        raise NotText(f"the coding comment names '{named}', which is not an encoding that portlint reads")
    if bom and encoding != "utf_8":
        raise NotText(f"the file starts with the byte order mark of UTF-8, but its coding comment says '{named}'")
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        line = len(_LINE_END.findall(body, 0, error.start)) + 1
        raise NotText(
            f"not valid {named}: byte 0x{body[error.start]:02x} at byte {error.start + 3 * bom} (line {line})"
        ) from None
    return Decoded(body if encoding == "utf_8" else text.encode(), encoding, bom)


def _codec(name: str) -> str:
    """The module name of a codec; found without `codecs.lookup`, which would import a module of that name."""
    normal = normalize_encoding(name).lower()
    # Emacs writes the line ends into the name of the encoding; CPython takes that for these two.
    for prefix, codec in (("utf_8_", "utf_8"), ("latin_1_", "latin_1"), ("iso_8859_1_", "latin_1")):
        if normal.startswith(prefix):
            return codec
    return aliases.get(normal, normal)


def _is_utf8(data: bytes) -> bool:
    return data.isascii() or _decodes(data, "utf_8")


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def line_starts(text: bytes) -> list[int]:
    r"""The byte offset at which each line of a UTF-8 text starts.

    Lines end with `\n`, `\r\n` or a lone `\r`, as they do for CPython; a form feed or U+2028 ends no line. After a
    final line end there is one more, empty line.
    """
    if b"\r" in text:
        return [0, *(match.end() for match in _LINE_END.finditer(text))]
    return [0, *(match.end() for match in re.finditer(b"\n", text))]


def position(text: bytes, line_starts: list[int], offset: int) -> tuple[int, int]:
    """The line and the column of a byte offset; both count from 1, columns count code points."""
    line = bisect_right(line_starts, offset)
    before = text[line_starts[line - 1] : offset]
    return line, 1 + (len(before) if before.isascii() else len(before.decode("utf-8", "ignore")))
