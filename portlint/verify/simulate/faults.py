"""How a run ends early: what the code does has no defined result, or is not understood here."""

from __future__ import annotations


class Undecided(Exception):
    """The interpreter does not understand the code, or cannot tell: there is no verdict."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}" if self.line else self.reason


class OutOfTime(Undecided):
    """There is no time left to run it."""


class Fault(Exception):
    """The code does what has no defined result on that machine.

    `kind` is "undefined" (a value that nothing has set is stored or used as an index), "branch" (it decides one),
    "bounds", "mask", "barrier" or "trap".
    """

    def __init__(self, kind: str, reason: str, line: int) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.line = line

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"
