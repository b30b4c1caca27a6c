"""A loop on a lazy device never marks a step.

With lazy tensors nothing runs until a step is marked or a value is read. A loop that runs a model in every round and
marks the step only behind the loop, or nowhere, gathers one graph of all its rounds: it takes long to compile and keeps
every intermediate result alive, until memory ends.

## Exceptions
Loops that mark a step or read a value in every round, or stand in a loop that does, that run over a loader which marks steps (`MpDeviceLoader`), over
short written lists, and files that never import a lazy device are silent.

## References
https://docs.habana.ai/en/latest/PyTorch/Reference/mark_step.html
https://github.com/pytorch/xla/blob/master/docs/source/learn/migration-to-xla-on-tpus.md
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, on_platform

rule = Rule(
    assumes={"sync.unmarked_loop": "native"},
    message="The rounds of '{text}' are gathered into one graph, since no step is marked in it; {target} has {fact}.",
    remedy={
        "gaudi": "Call `htcore.mark_step()` at the end of each round; it does nothing where PT_HPU_LAZY_MODE=0.",
        "*": "Call `torch_xla.sync()` at the end of each round (`xm.mark_step()` in releases that lack it), or compile the body with `torch_xla.compile`.",
    },
)

MARKS = frozenset(("mark_step", "sync", "step_closure", "add_step_closure", "hpu_wrap", "wrap_in_hpu_graph", "compile"))
OWN_MARKS = rule.option("marks", (), "functions of your own that mark a step, or run what was gathered")
LAZY = {"habana_frameworks": "hpu", "torch_xla": "xla"}
"""packages that make tensors lazy, and the platform that they are for"""
READS = frozenset(("item", "tolist", "cpu", "numpy", "synchronize"))


@rule.python("(for_statement right: (_) @rounds) @loop", mentions=tuple(LAZY))
def unmarked(loop: Node, rounds: Node) -> Hits:
    platform = next((LAZY[package] for package in LAZY if loop.source.imports(package)), None)
    function = loop.function
    if platform is None or function is None or loop.role("host-code") or not loop.role("model-loop"):
        return
    if any(map(_ends_steps, (loop, *loop.ancestors("for_statement", "while_statement")))):
        return
    if not _marks_behind(function, loop):
        return
    yield Hit(rounds, guards=(*loop.guards, on_platform(platform)))


def _ends_steps(loop: Node) -> bool:
    """Whether each round runs what it has gathered: by a mark, by reading a value, or by its loader."""
    iterated = loop.get("right")
    names = [one.text for one in iterated.walk("identifier")] if iterated is not None else []
    if "MpDeviceLoader" in names or "ParallelLoader" in names:
        return True
    called = [call.last_name for call in loop["body"].walk("call")]
    return any(name in MARKS or name in OWN_MARKS.value or name in READS or "optimizer_step" in name for name in called)


def _marks_behind(function: Node, loop: Node) -> bool:
    """Whether the same function marks a step after the loop: it is written for lazy tensors."""
    later = (call for call in function["body"].walk("call") if call.start > loop.end)
    return any(call.last_name == "mark_step" or call.name == "torch_xla.sync" for call in later)
