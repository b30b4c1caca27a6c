"""`portlint report`: whether code is ready for a machine, what stops it, and how long the port takes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from portlint.cli.check import targets_of, with_evidence
from portlint.cli.errors import UserError, friendly
from portlint.cli.progress import progress_line

if TYPE_CHECKING:
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

    config = Config() if isolated else load(Path.cwd())
    machines = targets_of(targets or config.target)
    config = settled(config, machines)
    kinds = [_output(one) for one in outputs] or [("markdown", None)]
    old = read(since) if since else None
    fit_answer = read_fit(fitted) if fitted else None
    requests = _measured(measurements, machines)
    limits = Limits(ttft_ms / 1e3, tpot_ms / 1e3) if ttft_ms and tpot_ms else None
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
        paths=request.paths,
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

    kind, _, file = text.partition(":")
    if kind not in KINDS:
        raise UserError(f"there is no output format '{kind}' for a report: it is one of {', '.join(KINDS)}.")
    if kind == "xlsx" and not file:
        raise UserError("a workbook goes to a file: '--output-format xlsx:FILE'.")
    if kind == "xlsx" and find_spec("xlsxwriter") is None:
        raise UserError("a workbook needs XlsxWriter: pip install 'portlint[xlsx]'")
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
