"""The findings as a table: one row for each, and where each file stands. CSV and workbooks are written from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from portlint.readiness import effort

if TYPE_CHECKING:
    from portlint.readiness.assess import Readiness

Row = tuple[str | int | float, ...]

FINDINGS = (
    "target",
    "verdict",
    "rule",
    "path",
    "line",
    "column",
    "effort",
    "message",
    "remedy",
    "fact",
    "source",
    "evidence",
    "fingerprint",
)
FILES = ("target", "path", "lines", "tier", "kernels", "findings", "hours")
TARGETS = ("target", "title", "verdict", "hours", "minutes places", "hours places", "rewrites")


def findings(readiness: Readiness) -> Iterator[Row]:
    """A row of FINDINGS for each finding."""
    for one in readiness.report.findings:
        said = "; ".join(f"{evidence.outcome} by {evidence.level}" for evidence in one.evidence)
        cite = one.fact.cite.url if one.fact.cite else ""
        yield (
            one.target,
            str(one.verdict),
            one.rule,
            one.path,
            one.line,
            one.column,
            str(effort.of_finding(one)),
            one.message,
            one.remedy,
            one.fact.text,
            cite,
            said,
            one.fingerprint,
        )


def files(readiness: Readiness) -> Iterator[Row]:
    """A row of FILES for each file and target."""
    for standing in readiness.standings:
        for file in standing.files:
            work = file.work.total
            yield standing.target, file.path, file.lines, file.tier.label, file.kernels, file.findings, work


def targets(readiness: Readiness) -> Iterator[Row]:
    """A row of TARGETS for each target."""
    for one in readiness.standings:
        work = one.work
        yield one.target, one.title, one.sentence, work.total, work.minutes, work.hours, work.rewrite
