"""A job of a fleet: one checkout, or a slice of a large one, cloned if need be and handed to a process of its own.

`work` is what a worker of the cluster runs, in a thread of a process that has others. The engine forks, and a fork of a
process with threads can deadlock: a lock that another thread holds at that moment stays locked in the child for ever.
A worker is a daemon, too, and catches signals that the engine needs. So each job is scanned by a fresh Python
(`portlint.fleet.child`), which has one thread and its own signals, and ends when the worker that started it ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from portlint import __version__
from portlint.finding import Report
from portlint.fleet.clone import clone, commit
from portlint.mistake import Mistake
from portlint.source.discover import printable_path


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for every checkout; paths in it are those of the machine that reads the list."""

    targets: tuple[str, ...]
    """names of targets, and names of `profiles`"""
    profiles: dict[str, bytes] = {}
    """profiles of the user's by file name, for machines that do not have them"""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    isolated: bool = False
    fail_on: str | None = None
    rules: tuple[str, ...] = ()
    """folders with rules of the user's, on every machine"""
    slice_bytes: int
    """a checkout with more source than this is split"""


class Job(msgspec.Struct, frozen=True):
    """One checkout to check, or a part of it."""

    source: bytes
    is_url: bool
    ref: str
    """of a URL; for the slices of one repository the commit that the first job found"""
    options: Options
    slice: tuple[int, int] | None = None
    """which part, and of how many; None for the whole, or for a word on how many there are to be"""


class Reply(msgspec.Struct, frozen=True):
    """What became of a job: a report, the number of slices that it takes, or why there is neither."""

    report: Report | None = None
    slices: int = 0
    error: str = ""
    status: int = 0
    """the exit status that `portlint check` would have"""
    commit: str = ""
    version: str = __version__
    """of portlint, on the machine that did it"""


class Errand(msgspec.Struct, frozen=True):
    """What the process of a job is given."""

    job: Job
    folder: bytes
    targets: tuple[str, ...]


def work(job: bytes) -> bytes:
    """Do a job and return the reply, both as MessagePack. Raises OSError where the machine lets nothing be started."""
    return msgspec.msgpack.encode(_work(msgspec.msgpack.decode(job, type=Job)))


def _work(job: Job) -> Reply:
    with tempfile.TemporaryDirectory(prefix="portlint-", dir=_scratch(), ignore_cleanup_errors=True) as name:
        place = Path(name)
        folder = Path(os.fsdecode(job.source))
        try:
            if job.is_url:
                folder = place / "checkout"
                folder.mkdir()
                found = clone(job.source.decode(), job.ref, folder)
            elif not folder.is_dir():
                return Reply(error="it is no folder" if folder.exists() else "there is no such folder")
            else:
                found = commit(folder)
        except Mistake as error:
            return Reply(error=str(error))
        return msgspec.structs.replace(_scanned(job, place, folder), commit=found)


def _scratch() -> str | None:
    """The folder that the cluster clears when a worker ends, however it ends."""
    from distributed import get_worker

    try:
        return str(get_worker().local_directory)
    except ValueError:  # not on a worker
        return None


def _scanned(job: Job, place: Path, folder: Path) -> Reply:
    """What a process of its own says of a checkout."""
    profiles = place / "profiles"
    profiles.mkdir()
    for file, content in job.options.profiles.items():
        (profiles / file).write_bytes(content)
    targets = tuple(str(profiles / one) if one in job.options.profiles else one for one in job.options.targets)
    errand, reply = place / "errand", place / "reply"
    errand.write_bytes(msgspec.msgpack.encode(Errand(job, os.fsencode(folder), targets)))
    with open(place / "said", "w+b") as said:
        # -P: a module of the linted tree must not be found by an import, whatever the folder is.
        command = [sys.executable, "-P", "-m", "portlint.fleet.child", str(errand), str(reply)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said)  # noqa: S603
        try:
            status = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdin:
                process.stdin.close()  # open until here: its end is what tells the process that this one has ended
        if status == 0:
            return msgspec.msgpack.decode(reply.read_bytes(), type=Reply)
        said.seek(0)
        words = said.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(words) if line.strip()), "")
    return Reply(error=printable_path(f"the process that was to check it ended with status {status}: {last}")[:500])
