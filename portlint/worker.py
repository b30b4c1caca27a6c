"""A worker process: runs a function on one file after the other, under limits that the kernel enforces.

A parser in C cannot be stopped from within: it holds the interpreter's lock, so neither a signal handler nor another
thread gets a turn. Every limit here therefore ends the whole process, and `portlint/engine.py` reads from its remains
what happened: the exit status says how it ended, and the phase board says what it was doing.
"""

from __future__ import annotations

import faulthandler
import gc
import math
import mmap
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeAlias, TypeVar

import msgspec

from portlint.finding import FileResult

if TYPE_CHECKING:
    from portlint.source.prescan import Limits

if sys.platform != "win32":  # where there are no workers, and the engine uses the values of this module only
    import fcntl
    import resource


class Task(Protocol):
    """What is worked on: one file."""

    @property
    def path(self) -> str:
        """The file's name in reports."""

    @property
    def size(self) -> int:
        """Its size in bytes; big files are handed out first."""


Phase: TypeAlias = Callable[[str], None]
"""Called with "read", "parse" or the name of a rule before that part of the work begins."""

T = TypeVar("T", bound=Task)
Work: TypeAlias = Callable[[T, frozenset[str], Phase], FileResult]
"""(task, names of rules to leave out, phase) -> result"""

READ, PARSE, OTHER = "read", "parse", ""
"""The phases that are not rules; OTHER is whatever comes before the first and after the last."""

OUT_OF_MEMORY = 112
"""The exit status of a worker that ran into a MemoryError: reporting it any other way could need memory."""

HEADER_BYTES = 8
"""Every message is preceded by its length, a little-endian integer of this size."""

_COLLECT_BYTES = 4 << 20
_LEAST_BYTES = 16 << 10
"""Garbage is collected once for so many bytes of source; each file counts for at least the second figure."""


class Request(msgspec.Struct, frozen=True, array_like=True):
    """Work for a worker."""

    index: int
    """in the sequence of tasks, of which the worker has its own copy since it was forked"""
    left_out: frozenset[str]


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """A result, or the exception that came instead of one and the phase in which it was raised."""

    result: FileResult | None = None
    error: str = ""
    phase: str = OTHER


class PhaseBoard:
    """The phase that a worker is in, in memory which the parent shares and can read after the worker's death."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)

    def write(self, phase: str) -> None:
        """Put up a phase. No system call: this happens some thirty times for every file."""
        name = phase.encode() + b"\0"
        self._memory[: len(name)] = name

    def read(self) -> str:
        """Return the phase that was put up last."""
        return self._memory[:].partition(b"\0")[0].decode(errors="replace")

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()


class Link(msgspec.Struct, frozen=True):
    """A worker's ends of what connects it with its parent: file descriptors and the phase board."""

    requests: int
    replies: int
    lifeline: int
    """a pipe that nothing is ever written to: it closes when the parent is gone"""
    board: PhaseBoard


def serve(tasks: Sequence[T], work: Work[T], limits: Limits, link: Link, parents: Sequence[int]) -> NoReturn:
    """Be a worker, in a process that was just forked, until the pipe of requests ends.

    `parents` are the parent's ends of all pipes. They are closed here, since a pipe ends with the last copy of its end.
    """
    try:
        for descriptor in parents:
            os.close(descriptor)
        _reset_signals()
        die_with_parent(link.lifeline)
        _silence(link)
        limit_memory(limits.memory_bytes)
        roomy(limits, partial(_answer, tasks, work, limits, link))
    finally:
        os._exit(1)


def roomy(limits: Limits, task: Callable[[], None]) -> None:
    """Do something in a process that was just forked, with the stack that deep code takes.

    Garbage is left for the task to collect.
    """
    # What the parent loaded is never garbage; without freezing it, each collection would look at all of it again.
    gc.freeze()
    gc.disable()
    sys.setrecursionlimit(limits.recursion)
    threading.stack_size(limits.stack_bytes)
    thread = threading.Thread(target=task)
    thread.start()
    thread.join()


def _answer(tasks: Sequence[T], work: Work[T], limits: Limits, link: Link) -> None:
    """Answer requests. This runs in the thread with the big stack."""
    board = link.board
    own = limits
    """the limits for the file at hand"""

    def phase(name: str) -> None:
        board.write(name)
        seconds = own.parse_seconds if name in (READ, PARSE, OTHER) else own.rule_seconds
        signal.setitimer(signal.ITIMER_PROF, seconds)

    requests = os.fdopen(link.requests, "rb")
    decode = msgspec.msgpack.Decoder(Request).decode
    uncollected = 0
    try:
        while header := requests.read(HEADER_BYTES):
            request = decode(requests.read(int.from_bytes(header, "little")))
            task = tasks[request.index]
            own = limits.for_size(task.size)
            _limit_cpu(own.file_seconds)
            phase(OTHER)
            reply = _attempt(work, task, request.left_out, phase, board)
            board.write(OTHER)
            signal.setitimer(signal.ITIMER_PROF, 0)
            send(link.replies, reply)
            uncollected += max(task.size, _LEAST_BYTES)
            if uncollected > _COLLECT_BYTES:
                gc.collect()
                uncollected = 0
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def _attempt(work: Work[T], task: T, left_out: frozenset[str], phase: Phase, board: PhaseBoard) -> bytes:
    """Do the work that one request asks for. Returns the encoded reply; raises MemoryError alone."""
    try:
        result = work(task, left_out, phase)
        phase(OTHER)  # so that the time for encoding is not charged to the last rule
        return msgspec.msgpack.encode(Reply(result))
    except MemoryError:
        raise
    except BaseException as error:  # a rule that calls sys.exit() must not end the scan either
        return msgspec.msgpack.encode(Reply(error=one_line(error), phase=board.read()))


def one_line(error: BaseException) -> str:
    """Put an exception in one short line for people, encodable whatever its message holds."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    return text[:200].encode(errors="backslashreplace").decode()


def send(descriptor: int, message: bytes) -> None:
    """Write a message to a pipe; BrokenPipeError if nobody reads any more."""
    rest = memoryview(len(message).to_bytes(HEADER_BYTES, "little") + message)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _reset_signals() -> None:
    """Let the signals that limits send be deadly, whatever handlers the parent had, and leave Ctrl-C to the parent."""
    faulthandler.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for deadly in (signal.SIGTERM, signal.SIGPROF, signal.SIGXCPU, signal.SIGIO):
        signal.signal(deadly, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def die_with_parent(lifeline: int) -> None:
    """End at once when the parent dies, even in the middle of a parse that does not return.

    Linux signals SIGIO, deadly by default, when the other end of the pipe closes. Elsewhere a worker ends when it next
    looks at its requests, which the limit on CPU time brings about.
    """
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)


def _silence(link: Link) -> None:
    """Keep the last words of dying parsers, and what a rule may print, out of the report."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    # A parent that was started with a standard stream closed gets its number for a pipe.
    for stream in {0, 1, 2} - {link.requests, link.replies, link.lifeline}:
        os.dup2(nowhere, stream)


def limit_memory(limit: int) -> None:
    """Limit the address space, and write no core files when a limit strikes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform != "darwin":  # macOS refuses the call and has nothing in its place
        _lower(resource.RLIMIT_AS, limit)


def _limit_cpu(seconds: float) -> None:
    """Grant this process so many more seconds of CPU time. The kernel counts whole ones: it gets up to one more."""
    _lower(resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds))


def _lower(kind: int, limit: int) -> None:
    """Set a soft limit, as far as the hard limit allows."""
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
