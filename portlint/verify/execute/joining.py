"""What a run has seen at the lines of findings becomes evidence for them.

Nothing is ever refuted so: a line that met no fault in one run has met none with the values of that run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date

from portlint import __version__
from portlint.finding import Evidence, Finding, Verdict
from portlint.verify.evidence import Entry
from portlint.verify.execute.running import Run, Seen
from portlint.verify.execute.said import words
from portlint.verify.levels import Outcome
from portlint.verify.questions import entry


def entries(run: Run, findings: Iterable[Finding]) -> Iterator[Entry]:
    """An entry for each finding that something was seen of which rests on the same fact."""
    for finding in findings:
        if finding.verdict is Verdict.UNKNOWN or finding.target != run.target.name:
            continue
        seen = next((one for one in run.seen if _is_of(one, finding)), None)
        if seen is not None:
            yield entry(finding, _evidence(run, seen))


def _is_of(seen: Seen, finding: Finding) -> bool:
    return (
        seen.path == finding.path and finding.line <= seen.line <= finding.end_line and finding.fact.name in seen.facts
    )


def _evidence(run: Run, seen: Seen) -> Evidence:
    return Evidence(
        level="simulate",
        outcome=str(Outcome.CONFIRMED),
        tool=f"portlint's simulated device, with {', '.join(run.simulated)}",
        version=__version__,
        target=run.target.name,
        device=None,
        command=f"portlint verify --execute {run.file}",
        date=date.today().isoformat(),
        detail=f"line {seen.line}: {words(seen)}",
    )
