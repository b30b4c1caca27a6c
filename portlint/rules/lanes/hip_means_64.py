"""Every HIP build is taken to have wavefronts of 64 lanes.

HIP compiles for CDNA, whose wavefronts have 64 lanes, and for RDNA, where they have 32. A width, or an amount per warp,
that the platform alone doubles is twice what an RDNA device does: lanes that do not exist are waited for, and columns
are left out.

## Exceptions
A branch that asks for the architecture (`__GFX9__`, `gcnArchName`) or for the device's width is silent, and so is an
upper bound, a tile edge or a count of warps.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hardware_features.html
"""

from __future__ import annotations

import re
from typing import TypeGuard

from portlint.rule import Hit, Hits, Node, Rule, on_platform, regex, words_of

rule = Rule(
    assumes={"lanes.width": 64},
    otherwise="corrupts",
    message="'{text}' counts on 64 lanes in every HIP build; {target} has {fact}.",
    remedy={
        "amd": "Ask the device: `warpSize` in device code, the `warp_size` of the device properties on the host; a device macro (`__GFX9__`) is right in device code only.",
        "*": "Take the width from the device.",
    },
)

PLATFORMS = ("hip", "HIP", "rocm", "ROCM", "ROCm", "Rocm", "amd", "AMD", "cuda", "CUDA", "nvidia", "NVIDIA", "Nvidia")
"""what a test of the platform speaks of"""
WARP_WORDS = frozenset("warp wave wavefront lane lanes warpsize wavesize".split())
OTHER_WORDS = frozenset(
    "warps waves tile block blocks group groups stage stages split splits chunk batch row rows col cols max upper limit"
    " unroll seq head dim page pad align m n k spec".split()
)
"""of tile edges, of counts of warps and of upper bounds"""
COUNTS = regex(r"\b(warp|wave) per\b|\b(num|n|count) (warp|wave)\b")
NAMED = regex(r"(?!//|/\*)[^/]*?\b[A-Za-z_]")
HOLDERS = ("preproc_def", "init_declarator", "field_declaration", "enumerator")
SPOKEN_OF = regex(r"\b(warp|wave|wavefront)\b", re.IGNORECASE)


@rule.cuda("(preproc_def name: (identifier) @name value: (preproc_arg) @value)")
@rule.cuda("(init_declarator declarator: (identifier) @name value: (_) @value)")
@rule.cuda("(field_declaration declarator: (_) @name default_value: (_) @value)")
@rule.cuda("(enumerator name: (identifier) @name value: (_) @value)")
def platform_constant(name: Node, value: Node) -> Hits:
    lanes = value.constant
    if not _is_multiple(lanes) or NAMED.match(value.text):
        return  # what is derived from a width is wrong where that is
    if (_is_width(name.text) or (lanes == 64 and _splits_threads(name))) and name.role("every-hip"):
        others = [_given(use) for use in name.uses]
        if any(one == lanes // 2 for one in others) or (lanes == 64 and name.role("warp-size")):
            yield Hit(name if value.type == "preproc_arg" else value, guards=(*value.guards, on_platform("rocm")))


@rule.cuda("(return_statement (number_literal) @value)")
def platform_function(value: Node) -> Hits:
    function = value.function
    if value.constant == 64 and function is not None and _is_width(_called(function.name)) and value.role("every-hip"):
        yield Hit(value, guards=(*value.guards, on_platform("rocm")))


@rule.python("((integer) @value)", mentions=PLATFORMS)
def platform_choice(value: Node) -> Hits:
    lanes = value.constant
    parent = value.parent
    if not _is_multiple(lanes) or parent is None:
        return
    name, others = _choice(value, parent)
    width = name and lanes // 2 in others and (_is_width(name) or (lanes == 64 and _is_spoken_of(value, name)))
    if width and value.role("every-hip"):
        yield Hit(value, guards=(*value.guards, on_platform("rocm")))


def _choice(value: Node, parent: Node) -> tuple[str, list[object]]:
    """What a number is chosen for, and what the other branch gives instead."""
    holder = parent
    others: list[object] = []
    if parent.type == "conditional_expression":
        others = [one.constant for one in parent.children if one != value]
        while holder.type in ("conditional_expression", "parenthesized_expression") and holder.parent is not None:
            holder = holder.parent
    match holder.type:
        case "assignment":
            target = holder["left"]
            around = [] if others else list((holder.function or value.source.root).walk("assignment"))
            others += [one["right"].constant for one in around if _is_again(one, target)]
            return target.text.rpartition(".")[2], others
        case "keyword_argument" | "default_parameter":
            return holder["name"].text, others
        case "return_statement" if holder.function is not None:
            function = holder.function
            returned = [one.children[0] for one in function.walk("return_statement") if one.children]
            return function["name"].text, others or [one.constant for one in returned]
    return "", []


def _is_again(assignment: Node, target: Node) -> bool:
    return assignment["left"].text == target.text and assignment.get("right") is not None


def _is_multiple(lanes: object) -> TypeGuard[int]:
    return isinstance(lanes, int) and not isinstance(lanes, bool) and 64 <= lanes <= 4096 and lanes % 64 == 0


def _is_width(name: str) -> bool:
    words = _words(name)
    return bool(WARP_WORDS.intersection(words)) and not _is_other(words)


def _is_other(words: list[str]) -> bool:
    return bool(OTHER_WORDS.intersection(words)) or COUNTS.search(" ".join(words)) is not None


def _words(name: str) -> list[str]:
    words = words_of(name)
    return words[1:] if words[:1] == ["k"] else words


def _is_spoken_of(value: Node, name: str) -> bool:
    """Whether the file speaks of a warp, and the name of nothing else."""
    return not _is_other(_words(name)) and SPOKEN_OF.search(value.source.root.text) is not None


def _splits_threads(name: Node) -> bool:
    """Whether the constant divides thread indices into lanes and warps somewhere."""
    parents = [use.parent for use in name.uses]
    return any(one is not None and (one.role("lane-id") or one.role("warp-id")) for one in parents)


def _given(use: Node) -> object:
    """What another definition gives the same name; None for any other use."""
    parent = use.parent
    if parent is None or parent.type not in HOLDERS:
        return None
    value = parent.get("value") or parent.get("default_value")
    return value.constant if value is not None else None


def _called(name: str) -> str:
    return name.rpartition("::")[2]
