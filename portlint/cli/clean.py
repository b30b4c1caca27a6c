"""`portlint clean`: remove the results that earlier runs have kept."""

from __future__ import annotations

from pathlib import Path

import click

from portlint.cli.errors import UserError, friendly


@click.command(short_help="Remove kept results.")
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where they are  [.portlint_cache beside the configuration].",
)
@friendly
def clean(cache_dir: Path | None) -> None:
    """Remove the results that earlier runs have kept."""
    from portlint import cache
    from portlint.config import load

    folder = cache_dir or cache.of_folder(load(Path.cwd()).root).folder
    try:
        removed = cache.clean(folder)
    except OSError as error:
        raise UserError(f"{folder} cannot be removed: {error.strerror}") from error
    click.echo(f"removed {folder}" if removed else f"there are no results in {folder}")
