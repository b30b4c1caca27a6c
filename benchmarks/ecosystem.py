"""Run portlint over pinned public repositories, and print what it finds more or less than the committed summary says.

    python benchmarks/ecosystem.py --trees DIR... [--reports NEW] [--against OLD --show 5] [--update]

`ecosystem.toml` names the repositories and their commits, `ecosystem.json` has what was found in each. Nothing is
fetched: DIR holds checkouts, in folders of the repositories' names, and what is in none of them is listed as not run.
The exit status is 1 where something differs, or where a run of portlint ended without its report.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click
import msgspec

from portlint.files import read_json, replace
from portlint.mistake import Mistake

HERE = Path(__file__).resolve().parent
PINNED = HERE / "ecosystem.toml"
SUMMARY = HERE / "ecosystem.json"


class Unreadable(Mistake):
    """A list, a summary or a report that is not what it is taken for."""


class Repository(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is checked, and for which targets."""

    name: str
    url: str
    commit: str
    day: str
    """of the commit, ISO 8601"""
    targets: tuple[str, ...]
    folder: str = "."
    """the part of it that is checked"""


class Found(msgspec.Struct, frozen=True):
    """What the report says of one finding."""

    rule: str
    target: str
    verdict: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    message: str

    @property
    def place(self) -> str:
        """What makes it another finding than one of an older report."""
        at = f"{self.path}:{self.line}:{self.column}-{self.end_line}:{self.end_column}"
        return f"{at} {self.rule} @ {self.target}: {self.verdict}"


class Problem(msgspec.Struct, frozen=True):
    """Something that the report says was left out."""

    path: str
    line: int
    kind: str
    message: str


class Counts(msgspec.Struct, frozen=True):
    """The size of a run."""

    files: int
    lines: int
    seconds: float


class Report(msgspec.Struct, frozen=True):
    """What is read of a JSON report."""

    version: int
    findings: tuple[Found, ...]
    problems: tuple[Problem, ...]
    summary: Counts


class Judged(msgspec.Struct, frozen=True):
    """The findings for one target."""

    places: str
    """a hash of where each of them is and what its verdict is, for changes that no count shows"""
    rules: Mapping[str, int]


class Outcome(msgspec.Struct, frozen=True):
    """What was found in one repository."""

    commit: str
    files: int
    lines: int
    problems: tuple[str, ...]
    targets: Mapping[str, Judged]


class Summary(msgspec.Struct, frozen=True):
    """What was found, by the name of the repository."""

    version: int
    repositories: Mapping[str, Outcome]


class Pinned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file that lists the repositories."""

    repository: tuple[Repository, ...]


def pinned() -> tuple[Repository, ...]:
    """The repositories, by name."""
    return tuple(
        sorted(msgspec.convert(tomllib.loads(PINNED.read_text()), Pinned).repository, key=lambda one: one.name)
    )


def checkout(repository: Repository, trees: Iterable[Path]) -> tuple[Path | None, str]:
    """Where a repository is, or why there is nothing to run. A folder that git does not know is taken at its word."""
    for tree in trees:
        place = tree / repository.name
        if not (place / repository.folder).is_dir():
            continue
        if (place / ".git").exists():
            head = subprocess.run(
                ["git", "-C", place, "rev-parse", "HEAD"], capture_output=True, text=True, check=False
            ).stdout.strip()
            if head != repository.commit:
                return None, f"{place} is at {head[:12] or 'no commit'}, not at {repository.commit[:12]}"
        return place / repository.folder, ""
    return None, f"no folder has it; it is {repository.url} at {repository.commit[:12]}"


def check(command: Sequence[str], place: Path, targets: Sequence[str], report: Path, jobs: int, limit: float) -> str:
    """Have portlint write its report of a folder. Returns why there is none, or nothing."""
    report.unlink(missing_ok=True)
    arguments = [*command, "check", ".", "--isolated", "--no-baseline", "--no-cache", "--exit-zero", f"--jobs={jobs}"]
    arguments += [f"--target={target}" for target in targets]
    arguments += [f"--output-format=json:{report}"]
    try:
        ended = subprocess.run(arguments, cwd=place, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"hangs: no report after {limit:g} s"
    if ended.returncode or not report.exists():
        return f"crashes: status {ended.returncode}; {ended.stderr.strip()[-500:] or 'not a word on standard error'}"
    return ""


def outcome_of(repository: Repository, report: Report) -> Outcome:
    """What the summary says of a report."""
    return Outcome(
        repository.commit,
        report.summary.files,
        report.summary.lines,
        tuple(f"{one.kind}: {one.path}:{one.line}: {one.message}" for one in report.problems),
        {
            target: _judged([one for one in report.findings if one.target == target])
            for target in sorted(repository.targets)
        },
    )


def _judged(findings: Sequence[Found]) -> Judged:
    places = "\n".join(sorted(one.place for one in findings))
    rules = Counter(one.rule for one in findings)
    return Judged(hashlib.blake2b(places.encode(), digest_size=6).hexdigest(), dict(sorted(rules.items())))


def changes(old: Outcome, new: Outcome) -> Iterator[str]:
    """What differs between two summaries of a repository, in lines for people."""
    if old.commit != new.commit:
        yield f"is now at {new.commit[:12]}"
    if (old.files, old.lines) != (new.files, new.lines):
        yield f"{old.files:,} files of {old.lines:,} lines -> {new.files:,} of {new.lines:,}"
    yield from (f"new problem: {one}" for one in sorted({*new.problems} - {*old.problems}))
    yield from (f"no longer a problem: {one}" for one in sorted({*old.problems} - {*new.problems}))
    for target in sorted({*old.targets, *new.targets}):
        if target not in old.targets or target not in new.targets:
            yield f"{target}: {'no longer' if target in old.targets else 'newly'} checked"
            continue
        before, after = old.targets[target], new.targets[target]
        for rule in sorted({*before.rules, *after.rules}):
            was, now = before.rules.get(rule, 0), after.rules.get(rule, 0)
            if was != now:
                yield f"{target}: {rule} {was} -> {now} ({now - was:+})"
        if before.rules == after.rules and before.places != after.places:
            yield f"{target}: as many findings of each rule, in other places or with other verdicts"


def sample(old: Report, new: Report, most: int) -> Iterator[str]:
    """Some findings of each rule that only one of two reports has: every nth of them, so that all parts are seen."""
    reports = {"-": {one.place: one for one in old.findings}, "+": {one.place: one for one in new.findings}}
    for sign, other in (("-", "+"), ("+", "-")):
        by_rule: dict[str, list[Found]] = {}
        for place in sorted(reports[sign].keys() - reports[other].keys()):
            one = reports[sign][place]
            by_rule.setdefault(f"{one.rule} @ {one.target}", []).append(one)
        for rule, found in sorted(by_rule.items()):
            yield f"{sign} {rule}: {len(found)}"
            step = max(1, len(found) // most)
            yield from (f"    {one.path}:{one.line}:{one.column}: {one.message}" for one in found[::step][:most])


def _read(report: Path) -> Report:
    return read_json(report, Report, "report", error=Unreadable)


def _cpu_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


@click.command(help=__doc__)
@click.option("--trees", multiple=True, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--only", multiple=True, metavar="NAME", help="Only this repository; repeatable.")
@click.option("--command", default="portlint", show_default=True, help="How portlint is started.")
@click.option("--reports", type=click.Path(path_type=Path, file_okay=False), help="Keep the JSON reports here.")
@click.option("--against", type=click.Path(path_type=Path, exists=True), help="Reports of an older run.")
@click.option("--show", default=0, metavar="N", help="With --against: N of each rule's findings that came or went.")
@click.option("--update", is_flag=True, help="Write the summary anew, as far as it was run.")
@click.option("--jobs", default=1, show_default=True, help="Worker processes of each run.")
@click.option("--limit", default=3600.0, show_default=True, help="Seconds after which a run hangs.")
def main(
    trees: tuple[Path, ...],
    only: tuple[str, ...],
    command: str,
    reports: Path | None,
    against: Path | None,
    show: int,
    update: bool,
    jobs: int,
    limit: float,
) -> None:
    """Run, compare, and perhaps write the summary."""
    known: dict[str, Outcome] = {}
    if SUMMARY.exists():
        known.update(read_json(SUMMARY, Summary, "summary", error=Unreadable).repositories)
    differs = False
    with tempfile.TemporaryDirectory() as scratch:
        folder = (reports or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for repository in pinned():
            name = repository.name
            if only and name not in only:
                continue
            place, missing = checkout(repository, trees)
            if place is None:
                click.echo(f"{name}: not run: {missing}")
                continue
            report = folder / f"{name}.json"
            cpu, wall = _cpu_seconds(), time.monotonic()
            lost = check(command.split(), place.resolve(), repository.targets, report, jobs, limit)
            cpu, wall = _cpu_seconds() - cpu, time.monotonic() - wall
            if lost:
                click.echo(f"{name}: {lost}")
                differs = True
                continue
            new = _read(report)
            outcome = outcome_of(repository, new)
            found = Counter(one.target for one in new.findings)
            click.echo(
                f"{name}: {outcome.files:,} files, {outcome.lines:,} lines, "
                + ", ".join(f"{found[target]:,} for {target}" for target in repository.targets)
                + f", {len(outcome.problems)} problems; {cpu:.1f} s of CPU time, {wall:.1f} s"
            )
            if name not in known:
                click.echo("    not in the summary yet")
                differs = True
            for change in changes(known[name], outcome) if name in known else ():
                click.echo(f"    {change}")
                differs = True
            if against is not None and (against / report.name).exists():
                old = _read(against / report.name)
                click.echo(f"    {old.summary.seconds:.1f} s -> {new.summary.seconds:.1f} s")
                for line in sample(old, new, show) if show else ():
                    click.echo(f"    {line}")
            if update:
                known[name] = outcome
                _write(known)
    sys.exit(differs and not update)


def _write(known: Mapping[str, Outcome]) -> None:
    kept = {one.name for one in pinned()} & known.keys()
    summary = Summary(1, {name: known[name] for name in sorted(kept)})
    replace(SUMMARY, msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n")


if __name__ == "__main__":
    main()
