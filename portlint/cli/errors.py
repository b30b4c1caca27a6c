"""Mistakes of the user's: one clear message on standard error and exit status 2, never a traceback."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

import click

P = ParamSpec("P")
R = TypeVar("R")

INTERRUPTED = 130
"""the exit status after Ctrl-C, as shells have it; 1 would say that there are findings"""


class UserError(click.ClickException):
    """A mistake in the command line, the configuration or a profile."""

    exit_code = 2

    def format_message(self) -> str:
        """The message, in which a path, a key or a name may stand as somebody else wrote it."""
        return harmless(self.message)


def harmless(text: str) -> str:
    """Text for a terminal or a log that quotes what the linted tree holds: nothing in it is obeyed there."""
    from portlint.report.escape import printable, without_commands

    return without_commands(printable(text, keep="\n"))


def say(text: str, *, err: bool = False) -> None:
    """Print lines that may quote what the linted tree holds."""
    click.echo(harmless(text), err=err)


def friendly(command: Callable[P, R]) -> Callable[P, R]:
    """Turn the errors that a command expects into messages for people."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        from portlint.mistake import Mistake

        try:
            return command(*args, **kwargs)
        except Mistake as error:
            raise UserError(str(error)) from error
        except BrokenPipeError:
            # the reader went away, as `| head` does: not an error, and nothing more to say
            _write_no_more()
            sys.exit(1)
        except OSError as error:
            # a full disk, no room for a process: the system's fault, and never the status of a finding
            _write_no_more()
            raise UserError(_of_system(error)) from error
        except KeyboardInterrupt:
            click.echo("portlint: interrupted", err=True)
            sys.exit(INTERRUPTED)

    return wrapped


def _write_no_more() -> None:
    """Drop what standard output still holds back, so that it does not fail once more when the process ends."""
    with suppress(OSError):  # it may be no file at all
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _of_system(error: OSError) -> str:
    from portlint.source.discover import printable_path

    what = error.strerror or str(error)
    return what if error.filename is None else f"{printable_path(os.fsdecode(error.filename))}: {what}"
