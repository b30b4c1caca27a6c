"""Starts the process of the user's file, and reads what was seen in it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

import msgspec

from portlint.target import Target
from portlint.verify import runner
from portlint.verify.execute.facts import told


class Seen(msgspec.Struct, frozen=True, order=True):
    """What was seen at a line of the user's."""

    path: str
    line: int
    kind: str
    words: str
    facts: tuple[str, ...]
    fault: bool
    """the target does not do it"""
    caught: bool
    """the target does not do it, and the user's code caught the exception"""
    count: int


class Run(msgspec.Struct, frozen=True):
    """A file that has run for a target."""

    file: str
    target: Target
    seen: tuple[Seen, ...]
    """in the order of their lines"""
    simulated: tuple[str, ...]
    """the frameworks that ran under the device that was pretended, with their versions"""
    status: int | None
    """the exit status of the file; None if the time ran out"""
    seconds: float

    def of(self, kind: str) -> tuple[Seen, ...]:
        """What was seen of a kind."""
        return tuple(one for one in self.seen if one.kind == kind)

    @property
    def faults(self) -> tuple[Seen, ...]:
        """What the target does not do."""
        return tuple(one for one in self.seen if one.fault)


def execute(file: Path, arguments: Sequence[str], target: Target, *, python: str, seconds: float) -> Run:
    """Run a Python file of the user's for a target; what it prints goes to standard error.

    Raises OSError where the interpreter cannot be started.
    """
    with as_file(files("portlint") / "verify" / "execute" / "child") as child, tempfile.TemporaryDirectory() as place:
        facts, events = Path(place) / "facts.json", Path(place) / "events"
        facts.write_bytes(msgspec.json.encode(told(target)))
        events.touch()
        command = [python, str(child / "run.py"), str(facts), str(events), str(file), *arguments]
        hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}  # of this machine no device takes part
        ended = runner.run(command, seconds=seconds, environment=hidden, shown=True)
        seen = _read(events)
    return Run(
        str(file),
        target,
        tuple(sorted(one for one in seen if one.kind != "simulated")),
        tuple(one.words for one in seen if one.kind == "simulated"),
        ended.status,
        ended.seconds,
    )


def _read(events: Path) -> list[Seen]:
    """What was seen; of each event the last line counts."""
    found: dict[tuple[str, int, str, str], Seen] = {}
    for line in events.read_bytes().splitlines():
        try:
            one = msgspec.json.decode(line, type=Seen)
        except msgspec.DecodeError:
            continue  # the process was ended while it wrote
        one = msgspec.structs.replace(one, path=_shown(one.path))
        found[one.path, one.line, one.kind, one.words] = one
    return list(found.values())


def _shown(path: str) -> str:
    """A path as `portlint check .` shows it, if it is below the working directory."""
    where = Path(path)
    return str(where.relative_to(Path.cwd())) if path and where.is_relative_to(Path.cwd()) else path
