"""The project's own fixtures, read as `portlint.annotated` reads those of anybody."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from portlint.annotated import PANEL, Expectation, Fixture, compare, read, scan
from portlint.rule import Rule
from portlint.rules import discover

__all__ = [
    "FIXTURES",
    "PANEL",
    "ROOT",
    "Expectation",
    "Fixture",
    "compare",
    "fixtures",
    "name",
    "read",
    "rules",
    "scan",
]

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"


def name(fixture: Fixture) -> str:
    """Its path below `fixtures/`."""
    return fixture.path.relative_to(FIXTURES).as_posix()


@cache
def fixtures() -> tuple[Fixture, ...]:
    """Every rule fixture; `fixtures/demo` is a project, not a fixture of a rule."""
    paths = [path for path in sorted(FIXTURES.glob("*/*/*")) if path.is_file() and path.parts[-3] != "demo"]
    return tuple(read(path) for path in paths if FIXTURES / "demo" not in path.parents)


def rules() -> dict[str, Rule]:
    """Every rule, by name."""
    return dict(discover())
