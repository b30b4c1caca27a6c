"""Mistakes of the user's: one clear message on standard error and exit status 2, never a traceback."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click

P = ParamSpec("P")
R = TypeVar("R")


class UserError(click.ClickException):
    """A mistake in the command line, the configuration or a profile."""

    exit_code = 2


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
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)

    return wrapped
