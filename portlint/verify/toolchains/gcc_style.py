"""Reads what compilers print in the style of `file:line:column: error: words`, and that of nvcc, NVRTC and ptxas."""

from __future__ import annotations

import re
from collections.abc import Iterator

from portlint.verify.toolchains import Diagnostic

_STYLES = (
    # clang, gcc
    re.compile(r"^(?P<path>[^:\n]+):(?P<line>\d+):\d+: (?:fatal )?(?P<kind>error|warning): (?P<words>.*)$"),
    # cudafe++, NVRTC
    re.compile(
        r"^(?P<path>[^(\n]+)\((?P<line>\d+)\): (?:catastrophic )?(?P<kind>error|warning)(?: #\S+)?: (?P<words>.*)$"
    ),
    # ptxas: its lines are those of the PTX
    re.compile(r"^ptxas (?P<path>[^,\n]+), line \d+; (?P<kind>error|warning) *: (?P<words>.*)$"),
    re.compile(r"^ptxas (?P<kind>error|warning|fatal) *: (?P<words>.*)$"),
    # no place at all
    re.compile(r"^(?:[\w+.-]+: )?(?:fatal )?(?P<kind>error|warning)(?: [A-Z]\d+)? *: (?P<words>.*)$"),
)


def diagnostics(text: str) -> Iterator[Diagnostic]:
    """Everything that is an error or a warning, in the order in which it was printed."""
    for line in text.splitlines():
        for style in _STYLES:
            if match := style.match(line.strip()):
                found = match.groupdict()
                kind = "warning" if found["kind"] == "warning" else "error"
                yield Diagnostic(found.get("path") or "", int(found.get("line") or 0), kind, found["words"])
                break
