"""A device function that no kernel of its file calls: run by a kernel that is written for it.

Each lane gets a value and stores what comes back. What a reduction over a wider wave is to return depends on its
callers, who may count in groups of 32 or in waves; so there is a verdict only where both readings agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from portlint.source import Source
from portlint.verify.simulate import values as v
from portlint.verify.simulate.compiler import template_name
from portlint.verify.simulate.faults import Fault, Undecided
from portlint.verify.simulate.inputs import PROFILES, asks_for_lane, fill_by
from portlint.verify.simulate.launch import compile_kernel, execute, program_of
from portlint.verify.simulate.machine import Dimensions, Machine
from portlint.verify.simulate.outcome import Counterexample, Outcome, equal, first_difference
from portlint.verify.simulate.program import Function, children, declared_name, line_of, text_of
from portlint.verify.simulate.statements import Statements
from portlint.verify.simulate.values import Array, CType, Pointer, Record, Scalar

if TYPE_CHECKING:
    from portlint.verify.simulate.launch import Result

_NAME = "portlint_driver"
_SCRATCH = re.compile(r"sh(ared)?_?|smem|sdata|scratch|buf|cache|warp|temp|tmp|partial|storage", re.IGNORECASE)
_THREADS = 128
_RESULT = "result"

_REDUCTIONS: Sequence[Callable[[list[Any]], Any]] = (sum, max, min)


def driven(source: Source, function: Function, reference: Machine, target: Machine) -> Outcome:
    """Run a function alone. Raises Undecided."""
    if function.owner:
        raise Undecided("a method that no kernel of the file calls", function.first_line)
    first = _first_lanes(source, function, reference)
    text = source.text + b"\n" + first.encode()
    written = Source(source.path, text, source.language, source.file)
    block = Dimensions((_THREADS, 1, 1))
    valid = 0
    for profile in PROFILES[:3]:
        fill = fill_by(profile)
        try:
            wanted = _run(written, reference, block, fill)
        except Fault as fault:
            raise Undecided(f"at width 32 already: {fault.reason}", fault.line) from None
        valid += 1
        launch = f"'{function.name}' called by {_THREADS} threads, inputs of seed {profile.seed}"
        try:
            got = _run(written, target, block, fill)
        except Fault as fault:
            return _faulty(function, fault, launch, valid)
        found = _compared(wanted, got, target.width)
        if found is not None:
            return Outcome("proven", found[0], function.name, Counterexample(launch, *found[1:]), valid)
    if not _is_reduction(wanted, reference.width):
        return Outcome(
            "refuted", f"the same results at width 32 and {target.width}, called alone", function.name, None, valid
        )
    if _is_reduction(got, target.width):
        return Outcome("refuted", f"it reduces the {target.width} lanes of the wave", function.name, None, valid)
    raise Undecided(
        "it reduces 32 lanes at either width: whether that is right is up to its callers", function.first_line
    )


def _faulty(function: Function, fault: Fault, launch: str, valid: int) -> Outcome:
    found = Counterexample(launch, "", None, "", "", fault.reason, fault.line)
    return Outcome("proven", fault.reason, function.name, found, valid)


def _run(source: Source, machine: Machine, block: Dimensions, fill: Any) -> Result:
    program = program_of(source, machine)
    kernel = next(one for one in program.functions[_NAME] if one.is_kernel)
    code, _ = compile_kernel(program, machine, kernel)
    numbers = {name: 2 for name, ctype, _ in code.parameters if isinstance(ctype, Scalar)}
    return execute(code, block, numbers, fill)


def _compared(wanted: Result, got: Result, width: int) -> tuple[str, str, int | None, str, str] | None:
    """A difference that is wrong in both readings."""
    if _is_reduction(got, width):
        return None
    difference = first_difference(wanted, got, aware=False)
    if difference is None:
        return None
    reason = f"{difference.where} is {difference.got} at width {width}, {difference.expected} at 32"
    if got.launch.code.width_aware and not _is_reduction(wanted, 32):
        raise Undecided("what it returns depends on the width by intention")
    return reason, difference.where, difference.thread, difference.expected, difference.got


def _is_reduction(result: Result, width: int) -> bool:
    """Whether the first lane of each wave has the sum, or an extreme, of the values that its wave was given."""
    inputs = [name for name in result.buffers if name.startswith("in_")]
    if _RESULT not in result.buffers or not inputs:
        return False
    kinds = [cell[0] for cell in result.buffers[inputs[0]].cells.values()]
    out = [cell[0] for cell in result.buffers[_RESULT].cells.values()]
    if not kinds or not out or not isinstance(kinds[0], Scalar) or not isinstance(out[0], Scalar):
        return False
    given = result.read(inputs[0], _THREADS, kinds[0])
    found = result.read(_RESULT, _THREADS, out[0])
    for reduce in _REDUCTIONS:
        waves = range(0, _THREADS, width)
        if all(equal(reduce(given[at : at + width]), found[at], out[0]) for at in waves):
            return True
    return False


# ---- the kernel ---------------------------------------------------------------------------------------------------


def _first_lanes(source: Source, function: Function, machine: Machine) -> str:
    """The text of a kernel that calls the function once for each thread."""
    program = program_of(source, machine)
    compiler = Statements(program, machine)
    given, before = [], []
    for parameter in children(function.template) if function.template is not None else ():
        name = template_name(parameter)
        if parameter.type.startswith("optional"):
            break
        if "type_parameter" in parameter.type:
            compiler.scope.names[name] = v.FLOAT
            given.append("float")
        else:
            value = 32 if re.search(r"warp|width|size|lane", name, re.IGNORECASE) else 4
            compiler.scope.names[name] = compiler.const(value, v.INT)
            given.append(str(value))
    if function.template is not None:
        compiler.bind_template(function.template, [], function.node)
    listed, arguments, after = [], [], []
    for parameter in function.parameters:
        if parameter.type == "optional_parameter_declaration":
            break
        name = text_of(declared_name(parameter.child_by_field_name("declarator"))) or f"p{len(arguments)}"
        ctype, reference = compiler.parameter_type(parameter, None)
        if isinstance(ctype, Pointer):
            arguments.append(_pointer(name, ctype, listed, before, after))
        elif isinstance(ctype, Scalar) and re.search(r"mask", name, re.IGNORECASE):
            raise Undecided(f"what callers pass as '{name}' is not known", line_of(parameter))
        elif isinstance(ctype, Scalar) and asks_for_lane(name) and not ctype.is_float:
            before.append(f"{ctype} {name} = threadIdx.x;")
            arguments.append(name)
        elif isinstance(ctype, Scalar) and not ctype.is_float and arguments and not reference:
            listed.append(f"{ctype} {name}")
            arguments.append(name)
        elif isinstance(ctype, Scalar) or (isinstance(ctype, Record) and ctype.declared is None):
            listed.append(f"{ctype}* in_{name}")
            before.append(f"{ctype} {name} = in_{name}[threadIdx.x];")
            arguments.append(name)
            if reference:
                after.append(f"in_{name}[threadIdx.x] = {name};")
        else:
            raise Undecided(f"what callers pass as '{name}' is not known", line_of(parameter))
    named = compiler.type_of(function.node.child_by_field_name("type"))
    if named is None or not isinstance(named, CType) or isinstance(named, Array):
        raise Undecided("what the function returns is not known", function.first_line)
    template = f"<{', '.join(given)}>" if given else ""
    call = f"{function.name}{template}({', '.join(arguments)});"
    if named is not v.VOID:
        listed.append(f"{named}* {_RESULT}")
        call = f"{_RESULT}[threadIdx.x] = {call}"
    body = " ".join([*before, call, *after])
    return f"__global__ void {_NAME}({', '.join(listed)}) {{ {body} }}\n"


def _pointer(name: str, ctype: Pointer, listed: list[str], before: list[str], after: list[str]) -> str:
    if ctype.to is None or isinstance(ctype.to, Pointer | Array):
        raise Undecided(f"what callers pass as '{name}' is not known")
    if not _SCRATCH.search(name):
        listed.append(f"{ctype.to}* {name}")
        return name
    listed.append(f"{ctype.to}* given_{name}")
    before.append(f"__shared__ {ctype.to} {name}[{4 * _THREADS}];")
    before.append(f"for (int at = threadIdx.x; at < {4 * _THREADS}; at += {_THREADS}) {name}[at] = given_{name}[at];")
    before.append("__syncthreads();")
    after.append("__syncthreads();")
    return name
