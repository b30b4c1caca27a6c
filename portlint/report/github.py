"""Workflow commands that GitHub Actions shows as annotations, the worst first and as many as it shows.

What a command is, and how its parts are escaped, is told by `ActionCommand` of https://github.com/actions/runner; the
limits by https://github.com/actions/toolkit/blob/main/docs/problem-matchers.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from portlint.finding import Finding, Problem, Report, Verdict
from portlint.report.escape import printable
from portlint.report.places import by_place, by_verdict, counted, listed, remedies, targets

if TYPE_CHECKING:
    from portlint.report import Page

MOST = 10
"""annotations of one level that GitHub shows for one step"""
_LEVELS = {
    Verdict.CORRUPTS: "error",
    Verdict.BREAKS: "error",
    Verdict.DEGRADES: "warning",
    Verdict.UNKNOWN: "notice",
}


class _Annotation(msgspec.Struct, frozen=True):
    level: str
    properties: dict[str, object]
    lines: list[str]


def render(report: Report, _page: Page) -> str:
    """Write an annotation for each place and rule, then for each problem, and a notice that counts those left out."""
    findings = [by_verdict(same) for same in by_place(report.findings)]
    findings.sort(key=lambda groups: groups[0][0].verdict.rank)
    every = [*map(_finding, findings), *map(_problem, report.problems)]
    by_level = {level: [one for one in every if one.level == level] for level in ("error", "warning", "notice")}
    most = dict.fromkeys(by_level, MOST)
    if any(len(annotations) > MOST for annotations in by_level.values()):
        most["notice"] -= 1  # one is needed to say so
    kept = [one for level, annotations in by_level.items() for one in annotations[: most[level]]]
    left_out = {level: len(annotations[most[level] :]) for level, annotations in by_level.items()}
    return "".join(f"{_command(one)}\n" for one in [*kept, *_remark(left_out)])


def _finding(groups: Sequence[Sequence[Finding]]) -> _Annotation:
    """What one rule says about one place; a group for each verdict, the worst first."""
    findings = [finding for group in groups for finding in group]
    first = findings[0]
    properties: dict[str, object] = {
        "title": f"{first.rule} ({targets(findings)})",
        "file": first.path,
        "line": first.line,
        "endLine": first.end_line,
    }
    # GitHub takes columns only within one line, and those of a notebook count in the code of its cell.
    if first.line == first.end_line and first.cell is None:
        properties |= {"col": first.column, "endColumn": first.end_column}
    lines = [f"{first.verdict}: {first.message}"]
    if len(groups) > 1:
        lines = [f"{group[0].verdict} ({targets(group)}): {group[0].message}" for group in groups]
    ways = remedies(findings)
    lines += [f"Remedy{'' if len(ways) == 1 else f' for {targets(members)}'}: {way}" for way, members in ways]
    return _Annotation(_LEVELS[first.verdict], properties, lines)


def _problem(problem: Problem) -> _Annotation:
    level = "notice" if problem.kind in ("skipped", "directive") else "warning"
    place = {"line": problem.line} if problem.line else {}
    return _Annotation(level, {"title": f"portlint: {problem.kind}", "file": problem.path, **place}, [problem.message])


def _remark(left_out: dict[str, int]) -> Iterator[_Annotation]:
    counts = [counted(number, level) for level, number in left_out.items() if number]
    if counts:
        text = f"{listed(counts)} more: GitHub shows {MOST} annotations of each level in a step. These are the worst."
        yield _Annotation("notice", {"title": "portlint"}, [text])


def _command(annotation: _Annotation) -> str:
    properties = ",".join(f"{name}={_property(value)}" for name, value in annotation.properties.items())
    return f"::{annotation.level} {properties}::{_data(annotation.lines)}"


def _property(value: object) -> str:
    return printable(str(value)).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


def _data(lines: Iterable[str]) -> str:
    return "%0A".join(printable(line).replace("%", "%25") for line in lines)
