"""Draw docs/img/check.svg, the picture in the README: how a real report begins and ends.

Usage: python tools/readme_picture.py
"""

from __future__ import annotations

import os
import re
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from portlint import __version__
from portlint.config import Config
from portlint.report import render
from portlint.run import Request, run
from portlint.target import load

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "img" / "check.svg"
PATH, TARGET = "fixtures/demo", "cdna3"
COLUMNS = 100
LINES = 48
"""Frames are shown whole until there are this many lines; then come an ellipsis and the counts."""


def check() -> Text:
    """The coloured report of `portlint check fixtures/demo --target cdna3`."""
    os.chdir(ROOT)  # paths in reports are relative to the working directory
    report = run(Request(paths=(PATH,), targets=(load(TARGET),), config=Config()))
    return Text.from_ansi(render(report, "full", color=True, width=COLUMNS, version=__version__))


def shorten(report: Text) -> Text:
    """The first frames and the counts of a report; all of it if it is short."""
    lines = list(report.split("\n"))
    blanks = [number for number, line in enumerate(lines) if not line.plain.strip()]
    end_of_frames = min((blank for blank in blanks if blank >= LINES), default=None)
    if end_of_frames is None or end_of_frames == blanks[-1]:
        return report
    return Text("\n").join([*lines[:end_of_frames], Text(), Text("⋮", style="dim"), Text(), *lines[blanks[-1] + 1 :]])


def draw(text: Text) -> str:
    """The text as an SVG picture of a terminal."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(text)
    svg = console.export_svg(title=f"portlint check {PATH} --target {TARGET}")
    # Rich fetches its font from a content network; a picture in a repository must not ask anybody for anything.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(shorten(check())), encoding="utf-8")
