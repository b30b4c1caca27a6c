"""The code quality report of GitLab: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from portlint.finding import Finding, Problem, Report, Verdict
from portlint.report.escape import printable, strict_json

if TYPE_CHECKING:
    from portlint.report import Page

_SEVERITIES = {
    Verdict.CORRUPTS: "critical",
    Verdict.BREAKS: "major",
    Verdict.DEGRADES: "minor",
    Verdict.UNKNOWN: "info",
}


def render(report: Report, _page: Page) -> str:
    """Write an entry per finding, then one per problem.

    The name of the rule is repeated in the description, because GitLab does not show `check_name`. Fingerprints are
    unique, because it drops the second of two entries that share one, and hold no line, so that they outlive an edit.
    """
    entries = [*map(_finding, report.findings), *map(_problem, report.problems)]
    seen: Counter[str] = Counter()
    for entry in entries:
        identity = entry["fingerprint"]
        seen[identity] += 1
        entry["fingerprint"] = hashlib.blake2b(f"{identity}\0{seen[identity]}".encode(), digest_size=16).hexdigest()
    return strict_json(entries)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "description": printable(f"{finding.rule} ({finding.target}): {finding.message} {finding.remedy}".rstrip()),
        "check_name": finding.rule,
        "fingerprint": _identity(finding.path, finding.rule, finding.target, finding.fingerprint),
        "severity": _SEVERITIES[finding.verdict],
        "location": {"path": printable(finding.path), "lines": {"begin": finding.line, "end": finding.end_line}},
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "description": printable(f"portlint: {problem.kind}: {problem.message}"),
        "check_name": f"portlint/{problem.kind}",
        "fingerprint": _identity(problem.path, problem.kind, problem.message),
        "severity": "info",
        "location": {"path": printable(problem.path), "lines": {"begin": max(problem.line, 1)}},
    }


def _identity(*parts: str) -> str:
    return "\0".join(map(printable, parts))
