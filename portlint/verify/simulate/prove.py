"""Whether what a finding says happens: a kernel at width 32 and at the target's width, compared.

A launch counts only where the kernel has a result at width 32 that does not depend on the order of its waves. Then
every fault on the target, and every other result, is a counterexample; no counterexample over all launches refutes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from portlint.source import nearby
from portlint.source.cxx.users import users_of
from portlint.verify.simulate.compiles import refused_by, uses_of
from portlint.verify.simulate.driver import driven
from portlint.verify.simulate.faults import Fault, Undecided
from portlint.verify.simulate.fragment import left_out_by
from portlint.verify.simulate.inputs import Trial, fill_of, names_in, trials
from portlint.verify.simulate.launch import Result, compile_kernel, execute, program_of, written
from portlint.verify.simulate.machine import Code, Machine, ports_of
from portlint.verify.simulate.outcome import (
    Counterexample,
    Outcome,
    agreed,
    first_difference,
    is_about,
    relaxed,
    says_something,
    shown,
    unlike,
)
from portlint.verify.simulate.program import Function

if TYPE_CHECKING:
    from portlint.source import Source
    from portlint.verify.simulate.statements import Statements

REFERENCE = Machine(32, "cuda")
_ORDERS = (0, 1)
"""of waves at width 32: a result that differs between them says nothing"""
_TARGET_ORDERS = (0, 2)
_MOST_TRIALS = 24
_ENOUGH = 6
"""launches that say something, after which an assumption is refuted"""
_MOST_KERNELS = 3
_MOST_USERS = 6
"""files that are asked for a constant of a header"""
_DEFINED = re.compile(r"#\s*define\s+(\w+)|\b(?:const|constexpr|enum)\b[^=;(]*?\b(\w+)\s*[={]|^\s*(\w+)\s*=")


class _Difference(Exception):
    def __init__(self, found: Counterexample) -> None:
        super().__init__(found.fault or found.where)
        self.found = found


def prove(
    source: Source,
    line: int | None = None,
    *,
    kernel: str = "",
    width: int = 64,
    platform: str = "rocm",
    macros: Mapping[str, str] | None = None,
    breaks: bool = False,
    seconds: float = 4.0,
) -> Outcome:
    """Run the code around a line, or a kernel, at width 32 and at `width`, and compare.

    `breaks` says that the finding is about what compiles: right values then refute nothing. Without a line, the
    question is whether the kernel works on the target at all.
    """
    target = Machine(width, platform, macros or {})
    try:
        return _Proof(source, line, target, seconds, breaks=breaks).outcome(kernel)
    except Undecided as error:
        return Outcome("undecided", str(error))
    except RecursionError:
        return Outcome("undecided", "the code is nested too deeply")


class _Proof:
    def __init__(self, source: Source, line: int | None, target: Machine, seconds: float, *, breaks: bool) -> None:
        self.source = source
        self.line = line
        self.target = target
        self.breaks = breaks
        self.until = time.process_time() + seconds
        self.reference_program = program_of(source, REFERENCE)
        self.program = program_of(source, target)

    def outcome(self, kernel: str) -> Outcome:
        """The verdict; values that are right say nothing of code that does not compile."""
        found = self._first(kernel)
        if self.breaks and found.verdict != "proven" and self.line is not None:
            found = refused_by(self.program, self.line, self._expansions(), self.target) or found
        if self.breaks and found.verdict == "refuted":
            return Outcome("undecided", "the values are right where it compiles", found.kernel, None, found.launches)
        return found

    def _first(self, kernel: str) -> Outcome:
        """The first verdict that some kernel gives, a counterexample before a refutation."""
        kernels, lone = self._subjects(kernel)
        found: list[Outcome] = [] if kernels or lone else self._elsewhere()
        if any(one.verdict == "proven" for one in found):
            return next(one for one in found if one.verdict == "proven")
        for one in kernels[:_MOST_KERNELS]:
            found.append(self._kernel(one))
            if found[-1].verdict == "proven":
                return found[-1]
        decided = [one for one in found if one.verdict == "refuted"]
        if decided and len(decided) == len(found):
            return decided[0]
        for function in lone:
            found.append(self._alone(function))
            if found[-1].verdict == "proven":
                return found[-1]
        if self.breaks and self.line is not None and (left_out := left_out_by(self.program, self.line, self.target)):
            return left_out
        undecided = [one for one in found if one.verdict == "undecided"]
        if undecided:
            return undecided[0]
        return found[0] if found else Outcome("undecided", "the line is in no function that runs on the device")

    # ---- what is run ----------------------------------------------------------------------------------------------

    def _subjects(self, kernel: str) -> tuple[list[Function], list[Function]]:
        """The kernels that show what a line does, and the functions to run alone where none does."""
        own = [one for one in self.program.all_functions() if not one.unit]
        if kernel:
            return [one for one in own if one.name == kernel and one.is_kernel], []
        if self.line is None:
            return [one for one in own if one.is_kernel], []
        around = [one for one in own if one.first_line <= self.line <= one.last_line] or self._users(own)
        if not around:
            return [], []
        kernels = [one for one in around if one.is_kernel]
        lone = [one for one in around if not one.is_kernel and _runs_on_device(one)]
        callers = self._callers([one.name for one in lone])
        return kernels + [one for one in callers if one not in kernels], lone

    def _definition(self) -> re.Match[str] | None:
        """What the line defines, if that is a macro or a constant."""
        text = self.source.text.decode(errors="replace").splitlines()
        at = (self.line or 1) - 1
        while at > 0 and text[at - 1].rstrip().endswith("\\"):
            at -= 1
        return _DEFINED.search(text[at]) if at < len(text) else None

    def _defined_name(self) -> str | None:
        """The macro or constant that the line defines."""
        match = self._definition()
        return next((one for one in match.groups() if one), None) if match else None

    def _expansions(self) -> set[int]:
        """The lines that use the macro that the line defines."""
        match = self._definition()
        return uses_of(match[1], self.source.text) if match is not None and match[1] else set()

    def _users(self, own: list[Function]) -> list[Function]:
        """The functions that use what a line outside functions defines."""
        name = self._defined_name()
        if name is None:
            return []
        text = self.source.text.decode(errors="replace").splitlines()
        used = re.compile(rf"\b{name}\b")
        return [
            one
            for one in own
            if any(used.search(each) for each in text[one.first_line - 1 : one.last_line]) and _runs_on_device(one)
        ]

    def _elsewhere(self) -> list[Outcome]:
        """What the files say that include this header and use the constant that the line defines."""
        name = self._defined_name()
        if name is None or not self.source.file:
            return []
        found = []
        for path in users_of(self.source.file)[:_MOST_USERS]:
            user = nearby.opened(path, "cuda")
            at = _first_use(user, name) if user is not None else None
            if user is not None and at is not None and time.process_time() < self.until:
                found.append(prove(user, at, width=self.target.width, platform=self.target.platform, seconds=2.0))
        return found

    def _callers(self, names: list[str]) -> list[Function]:
        """The kernels of the file that call functions, directly or not."""
        wanted = set(names)
        functions = [one for one in self.program.all_functions() if one.node.child_by_field_name("body")]
        mentioned = {one.node.id: names_in(one.node) for one in functions}
        while True:
            more = {one.name for one in functions if mentioned[one.node.id] & wanted} - wanted
            if not more:
                break
            wanted |= more
        return [one for one in functions if one.is_kernel and one.name in wanted and not one.unit]

    def _alone(self, function: Function) -> Outcome:
        try:
            return driven(self.source, self.line, function, REFERENCE, self.target, breaks=self.breaks)
        except Undecided as error:
            return Outcome("undecided", str(error), function.name)

    # ---- kernels --------------------------------------------------------------------------------------------------

    def _kernel(self, kernel: Function) -> Outcome:
        try:
            return self._ported(kernel)
        except Undecided as error:
            return Outcome("undecided", str(error), kernel.name)

    def _ported(self, kernel: Function) -> Outcome:
        """The verdict on a kernel, however its PTX is ported."""
        found = []
        for target in ports_of(self.target):
            pair = self._pair(kernel, target)
            found.append(self._compared(kernel, pair))
            if not pair.is_ported or found[-1].verdict == "undecided":
                break
        return agreed(found)

    def _pair(self, kernel: Function, target: Machine) -> _Pair:
        candidates = [one for one in self.reference_program.functions.get(kernel.name, ()) if one.is_kernel]
        reference = next((one for one in candidates if len(one.parameters) == len(kernel.parameters)), None)
        if reference is None:
            raise Undecided("CUDA's compiler does not see the kernel", kernel.first_line)
        return _Pair(self, target, kernel, reference)

    def _compared(self, kernel: Function, pair: _Pair) -> Outcome:
        faults: list[str] = []
        valid, full, reached, guessed = 0, 0, False, False
        try:
            for trial in trials(self.source, self.program, self.target, kernel, _MOST_TRIALS):
                if time.process_time() > self.until and (valid or faults):
                    break
                if valid >= _ENOUGH:
                    break
                if trial.is_guess and (valid or pair.is_aware(trial)):
                    continue
                said = pair.tried(trial)
                if isinstance(said, str):
                    faults.append(said)
                    continue
                valid += 1
                guessed = guessed or trial.is_guess
                full += said.launch.dimensions.threads > REFERENCE.width
                reached = reached or self._is_reached(said, kernel)
        except _Difference as difference:
            return self._proven(kernel, difference.found, valid)
        if not valid:
            if faults and self.line is None and pair.fault is not None:
                return self._proven(kernel, pair.fault, 0)
            raise Undecided(faults[0] if faults else "no launch fits the kernel", kernel.first_line)
        if not reached:
            raise Undecided("no launch that was tried reaches the line", self.line or 0)
        if guessed:
            raise Undecided("only blocks of one warp of 32 threads run at width 32", kernel.first_line)
        if not full:
            return Outcome(
                "refuted", "the blocks of its launches have one warp of 32 threads", kernel.name, None, valid
            )
        return Outcome("refuted", f"the same results at width 32 and {self.target.width}", kernel.name, None, valid)

    def _proven(self, kernel: Function, found: Counterexample, valid: int) -> Outcome:
        reason = found.fault or f"{found.where} is {found.got} at width {self.target.width}, {found.expected} at 32"
        return Outcome("proven", reason, kernel.name, found, valid + 1)

    def _is_reached(self, result: Result, kernel: Function) -> bool:
        if self.line is None:
            return True
        spans = result.launch.code.spans
        around = [span for span in spans if span[0] <= self.line <= span[1]]
        if around:
            return any(span in result.launch.reached for span in around)
        del kernel
        inside = [one for one in self.program.all_functions() if one.first_line <= self.line <= one.last_line]
        return not inside or any(
            one.first_line <= span[0] <= one.last_line for one in inside for span in result.launch.reached
        )


class _Pair:
    """A kernel, compiled for both machines as trials ask for it."""

    def __init__(self, proof: _Proof, target: Machine, kernel: Function, reference: Function) -> None:
        self.proof = proof
        self.target = target
        self.kernel = kernel
        self.reference = reference
        self.fault: Counterexample | None = None
        """the first fault that the kernel has at width 32"""
        self._codes: dict[Any, tuple[Code, Code, bool]] = {}

    def tried(self, trial: Trial) -> Result | str:
        """The result of a launch that says something, or why it says nothing. Raises _Difference."""
        reference, _, aware = self._compiled(trial)
        fill = fill_of(trial)
        wanted: Result | None = None
        unordered = False
        for seed in _ORDERS:
            try:
                result = execute(reference, trial.dimensions, trial.numbers, fill, seed, self.proof.until)
            except Fault as fault:
                self.fault = self.fault or Counterexample(str(trial), "", None, "", "", fault.reason, fault.line)
                return f"at width 32 already: {fault.reason} (line {fault.line})"
            if wanted is not None and first_difference(wanted, result, aware=False) is not None:
                unordered = True
                aware = aware or unlike(wanted, result) is not None
            wanted = wanted or result
        assert wanted is not None
        if not written(wanted):
            return "the kernel writes nothing"
        for got in (one for seed in _TARGET_ORDERS for one in self._on_target(trial, seed)):
            if unordered and aware:
                continue  # then only a fault says something
            difference = unlike(wanted, got) if unordered else first_difference(wanted, got, aware=aware)
            if difference is not None:
                raise _Difference(msgspec.structs.replace(difference, launch=str(trial)))
        if unordered and aware:
            return "the result at width 32 depends on the order of the warps"
        if aware and not says_something(wanted, got):
            return "what the kernel writes depends on the width by intention"
        return got

    @property
    def is_ported(self) -> bool:
        """Whether what the target does depends on how PTX is ported to it."""
        return any(code.is_ported for _, code, _ in self._codes.values())

    def is_aware(self, trial: Trial) -> bool:
        """Whether the kernel asks for the width of its waves."""
        return self._compiled(trial)[2]

    def _on_target(self, trial: Trial, seed: int) -> list[Result]:
        """The run on the target.

        A mask that does not fit counts only where the line is about it. A branch that an idle lane's value decides is
        taken either way: what no lane looks at later is no fault.
        """
        fill, line, machine = fill_of(trial), self.proof.line, self.target

        def on(machine: Machine) -> Result:
            code = self._compiled(trial, machine)[1]
            return execute(code, trial.dimensions, trial.numbers, fill, seed, self.proof.until)

        try:
            try:
                return [on(machine)]
            except Fault as fault:
                if is_about(fault, line, breaks=self.proof.breaks) and fault.kind != "branch":
                    raise
                if fault.kind == "mask":
                    machine = msgspec.structs.replace(machine, checks_masks=False)
            return relaxed(on, machine)
        except Fault as fault:
            raise _Difference(Counterexample(str(trial), "", None, "", "", fault.reason, fault.line)) from None

    def _compiled(self, trial: Trial, target: Machine | None = None) -> tuple[Code, Code, bool]:
        machine = target or self.target
        template = tuple(sorted((name, shown(getattr(one, "const", one))) for name, one in trial.template.items()))
        key = (template, machine.checks_masks, machine.stale)
        if key not in self._codes:
            reference, first = compile_kernel(self.proof.reference_program, REFERENCE, self.reference, trial.template)
            code, second = compile_kernel(self.proof.program, machine, self.kernel, trial.template)
            aware = code.width_aware or _texts(first) != _texts(second)
            self._codes[key] = reference, code, aware
        return self._codes[key]


def _first_use(source: Source, name: str) -> int | None:
    """The first line of a function that mentions a name."""
    used = re.compile(rf"\b{name}\b".encode())
    lines = [number for number, text in enumerate(source.text.splitlines(), 1) if used.search(text)]
    functions = [(one.line, one.line + one.text.count("\n")) for one in source.root.walk("function_definition")]
    return next((at for at in lines if any(first <= at <= last for first, last in functions)), None)


def _texts(compiler: Statements) -> list[str]:
    """The functions that a kernel is made of, without what differs between the names of builtins."""
    found = sorted((one.node.text or b"").decode(errors="replace") for one in compiler.used.values())
    return [re.sub(r"\s+|0x[fF]+[uUlL]*", "", text) for text in found]


def _runs_on_device(function: Function) -> bool:
    words = function.words
    return bool({"__device__", "__global__"} & words) or function.template is not None
