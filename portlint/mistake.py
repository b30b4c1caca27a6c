"""The error that a person can mend: something is wrong with what portlint was given; the message says what to do."""

from __future__ import annotations


class Mistake(Exception):
    """A mistake in a file or an option of the user's; commands print it and exit with status 2."""
