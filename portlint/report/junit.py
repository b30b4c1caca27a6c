"""JUnit's XML, which CI servers show as tests: a suite per target, a failed case per finding."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from portlint.finding import Finding, Problem, Report, Verdict
from portlint.report.escape import printable
from portlint.report.places import counted, place_of

if TYPE_CHECKING:
    from portlint.report import Page


def render(report: Report, _page: Page) -> str:
    """Write the suites. A target without findings has one case that passed.

    A verdict that is unknown and what was not analysed are skipped cases: they must be seen, and fail nothing.
    """
    root = ET.Element("testsuites", name="portlint")
    for target in report.targets:
        cases = [_finding(finding) for finding in report.findings if finding.target == target]
        files = report.summary.files - report.summary.unchecked.get(target, 0)
        passed = ET.Element("testcase", name=counted(files, "file"), classname=f"portlint.{target}")
        root.append(_suite(target, cases or [passed]))
    if report.problems:
        root.append(_suite("problems", [_problem(problem) for problem in report.problems]))
    for total in ("tests", "failures", "skipped"):
        root.set(total, str(sum(int(suite.get(total, 0)) for suite in root)))
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(name: str, cases: list[ET.Element]) -> ET.Element:
    suite = ET.Element("testsuite", name=printable(f"portlint.{name}"), tests=str(len(cases)))
    for kind, total in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(total, str(sum(case.find(kind) is not None for case in cases)))
    suite.extend(cases)
    return suite


def _finding(finding: Finding) -> ET.Element:
    place = f"{finding.path}:{finding.line}:{finding.column}"
    case = _case(f"{finding.rule} {place}", f"portlint.{finding.target}", finding.path, finding.line)
    kind = "skipped" if finding.verdict is Verdict.UNKNOWN else "failure"
    fault = ET.SubElement(case, kind, message=printable(finding.message))
    if kind == "failure":
        fault.set("type", finding.verdict)
    source = f" ({finding.fact.cite.title}, {finding.fact.cite.url})" if finding.fact.cite else ""
    cell = "" if finding.cell is None else f" (cell {finding.cell}, line {finding.cell_line})"
    said = [f"{one.outcome} by {one.level}" for one in finding.evidence]
    code = [line.replace("\t", "    ") for line in finding.excerpt]
    lines = [f"{place}{cell}: {finding.message}", *code, f"fact: {finding.fact.text}{source}"]
    lines += [f"remedy: {finding.remedy}"] if finding.remedy else []
    fault.text = "\n".join(printable(line) for line in lines + said)
    return case


def _problem(problem: Problem) -> ET.Element:
    case = _case(f"{problem.kind} {place_of(problem)}", "portlint.problems", problem.path, problem.line)
    ET.SubElement(case, "skipped", message=printable(problem.message))
    return case


def _case(name: str, group: str, path: str, line: int) -> ET.Element:
    case = ET.Element("testcase", name=printable(name), classname=printable(group), file=printable(path))
    if line:
        case.set("line", str(line))
    return case
