"""The report for people who go through a tree file by file: a line per finding below the name of its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from portlint.finding import Finding, Report
from portlint.report.escape import printable
from portlint.report.full import LABEL, NARROWEST, VERDICT_STYLES, Line, ending, written
from portlint.report.places import by_place, by_verdict, grouped, targets

if TYPE_CHECKING:
    from portlint.report import Page


def render(report: Report, page: Page) -> str:
    """Write the files with their findings, then the notes and the counts of the full report."""
    return written(_lines(report, max(page.width, NARROWEST)), color=page.color)


def _lines(report: Report, width: int) -> Iterator[Line]:
    for path, findings in grouped(report.findings, lambda finding: finding.path):
        yield [(LABEL, printable(path)), ("", ":")]
        rows = [group for same in by_place(findings) for group in by_verdict(same)]
        places = [_place(group[0]) for group in rows]
        column = max(map(len, places))
        for place, group in zip(places, rows, strict=True):
            yield _row(place.ljust(column), group)
        yield []
    yield from ending(report, width)


def _row(place: str, findings: Sequence[Finding]) -> Line:
    first = findings[0]
    evidence = "".join(f" [{one.outcome} by {one.level}]" for finding in findings for one in finding.evidence)
    said = printable(f" {targets(findings)}: {first.message}{evidence}")
    return [
        ("", f"  {place} "),
        (VERDICT_STYLES[first.verdict], printable(f"{first.verdict}[{first.rule}]")),
        ("", said),
    ]


def _place(finding: Finding) -> str:
    cell = "" if finding.cell is None else f" (cell {finding.cell}, line {finding.cell_line})"
    return f"{finding.line}:{finding.column}{cell}"
