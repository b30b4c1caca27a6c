"""`portlint merge`: one report from the reports of all shards of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from portlint.cli.check import VERDICTS, outputs_of, status, with_evidence, write
from portlint.cli.errors import friendly


@click.command(short_help="Join the JSON reports of 'check --shard' to that of one run.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--output-format", "outputs", multiple=True, metavar="KIND[:FILE]", help="As for 'portlint check'; repeatable."
)
@click.option(
    "--fail-on", type=click.Choice(VERDICTS), help="The mildest verdict that makes the exit status 1  [degrades]."
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever was found.")
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
@click.option(
    "--color", type=click.Choice(("auto", "always", "never")), default="auto", help="Colours in the full report."
)
@click.option(
    "--evidence",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What 'portlint verify' found out  [portlint-evidence.json, if it is there].",
)
@friendly
def merge(
    files: tuple[Path, ...],
    outputs: tuple[str, ...],
    fail_on: str | None,
    exit_zero: bool,
    isolated: bool,
    color: str,
    evidence: Path | None,
) -> None:
    """Write the report that one run without shards would have written, from the JSON reports of all its shards.

    FILES are what 'portlint check --shard I/N --output-format json' wrote for I from 1 to N, in any order.
    """
    from portlint import __version__
    from portlint.config import Config, load
    from portlint.shard import merged

    config = Config() if isolated else load(Path.cwd())
    kinds = outputs_of(outputs)
    report, paths = merged(files, __version__)
    report = with_evidence(report, paths, evidence)
    write(report, kinds, color)
    sys.exit(0 if exit_zero else status(report, fail_on or config.fail_on))
