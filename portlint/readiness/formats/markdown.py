"""The report as Markdown, for a terminal, a wiki or the summary of a job: all but the single findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from portlint.finding import Verdict
from portlint.readiness import effort
from portlint.readiness.formats.html import HEAVIEST
from portlint.readiness.wording import hours, many
from portlint.regex import regex
from portlint.report.escape import printable

if TYPE_CHECKING:
    from portlint.readiness.assess import Readiness
    from portlint.readiness.standing import Standing

_SPECIAL = regex(r"([\\`*_{}\[\]<>#|!~&$])")


def render(readiness: Readiness) -> str:
    """Write a section for each target, then the matrix, then what was left out."""
    return "\n".join(_lines(readiness)) + "\n"


def _lines(readiness: Readiness) -> Iterator[str]:
    report = readiness.report
    yield f"# Port readiness of {plain(', '.join(readiness.paths))}"
    yield ""
    yield (
        f"{report.summary.lines:,} lines in {many(report.summary.files, 'file')}, read by portlint"
        f" {readiness.version} on {readiness.date}. Nothing of it was executed."
    )
    if len(readiness.standings) > 1:
        order = ", ".join(
            f"{plain(one.title)} ({hours(one.needed.total)} to run right, {hours(one.work.total)} in all)"
            for one in readiness.by_cost
        )
        yield f"\nBy effort, the cheapest port first: {order}."
    for standing in readiness.standings:
        yield from _standing(readiness, standing)
    yield from _matrix(readiness)
    yield from _progress(readiness)
    yield "\n## What is uncertain\n"
    yield (
        f"{many(report.summary.skipped, 'file')} found and not analysed,"
        f" {many(report.summary.suppressed, 'finding')} suppressed by comments."
    )
    for problem in report.problems:
        place = f"{problem.path}:{problem.line}" if problem.line else problem.path
        yield f"- {plain(place)}: {problem.kind}: {plain(problem.message)}"
    yield f"\n{effort.HOW}"


def _standing(readiness: Readiness, standing: Standing) -> Iterator[str]:
    yield f"\n## {plain(standing.title)}\n"
    yield plain(standing.sentence)
    work = standing.work
    if work.total:
        yield f"\nEffort {hours(work.total)}, of it {hours(standing.needed.total)} to run right:"
        yield f"{many(work.minutes, 'place')} of minutes, {work.hours:,} of hours, {many(work.rewrite, 'rewrite')}."
    yield "\n| gate | state | why |\n|---|---|---|"
    for gate in standing.gates:
        yield f"| {gate.name} | {gate.state} | {_prose(gate.why)} |"
    yield "\n| tier | files | lines |\n|---|--:|--:|"
    for tier, (files, lines) in standing.tiers.items():
        if files:
            yield f"| {tier.label} | {files:,} | {lines:,} |"
    if standing.heaviest:
        yield "\n| files that cost most | effort |\n|---|--:|"
        for file in standing.heaviest[:HEAVIEST]:
            yield f"| {plain(file.path)} | {hours(file.work.total)} |"
    dearest = readiness.dearest(standing.target)[:HEAVIEST]
    if dearest:
        yield "\n| beliefs that cost most | effort |\n|---|--:|"
        for belief in dearest:
            yield f"| {belief.rule}: {plain(belief.summary)} | {hours(belief.work[standing.target].total)} |"
    yield ""
    for number, step in enumerate(standing.steps, 1):
        count = f" ({many(step.findings, 'finding')})" if step.packs else ""
        yield f"{number}. **{step.title}.** {plain(step.advice)}{count}"


def _matrix(readiness: Readiness) -> Iterator[str]:
    if not readiness.beliefs:
        return
    targets = [one.target for one in readiness.standings]
    yield "\n## Assumptions and targets\n"
    yield f"| assumption | {' | '.join(map(plain, targets))} |"
    yield f"|---|{'--:|' * len(targets)}"
    for belief in readiness.beliefs:
        cells = (counted(belief.counts.get(target, {})) for target in targets)
        yield f"| {belief.rule} | {' | '.join(cells)} |"


def counted(counts: Mapping[Verdict, int]) -> str:
    """Findings by verdict."""
    return ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in Verdict if verdict in counts)


def _progress(readiness: Readiness) -> Iterator[str]:
    progress = readiness.progress
    if progress is None:
        return
    yield f"\n## Progress{f' since {progress.since}' if progress.since else ''}\n"
    yield f"{many(len(progress.mended), 'finding')} gone, {progress.new:,} new, {progress.kept:,} as before."


def _prose(text: str) -> str:
    """Text in which nothing is markup but code in backticks."""
    pieces = printable(text).split("`")
    if len(pieces) % 2 == 0:
        return plain(text)
    for number, piece in enumerate(pieces):
        pieces[number] = "`" + piece.replace("|", r"\|") + "`" if number % 2 else plain(piece)
    return "".join(pieces)


def plain(text: str) -> str:
    """Text in which nothing is markup or HTML."""
    return _SPECIAL.sub(r"\\\1", printable(text))
