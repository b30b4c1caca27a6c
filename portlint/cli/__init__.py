"""The command line: one module per command, imported when that command runs."""

from __future__ import annotations

from importlib import import_module

import click

from portlint import __version__

COMMANDS = ("baseline", "check", "fit", "report", "rule", "target", "verify")


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
def main() -> None:
    """Find what accelerator code assumes about its machine, and what another machine makes of it."""
