"""Runs a function over many files in worker processes, so that no file and no rule can take the scan down.

Parsers crash, hang and eat memory on small inputs. So the work is done in processes that the kernel ends when they go
too far (`portlint/worker.py`). This module hands the files out, one at a time to each worker, and decides what the
death of a worker means:

- in a rule: the file is done again without that rule, and a problem names the rule;
- in the parser, in reading, or anywhere else: the file is given up, and a problem says why;
- a crash counts only if it happens again in a fresh worker with no other file in work, because it can also come of
  what the worker did before, or of a machine short of memory. So results do not depend on the number of jobs.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Generic

import msgspec

from portlint.files import interrupts_held
from portlint.finding import FileResult, Problem
from portlint.worker import (
    HEADER_BYTES,
    OTHER,
    OUT_OF_MEMORY,
    PARSE,
    READ,
    Link,
    PhaseBoard,
    Reply,
    Request,
    T,
    Work,
    one_line,
    send,
    serve,
)

if TYPE_CHECKING:
    from portlint.source.prescan import Limits

_WALL_FACTOR = 10
"""A file may take so many times its CPU time by the clock. That stops one that sleeps, and leaves room for more jobs
than processors: what is stopped must not depend on how busy the machine is."""

_CHUNK_BYTES = 1 << 20
_BIG_BYTES = 64 << 10
"""of a file that takes long"""


def run(
    tasks: Sequence[T],
    work: Work[T],
    *,
    jobs: int,
    limits: Limits,
    progress: Callable[[int, int], None] | None = None,
) -> list[FileResult]:
    """Work on all tasks. The results are sorted by path and the same for any number of jobs.

    Load everything that `work` needs before the call: the workers are forked and share it. `progress` is called with
    the number of files done and of all files; it must not start threads, since a process with threads forks at its
    own risk.

    Where there is no fork (Windows) the work is done in this process, one file after the other: exceptions still cost
    one file or one rule only, but a crash, a hang or a lack of memory is not contained.

    Raises OSError if not even one worker can be started. Whatever is raised, KeyboardInterrupt included, all workers
    have ended before.
    """
    files = [_File(index, task.path, limits.for_size(task.size)) for index, task in enumerate(tasks)]
    # The big ones first, so that no worker is left alone with one when the others are done; then folder by folder, for
    # what a file asks of its neighbours is at hand for the next.
    waiting = sorted(files, key=lambda file: (-max(tasks[file.index].size, _BIG_BYTES), file.path))
    done = 0

    def settled() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(done, len(files))

    if hasattr(os, "fork"):
        _Supervisor(tasks, work, jobs, limits, settled).run(waiting)
    else:
        _run_here(tasks, work, settled, waiting)
    results = [file.result for file in files if file.result is not None]
    return sorted(results, key=lambda result: result.path)


def _run_here(tasks: Sequence[T], work: Work[T], settled: Callable[[], None], files: Sequence[_File]) -> None:
    """Do the work without workers."""
    phase = OTHER

    def note(name: str) -> None:
        nonlocal phase
        phase = name

    for file in files:
        while file.result is None:
            phase = OTHER
            try:
                file.finish(work(tasks[file.index], file.left_out, note))
            except Exception as error:
                file.fail(_Failure(_Kind.EXCEPTION, phase, f"raised {one_line(error)}"))
        settled()


# ---- what became of a file ------------------------------------------------------------------------------------------


class _Kind(Enum):
    CRASH = auto()
    TIMEOUT = auto()
    EXCEPTION = auto()


_SUBJECTS = {READ: "reading", PARSE: "the parser", OTHER: "the scan"}


class _Failure(msgspec.Struct, frozen=True):
    """Why an attempt at a file brought no result."""

    kind: _Kind
    phase: str
    what: str
    """a predicate: "crashed (segmentation fault)" """

    @property
    def in_rule(self) -> bool:
        return self.phase not in _SUBJECTS

    def problem(self, path: str, consequence: str) -> Problem:
        """State the failure for the report."""
        if self.kind is _Kind.TIMEOUT:
            kind = "timeout"
        elif self.in_rule:
            kind = "rule"
        else:
            kind = READ if self.phase == READ else PARSE
        subject = f"'{self.phase}'" if self.in_rule else _SUBJECTS[self.phase]
        return Problem(path, 0, kind, f"{subject} {self.what}; {consequence}")


class _File:
    """A file on its way through the workers."""

    def __init__(self, index: int, path: str, limits: Limits) -> None:
        self.index = index
        self.path = path
        self.limits = limits
        self.left_out: frozenset[str] = frozenset()
        self.suspect = False
        """whether it crashed, and is to be tried again alone before that counts"""
        self.result: FileResult | None = None
        self._problems: list[Problem] = []
        self._stopped = 0

    def finish(self, result: FileResult) -> None:
        """Take the result of the work."""
        self.result = msgspec.structs.replace(result, problems=(*result.problems, *self._problems))

    def fail(self, failure: _Failure) -> None:
        """Take a failure. Unless there is a result now, the file is to be tried again."""
        if failure.kind is _Kind.CRASH and not self.suspect:
            self.suspect = True
            return
        self.suspect = False
        if not failure.in_rule or failure.phase in self.left_out:
            self._give_up(failure.problem(self.path, "the file was not analysed"))
            return
        self.left_out |= {failure.phase}
        problem = failure.problem(self.path, "its findings in this file are missing")
        self._problems.append(problem)
        # An exception is cheap; only what kills workers is limited.
        self._stopped += failure.kind is not _Kind.EXCEPTION
        if self._stopped >= self.limits.rule_timeouts:
            message = f"{self._stopped} rules were stopped in this file, so it was not analysed"
            self._give_up(Problem(self.path, 0, problem.kind, message))

    def _give_up(self, problem: Problem) -> None:
        self._problems.append(problem)
        self.finish(FileResult(self.path, analysed=False))


def _cause_of_death(status: int, phase: str, limits: Limits) -> _Failure:
    """Tell from the wait status of a worker why it died."""
    code = os.waitstatus_to_exitcode(status)
    memory = _in_words(limits.memory_bytes)
    if code == -signal.SIGPROF:
        seconds = limits.parse_seconds if phase in _SUBJECTS else limits.rule_seconds
        return _Failure(_Kind.TIMEOUT, phase, f"was stopped after {seconds:g} s of CPU time")
    if code == -signal.SIGXCPU:
        # The time for the whole file is not the fault of the rule that happened to be the last.
        return _Failure(_Kind.TIMEOUT, OTHER, f"was stopped after {limits.file_seconds:g} s of CPU time")
    if code == OUT_OF_MEMORY:
        what = f"needed more than {memory} of memory"
    elif code == -signal.SIGABRT:
        what = f"crashed (aborted, as parsers do that need more than the {memory} of memory they may have)"
    elif code == -signal.SIGKILL:
        what = "was killed from outside, most likely because the machine ran out of memory"
    elif code < 0:
        what = f"crashed ({(signal.strsignal(-code) or f'signal {-code}').lower()})"
    else:
        what = f"ended its process with status {code}"
    return _Failure(_Kind.CRASH, phase, what)


def _in_words(size: int) -> str:
    """Write a number of bytes for people."""
    return f"{size / 2**30:g} GiB" if size >= 2**30 else f"{size / 2**20:g} MiB"


# ---- workers --------------------------------------------------------------------------------------------------------


class _Worker:
    """A worker process as its parent sees it."""

    def __init__(self, pid: int, requests: int, replies: int, lifeline: int, board: PhaseBoard) -> None:
        self.pid = pid
        self.requests = requests
        self.replies = replies
        self.lifeline = lifeline
        self.board = board
        self.file: _File | None = None
        """what it works on; None while it is idle"""
        self.deadline = 0.0
        self._received = bytearray()

    @property
    def descriptors(self) -> tuple[int, int, int]:
        """The parent's ends of its pipes."""
        return self.requests, self.replies, self.lifeline

    def start(self, file: _File) -> None:
        """Hand it a file."""
        self.file = file
        self.deadline = time.monotonic() + _WALL_FACTOR * file.limits.file_seconds
        # If it is dead already, the end of its replies will say so, as for any other death.
        with suppress(BrokenPipeError):
            send(self.requests, msgspec.msgpack.encode(Request(file.index, file.left_out)))

    def receive(self, chunk: bytes) -> bytes | None:
        """Add to what was received. Returns the message if it is complete now."""
        self._received += chunk
        end = HEADER_BYTES + int.from_bytes(self._received[:HEADER_BYTES], "little")
        if len(self._received) < end:
            return None
        message = bytes(memoryview(self._received)[HEADER_BYTES:end])
        self._received = bytearray()
        return message

    def bury(self) -> int:
        """Make sure that it is dead, release everything of it, and return its wait status."""
        os.kill(self.pid, signal.SIGKILL)  # the status of a process that has ended already stays as it is
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.board.close()
        return os.waitpid(self.pid, 0)[1]


class _Supervisor(Generic[T]):
    """Keeps up to `jobs` workers busy until every file is settled."""

    def __init__(
        self, tasks: Sequence[T], work: Work[T], jobs: int, limits: Limits, settled: Callable[[], None]
    ) -> None:
        self._tasks = tasks
        self._work = work
        self._jobs = max(1, jobs)
        self._limits = limits
        self._settled = settled
        self._waiting: deque[_File] = deque()
        self._suspects: deque[_File] = deque()
        self._workers: list[_Worker] = []
        self._selector = selectors.PollSelector()
        self._decode = msgspec.msgpack.Decoder(Reply).decode

    def run(self, files: Sequence[_File]) -> None:
        """Settle all files."""
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            # Some launchers pass this on; the kernel then throws the exit statuses of children away.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._waiting.extend(files)
        try:
            while self._hand_out():
                nearest = min(worker.deadline for worker in self._workers if worker.file)
                for key, _ in self._selector.select(max(0.0, nearest - time.monotonic())):
                    self._hear(key.data)
                self._stop_overdue()
        finally:
            with interrupts_held():
                while self._workers:
                    self._bury(self._workers[-1])

    def _hand_out(self) -> bool:
        """Give files to the workers that are free; False if everything is done."""
        while self._waiting and (worker := self._free_worker()):
            worker.start(self._waiting.popleft())
        if self._suspects and not any(worker.file for worker in self._workers):
            while self._workers:
                self._bury(self._workers[-1])
            self._fork().start(self._suspects.popleft())
        return any(worker.file for worker in self._workers)

    def _free_worker(self) -> _Worker | None:
        for worker in self._workers:
            if worker.file is None:
                return worker
        if len(self._workers) >= self._jobs:
            return None
        try:
            return self._fork()
        except OSError:
            if not self._workers:
                raise
            self._jobs = len(self._workers)  # the machine has no room for more
            return None

    def _fork(self) -> _Worker:
        """Start a worker."""
        board = PhaseBoard()
        (request_end, requests), (replies, reply_end), (life_end, lifeline) = pipes = [os.pipe() for _ in range(3)]
        with interrupts_held():
            try:
                pid = os.fork()
            except OSError:
                for descriptor in (end for pipe in pipes for end in pipe):
                    os.close(descriptor)
                raise
            worker = _Worker(pid, requests, replies, lifeline, board)
            self._workers.append(worker)
            if pid == 0:
                parents = [descriptor for each in self._workers for descriptor in each.descriptors]
                serve(self._tasks, self._work, self._limits, Link(request_end, reply_end, life_end, board), parents)
            self._selector.register(replies, selectors.EVENT_READ, worker)
            for descriptor in (request_end, reply_end, life_end):
                os.close(descriptor)
        return worker

    def _hear(self, worker: _Worker) -> None:
        """Take what a worker wrote, or its death."""
        chunk = os.read(worker.replies, _CHUNK_BYTES)
        if not chunk:
            phase = worker.board.read()
            status = self._bury(worker)
            limits = worker.file.limits if worker.file else self._limits
            self._fail(worker, _cause_of_death(status, phase, limits))
            return
        message = worker.receive(chunk)
        if message is None:
            return
        try:
            reply = self._decode(message)
        except msgspec.DecodeError as error:
            self._fail(worker, _Failure(_Kind.EXCEPTION, OTHER, f"returned something unusable ({one_line(error)})"))
            return
        if reply.result is None:
            self._fail(worker, _Failure(_Kind.EXCEPTION, reply.phase, f"raised {reply.error}"))
        elif worker.file:
            worker.file.finish(reply.result)
            self._settle(worker)

    def _stop_overdue(self) -> None:
        """End the workers whose file has taken too long by the clock: they sleep, or wait for something."""
        now = time.monotonic()
        for worker in [worker for worker in self._workers if worker.file and worker.deadline <= now]:
            phase = worker.board.read()
            self._bury(worker)
            limits = worker.file.limits if worker.file else self._limits
            seconds = _WALL_FACTOR * limits.file_seconds
            self._fail(worker, _Failure(_Kind.TIMEOUT, phase, f"was stopped after {seconds:g} s by the clock"))

    def _fail(self, worker: _Worker, failure: _Failure) -> None:
        if worker.file:
            worker.file.fail(failure)
            self._settle(worker)

    def _settle(self, worker: _Worker) -> None:
        """Take a worker's file back: it is done, or is to be tried again."""
        file, worker.file = worker.file, None
        if file is None:
            return
        if file.result is not None:
            self._settled()
        elif file.suspect:
            self._suspects.append(file)
        else:
            self._waiting.appendleft(file)

    def _bury(self, worker: _Worker) -> int:
        with interrupts_held():
            self._selector.unregister(worker.replies)
            self._workers.remove(worker)
            return worker.bury()
