"""Findings put together by what they share, and the words for their places."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from portlint.finding import Finding, Problem

_Key = TypeVar("_Key", bound=Hashable)


def grouped(findings: Iterable[Finding], key: Callable[[Finding], _Key]) -> Iterable[tuple[_Key, list[Finding]]]:
    """The findings by a key, in the order in which the keys come first."""
    groups: defaultdict[_Key, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[key(finding)].append(finding)
    return groups.items()


def by_place(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """What one rule says about one place, for all targets. The findings are in the order of a report."""
    for _, same in groupby(findings, _place):
        yield list(same)


def _place(finding: Finding) -> tuple[str, str, int, int, int, int]:
    return finding.rule, finding.path, finding.line, finding.column, finding.end_line, finding.end_column


def by_verdict(findings: Iterable[Finding]) -> list[list[Finding]]:
    """The findings of each verdict, the worst first."""
    return sorted(
        (group for _, group in grouped(findings, lambda one: one.verdict)), key=lambda one: one[0].verdict.rank
    )


def targets(findings: Iterable[Finding]) -> str:
    """The targets of the findings, as a list in words."""
    return ", ".join(finding.target for finding in findings)


def remedies(findings: Iterable[Finding]) -> list[tuple[str, list[Finding]]]:
    """Each remedy and the findings that it is for."""
    return [group for group in grouped(findings, lambda one: one.remedy) if group[0]]


def place_of(problem: Problem) -> str:
    """Where a problem is: a file, or a line of it."""
    return f"{problem.path}:{problem.line}" if problem.line else problem.path


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the plural where that is right."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Sequence[str]) -> str:
    """The names with commas, and an "and" before the last."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
