"""Progress between two reports: what was mended, what is new, and how the numbers went down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from portlint.files import read_json
from portlint.finding import Finding, Report, Verdict
from portlint.mistake import Mistake


class OldReportError(Mistake):
    """An earlier report that cannot be read."""


class OldFinding(msgspec.Struct, frozen=True):
    """A finding of an earlier report, as far as it is compared and shown."""

    rule: str
    target: str
    verdict: Verdict
    path: str
    line: int
    message: str
    fingerprint: str


class Point(msgspec.Struct, frozen=True):
    """How many findings there were on one day."""

    date: str
    counts: dict[str, dict[Verdict, int]]
    """target -> verdict -> findings"""


class OldReport(msgspec.Struct, frozen=True):
    """The JSON of an earlier `portlint report` or `portlint check`."""

    version: int
    findings: tuple[OldFinding, ...]
    date: str = ""
    history: tuple[Point, ...] = ()


class Progress(msgspec.Struct, frozen=True):
    """What has changed since an earlier report, for the targets that both have."""

    since: str
    """the day of the earlier report; "" where it does not say"""
    mended: tuple[OldFinding, ...]
    """findings that are gone"""
    new: int
    kept: int
    history: tuple[Point, ...]
    """all days that are known, the oldest first; this report is the last"""


def read(path: Path) -> OldReport:
    """An earlier report. Raises OldReportError where it cannot be read."""
    return read_json(path, OldReport, "report of portlint in JSON", error=OldReportError)


def point(report: Report, date: str) -> Point:
    """The counts of this report."""
    counts: dict[str, dict[Verdict, int]] = {target: {} for target in report.targets}
    for finding in report.findings:
        own = counts[finding.target]
        own[finding.verdict] = own.get(finding.verdict, 0) + 1
    return Point(date, counts)


def compare(old: OldReport, report: Report, date: str) -> Progress:
    """What has changed. A finding is the same where its code is, in its own file first, then in any other."""
    before = [one for one in old.findings if _is_judged(one, report)]
    moved, left = _unmatched(before, report.findings, lambda one: (one.path, _code(one), one.target))
    mended, _ = _unmatched(moved, left, lambda one: ("", _code(one), one.target))
    kept = len(before) - len(mended)
    earlier = old.history or (Point(old.date, _counts(before)),)
    return Progress(old.date, tuple(mended), len(report.findings) - kept, kept, (*earlier, point(report, date)))


def _is_judged(finding: OldFinding, report: Report) -> bool:
    return finding.target in report.targets and finding.target not in report.unchecked.get(finding.path, ())


def _code(finding: OldFinding | Finding) -> str:
    """The fingerprint without its place among equals: what is compared is how many there are."""
    return finding.fingerprint.partition(":")[0]


_Key = tuple[str, str, str]


def _unmatched(
    before: Iterable[OldFinding], after: Sequence[Finding], key: Callable[[OldFinding | Finding], _Key]
) -> tuple[list[OldFinding], list[Finding]]:
    """What neither list has of the other."""
    left = Counter(map(key, after))
    gone = []
    for one in before:
        if left[key(one)]:
            left[key(one)] -= 1
        else:
            gone.append(one)
    new = []
    for other in reversed(after):  # of equal ones, the last are those too many
        if left[key(other)]:
            left[key(other)] -= 1
            new.append(other)
    return gone, new


def _counts(findings: list[OldFinding]) -> dict[str, dict[Verdict, int]]:
    counts: dict[str, dict[Verdict, int]] = {}
    for one in findings:
        own = counts.setdefault(one.target, {})
        own[one.verdict] = own.get(one.verdict, 0) + 1
    return counts
