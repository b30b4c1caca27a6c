"""Draw docs/img/check.svg, the picture in the README: frames of a real report, and its counts.

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
FRAMES = 5
"""how many rules are shown, each by its first frame"""


ELLIPSIS = Text("⋮", style="dim")


def check() -> Text:
    """The coloured report of `portlint check fixtures/demo --target cdna3`."""
    os.chdir(ROOT)  # paths in reports are relative to the working directory
    report = run(Request(paths=(PATH,), targets=(load(TARGET),), config=Config()))
    return Text.from_ansi(render(report, "full", color=True, width=COLUMNS, version=__version__))


def shorten(report: Text) -> Text:
    """The first frame of each of the first rules, an ellipsis for what is left out, and the counts."""
    *frames, counts = report.split("\n\n")
    shown: dict[str, Text] = {}
    parts: list[Text] = []
    for frame in frames:
        rule = frame.plain.partition("]")[0]
        if rule not in shown and len(shown) < FRAMES:
            shown[rule] = frame
            parts.append(frame)
        elif parts[-1] is not ELLIPSIS:
            parts.append(ELLIPSIS)
    return Text("\n\n").join([*parts, counts])


def draw(text: Text) -> str:
    """The text as an SVG picture of a terminal."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(text)
    svg = console.export_svg(title=f"portlint check {PATH} --target {TARGET}", unique_id="portlint")
    # Rich fetches its font from a content network; a picture in a repository must not ask anybody for anything.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(shorten(check())), encoding="utf-8")
