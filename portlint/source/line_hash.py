"""The hash by which GitHub knows an alert again: of a line and what follows it, as its upload step computes it.

It is `primaryLocationLineHash` of https://github.com/github/codeql-action (src/fingerprints.ts): a polynomial in 37,
modulo 2^64, over the first 100 UTF-16 units from the start of the line on, blanks and tabs left out, every line end
taken as a line feed, and the end of the file as U+FFFF with zeros behind it. Equal hashes in one file are counted.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate

from portlint.regex import regex

_UNITS = 100
_BASE = 37
_MASK = (1 << 64) - 1
_WEIGHT = pow(_BASE, _UNITS, 1 << 64)
_BLANKS = regex("[ \t]+")
_LINE_END = regex("\r\n?")


def line_hashes(data: bytes, lines: Iterable[int]) -> dict[int, str]:
    """The hash of each of these lines of a file, which count from 1. A line that the file does not have is left out."""
    wanted = set(lines)
    text = _BLANKS.sub("", _LINE_END.sub("\n", data.decode("utf-8", "replace")))
    rows = text.split("\n")[: max(wanted, default=0)]
    lengths = (len(f"{row}\n".encode("utf-16-le")) // 2 for row in rows)
    *starts, end = accumulate(lengths, initial=0)
    units = array("H", text.encode("utf-16")[2:])  # in the byte order of this machine, behind a mark of it
    units.extend([0xFFFF, *[0] * _UNITS])
    sums = list(accumulate(units[: end + _UNITS], lambda total, unit: (total * _BASE + unit) & _MASK, initial=0))
    seen: Counter[int] = Counter()
    found = {}
    for number, start in enumerate(starts, start=1):
        value = (sums[start + _UNITS] - sums[start] * _WEIGHT) & _MASK
        seen[value] += 1
        if number in wanted:
            found[number] = f"{value:x}:{seen[value]}"
    return found
