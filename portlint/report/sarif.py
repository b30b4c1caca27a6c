"""SARIF 2.1.0 for code scanning: one run per target, worst results first, within the limits of GitHub.

The limits are those of "SARIF support for code scanning" and "SARIF results exceed one or more limits" on
docs.github.com.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import sarif_om as om

from portlint.finding import Cite, Finding, Problem, Report, RuleText, Verdict
from portlint.report.escape import printable, strict_json

if TYPE_CHECKING:
    from portlint.report import Page

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HOME = "https://github.com/portlint/portlint"
_RULE_PAGES = f"{_HOME}/blob/main/docs/rules"

MAX_RESULTS = 25_000
"""results in one run; GitHub refuses a file with more"""
_MAX_DESCRIPTION = 1_024
"""characters of a rule's short and full description"""
_MAX_SNIPPET = 200
"""characters of a line of code: a minified line would fill the file"""

_LEVELS = {
    Verdict.CORRUPTS: "error",
    Verdict.BREAKS: "error",
    Verdict.DEGRADES: "warning",
    Verdict.UNKNOWN: "note",
}
_SEVERITIES = {"error": "error", "warning": "warning", "note": "recommendation"}
"""level -> what GitHub calls it, and filters alerts by"""


def render(report: Report, page: Page) -> str:
    """Write a SARIF log with one run per target of the report."""
    runs = [_run(report, target, page.version) for target in report.targets]
    log = _plain(om.SarifLog(schema_uri=_SCHEMA, version="2.1.0", runs=runs))
    return strict_json({"version": log["version"], **log})  # section 3.13.2 wants the version first


def _run(report: Report, target: str, version: str) -> om.Run:
    findings = [finding for finding in report.findings if finding.target == target]
    findings.sort(key=lambda finding: finding.verdict.rank)
    kept = findings[:MAX_RESULTS]
    by_rule: dict[str, list[Finding]] = {}
    for finding in kept:
        by_rule.setdefault(finding.rule, []).append(finding)
    indices = {rule: index for index, rule in enumerate(sorted(by_rule))}
    driver = om.ToolComponent(
        name="portlint",
        version=version,
        semantic_version=version,
        information_uri=_HOME,
        rules=[_rule(report.rules[rule], by_rule[rule], report.titles[target]) for rule in indices],
    )
    return om.Run(
        tool=om.Tool(driver=driver),
        automation_details=om.RunAutomationDetails(id=f"portlint/{target}/"),
        column_kind="unicodeCodePoints",
        invocations=[_invocation(report.problems, cut=len(findings) - len(kept))],
        results=[_result(finding, indices[finding.rule]) for finding in kept],
    )


def _rule(rule: RuleText, findings: Sequence[Finding], title: str) -> om.ReportingDescriptor:
    """Describe a rule and what it says about one target. The findings are its own, worst first."""
    description = rule.description or rule.summary
    facts = list(dict.fromkeys(_cited(finding.fact.text, finding.fact.cite) for finding in findings))
    remedies = list(dict.fromkeys(finding.remedy for finding in findings if finding.remedy)) or [rule.remedy]
    level = _LEVELS[findings[0].verdict]
    sections = [
        rule.summary,
        rule.description,
        f"## What {title} has",
        "\n".join(f"- {fact}" for fact in facts),
        "## Remedy",
        *remedies,
    ]
    return om.ReportingDescriptor(
        id=rule.name,
        name="".join(word.capitalize() for word in re.findall(r"[A-Za-z0-9]+", rule.name)),
        short_description=om.MultiformatMessageString(text=_cut(rule.summary, _MAX_DESCRIPTION)),
        full_description=om.MultiformatMessageString(text=_cut(description, _MAX_DESCRIPTION)),
        help=om.MultiformatMessageString(
            text=printable("\n\n".join([description, *remedies]), keep="\n"),
            markdown=printable("\n\n".join(filter(None, sections)), keep="\n"),
        ),
        help_uri=f"{_RULE_PAGES}/{quote(rule.name)}.md",
        default_configuration=om.ReportingConfiguration(level=level),
        properties={"problem.severity": _SEVERITIES[level], "tags": [rule.name.partition("/")[0]]},
    )


def _cited(text: str, cite: Cite | None) -> str:
    return f"{text} ({cite.title}, <{cite.url}>)" if cite else text


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _invocation(problems: Iterable[Problem], *, cut: int) -> om.Invocation:
    notices = [_notification(problem) for problem in problems]
    if cut:
        text = f"{cut} results are left out: GitHub takes {MAX_RESULTS:,} a run. These are the worst."
        notices.append(om.Notification(message=om.Message(text=text), level="warning"))
    return om.Invocation(execution_successful=True, tool_execution_notifications=notices)


def _notification(problem: Problem) -> om.Notification:
    region = om.Region(start_line=problem.line) if problem.line else None
    place = om.PhysicalLocation(artifact_location=_artifact(problem.path), region=region)
    return om.Notification(
        message=_message(f"{problem.kind}: {problem.message}"),
        level=_LEVELS_OF_PROBLEMS.get(problem.kind, "warning"),
        locations=[om.Location(physical_location=place)] if problem.path else None,
    )


_LEVELS_OF_PROBLEMS = {"skipped": "note", "directive": "note", "expect": "error"}


def _result(finding: Finding, rule_index: int) -> om.Result:
    properties: dict[str, Any] = {"verdict": finding.verdict}
    if finding.evidence:
        properties["evidence"] = [msgspec.to_builtins(evidence) for evidence in finding.evidence]
    fingerprints = {"portlint/v2": finding.fingerprint}
    if finding.line_hash:
        fingerprints["primaryLocationLineHash"] = finding.line_hash
    return om.Result(
        rule_id=finding.rule,
        rule_index=rule_index,
        level=_LEVELS[finding.verdict],
        message=_message(f"{finding.message} {finding.remedy}".rstrip()),
        locations=[_location(finding)],
        partial_fingerprints=fingerprints,
        properties=properties,
    )


def _location(finding: Finding) -> om.Location:
    lines, columns, message = list(finding.excerpt), {}, None
    if finding.cell is None:
        columns = {"start_column": finding.column, "end_column": finding.end_column}
        if lines:
            lines[-1] = lines[-1][: finding.end_column - 1]
            lines[0] = lines[0][finding.column - 1 :]
    else:
        # Columns count in the code of the cell, and mean nothing in the JSON text of the notebook.
        message = om.Message(text=f"cell {finding.cell}, line {finding.cell_line}")
    snippet = "\n".join(_cut(printable(line, keep="\t"), _MAX_SNIPPET) for line in lines)
    region = om.Region(
        start_line=finding.line,
        end_line=finding.end_line,
        snippet=om.ArtifactContent(text=snippet) if lines else None,
        **columns,
    )
    place = om.PhysicalLocation(artifact_location=_artifact(finding.path), region=region)
    return om.Location(physical_location=place, message=message)


def _artifact(path: str) -> om.ArtifactLocation:
    return om.ArtifactLocation(uri=quote(path, errors=sys.getfilesystemencodeerrors()))


def _message(text: str) -> om.Message:
    # "[text](target)" is a link in a SARIF message (section 3.11.6), and so would be a C++ lambda.
    return om.Message(text=printable(text).replace("](", "] ("))


def _plain(value: Any) -> Any:
    """Turn an object of sarif_om into dictionaries, without what equals its default.

    `level` stays: where it is absent, the level of the rule holds instead of the default (section 3.27.10).
    """
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not hasattr(value, "__attrs_attrs__"):
        return value
    members = ((key, getattr(value, name), default) for name, key, default in _members(value.__class__))
    return {
        key: _plain(member)
        for key, member, default in members
        if member is not None and (key == "level" or member != default)
    }


@cache
def _members(kind: Any) -> tuple[tuple[str, str, Any], ...]:
    """List the attribute, JSON key and default of each member of a class of sarif_om."""
    return tuple(
        (
            member.name,
            member.metadata["schema_property_name"],
            member.default.factory() if hasattr(member.default, "factory") else member.default,
        )
        for member in kind.__attrs_attrs__
    )
