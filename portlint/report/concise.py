"""One line per finding, in the shape that editors and `grep` understand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portlint.report.escape import printable
from portlint.report.places import place_of

if TYPE_CHECKING:
    from portlint.finding import Finding, Problem, Report
    from portlint.report import Page


def render(report: Report, _page: Page) -> str:
    """Write `path:line:column: verdict[rule] target: message` for each finding, then the problems.

    What compilers, simulators and devices said of it stands behind in brackets, as in `[confirmed by run]`.
    """
    lines = [_finding_line(finding) for finding in report.findings]
    lines += [_problem_line(problem) for problem in report.problems]
    return "".join(f"{printable(line)}\n" for line in lines)


def _finding_line(finding: Finding) -> str:
    place = f"{finding.path}:{finding.line}:{finding.column}"
    evidence = "".join(f" [{one.outcome} by {one.level}]" for one in finding.evidence)
    return f"{place}: {finding.verdict}[{finding.rule}] {finding.target}: {finding.message}{evidence}"


def _problem_line(problem: Problem) -> str:
    return f"{place_of(problem)}: {problem.kind}: {problem.message}"
