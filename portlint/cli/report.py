"""`portlint report`: whether code is ready for a machine, what stops it, and how long the port takes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from portlint.cli.check import targets_of, with_evidence
from portlint.cli.errors import UserError, friendly
from portlint.cli.progress import progress_line

if TYPE_CHECKING:
    from portlint.finding import Report
    from portlint.fit.measured import Measurements
    from portlint.target import Target

KINDS = "html, markdown, json, csv or xlsx"


@click.command(short_help="Say how ready code is for a target, and what the port costs.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=str))
@click.option("--target", "-t", "targets", multiple=True, help="Machine to judge for; repeatable.")
@click.option(
    "--output-format",
    "outputs",
    multiple=True,
    metavar="KIND[:FILE]",
    help=f"{KINDS}; repeatable  [markdown].",
)
@click.option("--since", type=click.Path(path_type=Path), metavar="OLD.json", help="Compare with an earlier report.")
@click.option("--fit", "fitted", type=click.Path(path_type=Path), metavar="FIT.json", help="What 'portlint fit' said.")
@click.option(
    "--measurements",
    multiple=True,
    metavar="[TARGET=]CSV",
    help="Requests that were measured on a target: start_s, first_token_s, end_s, output_tokens, ok.",
)
@click.option("--ttft-ms", type=click.FloatRange(min=0, min_open=True), help="Limit of the time to the first token.")
@click.option("--tpot-ms", type=click.FloatRange(min=0, min_open=True), help="Limit of the time of each further token.")
@click.option("--price", type=click.FloatRange(min=0), help="Price of one device for an hour, in any currency.")
@click.option("--devices", type=click.IntRange(min=1), default=1, help="Devices that served the requests  [1].")
@click.option("--select", multiple=True, metavar="RULES", help="Only these: pack, pack/name or 'pack/name @ target'.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave these out (.gitignore patterns).")
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Worker processes  [one per core].")
@click.option(
    "--evidence",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What 'portlint verify' found out  [portlint-evidence.json, if it is there].",
)
@click.option(
    "--fleet",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Report on the repositories of a 'portlint fleet' run.",
)
@click.option("--repository", metavar="NAME", help="With --fleet: report on this repository alone.")
@click.option(
    "--pages", type=click.Path(path_type=Path), metavar="DIR", help="With --fleet: a page for each repository, as well."
)
@friendly
def report(
    paths: tuple[str, ...],
    targets: tuple[str, ...],
    outputs: tuple[str, ...],
    since: Path | None,
    fitted: Path | None,
    measurements: tuple[str, ...],
    ttft_ms: float | None,
    tpot_ms: float | None,
    price: float | None,
    devices: int,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    isolated: bool,
    jobs: int | None,
    evidence: Path | None,
    fleet: Path | None,
    repository: str | None,
    pages: Path | None,
) -> None:
    """Write a readiness report on PATHS (the current folder if none): one verdict per target, and all behind it.

    The exit status is 0 whatever the report says; `portlint check` is the command that fails a build.
    """
    from portlint import __version__, day
    from portlint.config import Config, load
    from portlint.fit.measured import Limits
    from portlint.readiness.assess import assess
    from portlint.readiness.gates import fit, measured, read_fit
    from portlint.readiness.history import compare, read
    from portlint.run import Request, run
    from portlint.settings import selectors, settled

    if fleet is None and (repository or pages):
        raise UserError("'--repository' and '--pages' are about a run of 'portlint fleet': give it with '--fleet DIR'.")
    if fleet is not None:
        if paths or select or ignore or exclude or evidence:
            raise UserError(
                "'--fleet' reads what was found already: name no paths, rules, patterns or evidence with it."
            )
        if repository is None:
            if since or fitted or measurements:
                raise UserError("gates and '--since' are about one repository: name it with '--repository NAME'.")
            _over_repositories(fleet, targets, outputs, pages)
            return
    config = Config() if isolated else load(Path.cwd())
    machines = targets_of(targets or config.target) if fleet is None else _targets_of_run(fleet, targets)
    config = settled(config, machines)
    kinds = [_output(one) for one in outputs] or [("markdown", None)]
    old = read(since) if since else None
    fit_answer = read_fit(fitted) if fitted else None
    requests = _measured(measurements, machines)
    limits = Limits(ttft_ms / 1e3, tpot_ms / 1e3) if ttft_ms and tpot_ms else None
    if fleet is not None and repository is not None:
        found = _found_in_run(fleet, repository, machines)
    else:
        request = Request(
            paths=paths or (".",),
            targets=machines,
            config=config,
            select=selectors(select or config.select, machines),
            ignore=selectors((*config.ignore, *ignore), machines),
            exclude=exclude,
            jobs=jobs,
        )
        found = with_evidence(run(request, progress_line()), request.paths, evidence)
    today = day.today().isoformat()
    readiness = assess(
        found,
        machines,
        paths=(repository,) if repository else paths or (".",),
        date=today,
        version=__version__,
        gates={
            one.name: (fit(fit_answer, one.name), *measured(requests.get(one.name), limits, price, devices))
            for one in machines
        },
        progress=compare(old, found, today) if old else None,
    )
    for kind, file in kinds:
        from portlint.readiness.formats import render

        _write(render(readiness, kind), file)


def _over_repositories(folder: Path, targets: tuple[str, ...], outputs: tuple[str, ...], pages: Path | None) -> None:
    """Report on all repositories of a run, and write a page for each if that is asked for."""
    from portlint import __version__, day
    from portlint.fleet.folder import read
    from portlint.readiness.fleet import overview
    from portlint.readiness.formats.fleet import KINDS, render

    machines = _targets_of_run(folder, targets)
    kinds = [_split(one, KINDS) for one in outputs] or [("markdown", None)]
    run = read(folder)
    found = overview(folder, run, machines, date=day.today().isoformat(), version=__version__)
    names = {} if pages is None else {one.repository.name: one.repository.file for one in found.entries}
    files = {name: f"{file.removesuffix('.json')}.html" for name, file in names.items()}
    if pages is not None:
        _make(pages)
    for name, file in files.items():
        _write(_page(folder, name, machines), Path(pages or "", file))
    for kind, to in kinds:
        home = to.parent if to else Path()
        links = {name: os.path.relpath(Path(pages or "", file), home) for name, file in files.items()}
        _write(render(found, kind, links), to)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror}") from error


def _targets_of_run(folder: Path, names: tuple[str, ...]) -> tuple[Target, ...]:
    """The targets that a run over a fleet was for, or those of them that are named."""
    from portlint.fleet.folder import profiles, read

    return targets_of(names or tuple(profiles(folder, read(folder).targets).values()))


def _found_in_run(folder: Path, repository: str, targets: tuple[Target, ...]) -> Report:
    """What a run over a fleet found in one repository."""
    from portlint.fleet.folder import named, read, report_of
    from portlint.readiness.fleet import for_targets

    return for_targets(report_of(folder, named(read(folder), repository)), targets)


def _page(folder: Path, repository: str, targets: tuple[Target, ...]) -> bytes:
    """The page of one repository of a run."""
    from portlint import __version__, day
    from portlint.readiness.assess import assess
    from portlint.readiness.formats import render
    from portlint.readiness.gates import fit, measured

    readiness = assess(
        _found_in_run(folder, repository, targets),
        targets,
        paths=(repository,),
        date=day.today().isoformat(),
        version=__version__,
        gates={one.name: (fit(None, one.name), *measured(None, None, None, 1)) for one in targets},
    )
    return render(readiness, "html")


def _measured(given: tuple[str, ...], targets: tuple[Target, ...]) -> dict[str, Measurements]:
    """The measured requests of each target by name."""
    from portlint.fit.measured import read
    from portlint.target import load

    found: dict[str, Measurements] = {}
    for text in given:
        name, is_named, file = text.rpartition("=")
        if not is_named and len(targets) > 1:
            raise UserError(f"on which target was {file} measured? Write '--measurements {targets[0].name}={file}'.")
        target = load(name) if is_named else targets[0]
        if target not in targets:
            raise UserError(f"'--measurements {text}' is for {target.name}, which is none of the targets.")
        found[target.name] = read(Path(file))
    return found


def _output(text: str) -> tuple[str, Path | None]:
    from importlib.util import find_spec

    from portlint.readiness.formats import KINDS

    kind, file = _split(text, KINDS)
    if kind == "xlsx" and file is None:
        raise UserError("a workbook goes to a file: '--output-format xlsx:FILE'.")
    if kind == "xlsx" and find_spec("xlsxwriter") is None:
        raise UserError("a workbook needs XlsxWriter: pip install 'portlint[xlsx]'")
    return kind, file


def _split(text: str, kinds: tuple[str, ...]) -> tuple[str, Path | None]:
    kind, _, file = text.partition(":")
    if kind not in kinds:
        raise UserError(f"there is no output format '{kind}' for this report: it is one of {', '.join(kinds)}.")
    return kind, Path(file) if file else None


def _write(content: bytes, file: Path | None) -> None:
    if file is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    from portlint.files import replace

    try:
        replace(file, content)
    except OSError as error:
        raise UserError(f"cannot write the report to {file}: {error.strerror}") from error
