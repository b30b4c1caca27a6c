"""A comment on a pull request, or a summary of a step: counts per target, and the worst findings in a table.

Nothing that comes from the linted tree is markup in it: what is no code is written with entities for every character
that could be, and what GitHub and GitLab turn into links and mentions behind the Markdown is broken up there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote

from portlint.finding import Finding, Problem, Report, StatedFact, Verdict
from portlint.regex import regex
from portlint.report.escape import printable
from portlint.report.places import by_place, by_verdict, counted, grouped, listed, place_of, remedies, targets

if TYPE_CHECKING:
    from portlint.report import Page

MOST_CHARACTERS = 65_536
"""in a comment on GitHub"""
_MOST_ROWS = 100
_MOST_NOTES = 20
_CODE_WIDTH = 100
_NOTE_WIDTH = 300
_FOR_REST = 400
"""characters for the remarks on what is left out"""


def render(report: Report, page: Page) -> str:
    """Write the report, at most as long as a comment on GitHub may be. It says what it leaves out."""
    places = [by_verdict(same) for same in by_place(report.findings)]
    places.sort(key=lambda groups: groups[0][0].verdict.rank)
    head = ["<!-- portlint -->", "## portlint", "", *_counts(report)]
    notes = _notes(report.problems)
    room = MOST_CHARACTERS - _length([*head, *notes]) - _FOR_REST
    rows = list(_fitting((_row(groups, report) for groups in islice(places, _MOST_ROWS)), room))
    table: list[str] = []
    if places:
        table = ["", "### Worst findings", "", "| Finding | Code | Fact | Remedy |", "|---|---|---|---|", *rows]
    if len(places) > len(rows):
        table += ["", f"{counted(len(places) - len(rows), 'more place')}: `portlint check` lists them all."]
    return "\n".join([*head, *table, *notes, "", f"portlint {page.version}"]) + "\n"


def _length(lines: Iterable[str]) -> int:
    """The characters of the lines with their ends, each counted as JavaScript does."""
    return sum(len(f"{line}\n".encode("utf-16-le")) // 2 for line in lines)


def _fitting(lines: Iterable[str], room: int) -> Iterator[str]:
    """The first lines that fit."""
    for line in lines:
        room -= _length([line])
        if room < 0:
            return
        yield line


def _counts(report: Report) -> Iterator[str]:
    verdicts = sorted(Verdict, key=lambda verdict: verdict.rank)
    yield f"| Target | {' | '.join(verdicts)} | files with findings |"
    yield "|---|" + "---:|" * (len(verdicts) + 1)
    by_target = dict(grouped(report.findings, lambda finding: finding.target))
    for target in report.targets:
        findings = by_target.get(target, [])
        counts = Counter(finding.verdict for finding in findings)
        files = len({finding.path for finding in findings if finding.verdict is not Verdict.UNKNOWN})
        numbers = [*(counts[verdict] for verdict in verdicts), files]
        yield f"| {_text(report.titles[target])} ({_code(target)}) | {' | '.join(map(str, numbers))} |"
    summary = report.summary
    asides = {
        "suppressed": summary.suppressed,
        "in the baseline": summary.baselined,
        "CUDA names that HIPIFY translates": sum(summary.translated.values()),
    }
    said = [f"{number} {what}" for what, number in asides.items() if number]
    said += [f"{counted(summary.skipped, 'file')} skipped"] if summary.skipped else []
    said += [f"{number} not for {_code(target)}" for target, number in summary.unchecked.items()]
    yield ""
    yield "; ".join([f"{counted(summary.files, 'file')} checked", *said]) + "."


def _row(groups: Sequence[Sequence[Finding]], report: Report) -> str:
    """What one rule says about one place; a group for each verdict, the worst first."""
    findings = [finding for group in groups for finding in group]
    first = findings[0]
    cell = "" if first.cell is None else f" (cell {first.cell}, line {first.cell_line})"
    what = [f"**{group[0].verdict}** {_text(targets(group))}" for group in groups]
    what += [_code(first.rule), _code(f"{first.path}:{first.line}") + cell]
    code = _code(_window(first.excerpt[0], first.column - 1)) if first.excerpt else ""
    ways = remedies(findings)
    mend = [("" if len(ways) == 1 else f"{_text(targets(members))}: ") + _prose(way) for way, members in ways]
    facts = [_fact(fact, [report.titles[one.target] for one in members]) for fact, members in _by_fact(findings)]
    facts += [_text(f"{said.outcome} by {said.level} for {one.target}") for one in findings for said in one.evidence]
    return f"| {'<br>'.join(what)} | {code} | {'<br>'.join(facts)} | {'<br>'.join(mend)} |"


def _by_fact(findings: Iterable[Finding]) -> Iterator[tuple[StatedFact, list[Finding]]]:
    for _, members in grouped(findings, lambda one: (one.fact.text, one.fact.cite)):
        yield members[0].fact, members


def _fact(fact: StatedFact, titles: Sequence[str]) -> str:
    said = f"{_text(listed(titles))} {'has' if len(titles) == 1 else 'have'} {_text(fact.text)}"
    if fact.cite is None:
        return said
    title = _text(fact.cite.title)
    if not fact.cite.url.startswith(("https://", "http://")):
        return f"{said} ({title})"
    address = escape(quote(printable(fact.cite.url), safe="/:?#=&%+,;@~"))
    return f'{said} (<a href="{address}">{title}</a>)'


def _notes(problems: Sequence[Problem]) -> list[str]:
    if not problems:
        return []
    lines = [f"{place_of(problem)}: {problem.kind}: {problem.message}" for problem in problems[:_MOST_NOTES]]
    shown = [f"- {_code(line if len(line) <= _NOTE_WIDTH else line[:_NOTE_WIDTH] + '…')}" for line in lines]
    if len(problems) > len(shown):
        shown.append(f"- {len(problems) - len(shown)} more")
    summary = f"<details><summary>{counted(len(problems), 'note')}</summary>"
    return ["", summary, "", *shown, "", "</details>"]


def _window(line: str, start: int) -> str:
    """A line without its indent, cut around `start` if it is long."""
    if len(line.strip()) <= _CODE_WIDTH:
        return line.strip()
    first = max(0, min(start - _CODE_WIDTH // 3, len(line) - _CODE_WIDTH))
    cut = line[first : first + _CODE_WIDTH].strip()
    return ("…" if first else "") + cut + ("…" if first + _CODE_WIDTH < len(line) else "")


# ---- text that is no markup -----------------------------------------------------------------------------------------

_MARKUP = regex(r"[#$&*:<>@\[\\\]_`{|}~!]")
"""all that Markdown and HTML know, but for what has a meaning only at the start of a line"""
_REFERENCE = regex(r"[@#:!$%^&~](?=\w)|(?i:\bwww(?=\.)|\bGH(?=-\d))|\b[0-9a-f](?=[0-9a-f]{6,39}\b)")
"""what starts a mention, a reference, an emoji, a bare address or the hash of a commit"""
_BACKTICKS = regex("`+")
_BREAK = "\u200b"


def _entity(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"


def _text(text: str) -> str:
    """The text, with nothing in it that is markup or becomes a link."""
    broken = _REFERENCE.sub(lambda match: match[0] + _BREAK, printable(text))
    return _MARKUP.sub(_entity, broken).replace(_BREAK, f"&#{ord(_BREAK)};")


def _code(text: str) -> str:
    """The text as code, which holds nothing but text and can be copied as it is."""
    shown = printable(text)
    if "|" in shown:  # in a table no code span can hold a backslash and a bar: the bar would end the cell
        return f"<code>{_text(text)}</code>"
    fence = "`" * (max(map(len, _BACKTICKS.findall(shown)), default=0) + 1)
    pad = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown.strip() else ""


def _prose(text: str) -> str:
    """Text in which what stands between backticks is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _text(text)
    return "".join(_code(part) if index % 2 else _text(part) for index, part in enumerate(parts))
