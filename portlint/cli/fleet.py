"""`portlint fleet`: check many checkouts on many machines, into one folder of tables and reports."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from portlint.cli.check import VERDICTS, targets_of
from portlint.cli.errors import UserError, friendly
from portlint.settings import selectors

if TYPE_CHECKING:
    from portlint.fleet.folder import Fleet, Repository
    from portlint.fleet.job import Options
    from portlint.fleet.listing import Checkout

NEEDED = ("distributed", "pyarrow")
SLICE_BYTES = 4_000_000
"""of source: about a minute of one processor"""


@click.command(short_help="Check many checkouts on a Dask cluster, into one folder of tables.")
@click.argument("listed", metavar="LIST", type=click.Path(path_type=str))
@click.option("--target", "-t", "targets", multiple=True, help="Machine to judge for; repeatable.")
@click.option(
    "--output",
    "place",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path("portlint-fleet"),
    help="The folder to write; an earlier run in it is replaced  [portlint-fleet].",
)
@click.option("--scheduler", metavar="ADDRESS", help="Use the Dask cluster at this address  [one of this machine].")
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Workers of the local cluster  [one per core].")
@click.option("--select", multiple=True, metavar="RULES", help="Only these: pack, pack/name or 'pack/name @ target'.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave these out (.gitignore patterns).")
@click.option(
    "--fail-on", type=click.Choice(VERDICTS), help="The mildest verdict that makes the exit status 1  [degrades]."
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever is found.")
@click.option("--isolated", is_flag=True, help="Read no configuration file of any checkout.")
@click.option(
    "--slice-size",
    "slice_bytes",
    type=click.IntRange(min=1),
    metavar="BYTES",
    default=SLICE_BYTES,
    help=f"Split what has more source than this  [{SLICE_BYTES}].",
)
@click.pass_context
@friendly
def fleet(
    ctx: click.Context,
    listed: str,
    targets: tuple[str, ...],
    place: Path,
    scheduler: str | None,
    jobs: int | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    fail_on: str | None,
    exit_zero: bool,
    isolated: bool,
    slice_bytes: int,
) -> None:
    """Check every checkout of LIST ('-': standard input) as 'portlint check' does in it, by its own configuration.

    A line of LIST is a folder or the URL of a git repository, with 'ref=REF' (of a URL) or 'name=NAME' behind it, or a
    comment behind '#'. The exit status is 2 if a repository could not be checked as a whole.
    """
    from portlint.target import load

    _need(NEEDED)
    if scheduler is not None and jobs is not None:
        raise UserError("'--jobs' is the size of a local cluster: leave it out with '--scheduler'.")
    machines = targets_of(targets)
    selectors((*select, *ignore), machines)
    checkouts = _read(listed)
    folders = ctx.parent.params.get("folders", ()) if ctx.parent else ()

    from portlint.fleet.folder import Fleet, appearing, write_profiles, write_summary
    from portlint.fleet.job import Options
    from portlint.fleet.tables import write
    from portlint.report.escape import without_commands

    own = {load(name).name: Path(name).read_bytes() for name in targets if name.endswith(".toml")}
    files = {name: f"{number}.toml" for number, name in enumerate(own)}
    options = Options(
        targets=tuple(files.get(one.name, one.name) for one in machines),
        profiles={files[name]: content for name, content in own.items()},
        select=select,
        ignore=ignore,
        exclude=exclude,
        isolated=isolated,
        fail_on=fail_on,
        rules=tuple(str(folder.absolute()) for folder in folders),
        slice_bytes=slice_bytes,
    )
    with _ended_by_signals(), appearing(place) as folder:
        repositories = _checked(checkouts, options, folder, scheduler, jobs)
        found = Fleet(tuple(one.name for one in machines), {one.name: one.title for one in machines}, repositories)
        write(folder, found)
        write_profiles(folder, own)
        write_summary(folder, found)
    click.echo(without_commands("\n".join(_table(found))))
    if not checkouts:
        click.echo("portlint: no repositories to check", err=True)
    sys.exit(0 if exit_zero and found.status < 2 else found.status)


def _need(modules: Sequence[str]) -> None:
    """Raise UserError where the extra is not installed."""
    from importlib.util import find_spec

    if missing := [name for name in modules if find_spec(name) is None]:
        raise UserError(f"a fleet needs {' and '.join(missing)}: pip install 'portlint[fleet]'")


def _read(listed: str) -> tuple[Checkout, ...]:
    from portlint.fleet.listing import read

    try:
        content = sys.stdin.buffer.read() if listed == "-" else Path(listed).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {listed}: {error.strerror}") from error
    found = read(content.decode("utf-8", errors="surrogateescape"))
    for sentence in found.repeated:
        click.echo(f"portlint: {sentence}", err=True)
    return found.checkouts


def _checked(
    checkouts: tuple[Checkout, ...], options: Options, folder: Path, scheduler: str | None, jobs: int | None
) -> tuple[Repository, ...]:
    if not checkouts:
        return ()
    from portlint.fleet.cluster import cluster
    from portlint.fleet.run import run
    from portlint.run import cores

    with cluster(scheduler, jobs or cores()) as client:
        return run(client, checkouts, options, folder, _told)


def _told(repository: Repository, done: int, total: int) -> None:
    """Say on standard error what is done: a counter for somebody who watches, and what went wrong for everybody."""
    from portlint.report.escape import printable

    is_watched = sys.stderr.isatty()
    if repository.error:
        start = "\r\x1b[K" if is_watched else ""
        click.echo(f"{start}portlint: {printable(f'{repository.name}: {repository.error}')}", err=True)
    if is_watched:
        end = "\r\x1b[K" if done == total else ""
        click.echo(f"\rportlint: {done:,} of {total:,} repositories{end}", err=True, nl=False)


def _table(fleet: Fleet) -> Iterator[str]:
    """What was found, for people: a line for each repository."""
    from portlint.fleet.folder import State, sums
    from portlint.readiness.wording import many
    from portlint.report.escape import printable

    width = max((len(printable(one.name)) for one in fleet.repositories), default=0)
    for one in fleet.repositories:
        said = one.error
        if one.state is not State.FAILED:
            said = "; ".join([many(one.files, "file"), *(f"{name}: {_counts(one, name)}" for name in fleet.targets)])
        state = "" if one.state is State.CHECKED else f"{one.state}: "
        yield f"{printable(one.name):<{width}}  {printable(state + said)}"
    found = sums(fleet)
    of = many(found["repositories"], "repository", "repositories")
    yield f"{many(found['findings'], 'finding')} in {many(found['files'], 'file')} of {of}."


def _counts(repository: Repository, target: str) -> str:
    own = repository.verdicts.get(target, {})
    return ", ".join(f"{count:,} {verdict}" for verdict, count in own.items()) or "nothing"


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM end the run as Ctrl-C does, so that the cluster ends and nothing half-written stays."""

    def end(number: int, _: object) -> NoReturn:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
