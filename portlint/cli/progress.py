"""A counter on standard error, for commands that read a whole tree."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portlint.run import Progress

PROGRESS_AFTER = 200
"""files; a shorter scan is over before a progress line helps"""


def progress_line() -> Progress | None:
    """A counter on standard error, for long scans that somebody watches."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        if total >= PROGRESS_AFTER:
            end = "\r\x1b[K" if done == total else ""
            sys.stderr.write(f"\rportlint: {done:,} of {total:,} files{end}")
            sys.stderr.flush()

    return show
