"""The process that checks inputs, one after the other, until its time is over or an input ends it.

    python benchmarks/fuzz/child.py FAMILY ENGINE SEED SECONDS FOLDER

It is started by `run.py`. FOLDER/current holds the input at hand, for when this process does not survive it;
FOLDER/phase says what was being done, FOLDER/count how many inputs were checked. A failure that raises is written to
FOLDER/failures, once for each signature.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from random import Random
from types import FrameType
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

if TYPE_CHECKING:
    from fuzz.families import Family

PHASE_SECONDS = 2.0
"""CPU time for one part of the work on one input: what takes longer, on so little text, is a fault"""
KILL_SECONDS = 6.0
"""what does not even stop then is in C, and is ended"""
MEMORY_BYTES = 3 << 30
RECURSION = 20_000


class Slow(BaseException):
    """The work on an input takes too long. No rule catches this by mistake."""


class Watch:
    """Checks one input after the other under limits, and keeps note of it on the disk."""

    def __init__(self, family: Family, folder: Path, *, slowness: float = 1.0) -> None:
        self.family = family
        self.folder = folder
        self.slowness = slowness
        """how much longer everything may take: coverage costs time"""
        self.count = 0
        self.phase = ""
        (folder / "failures").mkdir(parents=True, exist_ok=True)
        self._current, self._phase, self._count = (
            os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC) for name in ("current", "phase", "count")
        )
        self._known = {path.name.partition(".")[0] for path in (folder / "failures").iterdir()}
        signal.signal(signal.SIGPROF, self._stop)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        raise Slow

    def note(self, phase: str) -> None:
        """A part of the work begins."""
        self.phase = phase
        os.pwrite(self._phase, f"{phase:<80}".encode(), 0)
        signal.setitimer(signal.ITIMER_PROF, PHASE_SECONDS * self.slowness)
        signal.setitimer(signal.ITIMER_VIRTUAL, KILL_SECONDS * self.slowness)

    def __call__(self, data: bytes) -> str:
        """Check an input. Returns the signature of what is wrong with it, or nothing."""
        os.ftruncate(self._current, 0)
        os.pwrite(self._current, data, 0)
        self.count += 1
        signature = ""
        try:
            self.note("start")
            self.family.check(data, self.note)
        except Slow as error:
            signature = f"slow: {self.phase}: {_innermost(error, 1)}"
        except MemoryError as error:
            signature = f"memory: {self.phase}: {_innermost(error, 1)}"
        except Exception as error:
            signature = f"{type(error).__name__}: {self.phase}: {_innermost(error, 2)}: {str(error)[:60]}"
        finally:
            with suppress(Slow):
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if self.count % 10 == 0:
            os.pwrite(self._count, str(self.count).encode(), 0)
        return signature

    def report(self, data: bytes, signature: str) -> None:
        """Keep an input that fails, if it is the first that fails in this way."""
        key = hashlib.blake2b(signature.encode(), digest_size=6).hexdigest()
        if key not in self._known:
            self._known.add(key)
            (self.folder / "failures" / f"{key}.input").write_bytes(data)
            (self.folder / "failures" / f"{key}.json").write_text(json.dumps({"signature": signature}))

    def done(self) -> None:
        """Write down how many there were."""
        os.pwrite(self._count, str(self.count).encode(), 0)


def _innermost(error: BaseException, most: int) -> str:
    """Where in portlint an exception comes from."""
    frames = [
        one
        for one in traceback.extract_tb(error.__traceback__)
        if "portlint/" in one.filename and "benchmarks" not in one.filename
    ]
    places = [f"{one.filename.rpartition('portlint/')[2]} {one.name}" for one in frames[-most:]]
    return " < ".join(reversed(places)) or "outside of portlint"


def limit() -> None:
    """Protect the machine, and have as much room for recursion as a worker has."""
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(RECURSION)


def main(family: str, engine: str, seed: int, seconds: float, folder: Path) -> None:
    """Check seeds, then what is made of them."""
    limit()
    atheris: Any = None
    if engine == "atheris":
        atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["portlint"]) if atheris else nullcontext():
        from fuzz.families import FAMILIES
        from portlint.rules import discover

        discover()
    watch = Watch(FAMILIES[family], folder, slowness=2.0 if atheris else 1.0)
    random = Random(seed)
    ends = time.monotonic() + seconds
    if atheris:
        _guided(atheris, watch, seed, seconds, folder)
    else:
        seeds = list(watch.family.seeds)
        random.shuffle(seeds)
        for data in itertools.chain(seeds[:50], (watch.family.make(random) for _ in itertools.count())):
            if time.monotonic() > ends:
                break
            if signature := watch(data):
                watch.report(data, signature)
    watch.done()


def _guided(atheris: Any, watch: Watch, seed: int, seconds: float, folder: Path) -> None:
    """Let libFuzzer choose among what was made by what it reaches."""
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    random = Random(seed)
    for number, data in enumerate(watch.family.seeds):
        (corpus / f"seed{number}").write_bytes(data)

    def one(data: bytes) -> None:
        if signature := watch(data):
            watch.report(data, signature)

    def mutate(data: bytes, most: int, number: int) -> bytes:
        own = Random(number)
        if own.random() < 0.5:
            return watch.family.make(random)[:most]
        return bytes(atheris.Mutate(data, most))

    options = [
        f"-max_total_time={int(seconds)}",
        f"-seed={seed or 1}",
        "-max_len=65536",
        "-rss_limit_mb=0",
        "-timeout=3600",
        f"-artifact_prefix={folder}/",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=mutate)
    _at_the_end(watch.done)
    atheris.Fuzz()


def _at_the_end(what: Callable[[], None]) -> None:
    import atexit

    atexit.register(what)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), Path(sys.argv[5]))
