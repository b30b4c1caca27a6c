"""What was seen, at which line of the user's, and how often; one line of JSON each, written as it happens."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import NoReturn

_LIBRARIES = (str(Path(__file__).parent), sysconfig.get_path("stdlib"), "<")
"""how the names of files begin that are not the user's"""
_INSTALLED = ("site-packages", "dist-packages")

Place = tuple[str, int]


@cache
def is_users(file: str) -> bool:
    """Whether a file is neither Python's, nor installed, nor portlint's."""
    return not file.startswith(_LIBRARIES) and not any(name in file for name in _INSTALLED)


def place() -> Place:
    """The innermost line that is the user's, of the code that is running; ("", 0) where none is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0


def is_within(file: str) -> bool:
    """Whether the code that is running was called from a file, which the end of its path names."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.endswith(file):
        frame = frame.f_back
    return frame is not None


def place_of(error: BaseException) -> Place:
    """The innermost line that is the user's, of those that an exception went through."""
    found: Place = ("", 0)
    trace = error.__traceback__
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            found = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return found


def _causes(error: BaseException | None) -> set[int]:
    found: set[int] = set()
    while error is not None and id(error) not in found:
        found.add(id(error))
        error = error.__cause__ or error.__context__
    return found


@dataclass
class Event:
    """What was seen at a line."""

    path: str
    line: int
    kind: str
    words: str
    facts: tuple[str, ...]
    """the facts of the target that it rests on"""
    fault: bool = False
    """the target does not do it"""
    caught: bool = False
    """it was refused, and the user's code went on"""
    count: int = 0


class Events:
    """All that was seen, but for what goes on in processes that the user's code starts."""

    def __init__(self, file: Path) -> None:
        self._out = file.open("a", encoding="utf-8")
        self._process = os.getpid()
        self._seen: dict[tuple[Place, str, str], Event] = {}
        self._raised: list[tuple[BaseException, Event]] = []

    def note(self, kind: str, words: str, *facts: str, at: Place | None = None, fault: bool = False) -> Event:
        """Something that costs on the target, or, a fault, that the target does not do."""
        where = at or place()
        event = self._seen.setdefault((where, kind, words), Event(*where, kind, words, facts, fault))
        event.count += 1
        if event.count & (event.count - 1) == 0:  # the process may be ended at any time
            self._write(event)
        return event

    def refuse(self, kind: str, words: str, error: Exception, *facts: str) -> NoReturn:
        """A fault, with the exception that the target's own software raises there."""
        self._raised.append((error, self.note(kind, words, *facts, fault=True)))
        raise error

    def is_refusal(self, ended: BaseException | None) -> bool:
        """Whether a fault is among the causes of an exception."""
        causes = _causes(ended)
        return any(id(error) in causes for error, _ in self._raised)

    def close(self, ended: BaseException | None) -> None:
        """Write all that was seen. What was refused and is not among the causes of the end was caught."""
        causes = _causes(ended)
        for _, event in self._raised:
            event.caught = True
        for error, event in self._raised:
            if id(error) in causes:
                event.caught = False
        for event in self._seen.values():
            event.fault = event.fault and not event.caught
            self._write(event)
        self._out.close()

    def _write(self, event: Event) -> None:
        if os.getpid() == self._process and not self._out.closed:  # threads may outlive the file
            self._out.write(json.dumps(asdict(event)) + "\n")
            self._out.flush()
