"""The JSON report, version 1: a stable interface for scripts.

Lines and columns start at 1, columns count code points, ends are exclusive. Two runs over the same input give the same
bytes but for `summary.seconds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from portlint.report.escape import strict_json

if TYPE_CHECKING:
    from portlint.finding import Finding, Report, Shard, StatedFact
    from portlint.report import Page


def render(report: Report, page: Page) -> str:
    r"""Write the report as one JSON object. All text is exact, but for bytes of a path that are not UTF-8: `\xNN`."""
    summary = msgspec.to_builtins(report.summary)
    for said_where_it_occurs in ("translated", "unchecked"):  # only of CUDA code that HIPIFY serves; if so configured
        if not summary[said_where_it_occurs]:
            del summary[said_where_it_occurs]
    part = {} if report.shard is None else {"shard": _shard(report, report.shard)}
    return strict_json(
        {
            "version": 1,
            "tool": {"name": "portlint", "version": page.version},
            "targets": list(report.targets),
            "findings": [described(finding) for finding in report.findings],
            "problems": [msgspec.to_builtins(problem) for problem in report.problems],
            "summary": {**summary, "seconds": round(report.summary.seconds, 3)},
            **part,
        }
    )


def _shard(report: Report, shard: Shard) -> dict[str, Any]:
    """Which part of a run this is, and what `portlint merge` needs beside the rest; no interface for others."""
    return {
        **msgspec.to_builtins(shard),
        "titles": dict(report.titles),
        "rules": {name: msgspec.to_builtins(rule) for name, rule in report.rules.items()},
        "details": [_detail(finding) for finding in report.findings],
        "unchecked": {path: sorted(targets) for path, targets in report.unchecked.items()},
    }


def _detail(finding: Finding) -> dict[str, Any]:
    return {
        "fact": finding.fact.name,
        "text": finding.fact.text,
        "seen": finding.fact.cite.seen if finding.fact.cite else "",
        "excerpt": list(finding.excerpt),
        "edits": [msgspec.to_builtins(edit) for edit in finding.edits],
        "line_hash": finding.line_hash,
        "safe": finding.safe,
        "setting": finding.setting,
    }


def described(finding: Finding) -> dict[str, Any]:
    """A finding as the JSON report has it."""
    cell = {} if finding.cell is None else {"cell": finding.cell, "cell_line": finding.cell_line}
    return {
        "rule": finding.rule,
        "target": finding.target,
        "verdict": finding.verdict,
        "path": finding.path,
        "line": finding.line,
        "column": finding.column,
        "end_line": finding.end_line,
        "end_column": finding.end_column,
        **cell,
        "message": finding.message,
        "assumes": dict(finding.assumes),
        "fact": _fact(finding.fact),
        "remedy": finding.remedy,
        "kernel": finding.kernel,
        "fingerprint": finding.fingerprint,
        "fixable": finding.fixable,
        "fix": finding.fix,
        "evidence": [msgspec.to_builtins(evidence) for evidence in finding.evidence],
    }


def _fact(fact: StatedFact) -> dict[str, Any]:
    cite = fact.cite and {"title": fact.cite.title, "url": fact.cite.url}
    note = {"note": fact.note} if fact.note else {}
    return {"value": fact.value, "cite": cite, **note}
