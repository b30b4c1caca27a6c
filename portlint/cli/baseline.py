"""`portlint baseline`: write down what is known, so that `portlint check` reports only what is new."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from portlint.cli.check import targets_of
from portlint.cli.errors import friendly
from portlint.cli.progress import progress_line

if TYPE_CHECKING:
    from portlint.baseline import Entry, Matched
    from portlint.finding import Finding, Report

KINDS = ("concise", "full", "json", "sarif")


class _Given(TypedDict):
    """The options that the commands share."""

    paths: tuple[str, ...]
    targets: tuple[str, ...]
    named: Path | None
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    exclude: tuple[str, ...]
    isolated: bool
    jobs: int | None


@click.group(short_help="Write down what is known, so that check reports only what is new.")
def baseline() -> None:
    """Keep the findings that are known in a file, which 'portlint check' reads.

    Entries outlive moved lines, renamed files and edits around the code. Entries of files, rules and targets that a
    command does not look at are left as they are.
    """


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """What the three commands share with `portlint check`."""
    file = click.Path(path_type=Path)
    for option in reversed(
        (
            click.argument("paths", nargs=-1, type=click.Path(path_type=str)),
            click.option("--target", "-t", "targets", multiple=True, help="Machine to judge for; repeatable."),
            click.option(
                "--baseline", "named", type=file, metavar="FILE", help="The baseline  [portlint-baseline.json]."
            ),
            click.option("--select", multiple=True, metavar="RULES", help="Findings of these rules only."),
            click.option("--ignore", multiple=True, metavar="RULES", help="Not of these."),
            click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave these out (.gitignore patterns)."),
            click.option("--isolated", is_flag=True, help="Read no configuration file."),
            click.option("--jobs", "-j", type=click.IntRange(min=1), help="Worker processes  [one per core]."),
        )
    ):
        command = option(command)
    return friendly(command)


@baseline.command(short_help="Take all findings into the baseline.")
@_options
def write(**given: Unpack[_Given]) -> None:
    """Take all findings in PATHS (the current folder if none) into the baseline, and drop what is gone."""
    _, matched, place = _check(**given)
    added, gone = len(matched.new), _sum(matched.stale)
    _keep(place, matched, (*matched.known, *matched.new), f"{added} added, {gone} dropped")


@baseline.command(short_help="Drop from the baseline what is gone.")
@_options
def prune(**given: Unpack[_Given]) -> None:
    """Drop from the baseline what no longer occurs in PATHS (the current folder if none); nothing is added.

    What has moved is written down where it is now.
    """
    _, matched, place = _check(**given)
    _keep(place, matched, matched.known, f"{_sum(matched.stale)} dropped")


@baseline.command(short_help="List the findings that the baseline has.")
@click.option("--output-format", "kind", type=click.Choice(KINDS), default=KINDS[0], help=f"One of {', '.join(KINDS)}.")
@_options
def show(kind: str, **given: Unpack[_Given]) -> None:
    """List the findings in PATHS (the current folder if none) that the baseline has, and what is gone."""
    import msgspec

    from portlint import __version__
    from portlint.baseline import stale_problems
    from portlint.report import render

    report, matched, place = _check(**given)
    shown = msgspec.structs.replace(
        report, findings=matched.known, problems=tuple(stale_problems(matched.stale, place))
    )
    sys.stdout.buffer.write(render(shown, kind, color=False, width=100, version=__version__).encode())
    sys.stdout.buffer.flush()
    click.echo(
        f"{place}: {len(matched.known)} findings known, {len(matched.new)} new, {_sum(matched.stale)} gone",
        err=kind != "concise",
    )


def _check(**given: Unpack[_Given]) -> tuple[Report, Matched, Path]:
    """Check the paths as `portlint check` does, and bring what is found and the baseline together."""
    from portlint.baseline import match, place, read
    from portlint.config import Config, load
    from portlint.run import Request, run
    from portlint.settings import selectors, settled

    config = Config() if given["isolated"] else load(Path.cwd())
    machines = targets_of(given["targets"] or config.target)
    config = settled(config, machines)
    request = Request(
        paths=given["paths"] or (".",),
        targets=machines,
        config=config,
        select=selectors(given["select"] or config.select, machines),
        ignore=selectors((*config.ignore, *given["ignore"]), machines),
        exclude=given["exclude"],
        jobs=given["jobs"],
    )
    file = place(config, given["named"])
    known = read(file) if file.is_file() else ()
    report = run(request, progress_line())
    return report, match(report.findings, known, request, report), file


def _keep(place: Path, matched: Matched, findings: Sequence[Finding], what: str) -> None:
    """Write the baseline with these findings and all of which this run says nothing."""
    from portlint.baseline import entries
    from portlint.baseline import write as write_file

    kept = [*entries(findings), *matched.unasked]
    write_file(place, kept)
    click.echo(f"{place}: {_sum(kept)} findings: {what}")


def _sum(entries: Sequence[Entry]) -> int:
    return sum(entry.count for entry in entries)
