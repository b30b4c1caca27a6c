"""A helper that works on some AMD architectures only is called in every HIP build.

Its body is compiled for a list of architectures, mostly those with wavefronts of 64 lanes; elsewhere it hands back what
it was given. A caller that asks for the platform alone takes that for the result: one lane's value for a sum.

## Exceptions
A helper with another branch for the other architectures, and a caller that asks for the same architectures, are silent.

## References
https://llvm.org/docs/AMDGPUUsage.html#processors
"""

from __future__ import annotations

import re

from portlint.rule import DEVICE_PASS, Hit, Hits, Node, Rule, none_runs, regex

rule = Rule(
    assumes={"lanes.width": 64},
    otherwise="corrupts",
    message="'{text}' lets in all of HIP, and '{helper}' does nothing for this architecture; {target} has {fact}.",
    remedy={
        "amd": "Ask for the helper's architectures where it is called, and reduce with shuffles on all others.",
        "*": "Ask for the helper's architectures where it is called.",
    },
)

ACROSS_LANES = regex(r"dpp|row_|readlane|shfl|swizzle|permute|permlane|ballot", re.IGNORECASE)
"""what moves values between lanes; anything else may be a hint to the compiler"""


@rule.cuda("(function_definition body: (compound_statement) @body) @helper")
def idle_helper(helper: Node, body: Node) -> Hits:
    work = _work(body)
    if not work or helper.role("kernel") or not all(one.role("by-architecture") for one in work):
        return
    for call in helper.callers:
        if call.role("every-hip"):
            guards = (*call.guards, DEVICE_PASS, none_runs(work))
            yield Hit(_gate(call), words={"helper": helper.name.rpartition("::")[2]}, guards=guards)


def _work(body: Node) -> list[Node]:
    """The first statements of the conditional parts of a body that beside them only returns what it was given."""
    work: list[Node] = []
    if not any(one.type == "return_statement" and one.children for one in body.children):
        return []
    for statement in body.children:
        if statement.type in ("preproc_if", "preproc_ifdef"):
            inner = [one for one in statement.children if one.type.endswith("statement")]
            if statement.get("alternative") is not None or not inner or not ACROSS_LANES.search(statement.text):
                return []
            work.append(inner[0])
        elif statement.type != "return_statement" or any(one.type != "identifier" for one in statement.children):
            return []
    return work


def _gate(call: Node) -> Node:
    """The condition that lets the call in, or the call itself where that is the other branch of one."""
    for around in call.ancestors("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif"):
        gate = around.get("condition") or around.get("name")
        return gate if gate is not None else call
    return call
