"""What the compiler of a target refuses, whatever its values: masks of another type, and `warpSize` as a constant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from portlint.verify.simulate.compiler import UNKNOWN
from portlint.verify.simulate.faults import Undecided
from portlint.verify.simulate.fragment import calls_on
from portlint.verify.simulate.outcome import Counterexample, Outcome
from portlint.verify.simulate.program import Program, children, line_of, text_of, walk
from portlint.verify.simulate.values import Scalar
from portlint.verify.simulate.visible import compiler_at, is_of_device

if TYPE_CHECKING:
    import tree_sitter

    from portlint.verify.simulate.machine import Machine

_WIDTH = "warpSize"
_MACRO = re.compile(rb"\s*#\s*define\s+(\w+)")


def refused_by(program: Program, line: int, expansions: set[int], target: Machine) -> Outcome | None:
    """The proof that code on a line, or on those where the macro is expanded that it defines, does not compile."""
    refused = _mask(program, line, target) or next(
        (found for at in sorted({line} | expansions) if (found := _constant(program, at, target)) is not None), None
    )
    if refused is None:
        return None
    reason, node = refused
    return Outcome("proven", reason, "", Counterexample("the compiler", "", None, "", "", reason, line_of(node)))


def _mask(program: Program, line: int, target: Machine) -> tuple[str, tree_sitter.Node] | None:
    """A call whose mask is no integer of 64 bits, as HIP asserts."""
    if target.platform != "rocm":
        return None
    for name, call, arguments in calls_on(program, line):
        if not is_of_device(call):
            continue
        compiler = compiler_at(program, call, target)
        try:
            ctype = compiler.expression(arguments[0]).ctype if compiler is not None else None
        except Undecided:
            continue
        if isinstance(ctype, Scalar) and (ctype.is_float or ctype.bits != target.mask_bits):
            mask = f"the mask '{text_of(arguments[0])}' of '{name}' is of type '{ctype}'"
            return f"{mask}, and there only a type of {target.mask_bits} bits compiles", call
    return None


def _constant(program: Program, line: int, target: Machine) -> tuple[str, tree_sitter.Node] | None:
    """An expression that has to be a constant, and takes the width of the wave, which is none."""
    for expression in _constants(program.root):
        if not line_of(expression) <= line <= expression.end_point[0] + 1 or not _mentions_width(expression):
            continue
        compiler = compiler_at(program, expression, target)
        if compiler is None or compiler.scope.find(_WIDTH) is not None or _WIDTH in program.variables:
            continue
        inner = expression.child_by_field_name("type") if expression.type == "type_descriptor" else expression
        try:
            is_constant = inner is None or compiler.expression(inner).const is not UNKNOWN
        except Undecided:
            continue
        if not is_constant:
            return (
                f"'{text_of(expression)}' has to be a constant, and '{_WIDTH}' is none: it does not compile",
                expression,
            )
    return None


def _mentions_width(expression: tree_sitter.Node) -> bool:
    return any(text_of(one) == _WIDTH for one in walk(expression, "identifier", "type_identifier"))


def _constants(root: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """The expressions that have to be constants."""
    for node in walk(
        root, "array_declarator", "template_argument_list", "static_assert_declaration", "enumerator", "declaration"
    ):
        match node.type:
            case "template_argument_list":
                yield from children(node)
            case "declaration" if any(text_of(one) == "constexpr" for one in node.named_children):
                values = (one.child_by_field_name("value") for one in node.children_by_field_name("declarator"))
                yield from (one for one in values if one is not None)
            case "declaration":
                pass
            case kind:
                field = {"array_declarator": "size", "enumerator": "value"}.get(kind, "condition")
                found = node.child_by_field_name(field)
                if found is not None:
                    yield found


def expanded_on(text: bytes, line: int) -> set[int]:
    """The lines of a text that name the macro that a line defines."""
    lines = text.splitlines()
    at = line - 1
    while at > 0 and lines[at - 1].rstrip().endswith(b"\\"):
        at -= 1
    defined = _MACRO.match(lines[at]) if at < len(lines) else None
    if defined is None:
        return set()
    used = re.compile(rb"\b" + re.escape(defined[1]) + rb"\b")
    return {number for number, code in enumerate(lines, 1) if used.search(code)}
