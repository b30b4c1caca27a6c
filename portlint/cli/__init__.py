"""The command line: one module per command, imported when that command runs."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from portlint import __version__
from portlint.cli.errors import friendly

COMMANDS = ("baseline", "check", "clean", "fit", "merge", "report", "rule", "server", "target", "verify")


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"portlint.cli.{cmd_name}"), cmd_name)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="portlint")
@click.option(
    "--rules",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Take the rules in DIR/<pack>/<name>.py as well; repeatable. This runs their code.",
)
@friendly
def main(folders: tuple[Path, ...]) -> None:
    """Find what accelerator code assumes about its machine, and what another machine makes of it."""
    if folders:
        from portlint.rules import add

        for folder in folders:
            add(folder)
