"""Takes the kernel of a fact through one level for one target, and says what that proves of an assumption."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from portlint.finding import Evidence
from portlint.judge import holds
from portlint.target import Fact, Level, Target
from portlint.verify import process
from portlint.verify.kernel import Kernel, Parameters
from portlint.verify.toolchains import Answer, Missing, Toolchain, clang, nvidia

if TYPE_CHECKING:
    from portlint.rule import Assumed

LEVELS = ("compile", "simulate", "run")
"""in the order of what they prove"""
_SECONDS = 300.0
_NOT_INSTALLED = 3
"""the exit status of a kernel in Python whose package is not there"""


class Outcome(StrEnum):
    """What an answer says of a finding."""

    CONFIRMED = "confirmed"
    """the assumption does not hold: the finding is right"""
    REFUTED = "refuted"
    """the assumption holds: the finding is wrong"""
    UNDECIDED = "not decided"
    """the kernel was accepted or ran, and that proves nothing of the assumption"""
    NOT_RUN = "not run"


class Reply(msgspec.Struct, frozen=True):
    """The answer of one level for one kernel and one architecture."""

    level: str
    outcome: Outcome
    detail: str
    """the measured value, the compiler's words, or why nothing ran"""
    tool: str = ""
    version: str = ""
    command: str = ""
    device: str | None = None

    def evidence(self, target: Target) -> Evidence:
        """The reply as findings carry it, of today."""
        return Evidence(
            level=self.level,
            outcome=str(self.outcome),
            tool=self.tool,
            version=self.version,
            target=target.name,
            device=self.device,
            command=self.command,
            date=date.today().isoformat(),
            detail=self.detail,
        )


def architectures(target: Target) -> tuple[str, ...]:
    """What a compiler may be asked to build for, the plain architecture first: "sm_90", "sm_90a"."""
    return tuple(one.name for one in target.profile.pass_ if one.name != "host")


def answer(kernel: Kernel, asked: Parameters, assumed: Assumed, target: Target, level: str) -> Reply:
    """Ask a kernel at a level. What cannot run here says why."""
    if level == "compile":
        return _compiled(kernel, asked, target)
    if kernel.route == "cuda" and level == "simulate":
        return Reply(level, Outcome.NOT_RUN, "what simulates C++ is given the code of the finding, not a kernel")
    return _ran(kernel, asked, assumed, level)


def compiler(target: Target) -> Toolchain | Missing | None:
    """What compiles C++ for a target; None where there is no such thing."""
    names = architectures(target)
    if not names:
        return None
    return nvidia.find() if names[0].startswith("sm_") else clang.find()


def compile_program(program: Mapping[str, str], target: Target, architecture: str, options: tuple[str, ...]) -> Answer:
    """Compile the device code of a C++ program. Raises LookupError where the compiler is missing."""
    toolchain = compiler(target)
    if not isinstance(toolchain, Toolchain):
        raise LookupError(toolchain.install if toolchain else "no compiler")
    if architecture.startswith("sm_"):
        return nvidia.compile(toolchain, program, architecture, options)
    return clang.compile(toolchain, program, architecture, options)


def _compiled(kernel: Kernel, asked: Parameters, target: Target) -> Reply:
    if kernel.route != "cuda":
        return _compiled_in_python(kernel, asked, target)
    toolchain = compiler(target)
    if not isinstance(toolchain, Toolchain):
        install = f"; install it with: {toolchain.install}" if toolchain else ""
        return Reply("compile", Outcome.NOT_RUN, f"there is no compiler for {target.title} here{install}")
    plain = architectures(target)[0]
    given = compile_program(kernel.program, target, plain, device_options(kernel, asked, plain))
    return Reply(
        "compile",
        _of_compiler(given.accepted, kernel),
        f"{plain}: {given.words or ('accepted' if given.accepted else 'the compiler gave no answer')}",
        toolchain.name,
        toolchain.version,
        given.command,
    )


def device_options(kernel: Kernel, asked: Parameters, architecture: str) -> tuple[str, ...]:
    """What a compiler is told besides the architecture when it gets the device code of a kernel."""
    own = kernel.options if architecture.startswith("sm_") else ()
    return ("-DPORTLINT_DEVICE_ONLY", *own, *(f"-D{name}" for name in macros(asked)))


def macros(asked: Parameters) -> tuple[str, ...]:
    """The parameters as definitions for a C++ compiler."""
    item = "".join(one if one.isalnum() else "_" for one in asked.item)
    return (f"ITEM_{item}=1", f'ITEM="{asked.item}"', *([f"VALUE={asked.value}"] if asked.value else []))


def _of_compiler(accepted: bool | None, kernel: Kernel) -> Outcome:
    if accepted is None:
        return Outcome.UNDECIDED
    if not accepted:
        return Outcome.CONFIRMED if kernel.proof == "compile" else Outcome.UNDECIDED
    return Outcome.REFUTED if kernel.proof == "compile" else Outcome.UNDECIDED


def _compiled_in_python(kernel: Kernel, asked: Parameters, target: Target) -> Reply:
    names = architectures(target) or (target.name,)
    line, ended = _line(kernel, asked, "compile", names[0])
    if line is None:
        return Reply("compile", Outcome.NOT_RUN, _why(ended), command=ended.command)
    accepted = None if line["outcome"] == "failed" else line["measured"] != Level.NONE
    tool, version = _tool(line)
    detail = f"{names[0]}: {line.get('detail') or line['measured']}"
    return Reply("compile", _of_compiler(accepted, kernel), detail, tool, version, ended.command)


def _ran(kernel: Kernel, asked: Parameters, assumed: Assumed, level: str) -> Reply:
    line, ended = _line(kernel, asked, level, "")
    if line is None:
        return Reply(level, Outcome.NOT_RUN, _why(ended), command=ended.command)
    tool, version = _tool(line)
    device = line["environment"].get("device")
    if line["outcome"] == "failed":
        detail = "the kernel's own check of its result failed"
        return Reply(level, Outcome.UNDECIDED, detail, tool, version, ended.command, device)
    right = holds(asked.fact, assumed, Fact(line["measured"], cite=""))
    outcome = Outcome.REFUTED if right else Outcome.CONFIRMED
    if level == "simulate" and kernel.proof == "run":
        outcome = Outcome.UNDECIDED  # this machine's processor is not the target
    return Reply(level, outcome, f"measured {line['measured']}", tool, version, ended.command, device)


def _line(kernel: Kernel, asked: Parameters, level: str, architecture: str) -> tuple[Any, process.Ended]:
    """The JSON line that a kernel printed, None if it printed none."""
    with tempfile.TemporaryDirectory() as place:
        for name, text in kernel.program.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        if kernel.route == "cuda":
            ended = _built_and_run(kernel, asked, Path(place))
        else:
            given = {"level": level, "architecture": architecture, **msgspec.structs.asdict(asked)}
            words = [f"--{name}={value}" for name, value in given.items() if value]
            ended = process.run([sys.executable, kernel.file, *words], seconds=_SECONDS, folder=Path(place))
    for text in reversed(ended.out.splitlines()):
        if text.startswith("{"):
            return json.loads(text), ended
    return None, ended


def _built_and_run(kernel: Kernel, asked: Parameters, place: Path) -> process.Ended:
    """Build a C++ kernel for the device of this machine and run it there."""
    driver = shutil.which("hipcc") or shutil.which("nvcc")
    if driver is None:
        return process.Ended("", _NOT_INSTALLED, "", "there is neither hipcc nor nvcc on PATH", 0.0)
    language = ("-x", "hip") if driver.endswith("hipcc") else ("-arch=native", *kernel.options)
    options = [f"-D{name}" for name in macros(asked)]
    command = [driver, *language, "-std=c++17", "-O2", *options, "-o", "kernel", kernel.file]
    built = process.run(command, seconds=_SECONDS, folder=place)
    return process.run([str(place / "kernel")], seconds=_SECONDS, folder=place) if built.status == 0 else built


def _why(ended: process.Ended) -> str:
    if ended.status is None:
        return f"stopped after {ended.seconds:.0f} s"
    last = (ended.err.strip().splitlines() or ["it printed nothing"])[-1]
    return last if ended.status == _NOT_INSTALLED else f"ended with status {ended.status}: {last}"


def _tool(line: Mapping[str, Any]) -> tuple[str, str]:
    """The framework that answered, and its version."""
    known = ("triton", "torch_xla", "jax", "torch", "nki", "python")
    environment = line["environment"]
    return next(((name, str(environment[name])) for name in known if name in environment), ("", ""))
