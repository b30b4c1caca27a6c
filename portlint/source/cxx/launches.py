"""Kernel launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from portlint.source.node import Node

_LAUNCH_CALLS = {"hipLaunchKernelGGL": (3, 4), "cudaLaunchKernel": (4, 5), "hipLaunchKernel": (4, 5)}
"""Functions that launch -> the positions of shared memory and stream; kernel, grid and block are the first three."""


class LaunchConfig(msgspec.Struct, frozen=True):
    """What a kernel is launched with."""

    kernel: Node
    """the expression that names the kernel, template arguments included"""
    template_arguments: tuple[Node, ...]
    grid: Node
    block: Node
    shared: Node | None
    """bytes of dynamic shared memory"""
    stream: Node | None


def launch(call: Node) -> LaunchConfig | None:
    """The configuration of a `kernel<<<...>>>(...)` or of a call that launches; None for any other node."""
    if call.type != "call_expression":
        return None
    syntax = next((child for child in call.children if child.type == "kernel_call_syntax"), None)
    if syntax is not None:
        given = [call.get("function"), *syntax.children]
        shared, stream = 3, 4
    elif (function := call.name.rpartition("::")[2]) in _LAUNCH_CALLS:
        given = [*call.arguments]
        shared, stream = _LAUNCH_CALLS[function]
    else:
        return None
    kernel, grid, block, *_ = *given, None, None, None
    if kernel is None or grid is None or block is None:
        return None
    return LaunchConfig(
        kernel,
        _template_arguments(kernel),
        grid,
        block,
        given[shared] if shared < len(given) else None,
        given[stream] if stream < len(given) else None,
    )


def _template_arguments(kernel: Node) -> tuple[Node, ...]:
    named = next(kernel.walk("template_function"), None)
    return tuple(named["arguments"].children) if named else ()
