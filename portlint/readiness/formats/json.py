"""The report as JSON, version 1: what `portlint check` writes, and where each target stands.

`findings`, `problems` and `summary` are those of `portlint check`; each finding has an `effort` besides. The file is
what `--since` reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from portlint.readiness import effort
from portlint.readiness.history import point
from portlint.report.escape import strict_json
from portlint.report.json import described

if TYPE_CHECKING:
    from portlint.readiness.assess import Readiness
    from portlint.readiness.effort import Work
    from portlint.readiness.standing import Standing


def render(readiness: Readiness) -> str:
    """Write the report as one JSON object."""
    report = readiness.report
    history = readiness.progress.history if readiness.progress else (point(report, readiness.date),)
    return strict_json(
        {
            "version": 1,
            "tool": {"name": "portlint", "version": readiness.version},
            "date": readiness.date,
            "targets": list(report.targets),
            "readiness": [_standing(one) for one in readiness.standings],
            "progress": _progress(readiness),
            "history": msgspec.to_builtins(history),
            "findings": [{**described(one), "effort": effort.of_finding(one)} for one in report.findings],
            "problems": msgspec.to_builtins(report.problems),
            "summary": msgspec.to_builtins(report.summary),
        }
    )


def _standing(standing: Standing) -> dict[str, Any]:
    return {
        "target": standing.target,
        "title": standing.title,
        "sentence": standing.sentence,
        "verdicts": dict(standing.verdicts),
        "effort": {**_work(standing.work), "needed_hours": standing.needed.total},
        "tiers": {tier: {"files": files, "lines": lines} for tier, (files, lines) in standing.tiers.items()},
        "gates": msgspec.to_builtins(standing.gates),
        "checklist": [
            {"title": step.title, "advice": step.advice, "findings": step.findings, "effort": _work(step.work)}
            for step in standing.steps
        ],
        "files": [
            {
                "path": file.path,
                "lines": file.lines,
                "tier": file.tier,
                "kernels": file.kernels,
                "findings": file.findings,
                "effort": _work(file.work),
            }
            for file in standing.files
        ],
    }


def _work(work: Work) -> dict[str, float]:
    return {"minutes": work.minutes, "hours": work.hours, "rewrite": work.rewrite, "total_hours": work.total}


def _progress(readiness: Readiness) -> dict[str, Any] | None:
    progress = readiness.progress
    if progress is None:
        return None
    return {
        "since": progress.since,
        "gone": msgspec.to_builtins(progress.mended),
        "new": progress.new,
        "kept": progress.kept,
    }
