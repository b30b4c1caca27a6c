"""A device function that no kernel of its file calls: run by a kernel that is written for it.

Each lane gets a value and stores what comes back. What a reduction over a wider wave is to return depends on its
callers, who may count in groups of 32 or in waves; so there is a verdict only where both readings agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from portlint.source import Source
from portlint.verify.simulate import values as v
from portlint.verify.simulate.faults import Fault, Undecided
from portlint.verify.simulate.inputs import DISTINCT, asks_for_lane, fill_by, is_block_size
from portlint.verify.simulate.launch import compile_kernel, execute, program_of
from portlint.verify.simulate.machine import Code, Dimensions, Machine, ports_of
from portlint.verify.simulate.outcome import Counterexample, Outcome, agreed, equal, is_about, relaxed, shown
from portlint.verify.simulate.program import Function, children, declared_name, line_of, text_of, walk
from portlint.verify.simulate.statements import Statements
from portlint.verify.simulate.templates import is_of_kind, is_template, template_name
from portlint.verify.simulate.values import Array, CType, Pointer, Record, Scalar

if TYPE_CHECKING:
    from portlint.verify.simulate.launch import Result

_NAME = "portlint_driver"
_SCRATCH = re.compile(r"sh(ared)?_?|smem|sdata|scratch|buf|cache|warp|temp|tmp|partial|storage", re.IGNORECASE)
_THREADS = 128
_RESULT = "result"
_KEEPERS = (1, 32, 128)
"""every so many threads keep their result: of a reduction the others may have none"""

_REDUCTIONS: Sequence[tuple[Callable[[list[Any]], Any], bool]] = (
    (sum, False), (max, True), (min, True), (lambda held: sum(one != 0 for one in held), False),
)  # fmt: skip
"""and whether a few different values would show them where there is none"""
_WARP = 32
_OF_A_WARP = re.compile(r"warp|width|size|lane", re.IGNORECASE)
_FEW = 8


def driven(
    source: Source, line: int | None, function: Function, reference: Machine, target: Machine, *, breaks: bool
) -> Outcome:
    """Run a function alone. Raises Undecided."""
    if function.owner:
        raise Undecided("a method that no kernel of the file calls", function.first_line)
    reasons: list[Undecided] = []
    for keeps in _KEEPERS:
        text = source.text + b"\n" + _kernel_text(source, function, reference, keeps).encode()
        written = Source(source.path, text, source.language, source.file)

        def matters(fault: Fault) -> bool:
            return is_about(fault, line, breaks=breaks)

        try:
            ports = ports_of(target) if _is_ported(written, target) else [target]
            return agreed([_judged(written, function, reference, one, keeps, matters) for one in ports])
        except _Unsuitable as error:
            reasons.append(error)
    raise reasons[0]


def _judged(
    source: Source,
    function: Function,
    reference: Machine,
    target: Machine,
    keeps: int,
    matters: Callable[[Fault], bool],
) -> Outcome:
    block = Dimensions((_THREADS, 1, 1))
    reductions = Reductions()
    on_target = set(range(len(_REDUCTIONS)))
    valid, last = 0, source.text.count(b"\n")
    for profile in DISTINCT:
        fill = fill_by(profile)
        try:
            wanted = _run(source, reference, block, fill)
        except Fault as fault:
            raise _Unsuitable(f"at width 32 already: {fault.reason}", fault.line) from None
        valid += 1
        launch = f"'{function.name}' called by {_THREADS} threads, inputs of seed {profile.seed}"
        try:
            results = _run_on_target(source, target, block, fill, matters)
        except Fault as fault:
            if fault.kind == "undefined" and fault.line == last and keeps < _THREADS:
                if (
                    keeps == 1
                    and _is_computed(source, target, block, fill)
                    and not _is_reduction(source, reference, block)
                ):
                    return _faulty(function, fault, launch, valid, last)
                # of a result that no caller may look at; the next keeper keeps less
                raise _Unsuitable(f"a thread gets an undefined result: {fault.reason}") from None
            return _faulty(function, fault, launch, valid, last)
        reductions.narrow(wanted)
        for got in results:
            on_target &= _reductions(got, target.width)
            found = _compared(wanted, got, target.width, reductions)
            if found is not None:
                return Outcome("proven", found[0], function.name, Counterexample(launch, *found[1:]), valid)
    if reductions.of_the_block:
        return Outcome("refuted", "the whole block is reduced at either width", function.name, None, valid)
    if keeps == 1 and on_target & reductions.of_a_warp:
        return Outcome("refuted", f"it reduces the {target.width} lanes of the wave", function.name, None, valid)
    raise Undecided("whether it is right at either width is up to its callers", function.first_line)


def _is_computed(source: Source, target: Machine, block: Dimensions, fill: Any) -> bool:
    """Whether a result is undefined whatever idle lanes hold: by a shift, or by a variable that is never set."""
    try:
        _run(source, msgspec.structs.replace(target, stale="zero", checks_masks=False), block, fill)
    except Fault as fault:
        return fault.kind == "undefined"
    return False


def _is_reduction(source: Source, reference: Machine, block: Dimensions) -> bool:
    """Whether only the first thread of a warp, or of the block, has a result for its callers."""
    reductions = Reductions()
    for profile in DISTINCT:
        reductions.narrow(_run(source, reference, block, fill_by(profile)))
    return bool(reductions.of_the_block or reductions.of_a_warp)


class _Unsuitable(Undecided):
    """The function does not run like that at width 32."""


def _faulty(function: Function, fault: Fault, launch: str, valid: int, last: int) -> Outcome:
    line, reason = fault.line, fault.reason
    if line == last:  # of the kernel that was written for it
        line, reason = function.first_line, f"what '{function.name}' returns is undefined in some lane"
    found = Counterexample(launch, "", None, "", "", reason, line)
    return Outcome("proven", reason, function.name, found, valid)


def _compiled(source: Source, machine: Machine) -> Code:
    program = program_of(source, machine)
    kernel = next(one for one in program.functions[_NAME] if one.is_kernel)
    return compile_kernel(program, machine, kernel)[0]


def _is_ported(source: Source, machine: Machine) -> bool:
    """Whether what the function does depends on how PTX is ported to a machine."""
    return _compiled(source, machine).is_ported


def _run(source: Source, machine: Machine, block: Dimensions, fill: Any) -> Result:
    code = _compiled(source, machine)
    numbers = {name: 2 for name, ctype, _ in code.parameters if isinstance(ctype, Scalar)}
    return execute(code, block, numbers, fill)


def _run_on_target(
    source: Source, machine: Machine, block: Dimensions, fill: Any, matters: Callable[[Fault], bool]
) -> list[Result]:
    """A run on the target; masks are looked over where the finding is not about them."""

    def on(machine: Machine) -> Result:
        return _run(source, machine, block, fill)

    try:
        return [on(machine)]
    except Fault as fault:
        if matters(fault) and fault.kind != "branch":
            raise
        lenient = fault.kind == "mask"
    return relaxed(on, msgspec.structs.replace(machine, checks_masks=False) if lenient else machine)


def _compared(
    wanted: Result, got: Result, width: int, reductions: Reductions
) -> tuple[str, str, int | None, str, str] | None:
    """A difference that is wrong however callers count: of reductions, known by what they come to at width 32.

    A block's is the same at any width; a wave's is over the wave, or over every 32 threads.
    """
    reduced = _THREADS if reductions.of_the_block else _WARP if reductions.of_a_warp else 0
    if not reduced or (reduced < _THREADS and _reductions(got, width) & reductions.of_a_warp):
        return None
    kind = _kind(got, _RESULT)
    one, other = wanted.read(_RESULT, _THREADS, kind), got.read(_RESULT, _THREADS, kind)
    for at in range(0, _THREADS, reduced):
        if kind is not None and not equal(one[at], other[at], kind):
            expected, found = shown(one[at]), shown(other[at])
            reason = f"thread {at} gets {found} at width {width}, {expected} at 32"
            return reason, f"what thread {at} gets", at, expected, found
    return None


class Reductions:
    """What a function reduces at width 32, for all inputs that were tried: positions in `_REDUCTIONS`."""

    def __init__(self) -> None:
        self._block = set(range(len(_REDUCTIONS)))
        self._warp = set(self._block)
        self._tested = {number for number, (_, needs_many) in enumerate(_REDUCTIONS) if not needs_many}

    def narrow(self, result: Result) -> None:
        """Leave out what one more result is not."""
        crossed = any(0 in wave.thread and wave.crossed for wave in result.waves)
        self._block &= _reductions(result, _THREADS) if crossed else set()
        self._warp &= _reductions(result, _WARP)
        if not _has_few(result):
            self._tested = set(range(len(_REDUCTIONS)))

    @property
    def of_the_block(self) -> set[int]:
        """Those over all threads, to which more than one wave has contributed."""
        return self._block & self._tested

    @property
    def of_a_warp(self) -> set[int]:
        """Those over each 32 threads."""
        return self._warp & self._tested


def _kind(result: Result, name: str) -> Scalar | None:
    held = result.buffers[name].cells if name in result.buffers else {}
    found = next((cell[0] for cell in held.values()), None)
    return found if isinstance(found, Scalar) else None


def _given(result: Result) -> tuple[list[Any], list[Any], Scalar] | None:
    """What the threads were given, what they got, and its type."""
    name = next((one for one in result.buffers if one.startswith("in_")), "")
    given, kind = _kind(result, name), _kind(result, _RESULT)
    if given is None or kind is None:
        return None
    return result.read(name, _THREADS, given), result.read(_RESULT, _THREADS, kind), kind


def _has_few(result: Result) -> bool:
    """Whether the threads were given so few different values that one of them is an extreme by chance."""
    given = _given(result)
    return given is None or len(set(given[0])) <= _FEW


def _reductions(result: Result, width: int) -> set[int]:
    """Which reductions the first of every so many threads may have got, of what these were given."""
    given = _given(result)
    if given is None:
        return set()
    values, found, kind = given
    firsts, few = range(0, _THREADS, width), _has_few(result)
    return {
        number
        for number, (reduce, needs_many) in enumerate(_REDUCTIONS)
        if (few and needs_many) or all(equal(reduce(values[at : at + width]), found[at], kind) for at in firsts)
    }


# ---- the kernel ---------------------------------------------------------------------------------------------------


def _kernel_text(source: Source, function: Function, machine: Machine, keeps: int) -> str:
    """The text of a kernel that calls the function once for each thread, and keeps every so many results."""
    compiler = Statements(program_of(source, machine), machine)
    template = _template(compiler, function)
    writer = _Writer()
    for parameter in function.parameters:
        if parameter.type == "optional_parameter_declaration":
            break
        name = text_of(declared_name(parameter.child_by_field_name("declarator"))) or f"p{len(writer.arguments)}"
        ctype, reference = compiler.parameter_type(parameter, None)
        writer.parameter(name, ctype, line_of(parameter), reference=reference)
    named = compiler.type_of(function.node.child_by_field_name("type"))
    if named is None or isinstance(named, Array):
        raise Undecided("what the function returns is not known", function.first_line)
    call = f"{function.name}{template}({', '.join(writer.arguments)});"
    if named is not v.VOID:
        writer.listed.append(f"{named}* {_RESULT}")
        call = f"{named} result_here = {call} if (threadIdx.x % {keeps} == 0) {_RESULT}[threadIdx.x] = result_here;"
    kept = f"if (threadIdx.x % {keeps} == 0) {{ {' '.join(writer.kept)} }}"
    body = " ".join([*writer.before, call, *writer.after, kept])
    return f"__global__ void {_NAME}({', '.join(writer.listed)}) {{ {body} }}\n"


def _template(compiler: Statements, function: Function) -> str:
    """Arguments for the template parameters, which the compiler is told as well: those of a call, or plausible ones."""
    given: list[str] = []
    if function.template is None:
        return ""
    called = _called_with(compiler, function)
    for index, parameter in enumerate(children(function.template)):
        name = template_name(parameter)
        if index < len(called):
            text, value = called[index]
        elif parameter.type.startswith("optional"):
            break
        elif is_template(parameter):
            raise Undecided(f"template parameter '{name}' is not known", function.first_line)
        elif "type_parameter" in parameter.type:
            text, value = "float", v.FLOAT
        else:
            number = _THREADS if is_block_size(name) else _WARP if _OF_A_WARP.search(name) else 4
            text, value = str(number), compiler.const(number, v.INT)
        compiler.scope.names[name] = value
        given.append(text)
    compiler.bind_template(function.template, [], function.node)
    return f"<{', '.join(given)}>" if given else ""


def _called_with(compiler: Statements, function: Function) -> list[tuple[str, Any]]:
    """The template arguments of a call that the file knows without the function around it: texts and values."""
    assert function.template is not None
    parameters = children(function.template)
    for name in walk(compiler.program.root, "template_function"):
        around = name.parent
        listed = name.child_by_field_name("arguments")
        if around is None or around.type != "call_expression" or listed is None:
            continue
        if text_of(name.child_by_field_name("name")) != function.name or len(children(listed)) > len(parameters):
            continue
        try:
            found = [(text_of(one), compiler.template_argument(one)) for one in children(listed)]
        except Undecided:
            continue  # those of the function that the call is in
        if all(is_of_kind(parameter, value) for parameter, (_, value) in zip(parameters, found, strict=False)):
            return found
    return []


class _Writer:
    """The parts of a kernel around a call: its parameters, and what comes before and after."""

    def __init__(self) -> None:
        self.listed: list[str] = []
        self.arguments: list[str] = []
        self.before: list[str] = []
        self.after: list[str] = []
        self.kept: list[str] = []
        """what only those do that keep their results"""

    def parameter(self, name: str, ctype: CType, line: int, *, reference: bool) -> None:
        """What the call passes for a parameter: each thread a value of its own, where it is one."""
        self.arguments.append(name)
        if isinstance(ctype, Pointer):
            self._pointer(name, ctype)
        elif isinstance(ctype, Array) and isinstance(ctype.of, Scalar) and ctype.length:
            self._array(name, ctype.of, ctype.length)
        elif isinstance(ctype, Scalar) and re.search(r"mask", name, re.IGNORECASE):
            raise Undecided(f"what callers pass as '{name}' is not known", line)
        elif isinstance(ctype, Scalar) and asks_for_lane(name) and not ctype.is_float:
            number = "threadIdx.x % warpSize" if "lane" in name.lower() else "threadIdx.x"
            self.before.append(f"{ctype} {name} = {number};")
        elif isinstance(ctype, Scalar) and not ctype.is_float and len(self.arguments) > 1 and not reference:
            self.listed.append(f"{ctype} {name}")
        elif all(isinstance(leaf, Scalar) for _, leaf in ctype.leaves) and isinstance(ctype, Scalar | Record):
            self.listed.append(f"{ctype}* in_{name}")
            self.before.append(f"{ctype} {name} = in_{name}[threadIdx.x];")
            if reference:
                self.kept.append(f"in_{name}[threadIdx.x] = {name};")
        else:
            raise Undecided(f"what callers pass as '{name}' is not known", line)

    def _array(self, name: str, of: Scalar, length: int) -> None:
        copy, element = f"for (int at = 0; at < {length}; ++at)", f"in_{name}[threadIdx.x * {length} + at]"
        self.listed.append(f"{of}* in_{name}")
        self.before.append(f"{of} {name}[{length}]; {copy} {name}[at] = {element};")
        self.kept.append(f"{copy} {element} = {name}[at];")

    def _pointer(self, name: str, ctype: Pointer) -> None:
        if ctype.to is None or isinstance(ctype.to, Pointer | Array):
            raise Undecided(f"what callers pass as '{name}' is not known")
        if not _SCRATCH.search(name):
            self.listed.append(f"{ctype.to}* {name}")
            return
        size = 4 * _THREADS
        copy = f"for (int at = threadIdx.x; at < {size}; at += {_THREADS})"
        self.listed.append(f"{ctype.to}* given_{name}")
        self.before.append(f"__shared__ {ctype.to} {name}[{size}]; {copy} {name}[at] = given_{name}[at];")
        self.before.append("__syncthreads();")
        self.after.append("__syncthreads();")
