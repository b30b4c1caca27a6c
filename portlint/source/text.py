"""Lines and columns of a UTF-8 text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from portlint.source.decode import position

WORD_BYTES = frozenset(b"_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ").union(range(0x80, 0x100))
"""what the words of a text are made of; a character beyond ASCII may be part of a name"""


def occurrences(text: bytes, word: bytes) -> Iterator[int]:
    """Where a text has a whole word; `bytes.find` is many times faster here than a regular expression."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not WORD_BYTES.intersection(text[max(at - 1, 0) : at] + text[end : end + 1]):
            yield at
        at = text.find(word, end)


class Lines:
    """Where the lines of a text are. Lines and columns start at 1, columns count code points."""

    def __init__(self, text: bytes, starts: list[int]) -> None:
        self.text = text
        self.starts = starts
        """the byte offset of each line's first byte"""

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def end(self) -> str:
        """How the first line ends, for lines that are put in."""
        if len(self.starts) == 1:
            return "\n"
        return "\r\n" if self.text[: self.starts[1]].endswith(b"\r\n") else chr(self.text[self.starts[1] - 1])

    def position(self, offset: int) -> tuple[int, int]:
        """The line and the column of a byte offset."""
        return position(self.text, self.starts, offset)

    def line(self, number: int) -> str:
        """The text of a line without its end."""
        start = self.starts[number - 1]
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[start:end].decode(errors="replace").rstrip("\r\n")

    def excerpt(self, first: int, last: int, width: int) -> tuple[str, ...]:
        """The lines from `first` to `last`, each cut to `width` code points."""
        return tuple(self.line(number)[:width] for number in range(first, min(last, len(self)) + 1))
