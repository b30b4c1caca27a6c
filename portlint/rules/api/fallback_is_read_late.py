"""The variable that sends missing operators to the CPU is taken to be read when one is called.

PyTorch reads `PYTORCH_ENABLE_MPS_FALLBACK` once, while `torch` is imported. Set after that in the same process it has no
effect, and operators without a kernel for MPS raise NotImplementedError all the same.

## Exceptions
Code that starts other processes is silent: they inherit the variable. So is what runs before `torch` is imported.

## References
https://docs.pytorch.org/docs/stable/mps_environment_variables.html
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, on_platform, regex

rule = Rule(
    assumes={"api.late_fallback": "native"},
    message="'{text}' comes after torch is imported; {target} has {fact}.",
    remedy={
        "*": "Set `PYTORCH_ENABLE_MPS_FALLBACK` in the shell, or before the first import of `torch` or of a package that imports it. For float64 it does nothing: convert to float32 instead.",
    },
)

VARIABLE = "PYTORCH_ENABLE_MPS_FALLBACK"
IMPORTS = regex(rb"^(?:import|from)[ \t]+torch(?:\w*)\b", re.MULTILINE)
"""torch, torchvision, torchaudio, at the left margin"""
STARTS_PROCESSES = regex(r"\b(subprocess|Popen|execv?p?e?|spawn|start_processes|Process|multiprocessing|launch)\b")


@rule.python('((subscript value: (_) @owner) @target (#match? @target "PYTORCH_ENABLE_MPS_FALLBACK"))')
def stored(target: Node, owner: Node) -> Hits:
    assignment = target.parent
    if owner.name != "os.environ" or assignment is None or assignment.type != "assignment":
        return
    if assignment["left"] == target and target["subscript"].constant == VARIABLE:
        yield from _late(target)


@rule.calls("os.environ.setdefault", "os.putenv")
def called(call: Node) -> Hits:
    if call.arguments and call.arguments[0].constant == VARIABLE:
        yield from _late(call)


def _late(place: Node) -> Hits:
    function = place.function
    source = place.source
    seen = source.text if function is not None else source.text[: place.start]
    around = function.text if function is not None else source.text.decode(errors="replace")
    if IMPORTS.search(seen) and not STARTS_PROCESSES.search(around):
        yield Hit(place, guards=(*place.guards, on_platform("mps")), otherwise="degrades")
