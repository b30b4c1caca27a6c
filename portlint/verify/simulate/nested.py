"""Kernels that launch kernels: a launch is part of what a kernel leaves behind, as what it writes is.

The other kernel starts when it likes, and the one that launches it sees nothing of what it does; so it is not run, and
what is compared is whether both widths launch the same with the same arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from portlint.verify.simulate import values as v
from portlint.verify.simulate.assembly import Assembly
from portlint.verify.simulate.compiler import Expr
from portlint.verify.simulate.machine import Wave
from portlint.verify.simulate.memory import Buffer
from portlint.verify.simulate.program import children, text_of
from portlint.verify.simulate.values import Lanes, Scalar, Values

if TYPE_CHECKING:
    import tree_sitter

    from portlint.verify.simulate.compiler import Compiler


class Nested(Assembly):
    """Launches in the code of a kernel."""

    def launch(self, node: tree_sitter.Node) -> Expr:
        """`child<<<grid, block>>>(...)`; shared memory and streams are the runtime's business."""
        syntax = next(one for one in node.children if one.type == "kernel_call_syntax")
        shape = children(syntax)[:2]
        listed = node.child_by_field_name("arguments")
        if len(shape) != 2 or listed is None:
            raise self.undecided("a launch without a shape", node)
        grid, block = (_extent(self, self.expression(one), one) for one in shape)
        arguments = [self.decayed(self.expression(one), self.line(node)) for one in children(listed)]
        evs = [one.ev for one in (grid, block, *arguments)]
        name = text_of(node.child_by_field_name("function")).partition("<")[0]

        def run(wave: Wave, lanes: Lanes) -> Values:
            for lane, (blocks, threads, *given) in zip(
                lanes, zip(*(one(wave, lanes) for one in evs), strict=True), strict=True
            ):
                shown = ", ".join(map(_shown, given))
                text = f"{name}<<<{_shown(blocks)}, {_shown(threads)}>>>({shown})"
                wave.launch.launched.append((text, wave.thread[lane]))
            return [None] * len(lanes)

        return Expr(v.VOID, run)


def _extent(compiler: Compiler, expr: Expr, node: tree_sitter.Node) -> Expr:
    if isinstance(expr.ctype, Scalar):
        return compiler.converted(expr, v.UINT, 0)
    if expr.ctype is not v.DIM3:
        raise compiler.undecided(f"'{text_of(node)[:40]}' is no shape", node)
    return Expr(v.DIM3, lambda wave, lanes: [_without_ones(one) for one in expr.ev(wave, lanes)])


def _without_ones(extent: Any) -> Any:
    return extent[0] if extent is not None and extent[1:] == (1, 1) else extent


def _shown(value: Any) -> str:
    """An argument, the same for the same value in whichever run."""
    if isinstance(value, tuple):
        if value and isinstance(value[0], Buffer):
            return f"{value[0].name}+{value[1]}"
        return f"{{{', '.join(map(_shown, value))}}}"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
