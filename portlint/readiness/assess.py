"""A whole report added up: paths -> findings -> `Readiness`, before any output format sees it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from portlint.finding import Finding, Report, StatedFact, Verdict
from portlint.readiness import effort
from portlint.readiness.effort import Effort, Work
from portlint.readiness.gates import Gate
from portlint.readiness.history import Progress
from portlint.readiness.standing import Standing, standing
from portlint.target import Target


class Place(msgspec.Struct, frozen=True):
    """What one rule found at one place, for all targets."""

    findings: tuple[Finding, ...]
    """the worst first; the same rule and the same place"""

    @property
    def first(self) -> Finding:
        """The worst of them."""
        return self.findings[0]

    @property
    def effort(self) -> Effort:
        """The greatest effort on any target."""
        return max((effort.of_finding(one) for one in self.findings), key=lambda one: one.hours)


class Contradiction(msgspec.Struct, frozen=True):
    """Why a belief is wrong on a target, and what to do there."""

    target: str
    title: str
    facts: tuple[StatedFact, ...]
    remedies: tuple[str, ...]


class Belief(msgspec.Struct, frozen=True):
    """One rule: a wrong belief of this tree, with every place that holds it."""

    rule: str
    summary: str
    places: tuple[Place, ...]
    contradictions: tuple[Contradiction, ...]
    counts: Mapping[str, Mapping[Verdict, int]]
    """target -> findings by verdict"""
    work: Mapping[str, Work]

    @property
    def hours(self) -> float:
        """On the target where it costs most."""
        return max((work.total for work in self.work.values()), default=0.0)


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """All that a readiness report says."""

    paths: tuple[str, ...]
    date: str
    """ISO 8601; when the report was made"""
    version: str
    report: Report
    standings: tuple[Standing, ...]
    """in the order in which the targets were asked for"""
    beliefs: tuple[Belief, ...]
    """those that cost most first"""
    progress: Progress | None = None

    @property
    def by_cost(self) -> list[Standing]:
        """The targets, the cheapest port first."""
        return sorted(self.standings, key=lambda one: one.needed.total)

    def dearest(self, target: str) -> list[Belief]:
        """The beliefs that cost something on a target, the dearest first."""
        own = [one for one in self.beliefs if target in one.work and one.work[target].total]
        return sorted(own, key=lambda one: (-one.work[target].total, one.rule))


def assess(
    report: Report,
    targets: Sequence[Target],
    *,
    paths: tuple[str, ...],
    date: str,
    version: str,
    gates: Mapping[str, Sequence[Gate]],
    progress: Progress | None = None,
) -> Readiness:
    """Add a report up. `gates`: for each target by name those after the first."""
    by_rule: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        by_rule[finding.rule].append(finding)
    beliefs = [_belief(report, rule, findings) for rule, findings in by_rule.items()]
    return Readiness(
        paths=paths,
        date=date,
        version=version,
        report=report,
        standings=tuple(standing(report, target, gates[target.name]) for target in targets),
        beliefs=tuple(sorted(beliefs, key=lambda one: (-one.hours, one.rule))),
        progress=progress,
    )


def _belief(report: Report, rule: str, findings: Sequence[Finding]) -> Belief:
    by_place: defaultdict[tuple[object, ...], list[Finding]] = defaultdict(list)
    by_target: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_place[finding.order[:-1]].append(finding)
        by_target[finding.target].append(finding)
    return Belief(
        rule=rule,
        summary=report.rules[rule].summary,
        places=tuple(Place(tuple(sorted(group, key=lambda one: one.verdict.rank))) for group in by_place.values()),
        contradictions=tuple(
            Contradiction(target, report.titles[target], _distinct(one.fact for one in own), _remedies(own))
            for target, own in by_target.items()
        ),
        counts={target: _counted(own) for target, own in by_target.items()},
        work={target: effort.of_findings(own) for target, own in by_target.items()},
    )


def _counted(findings: Iterable[Finding]) -> dict[Verdict, int]:
    found = dict.fromkeys(Verdict, 0)
    for finding in findings:
        found[finding.verdict] += 1
    return {verdict: many for verdict, many in found.items() if many}


def _distinct(facts: Iterable[StatedFact]) -> tuple[StatedFact, ...]:
    return tuple({(fact.name, fact.text): fact for fact in facts}.values())


def _remedies(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.remedy for finding in findings if finding.remedy))
