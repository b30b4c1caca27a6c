"""The compilers that answer for a target: found on this machine, asked in a process of their own, quoted.

A toolchain is a module with `find() -> Toolchain | Missing` and `compile(...) -> Answer`. Nothing is downloaded: what
is not there is reported with the command that would install it.
"""

from __future__ import annotations

import msgspec


class Toolchain(msgspec.Struct, frozen=True):
    """A compiler of this machine."""

    name: str
    version: str
    command: tuple[str, ...]
    """how it is started"""


class Missing(msgspec.Struct, frozen=True):
    """A compiler that this machine lacks."""

    name: str
    install: str
    """the command that would install it"""


class Diagnostic(msgspec.Struct, frozen=True, order=True):
    """What a compiler says of a place."""

    path: str
    line: int
    """0 where it names none"""
    kind: str
    """error | warning"""
    words: str


class Answer(msgspec.Struct, frozen=True):
    """What a compiler said of a program."""

    accepted: bool | None
    """None where it gave no answer: it crashed, or the time ran out"""
    diagnostics: tuple[Diagnostic, ...]
    command: str
    seconds: float

    @property
    def words(self) -> str:
        """The first error in the compiler's own words, "" if there is none."""
        return next((one.words for one in self.diagnostics if one.kind == "error"), "")
