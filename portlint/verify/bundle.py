"""A folder that answers questions on a device machine, with its toolchain and Python's standard library only.

It holds the kernels that were asked for, the questions, and `runner.py` as `run.py`; no code of the linted tree. What
comes back is matched by the questions' names and the digests of the kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from portlint.files import read_json
from portlint.finding import Evidence
from portlint.judge import holds
from portlint.rule import fold
from portlint.target import Fact, Target
from portlint.verify import runner
from portlint.verify.evidence import Entry, EvidenceError
from portlint.verify.levels import Outcome, macros, named
from portlint.verify.questions import Question, entries_of

_README = """\
# Verification kernels of portlint

Each file in `kernels/` measures one fact of an accelerator. On the machine that has the device:

    python3 run.py

It needs Python 3.11 or newer, and the device's own toolchain: hipcc or nvcc for `kernels/cuda`, the framework that the
folder is named for elsewhere. A kernel whose toolchain is missing is reported as not run; one that hangs is stopped
after `--seconds` (300), and answers are written as they come.
Nothing is sent anywhere. Bring `answers.json` back, and read it in with:

    portlint verify --import answers.json --target {target} PATHS
"""


class Answered(msgspec.Struct, frozen=True):
    """One answer of a bundle."""

    id: str
    line: dict[str, Any] | None
    status: int | None
    out: str
    err: str
    seconds: float
    command: str

    @property
    def ended(self) -> runner.Ended:
        """How the kernel's process ended."""
        return runner.Ended(self.command, self.status, self.out, self.err, self.seconds)


class Answers(msgspec.Struct, frozen=True):
    """What a bundle brings back."""

    version: int
    bundle: str
    date: str
    devices: tuple[runner.Device, ...]
    answers: tuple[Answered, ...]


def write(folder: Path, questions: Sequence[Question]) -> None:
    """Write the bundle. Raises EvidenceError where the folder cannot be written, or is not empty."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise EvidenceError(f"{folder} is not empty: name a new folder for the bundle.")
        for question in questions:
            _write_kernel(folder / "kernels" / question.kernel.route, question)
        program = files("portlint") / "verify" / "runner.py"
        (folder / "run.py").write_text(program.read_text(encoding="utf-8"), encoding="utf-8")
        targets = " --target ".join(sorted({question.target.name for question in questions}))
        (folder / "README.md").write_text(_README.format(target=targets), encoding="utf-8")
        asked = {
            "version": runner.VERSION,
            "bundle": _name(questions),
            "questions": [_as_json(question) for question in questions],
        }
        (folder / "questions.json").write_bytes(msgspec.json.format(msgspec.json.encode(asked), indent=1))
    except OSError as error:
        raise EvidenceError(f"cannot write the bundle to {folder}: {error.strerror}") from error


def _write_kernel(place: Path, question: Question) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for name, text in question.kernel.program.items():
        (place / name).write_text(text, encoding="utf-8")


def _name(questions: Iterable[Question]) -> str:
    """Changes with any question or kernel."""
    text = "".join(question.id + question.kernel.digest for question in questions)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _as_json(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "kernel": question.kernel.name,
        "route": question.kernel.route,
        "file": question.kernel.file,
        "target": question.target.name,
        "macros": macros(question.asked),
        "nvcc": question.kernel.options,
        "options": {**msgspec.structs.asdict(question.asked), "architecture": named(question.target)},
    }


def read(path: Path) -> Answers:
    """The answers of a bundle. Raises EvidenceError where there are none, or they are not well formed."""
    return read_json(path, Answers, "file of answers", error=EvidenceError, version=runner.VERSION)


def imported(answers: Answers, questions: Sequence[Question]) -> Iterator[tuple[Question, Entry | str]]:
    """The entries that the answers bring; for an answer that brings none, the reason.

    An answer for another device than the target is none, and neither is one of a kernel that has changed since.
    """
    if answers.bundle != _name(questions):
        raise EvidenceError(
            "these answers are of another bundle: the code, the kernels or the profile have changed since it was"
            " written, or other paths or targets were named. Write the bundle again."
        )
    by_id = {answer.id: answer for answer in answers.answers}
    for question in questions:
        answer = by_id.get(question.id)
        if answer is None:
            yield question, "the bundle has not come as far as this"
        elif answer.line is None:
            yield question, runner.why(answer.ended)
        elif not fits(question.target, answers.devices):
            names = ", ".join(device.name for device in answers.devices) or "no device"
            yield question, f"the machine has {names}, which is not {question.target.title}"
        else:
            evidence = _evidence(question, answer, answers)
            yield from ((question, entry) for entry in entries_of(question, evidence))


def fits(target: Target, devices: Iterable[runner.Device]) -> bool:
    """Whether one of these devices is the target. The processor is every machine's."""
    queries = target.profile.queries
    capability = ".".join(map(str, queries.get("device.capability", ())))
    gfx = str(queries.get("gcn_arch", "")) or None
    if target.profile.platforms == {"cpu"}:
        return True
    return any(
        (device.platform == "cuda" and "nvidia" in target.profile.platforms and device.architecture == capability)
        or (device.platform == "hip" and gfx is not None and device.architecture.startswith(gfx))
        or (device.platform not in ("cuda", "hip") and device.platform in target.profile.platforms)
        for device in devices
    )


def _evidence(question: Question, answer: Answered, answers: Answers) -> Evidence:
    assert answer.line is not None  # asked for by the caller
    measured, environment = answer.line.get("measured"), answer.line.get("environment", {})
    if answer.line.get("outcome") != "measured":
        outcome, detail = Outcome.UNDECIDED, "the kernel's own check of its result failed"
    else:
        right = holds(question.asked.fact, fold(question.assumed), Fact(measured, cite=""))
        outcome, detail = (Outcome.REFUTED if right else Outcome.CONFIRMED), f"measured {measured}"
    return Evidence(
        level="run",
        outcome=str(outcome),
        tool=question.kernel.route,
        version=str(environment.get("runtime", "")),
        target=question.target.name,
        device=str(environment.get("device", "")) or None,
        command=answer.command,
        date=answers.date,
        detail=detail,
    )
