"""What a port costs: a class of effort for each finding, added up for each target.

The classes are a judgement, kept in `efforts.toml`; the hours are planning figures that the reader can change, and no
measurements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files

import msgspec

from portlint.config import Selector
from portlint.finding import Finding, Verdict


class Effort(StrEnum):
    """What it takes to mend one finding."""

    NONE = "none"
    """nothing is known to be wrong"""
    MINUTES = "minutes"
    HOURS = "hours"
    REWRITE = "rewrite"

    @property
    def hours(self) -> float:
        """The planning figure in hours: a choice of this project's, not a measurement."""
        return _HOURS[self]


_HOURS = {Effort.NONE: 0.0, Effort.MINUTES: 0.25, Effort.HOURS: 4.0, Effort.REWRITE: 40.0}

HOW = (
    "Each finding has a class: none, minutes, hours, or rewrite. The first finding of a rule in a file costs its class,"
    " every further one of that rule in that file costs minutes, since by then it is understood. Where the target does"
    " not take the language of a file's kernels, each kernel costs a rewrite, a file of helpers without a kernel costs"
    " hours, and the findings in it cost nothing of their own; kernels for a third machine cost nothing. The hours of"
    " a class are planning figures, not measurements."
)


class Work(msgspec.Struct, frozen=True):
    """A sum of effort: how many places of each class."""

    minutes: int = 0
    hours: int = 0
    rewrite: int = 0

    @property
    def total(self) -> float:
        """In hours, by the planning figures."""
        return (
            self.minutes * Effort.MINUTES.hours + self.hours * Effort.HOURS.hours + self.rewrite * Effort.REWRITE.hours
        )

    def __add__(self, other: Work) -> Work:
        return Work(self.minutes + other.minutes, self.hours + other.hours, self.rewrite + other.rewrite)


class _Entry(msgspec.Struct, frozen=True):
    is_: Effort = msgspec.field(name="is")
    select: tuple[str, ...]


@cache
def table() -> tuple[tuple[Selector, Effort], ...]:
    """The judgements of `efforts.toml`, in their order."""
    text = (files("portlint") / "readiness" / "efforts.toml").read_bytes()
    table = msgspec.toml.decode(text, type=dict[str, tuple[_Entry, ...]])
    return tuple((Selector.parse(one), entry.is_) for entry in table["effort"] for one in entry.select)


def of_rule(rule: str, target: str) -> Effort:
    """What one finding of a rule costs on a target; hours where the table does not say."""
    found = Effort.HOURS
    for selector, effort in table():
        if selector.matches(rule, target):
            found = effort
    return found


def of_finding(finding: Finding) -> Effort:
    """What one finding costs: nothing where nothing is known to be wrong, minutes where portlint has a safe edit."""
    if finding.verdict is Verdict.UNKNOWN:
        return Effort.NONE
    return Effort.MINUTES if finding.fixable and finding.safe else of_rule(finding.rule, finding.target)


def of_findings(findings: Iterable[Finding]) -> Work:
    """The sum over findings of one target, where the same belief costs its full price once in each file."""
    classes: defaultdict[tuple[str, str], list[Effort]] = defaultdict(list)
    for finding in findings:
        classes[finding.path, finding.rule].append(of_finding(finding))
    counts: defaultdict[Effort, int] = defaultdict(int)
    for group in classes.values():
        group.sort(key=lambda one: one.hours, reverse=True)
        counts[group[0]] += 1
        for repeated in group[1:]:
            counts[min(repeated, Effort.MINUTES, key=lambda one: one.hours)] += 1
    return _work(counts)


def of_kernels(kernels: int) -> Work:
    """What a file costs whose kernels have to be written anew."""
    return Work(rewrite=kernels) if kernels else Work(hours=1)


def _work(counts: Mapping[Effort, int]) -> Work:
    return Work(
        minutes=counts.get(Effort.MINUTES, 0), hours=counts.get(Effort.HOURS, 0), rewrite=counts.get(Effort.REWRITE, 0)
    )
