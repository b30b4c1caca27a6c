"""The analysis behind an editor: a text goes in, its findings come out, and what it takes keeps nobody waiting.

Two processes, one below the other, both forked before there is any thread. The upper one takes the questions. The lower
one, the clerk, answers one after the other and so remembers what it read of the project, which a keystroke does not
change. What the clerk cannot answer, because a parser took it down, is analysed again as `portlint check` would do it,
in a worker of its own; and there is a new clerk for the next question.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from portlint.finding import Finding
from portlint.mistake import Mistake

if TYPE_CHECKING:
    from portlint.run import Request

_PATIENCE_SECONDS = 5.0
"""that the clerk gets for an answer"""
_FORK = multiprocessing.get_context("fork")


class Question(msgspec.Struct, frozen=True):
    """A text to analyse."""

    folder: str
    """where configuration is looked for, upwards from here"""
    path: str
    text: str
    targets: tuple[str, ...]
    """what the editor asks for; those of the configuration if empty"""
    anew: bool = False
    """whether files of the project may have changed since the last question"""


class Answer(msgspec.Struct, frozen=True):
    """What was found in it."""

    findings: tuple[Finding, ...] = ()
    mistake: str = ""
    """why nothing could be analysed; "" if it was"""


class Analyst:
    """The analysing processes, seen from the server. One question at a time."""

    def __init__(self) -> None:
        self._pipe, other = _FORK.Pipe()
        self._process = _FORK.Process(target=_answer_all, args=(other, self._pipe), daemon=False)
        self._process.start()
        other.close()
        self._turn = asyncio.Lock()
        self._anew = False

    def renew(self) -> None:
        """Let nothing that was read of the project count from the next question on."""
        self._anew = True

    async def ask(self, question: Question) -> Answer:
        """What is found in a text. The editor goes on while it is analysed."""
        async with self._turn:
            self._pipe.send(msgspec.structs.replace(question, anew=self._anew))
            self._anew = False
            return await asyncio.to_thread(self._pipe.recv)

    def close(self) -> None:
        """End the processes."""
        self._pipe.close()
        self._process.join(timeout=5)
        self._process.kill()


def _answer_all(pipe: Connection, server: Connection) -> None:
    """The loop of the upper process; it ends with its pipe."""
    server.close()  # a pipe ends with the last copy of its end
    clerk = _Clerk()
    while True:
        try:
            question = pipe.recv()
        except (EOFError, OSError):
            break
        if question.anew:
            clerk.close()
            clerk = _Clerk()
        answer = clerk.ask(question)
        if answer is None:
            clerk.close()
            clerk = _Clerk()
            answer = analyse(question)
        pipe.send(answer)
    clerk.close()


def analyse(question: Question) -> Answer:
    """Check one text, in a worker that ends with it."""
    from portlint.run import run

    try:
        return Answer(run(_request(question)).findings)
    except Mistake as mistake:
        return Answer(mistake=str(mistake))


class _Clerk:
    """The lower process, seen from the upper one."""

    def __init__(self) -> None:
        self._pipe, other = _FORK.Pipe()
        self._process = _FORK.Process(target=_be_clerk, args=(other, self._pipe), daemon=True)
        self._process.start()
        other.close()

    def ask(self, question: Question) -> Answer | None:
        """What it finds in a text; None where it failed, or takes too long."""
        try:
            self._pipe.send(question)
            if self._pipe.poll(_PATIENCE_SECONDS):
                answer: Answer | None = self._pipe.recv()
                return answer
        except (EOFError, OSError):
            pass
        return None

    def close(self) -> None:
        """End it."""
        self._pipe.close()
        self._process.kill()
        self._process.join()


def _be_clerk(pipe: Connection, upper: Connection) -> None:
    from portlint.source.prescan import Limits
    from portlint.worker import limit_memory, roomy

    upper.close()
    limits = Limits()
    limit_memory(limits.memory_bytes)
    roomy(limits, partial(_answer_each, pipe))


def _answer_each(pipe: Connection) -> None:
    from portlint.run import prepare

    while True:
        try:
            question = pipe.recv()
        except (EOFError, OSError):
            return
        answer: Answer | None = None
        used = None
        try:
            tasks, scan = prepare(_request(question))
            used = scan.rules, tasks[0].kind
            answer = Answer(scan(tasks[0], frozenset(), lambda _: None).findings)
        except Mistake as mistake:
            answer = Answer(mistake=str(mistake))
        except Exception:  # noqa: S110  (whatever a rule raises: the other way of analysis goes on without that rule)
            pass
        pipe.send(answer)
        if used is not None:
            rules, kind = used
            rules.compile([kind])
        gc.collect()


def _request(question: Question) -> Request:
    """Raises Mistake for a configuration or a target that cannot be used."""
    from portlint.config import load
    from portlint.run import Request
    from portlint.settings import selectors, settled
    from portlint.target import load as target

    config = load(Path(question.folder))
    names = question.targets or config.target
    if not names:
        raise Mistake("no target: name one in the settings of the editor or as 'target' in portlint.toml")
    machines = tuple(dict.fromkeys(map(target, names)))
    return Request(
        paths=(),
        targets=machines,
        config=settled(config, machines),
        select=selectors(config.select, machines),
        ignore=selectors(config.ignore, machines),
        stdin=(question.path, question.text.encode("utf-8", "replace")),
        jobs=1,
    )
