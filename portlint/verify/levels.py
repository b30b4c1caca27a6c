"""Takes the kernel of a fact through one level for one target, and says what that proves of an assumption."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from portlint.finding import Evidence
from portlint.judge import holds
from portlint.target import Fact, Target
from portlint.verify import runner
from portlint.verify.kernel import Kernel, Parameters
from portlint.verify.toolchains import Answer, Missing, Toolchain, clang, nvidia

if TYPE_CHECKING:
    from portlint.rule import Assumed


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


def named(target: Target) -> str:
    """The name by which kernels in Python know a target: its plain architecture, or its own where it has none."""
    return (*architectures(target), target.name)[0]


def answer(kernel: Kernel, asked: Parameters, assumed: Assumed, target: Target, level: str) -> Reply:
    """Ask a kernel at a level. What cannot run here says why."""
    if level == "compile":
        return _compiled(kernel, asked, assumed, target)
    return _ran(kernel, asked, assumed, target, level)


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


def compile_file(file: Path, target: Target) -> Answer:
    """Compile the device code of a user's C++ file, with the headers beside it, for the target's plain architecture.

    Raises OSError where the file cannot be read, LookupError where the compiler is missing.
    """
    program = {file.name: file.read_text(encoding="utf-8", errors="replace")}
    plain = architectures(target)[0]
    return compile_program(program, target, plain, (f"-I{file.resolve().parent}",))


def _compiled(kernel: Kernel, asked: Parameters, assumed: Assumed, target: Target) -> Reply:
    if kernel.route != "cuda":
        return _compiled_in_python(kernel, asked, assumed, target)
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


def _compiled_in_python(kernel: Kernel, asked: Parameters, assumed: Assumed, target: Target) -> Reply:
    line, ended = _line(kernel, asked, "compile", named(target))
    if line is None:
        return Reply("compile", Outcome.NOT_RUN, runner.why(ended), command=ended.command)
    tool, version = _tool(line)
    detail = f"{named(target)}: {line['detail'] or line['measured']}"
    outcome = Outcome.UNDECIDED
    if line["outcome"] != "failed" and kernel.proof == "compile":
        outcome = _of_measured(line, asked, assumed)
    return Reply("compile", outcome, detail, tool, version, ended.command)


def _of_measured(line: Mapping[str, Any], asked: Parameters, assumed: Assumed) -> Outcome:
    right = holds(asked.fact, assumed, Fact(line["measured"], cite=""))
    return Outcome.REFUTED if right else Outcome.CONFIRMED


def _ran(kernel: Kernel, asked: Parameters, assumed: Assumed, target: Target, level: str) -> Reply:
    line, ended = _line(kernel, asked, level, named(target))  # a kernel refuses a device that is not the target
    if line is None:
        return Reply(level, Outcome.NOT_RUN, runner.why(ended), command=ended.command)
    tool, version = _tool(line)
    device = line["environment"].get("device")
    if line["outcome"] == "failed":
        detail = "the kernel's own check of its result failed"
        return Reply(level, Outcome.UNDECIDED, detail, tool, version, ended.command, device)
    outcome = _of_measured(line, asked, assumed)
    if level == "simulate" and kernel.proof == "run":
        outcome = Outcome.UNDECIDED  # this machine's processor is not the target
    return Reply(level, outcome, f"measured {line['measured']}", tool, version, ended.command, device)


def _line(kernel: Kernel, asked: Parameters, level: str, architecture: str) -> tuple[Any, runner.Ended]:
    """The JSON line that a kernel printed, None if it printed none."""
    with tempfile.TemporaryDirectory() as place:
        for name, text in kernel.program.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        if kernel.route == "cuda":
            ended = runner.ask_cxx(kernel.file, macros(asked), Path(place), kernel.options)
        else:
            given = {"level": level, "architecture": architecture, **msgspec.structs.asdict(asked)}
            ended = runner.ask_python(kernel.file, given, Path(place))
    return runner.line_of(ended), ended


def _tool(line: Mapping[str, Any]) -> tuple[str, str]:
    """The framework that answered, and its version."""
    known = ("triton", "torch_xla", "jax", "torch", "nki", "python")
    environment = line["environment"]
    return next(((name, str(environment[name])) for name in known if name in environment), ("", ""))
