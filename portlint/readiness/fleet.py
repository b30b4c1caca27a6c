"""A run over a fleet added up: where each repository stands for each target, the dearest port first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from portlint.finding import Report, Verdict
from portlint.fleet.folder import Fleet, FleetError, Repository, State, report_of
from portlint.readiness.effort import Work
from portlint.readiness.standing import Standing, Tier, standing
from portlint.target import Target


class Port(msgspec.Struct, frozen=True):
    """One repository on one target."""

    target: str
    title: str
    verdicts: Mapping[Verdict, int]
    tiers: Mapping[Tier, tuple[int, int]]
    """files and lines in each"""
    work: Work
    needed: Work
    """the part of it without which the code does not run right"""
    sentence: str

    @property
    def is_ready(self) -> bool:
        """Whether nothing that portlint looks for stops it there."""
        return not self.needed.total


class Entry(msgspec.Struct, frozen=True):
    """One repository on all targets."""

    repository: Repository
    ports: tuple[Port, ...]

    @property
    def needed(self) -> float:
        """The hours without which it does not run right, on all targets."""
        return sum(one.needed.total for one in self.ports)

    @property
    def order(self) -> tuple[float, float, str]:
        """The dearest first."""
        return -self.needed, -sum(one.work.total for one in self.ports), self.repository.name


class Total(msgspec.Struct, frozen=True):
    """All repositories on one target."""

    target: str
    title: str
    ready: int
    """repositories that nothing stops there"""
    verdicts: Mapping[Verdict, int]
    tiers: Mapping[Tier, tuple[int, int]]
    work: Work
    needed: Work
    dearest: tuple[tuple[Repository, Port], ...]
    """the repositories that cost something there, the dearest first"""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """All that a report over repositories says."""

    folder: str
    date: str
    """ISO 8601; when the report was made"""
    version: str
    entries: tuple[Entry, ...]
    """what was checked, the dearest first"""
    failed: tuple[Repository, ...]
    totals: tuple[Total, ...]
    """in the order of the targets"""

    @property
    def lines(self) -> int:
        """Lines in all repositories."""
        return sum(one.repository.lines for one in self.entries)

    @property
    def files(self) -> int:
        """Files in all repositories."""
        return sum(one.repository.files for one in self.entries)

    @property
    def incomplete(self) -> list[Repository]:
        """The repositories of which a part is missing."""
        return [one.repository for one in self.entries if one.repository.state is State.INCOMPLETE]


def overview(folder: Path, fleet: Fleet, targets: Sequence[Target], *, date: str, version: str) -> Overview:
    """Add a run up; reports are read one after the other. Raises FleetError, ShardError where they cannot be."""
    checked = [one for one in fleet.repositories if one.state is not State.FAILED]
    entries = sorted((_entry(folder, one, targets) for one in checked), key=lambda one: one.order)
    return Overview(
        folder=str(folder),
        date=date,
        version=version,
        entries=tuple(entries),
        failed=tuple(one for one in fleet.repositories if one.state is State.FAILED),
        totals=tuple(_total(target, number, entries) for number, target in enumerate(targets)),
    )


def for_targets(report: Report, targets: Sequence[Target]) -> Report:
    """The part of a report that is about some of its targets. Raises FleetError for another one."""
    for target in targets:
        if target.name not in report.targets:
            raise FleetError(f"the run was not for {target.name}: its targets are {', '.join(report.targets)}")
    names = tuple(one.name for one in targets)
    return msgspec.structs.replace(
        report,
        targets=names,
        titles={name: report.titles[name] for name in names},
        findings=tuple(one for one in report.findings if one.target in names),
    )


def _entry(folder: Path, repository: Repository, targets: Sequence[Target]) -> Entry:
    report = for_targets(report_of(folder, repository), targets)
    return Entry(repository, tuple(_port(standing(report, target)) for target in targets))


def _port(one: Standing) -> Port:
    return Port(one.target, one.title, one.verdicts, one.tiers, one.work, one.needed, one.sentence)


def _total(target: Target, number: int, entries: Iterable[Entry]) -> Total:
    own = [(one.repository, one.ports[number]) for one in entries]
    ports = [port for _, port in own]
    dear = [one for one in own if one[1].work.total]
    return Total(
        target=target.name,
        title=target.title,
        ready=sum(port.is_ready for port in ports),
        verdicts={verdict: sum(port.verdicts.get(verdict, 0) for port in ports) for verdict in Verdict},
        tiers={
            tier: (sum(port.tiers[tier][0] for port in ports), sum(port.tiers[tier][1] for port in ports))
            for tier in Tier
        },
        work=sum((port.work for port in ports), Work()),
        needed=sum((port.needed for port in ports), Work()),
        dearest=tuple(sorted(dear, key=lambda one: (-one[1].needed.total, -one[1].work.total, one[0].name))),
    )
