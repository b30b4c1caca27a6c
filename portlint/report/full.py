"""The report for people: a code frame per finding, notes, and a last line that counts.

The lines are built once, as styled pieces of text, and written with or without colour; both texts are the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import accumulate
from textwrap import wrap
from typing import TYPE_CHECKING, TypeAlias
from unicodedata import category, east_asian_width

from portlint.finding import Evidence, Finding, Problem, Report, StatedFact, Verdict
from portlint.report.escape import printable, printable_characters
from portlint.report.places import by_place, by_verdict, counted, grouped, listed, place_of, remedies, targets

if TYPE_CHECKING:
    from portlint.report import Page

Line: TypeAlias = list[tuple[str, str]]
"""(style, text) pairs"""

VERDICT_STYLES = {
    Verdict.CORRUPTS: "bold red",
    Verdict.BREAKS: "red",
    Verdict.DEGRADES: "yellow",
    Verdict.UNKNOWN: "cyan",
}
_FRAME = "bold blue"
LABEL = "bold"
_TAB = " " * 4
NARROWEST = 40
"""the report is this wide even where the terminal is narrower"""


def render(report: Report, page: Page) -> str:
    """Write a frame per finding, one for all targets that share a place and a rule; then notes; then the counts."""
    return written(_lines(report, max(page.width, NARROWEST)), color=page.color)


def written(lines: Iterable[Line], *, color: bool) -> str:
    """The lines as text, with ANSI colours where they are wanted."""
    return colored(lines) if color else "".join("".join(text for _, text in line) + "\n" for line in lines)


def colored(lines: Iterable[Line]) -> str:
    """The lines as text with ANSI colours."""
    from rich.console import Console
    from rich.segment import Segment, Segments
    from rich.style import Style

    out = StringIO()
    # Everything that rich would otherwise read from the environment is stated: the caller has decided on colour.
    console = Console(
        file=out,
        force_terminal=True,
        force_jupyter=False,
        color_system="standard",
        no_color=False,
        legacy_windows=False,
    )
    pieces = (Segment(text, Style.parse(style)) for line in lines for style, text in [*line, ("", "\n")])
    console.print(Segments(pieces), soft_wrap=True, end="")
    return out.getvalue()


def _lines(report: Report, width: int) -> Iterator[Line]:
    for same_place in by_place(report.findings):
        yield from _frame(same_place, report.titles, width)
        yield []
    yield from ending(report, width)


def ending(report: Report, width: int) -> Iterator[Line]:
    """The notes on what was not analysed, then the counts."""
    for problem in report.problems:
        yield from _note(problem, width)
    if report.problems:
        yield []
    yield from _counts(report)


def _frame(findings: Sequence[Finding], titles: Mapping[str, str], width: int) -> Iterator[Line]:
    """Show what one rule says about one place, for all targets."""
    groups = by_verdict(findings)
    for members in groups:
        verdict = members[0].verdict
        label = f"{verdict}[{members[0].rule}]"
        yield from _prose(label, VERDICT_STYLES[verdict], f"{targets(members)}: {members[0].message}", width)

    first = findings[0]
    number = str(first.line if first.cell_line is None else first.cell_line)
    margin = " " * len(number)
    cell = "" if first.cell is None else f" (cell {first.cell}, line {first.cell_line})"
    yield [(_FRAME, f"{margin}--> "), ("", printable(f"{first.path}:{first.line}:{first.column}") + cell)]
    if first.excerpt:
        code, carets = _code(first, width - len(number) - len(" | "))
        yield [(_FRAME, f"{margin} |")]
        yield [(_FRAME, f"{number} |"), ("", f" {code}".rstrip())]
        yield [(_FRAME, f"{margin} |"), (VERDICT_STYLES[groups[0][0].verdict], f" {carets}")]

    for label, text in _remarks(findings, titles):
        yield from _prose(label, LABEL, text, width, before=f"{margin} = ")


def _code(finding: Finding, room: int) -> tuple[str, str]:
    """Cut the first line of the finding to `room` columns around its start, and put carets below it."""
    line = finding.excerpt[0]
    start = min(finding.column - 1, len(line))
    several = finding.end_line > finding.line
    end = len(line) if several else min(max(finding.end_column - 1, start), len(line))

    shown = [_TAB if raw == "\t" else char for raw, char in zip(line, printable_characters(line), strict=True)]
    edges = [0, *accumulate(map(_columns, shown))]  # the column at which each character starts, and where the line ends
    first, last = _window(edges, edges[start], room)
    head, tail = "…" * (first > 0), "…" * (last < len(line))
    left = edges[start] - edges[first] + len(head)
    length = max(edges[min(end, last)] - edges[start], 1)
    more = "…" * (several or end > last)
    return head + "".join(shown[first:last]) + tail, " " * left + "^" * length + more


def _window(edges: Sequence[int], start: int, room: int) -> tuple[int, int]:
    """Choose the characters that fit into `room` columns, with `start` among them and a third of the room before it."""
    total = edges[-1]
    if total < room:  # a caret behind the end of the line takes one more column
        return 0, len(edges) - 1
    room -= len("……")
    first = bisect_left(edges, min(start - room // 3, total - room))
    return first, bisect_right(edges, edges[first] + room) - 1


def _columns(text: str) -> int:
    """Count the columns of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if category(char) in ("Mn", "Me") else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def _remarks(findings: Sequence[Finding], titles: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield a label and a text for each remark below the code. What several targets share is said once."""
    for (fact, note), members in grouped(findings, lambda finding: (_fact(finding.fact), finding.fact.note)):
        names = [titles[finding.target] for finding in members]
        yield "fact:", f"{listed(names)} {'has' if len(names) == 1 else 'have'} {fact}"
        if note:
            yield "note:", note
    ways = remedies(findings)
    for remedy, members in ways:
        yield "remedy:" if len(ways) == 1 else f"remedy for {targets(members)}:", remedy
    for finding in findings:
        for evidence in finding.evidence:
            yield "evidence:", _evidence(evidence)


def _fact(fact: StatedFact) -> str:
    return fact.text + (f" ({fact.cite.title}, {fact.cite.url})" if fact.cite else "")


def _evidence(evidence: Evidence) -> str:
    device = f" on {evidence.device}" if evidence.device else ""
    tool = f"{evidence.tool} {evidence.version}".strip()
    how = f"{evidence.outcome} for {evidence.target} at level {evidence.level} with {tool}{device}, {evidence.date}"
    return f"{how}: {evidence.detail}" if evidence.detail else how


def _note(problem: Problem, width: int) -> Iterator[Line]:
    return _prose("note:", LABEL, f"{place_of(problem)}: {problem.kind}: {problem.message}", width)


def _prose(label: str, style: str, text: str, width: int, *, before: str = "") -> Iterator[Line]:
    """Wrap a styled label and its text at blanks."""
    label = printable(label)
    first, *rest = wrap(
        f"{label} {printable(text)}",
        width,
        initial_indent=before,
        subsequent_indent=" " * max(len(before) + 2, 4),
        break_long_words=False,
        break_on_hyphens=False,
    )
    split = len(before) + len(label)
    yield [(_FRAME, before), (style, first[len(before) : split]), ("", first[split:])]
    yield from ([("", line)] for line in rest)


def _counts(report: Report) -> Iterator[Line]:
    """Count per target. What is known of the whole run joins the line, or follows where there are several targets."""
    summary = report.summary
    hidden = {"suppressed": summary.suppressed, "in the baseline": summary.baselined}
    skipped = f"{counted(summary.skipped, 'file')} skipped" if summary.skipped else ""
    alone = len(report.targets) == 1

    by_target = dict(grouped(report.findings, lambda finding: finding.target))
    for target in report.targets:
        findings = by_target.get(target, [])
        unknown = {"unknown": sum(finding.verdict is Verdict.UNKNOWN for finding in findings)}
        translated = {"CUDA names that HIPIFY translates": summary.translated.get(target, 0)}
        asides = [_nonzero(hidden | unknown), skipped] if alone else [_nonzero(unknown)]
        left_out = summary.unchecked.get(target, 0)
        asides += [f"{counted(left_out, 'file')} not checked for it"] if left_out else []
        asides += [_nonzero(translated), _fixable(findings)]
        yield [*_tally(findings, target, summary.files - left_out), ("", "; ".join(["", *filter(None, asides)]) + ".")]
    rest = "; ".join(filter(None, [_nonzero(hidden), skipped]))
    if rest and not alone:
        yield [("", f"{rest}.")]


def _tally(findings: Iterable[Finding], target: str, files: int) -> Line:
    """Count the findings of one target by verdict. An unknown is a note and no finding."""
    certain = [finding for finding in findings if finding.verdict is not Verdict.UNKNOWN]
    name, total = printable(target), counted(files, "file")
    if not certain:
        return [("green", "No findings"), ("", f" for {name} in {total}")]
    verdicts = sorted(Counter(finding.verdict for finding in certain).items(), key=lambda pair: pair[0].rank)
    parts: Line = []
    for verdict, number in verdicts:
        parts += [("", ", " if parts else " ("), (VERDICT_STYLES[verdict], f"{number} {verdict}")]
    places = len({finding.path for finding in certain})
    return [(LABEL, counted(len(certain), "finding")), *parts, ("", f") in {places} of {total} for {name}")]


def _fixable(findings: Iterable[Finding]) -> str:
    kinds = Counter(finding.fix for finding in findings if finding.verdict is not Verdict.UNKNOWN)
    return _nonzero({"fixable": kinds["safe"], "fixable with '--unsafe-fixes'": kinds["unsafe"]})


def _nonzero(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number)
