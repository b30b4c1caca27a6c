"""Whether what a finding says happens: a kernel at width 32 and at the target's width, compared.

A launch counts only where the kernel has a result at width 32 that does not depend on the order of its waves. Then
every fault on the target, and every other result, is a counterexample; no counterexample over all launches refutes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from portlint.source import nearby
from portlint.verify.simulate.compiles import expanded_on, refused_by
from portlint.verify.simulate.definitions import Definition, defined_by, lines_after, lines_using, users_with
from portlint.verify.simulate.driver import driven
from portlint.verify.simulate.faults import Fault, OutOfTime, Undecided
from portlint.verify.simulate.fragment import left_out_by
from portlint.verify.simulate.inputs import Trial, fill_of, names_in, trials
from portlint.verify.simulate.launch import Result, compile_kernel, execute, program_of, written
from portlint.verify.simulate.machine import Code, Edit, Machine, ports_of
from portlint.verify.simulate.outcome import (
    Counterexample,
    Outcome,
    agreed,
    first_difference,
    has_part_in,
    is_about,
    rearranged,
    relaxed,
    says_something,
    shown,
    unlike,
)
from portlint.verify.simulate.program import Function, line_of, walk

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
_NO_LINE = 0
"""of a file that is asked for what another one's line is about"""


class _Difference(Exception):
    def __init__(self, found: Counterexample, kind: str = "") -> None:
        super().__init__(found.fault or found.where)
        self.found = found
        self.kind = kind
        """of a fault"""


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
        self.failed: Trial | None = None
        """the launch that has gone wrong"""
        self.lines: list[int] = []
        """that have to be reached before a definition is refuted"""
        self.covered: set[int] = set()
        """those that have been"""

    def outcome(self, kernel: str) -> Outcome:
        """The verdict; values that are right say nothing of code that does not compile."""
        found = self._first(kernel)
        if self.breaks and found.verdict != "proven" and self.line is not None:
            found = refused_by(self.program, self.line, expanded_on(self.source.text, self.line), self.target) or found
        if self.breaks and found.verdict == "refuted":
            return Outcome("undecided", "the values are right where it compiles", found.kernel, None, found.launches)
        return found

    def _first(self, kernel: str) -> Outcome:
        """The first verdict that some kernel gives, a counterexample before a refutation."""
        kernels, lone = self._subjects(kernel)
        if self.line not in (None, _NO_LINE):
            self.lines = lines_after(self.program, self.line)
        if not kernels and not lone and self.line is not None and not _is_within(self.line, self._bodies()):
            definition = defined_by(self.source, self.line, self.target.width)
            found = self._defined(definition) if definition is not None else None
            if found is not None:
                return found
        found = self._of(kernels, lone)
        if found is not None and found.verdict != "undecided":
            return found
        if self.breaks and self.line is not None and (left_out := left_out_by(self.program, self.line, self.target)):
            return left_out
        return found or Outcome("undecided", "the line is in no function that runs on the device")

    def _of(self, kernels: list[Function], lone: list[Function]) -> Outcome | None:
        """The verdict of kernels, and where they give none, of functions run alone."""
        found: list[Outcome] = []
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
        return next((one for one in found if one.verdict == "undecided"), found[0] if found else None)

    # ---- what is run ----------------------------------------------------------------------------------------------

    def _subjects(self, kernel: str) -> tuple[list[Function], list[Function]]:
        """The kernels that show what a line does, and the functions to run alone where none does."""
        own = [one for one in self.program.all_functions() if not one.unit]
        if kernel:
            return [one for one in own if one.name == kernel and one.is_kernel], []
        if self.line is None:
            return [one for one in own if one.is_kernel], []
        around = [one for one in own if one.first_line <= self.line <= one.last_line]
        kernels = [one for one in around if one.is_kernel]
        lone = [one for one in around if not one.is_kernel and _runs_on_device(one)]
        callers = self._callers([one.name for one in lone])
        return kernels + [one for one in callers if one not in kernels], lone

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

    # ---- definitions ----------------------------------------------------------------------------------------------

    def _defined(self, definition: Definition) -> Outcome | None:
        """The verdict on a definition, by all code that uses it; None where no code for the device does.

        One kernel that goes wrong by it proves; to refute, every use has to be executed, and none may be on the host.
        """
        users = users_with(self.source, definition)
        found: list[Outcome] = []
        proofs = [self._with(self.source, self.target)]
        for path in users.files:
            user = nearby.opened(path, "cuda")
            proofs += [self._with(user, self.target)] if user is not None else []
        for proof in proofs:
            for outcome in proof.uses(definition, users.names):
                if outcome.verdict == "proven":
                    return outcome
                found.append(outcome)
        undecided = [one for one in found if one.verdict == "undecided"]
        if undecided or not found:
            return undecided[0] if undecided else None
        if not users.are_all or len(proofs) <= len(users.files):
            return Outcome("undecided", f"'{definition.name}' is used by more files than are tried")
        return found[0]

    def _with(self, source: Source, target: Machine) -> _Proof:
        """A proof on what a file uses, of no line of it, in the time that is left."""
        left = max(0.0, self.until - time.process_time())
        return _Proof(source, _NO_LINE, target, left, breaks=self.breaks)

    def uses(self, definition: Definition, names: frozenset[str]) -> Iterator[Outcome]:
        """What the functions of the file say that use a definition."""
        own = [one for one in self.program.all_functions() if not one.unit]
        lines = lines_using(self.source, names)
        self.lines = lines
        using = [one for one in own if any(one.first_line <= line <= one.last_line for line in lines)]
        host = [one for one in using if not _runs_on_device(one)]
        device = [one for one in using if one not in host]
        elsewhere = [span for span in self._bodies() if span not in _spans(own)]
        kernels = [one for one in device if one.is_kernel]
        lone = []
        for function in device:
            callers = [] if function.is_kernel else self._callers([function.name])
            lone += [function] if not function.is_kernel and not callers else []
            kernels += [one for one in callers if one not in kernels]
        for function in (*kernels, *lone):
            if time.process_time() > self.until:
                yield Outcome("undecided", f"running all that uses '{definition.name}' takes too long", function.name)
                return
            outcome = self._kernel(function) if function.is_kernel else self._alone(function)
            yield self._because_of(definition, function, outcome) if outcome.verdict == "proven" else outcome
            self.covered |= {
                one for one in lines if function in lone and function.first_line <= one <= function.last_line
            }
        missed = [line for line in lines if line not in self.covered and _is_within(line, _spans(device) + elsewhere)]
        if missed:
            yield Outcome(
                "undecided", f"no launch that was tried reaches line {missed[0]}, which uses '{definition.name}'"
            )
        elif host:
            yield Outcome("undecided", f"'{definition.name}' is used on the host as well, in line {host[0].first_line}")

    def _bodies(self) -> list[tuple[int, int]]:
        """The lines of every function of the file, methods included."""
        found = walk(self.program.root, "function_definition")
        return [(line_of(one), one.end_point[0] + 1) for one in found]

    def _because_of(self, definition: Definition, function: Function, proven: Outcome) -> Outcome:
        """A proof, if the code goes on otherwise where the definition has another value."""
        if not definition.changed:
            return proven if definition.is_a_function else Outcome("undecided", "what is defined is no plain value")
        edit = Edit(definition.file, definition.line, definition.changed)
        other = self._with(self.source, msgspec.structs.replace(self.target, edits=(edit,)))
        same = [one for one in other.program.functions.get(function.name, ()) if one.first_line == function.first_line]
        try:
            has_part = bool(same) and self._has_part(function, proven, other, same[0])
        except Undecided as error:
            reason = f"what another '{definition.name}' comes to is not known: {error.reason}"
            return Outcome("undecided", reason, function.name)
        if not has_part:
            return Outcome("undecided", f"it goes wrong whatever '{definition.name}' is", function.name)
        return proven

    def _has_part(self, function: Function, proven: Outcome, other: _Proof, same: Function) -> bool:
        """Whether what goes wrong in a function goes otherwise where its code is another."""
        if not function.is_kernel or self.failed is None:
            again = other._alone(same)
            if again.verdict == "undecided":
                raise Undecided(again.reason)
            return again.verdict == "refuted" or not _is_alike(again.counterexample, proven.counterexample)
        pair, changed = self._pair(function, self.target), other._pair(same, other.target)
        wanted, got = pair.results(self.failed)
        instead = changed.results(self.failed)[1]
        if isinstance(instead, Fault) and not (isinstance(got, Fault) and str(got) == str(instead)):
            raise Undecided(instead.reason)
        if isinstance(got, Fault) or isinstance(instead, Fault):
            return not isinstance(instead, Fault)
        return has_part_in(wanted, got, instead)

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
                self.failed = trial
                said = pair.tried(trial)
                if isinstance(said, str):
                    faults.append(said)
                    continue
                valid += 1
                guessed = guessed or trial.is_guess
                full += said.launch.dimensions.threads > REFERENCE.width
                reached = reached or self.line in (None, _NO_LINE) or self._is_reached(said, self.line)
                self.covered |= {line for line in self.lines if self._is_reached(said, line)}
        except _Difference as difference:
            return self._proven(kernel, difference.found, valid)
        except OutOfTime:
            if not valid:
                raise
        if not valid:
            if faults and self.line is None and pair.fault is not None:
                return self._proven(kernel, pair.fault, 0)
            raise Undecided(faults[0] if faults else "no launch fits the kernel", kernel.first_line)
        if not reached:
            raise Undecided("no launch that was tried reaches the line", self.line or 0)
        missed = [line for line in self.lines if line not in self.covered] if self.line != _NO_LINE else []
        if missed:
            raise Undecided("no launch that was tried reaches this line, which uses what is set there", missed[0])
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

    def _is_reached(self, result: Result, line: int) -> bool:
        spans = result.launch.code.spans
        around = [span for span in spans if span[0] <= line <= span[1]]
        if around:
            return any(span in result.launch.reached for span in around)
        inside = [one for one in self.program.all_functions() if one.first_line <= line <= one.last_line]
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
        results: list[Result] = []
        first: list[Result] | Exception = []
        for seed in _ORDERS:
            try:
                results.append(execute(reference, trial.dimensions, trial.numbers, fill, seed, self.proof.until))
            except Fault as fault:
                self.fault = self.fault or Counterexample(str(trial), "", None, "", "", fault.reason, fault.line)
                return f"at width 32 already: {fault.reason} (line {fault.line})"
            if not written(results[0]):
                return "the kernel writes nothing"
            first = first or self._at_once(trial)
        wanted, other = results
        unordered = first_difference(wanted, other, aware=False) is not None
        aware = aware or (unordered and unlike(wanted, other) is not None)
        raced = any(one.launch.raced for one in results)
        if isinstance(first, Exception):
            raise first
        for got in (*first, *(one for seed in _TARGET_ORDERS[1:] for one in self._on_target(trial, seed))):
            if raced:
                continue  # then only a fault says something
            if unordered and aware:
                difference = unlike(wanted, got, rearranged(wanted, other, got))
            else:
                difference = unlike(wanted, got) if unordered else first_difference(wanted, got, aware=aware)
            if difference is not None:
                raise _Difference(msgspec.structs.replace(difference, launch=str(trial)))
        if raced:
            return "the waves of a block store to the same place at width 32, with no barrier between"
        if unordered and aware:
            return "the result at width 32 depends on the order of the warps"
        if aware and not says_something(wanted, got):
            return "what the kernel writes depends on the width by intention"
        if not aware and self._leans_on_the_other_half(trial, wanted, unordered=unordered):
            return "the result is the same only by what lanes get from the other half of the wave"
        return got

    def _leans_on_the_other_half(self, trial: Trial, wanted: Result, *, unordered: bool) -> bool:
        """Whether the target's result hangs on lanes that are in another warp at width 32, right as it is."""
        apart = msgspec.structs.replace(self.target, is_apart=True, checks_masks=False)
        code = self._compiled(trial, apart)[1]
        try:
            got = execute(code, trial.dimensions, trial.numbers, fill_of(trial), 0, self.proof.until)
        except Fault:
            return True
        return (unlike(wanted, got) if unordered else first_difference(wanted, got, aware=False)) is not None

    def _at_once(self, trial: Trial) -> list[Result] | Exception:
        """The first run on the target. A mask that does not fit does so in any order, and ends the trial here."""
        try:
            return self._on_target(trial, _TARGET_ORDERS[0])
        except (_Difference, Undecided) as error:
            if isinstance(error, _Difference) and error.kind == "mask":
                raise
            return error

    def results(self, trial: Trial) -> tuple[Result, Result | Fault]:
        """What a launch comes to at width 32, and on the target."""
        fill = fill_of(trial)
        wanted = execute(self._compiled(trial)[0], trial.dimensions, trial.numbers, fill, 0, self.proof.until)
        try:
            return wanted, self._on_target(trial, 0)[0]
        except _Difference as difference:
            return wanted, Fault("", difference.found.fault, difference.found.line)

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
            found = Counterexample(str(trial), "", None, "", "", fault.reason, fault.line)
            raise _Difference(found, fault.kind) from None

    def _compiled(self, trial: Trial, target: Machine | None = None) -> tuple[Code, Code, bool]:
        machine = target or self.target
        template = tuple(sorted((name, shown(getattr(one, "const", one))) for name, one in trial.template.items()))
        key = (template, machine.checks_masks, machine.stale, machine.is_apart)
        if key not in self._codes:
            reference, first = compile_kernel(self.proof.reference_program, REFERENCE, self.reference, trial.template)
            code, second = compile_kernel(self.proof.program, machine, self.kernel, trial.template)
            aware = code.width_aware or _texts(first) != _texts(second)
            self._codes[key] = reference, code, aware
        return self._codes[key]


def _spans(functions: list[Function]) -> list[tuple[int, int]]:
    return [(line_of(one.node), one.last_line) for one in functions]


def _is_within(line: int, spans: list[tuple[int, int]]) -> bool:
    return any(first <= line <= last for first, last in spans)


def _is_alike(one: Counterexample | None, other: Counterexample | None) -> bool:
    """Whether two runs go wrong in the same way."""
    if one is None or other is None:
        return one is other
    return (one.where, one.got, one.fault, one.line) == (other.where, other.got, other.fault, other.line)


def _texts(compiler: Statements) -> list[str]:
    """The functions that a kernel is made of, without what differs between the names of builtins."""
    found = sorted((one.node.text or b"").decode(errors="replace") for one in compiler.used.values())
    return [re.sub(r"\s+|0x[fF]+[uUlL]*", "", text) for text in found]


def _runs_on_device(function: Function) -> bool:
    words = function.words
    return bool({"__device__", "__global__"} & words) or function.template is not None
