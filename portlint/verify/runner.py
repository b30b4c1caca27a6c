"""Runs compilers and kernels: each a process of its own, with a time limit, and ended with all that it started.

This module needs the standard library only and nothing else of portlint: a bundle carries it to the device machine as
its program (`python3 run.py`), where it answers the questions in `questions.json` and writes `answers.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

NOT_INSTALLED = 3
"""the exit status of a kernel whose framework or compiler is not there"""
VERSION = 1
"""of `questions.json` and `answers.json`"""
KERNEL_SECONDS = 300.0
_PROBE_SECONDS = 30.0
_MOST_OUTPUT = 1 << 20
"""characters that are kept of each stream"""
_STANDARD_ERROR = 2
_GRACE_SECONDS = 5.0
"""for the pipes of what was killed; a process that waits for a hung device cannot even be killed, and is left behind"""


class Ended(NamedTuple):
    """A process that has ended, or was ended."""

    command: str
    """as a shell would take it"""
    status: int | None
    """the exit status, negative for a signal; None if the time ran out"""
    out: str
    err: str
    seconds: float


@dataclass(frozen=True)
class Device:
    """An accelerator of this machine, as its vendor's tool names it."""

    platform: str
    """cuda | hip | neuron | hpu"""
    name: str
    architecture: str
    """the compute capability ("9.0") or the gfx name; "" where the tool names none"""
    driver: str


def run(
    command: Sequence[str],
    *,
    seconds: float,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    shown: bool = False,
) -> Ended:
    """Run a command and wait for it, `seconds` of wall time at most; `shown`: its output goes to standard error.

    It leads a process group, which is killed at the end: what it started does not outlive it. Raises OSError where the
    program cannot be started.
    """
    started = time.monotonic()
    process = subprocess.Popen(  # noqa: S603  (nothing of the linted tree; the caller names the program)
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=_STANDARD_ERROR if shown else subprocess.PIPE,
        stderr=_STANDARD_ERROR if shown else subprocess.PIPE,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        text=True,
        errors="replace",
        start_new_session=True,
    )
    status: int | None = None
    out = err = ""
    try:
        out, err = process.communicate(timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        pass
    finally:
        _end(process)
    if status is None:
        with suppress(subprocess.TimeoutExpired):
            out, err = process.communicate(timeout=_GRACE_SECONDS)
    seconds = time.monotonic() - started
    return Ended(shlex.join(command), status, (out or "")[:_MOST_OUTPUT], (err or "")[:_MOST_OUTPUT], seconds)


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def ask_cxx(
    file: str, macros: Sequence[str], folder: Path, nvcc: Sequence[str] = (), seconds: float = KERNEL_SECONDS
) -> Ended:
    """Build a C++ kernel for the device of this machine, and run it there; `nvcc`: options for that compiler alone."""
    driver = shutil.which("hipcc") or shutil.which("nvcc")
    if driver is None:
        return Ended("", NOT_INSTALLED, "", "there is neither hipcc nor nvcc on PATH", 0.0)
    language = ("-x", "hip") if driver.endswith("hipcc") else ("-arch=native", *nvcc)
    definitions = [f"-D{name}" for name in macros]
    command = [driver, *language, "-std=c++17", "-O2", *definitions, "-o", "kernel", file]
    built = run(command, seconds=seconds, folder=folder)
    return run([str(folder / "kernel")], seconds=seconds, folder=folder) if built.status == 0 else built


def ask_python(file: str, options: Mapping[str, str], folder: Path, seconds: float = KERNEL_SECONDS) -> Ended:
    """Run a kernel written in Python with this interpreter."""
    words = [f"--{name}={value}" for name, value in options.items() if value]
    return run([sys.executable, file, *words], seconds=seconds, folder=folder)


def line_of(ended: Ended) -> dict[str, Any] | None:
    """The JSON line that a kernel printed; None if it printed none."""
    for text in reversed(ended.out.splitlines()):
        if text.startswith("{"):
            with suppress(json.JSONDecodeError):
                found: dict[str, Any] = json.loads(text)
                return found
    return None


def devices() -> Iterator[Device]:
    """The accelerators that the vendors' tools see. A tool that is not there, or fails, sees none."""
    asked = "--query-gpu=name,compute_cap,driver_version"
    for row in _lines("nvidia-smi", asked, "--format=csv,noheader"):
        name, capability, driver = (cell.strip() for cell in row.split(","))
        yield Device("cuda", name, capability, driver)
    for row in _lines("rocminfo"):
        word, _, value = row.partition(":")
        if word.strip() == "Name" and value.strip().startswith("gfx"):
            yield Device("hip", value.strip(), value.strip(), "")
    for row in _lines("neuron-ls", "--json-output")[:1]:
        yield Device("neuron", row[:80], "", "")
    for row in _lines("hl-smi", "-Q", "name,driver_version", "-f", "csv,noheader"):
        name, _, driver = row.partition(",")
        yield Device("hpu", name.strip(), "", driver.strip())


def _lines(*command: str) -> list[str]:
    if shutil.which(command[0]) is None:
        return []
    ended = run(command, seconds=_PROBE_SECONDS)
    return ended.out.splitlines() if ended.status == 0 else []


def main() -> int:
    """Answer every question of the folder that this file is in."""
    parser = argparse.ArgumentParser(description="Answer the questions of this folder on the device of this machine.")
    parser.add_argument("--seconds", type=float, default=KERNEL_SECONDS, help="for each kernel  [%(default)s]")
    seconds = parser.parse_args().seconds
    folder = Path(__file__).resolve().parent
    asked = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    report: dict[str, Any] = {
        "version": VERSION,
        "bundle": asked["bundle"],
        "date": date.today().isoformat(),
        "devices": [asdict(device) for device in devices()],
        "answers": [],
    }
    for number, question in enumerate(asked["questions"], 1):
        place = folder / "kernels" / question["route"]
        if question["route"] == "cuda":
            ended = ask_cxx(question["file"], question["macros"], place, question["nvcc"], seconds)
        else:
            ended = ask_python(question["file"], {**question["options"], "level": "run"}, place, seconds)
        line = line_of(ended)
        says = line["measured"] if line else why(ended)
        sys.stderr.write(f"{number} of {len(asked['questions'])}: {question['kernel']}: {says}\n")
        report["answers"].append({"id": question["id"], "line": line, **ended._asdict()})
        _write(folder / "answers.json", report)  # each time: a device that hangs may take its machine with it
    sys.stdout.write(f"wrote {folder / 'answers.json'}\n")
    return 0


def why(ended: Ended) -> str:
    """Why a kernel gave no answer."""
    if ended.status is None:
        return f"it was stopped after {ended.seconds:.0f} s"
    last = (ended.err.strip().splitlines() or ["it printed nothing"])[-1]
    return last if ended.status == NOT_INSTALLED else f"it ended with status {ended.status}: {last}"


def _write(path: Path, report: Mapping[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main())
