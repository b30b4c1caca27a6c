"""Fixtures: real source files whose comments say what a rule must find in them, and where it must be silent.

    expect[lanes/warp-is-32 @ cdna3 cdna4]   found for exactly these of the PANEL's targets
    expect[lanes/warp-is-32]                 found for at least one of them
    gap[lanes/warp-is-32 @ cdna3]            not found yet although it is true; fails once it is found

On a line of its own it speaks of the line below, for formats in which no comment can follow code.
A comment line of carets below asserts the columns of the finding above it. Every line without an annotation must be
silent for every target of the panel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec

from portlint.detect import RuleSet
from portlint.finding import Finding, Verdict
from portlint.mistake import Mistake
from portlint.regex import regex
from portlint.rule import Rule
from portlint.scan import Scan
from portlint.source.discover import Found
from portlint.source.language import by_name
from portlint.source.prescan import Limits
from portlint.target import load

PANEL = (
    "hopper", "blackwell", "blackwell-rtx", "cdna3", "cdna4", "rdna3", "rdna4", "tpu-v6e", "trainium2", "gaudi3", "mps",
    "cpu",
)  # fmt: skip

_ANNOTATION = regex(r"\b(expect|gap)\[([a-z-]+/[a-z0-9-]+)(?:\s*@\s*([a-z0-9 .-]+))?\]")
_ALONE = regex(r"^\s*(?://|#)\s*(?:expect|gap)\[")
_CARETS = regex(r"^\s*(?://|#)\s*(?P<carets>\^+)\s*$")


class FixtureError(Mistake):
    """A fixture that cannot be analysed."""


class Expectation(msgspec.Struct, frozen=True):
    """What an annotation says of its line."""

    verb: str
    line: int
    rule: str
    targets: frozenset[str]
    """empty for "at least one" """
    columns: tuple[int, int] | None = None


class Fixture(msgspec.Struct, frozen=True):
    """One fixture file."""

    path: Path
    expectations: tuple[Expectation, ...]

    @property
    def rule(self) -> str:
        """The rule whose folder it is in."""
        return f"{self.path.parent.parent.name}/{self.path.parent.name.replace('_', '-')}"

    def expected(self, verb: str = "expect") -> dict[tuple[str, int], Expectation]:
        """(rule, line) -> annotation."""
        return {(one.rule, one.line): one for one in self.expectations if one.verb == verb}


def read(path: Path) -> Fixture:
    """A fixture with its annotations."""
    found: list[Expectation] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, text in enumerate(lines, start=1):
        line = number + 1 if _ALONE.match(text) else number
        for verb, rule, targets in _ANNOTATION.findall(text):
            columns = _carets(lines[line]) if line < len(lines) else None
            found.append(Expectation(verb, line, rule, frozenset(targets.split()), columns))
    return Fixture(path, tuple(found))


def _carets(text: str) -> tuple[int, int] | None:
    match = _CARETS.match(text)
    return (match.start("carets") + 1, match.end("carets") + 1) if match else None


def scan(path: Path, rules: Iterable[Rule], targets: Iterable[str] = PANEL) -> list[Finding]:
    """The findings in a file that count: breaks, corrupts or degrades. Raises FixtureError where it has a problem."""
    size = path.stat().st_size
    found = Found(path=path.name, file=str(path), size=size, kind=by_name(path.name) or "")
    one = Scan(RuleSet(rules), tuple(load(name) for name in targets), Limits())
    result = one(found, frozenset(), lambda _: None)
    unread = [problem.message for problem in result.problems if problem.kind != "directive"]
    if unread:
        raise FixtureError(f"{path}: {unread[0]}")
    return [finding for finding in result.findings if finding.verdict is not Verdict.UNKNOWN]


def compare(fixture: Fixture, findings: Iterable[Finding]) -> list[str]:
    """What the findings and the annotations of a fixture disagree about, in words."""
    by_place: dict[tuple[str, int], list[Finding]] = defaultdict(list)
    for finding in findings:
        by_place[finding.rule, finding.line].append(finding)
    expected, gaps = fixture.expected(), fixture.expected("gap")
    wrong = []
    for key, annotation in expected.items():
        targets = {finding.target for finding in by_place.get(key, ())}
        if not targets or (annotation.targets and targets != annotation.targets):
            wanted = " ".join(sorted(annotation.targets)) or "some target"
            wrong.append(
                f"line {key[1]}: {key[0]} wanted for {wanted}, found for {' '.join(sorted(targets)) or 'none'}"
            )
        for finding in by_place.get(key, ()):
            if annotation.columns and (finding.column, finding.end_column) != annotation.columns:
                wrong.append(
                    f"line {key[1]}: columns {finding.column}-{finding.end_column}, wanted {annotation.columns}"
                )
    for key, annotation in gaps.items():
        if {finding.target for finding in by_place.get(key, ())} & (annotation.targets or set(PANEL)):
            wrong.append(f"line {key[1]}: the gap {key[0]} is closed: turn it into expect[...]")
    for (rule, line), extra in by_place.items():
        if (rule, line) not in expected and (rule, line) not in gaps:
            wrong.append(f"line {line}: unexpected {rule} for {' '.join(sorted({one.target for one in extra}))}")
    return wrong
