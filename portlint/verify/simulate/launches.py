"""The launches of a kernel that its file has: block sizes, template arguments and constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from portlint.verify.simulate.faults import Undecided
from portlint.verify.simulate.fragment import constants_before
from portlint.verify.simulate.program import Program, children, line_of, text_of, walk
from portlint.verify.simulate.statements import Statements

if TYPE_CHECKING:
    import tree_sitter

    from portlint.source import Source
    from portlint.source.node import Node
    from portlint.verify.simulate.machine import Machine


class KernelLaunch(msgspec.Struct, frozen=True):
    """A launch that the file has."""

    blocks: tuple[int, ...]
    """the threads of a block, where that is known"""
    template: tuple[str, ...]
    """its template arguments as they are written"""
    arguments: tuple[int | None, ...]
    """those that are constants"""


def launches_of(source: Source, program: Program, machine: Machine, name: str) -> list[KernelLaunch]:
    """The launches of a kernel in the file."""
    found = []
    expanded = _launches_in(program, name)
    for call in source.root.walk("call_expression"):
        if name not in call.text:
            continue
        config = source.analysis.launch(call)  # type: ignore[attr-defined]
        if config is None or _kernel_name(config.kernel) != name:
            continue
        sizes = tuple(dict.fromkeys(size for size, _ in config.block.block_sizes))
        if not sizes and len(same := [one for one in expanded if line_of(one) == call.line]) == 1:
            sizes = _block_of(same[0], program, machine)
        given = tuple(_integer(one) for one in call.arguments)
        template = tuple(one.text for one in config.template_arguments)
        found.append(KernelLaunch(sizes, template, given if config.kernel.text in call["function"].text else ()))
    return found


def _integer(node: Node) -> int | None:
    value = node.constant
    return int(value) if isinstance(value, int) else None


def _kernel_name(kernel: Node) -> str:
    named = next(kernel.walk("template_function"), None)
    return (named["name"].text if named is not None else kernel.text.strip("()& ")).rpartition("::")[2]


def _launches_in(program: Program, name: str) -> list[tree_sitter.Node]:
    """The launches in the text that the compiler sees, where macros are replaced."""
    return [
        call
        for call in walk(program.root, "call_expression")
        if any(one.type == "kernel_call_syntax" for one in call.children)
        and text_of(call.child_by_field_name("function")).partition("<")[0].rpartition("::")[2] == name
    ]


def _block_of(call: tree_sitter.Node, program: Program, machine: Machine) -> tuple[int, ...]:
    """The size of a launch's block, where that is a constant."""
    syntax = next(one for one in call.children if one.type == "kernel_call_syntax")
    shape = children(syntax)
    compiler = Statements(program, machine)
    try:
        for declaration in constants_before(call):
            compiler.statement(declaration)
        return (compiler.constant(shape[1]),) if len(shape) > 1 else ()
    except Undecided:
        return ()
