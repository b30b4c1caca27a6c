"""Write the fixtures that show what fixes make: `python tools/make_fixed.py [RULE...]`. Read what it writes."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness import FIXTURES, fixtures, rules, shown_fixes

from portlint.examples import IS_FIXED


def main(names: list[str]) -> None:
    """Write those of the named rules, or of all; what no fix makes any more is removed."""
    for name in names or rules():
        wanted: dict[str, str] = {}
        for fixture in fixtures():
            if fixture.rule == name:
                wanted |= shown_fixes(fixture.path, [rules()[name]])
        folder = FIXTURES / name.replace("-", "_")
        for path in [path for path in folder.iterdir() if IS_FIXED.search(path.name) and path.name not in wanted]:
            path.unlink()
        for file, text in wanted.items():
            (folder / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
