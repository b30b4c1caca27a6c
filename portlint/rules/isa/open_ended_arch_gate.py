"""A test of the compute capability lets in machines that its branch was not written for.

`cc >= 90` is also true of 10.0 and 12.0, which have no `wgmma`, and `major == 9` is true of AMD's gfx942, which answers
(9, 4). The branch then runs code for Hopper, or for data-centre Blackwell, where it does not exist.

## Exceptions
The test is evaluated for each target: a closed interval, and a test behind a check of the platform, are silent.

## References
https://docs.nvidia.com/cuda/blackwell-compatibility-guide/
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={},
    message="'{text}' is true of {target}, which has {fact}, and leads to '{feature}'.",
    remedy={
        "amd": "Test `torch.version.hip` (or `USE_ROCM`) before the capability: on ROCm it is the number of the gfx target.",
        "*": "Close the interval (`cc >= 90 && cc < 100`), and add a branch for the newer parts.",
    },
)

FEATURES: dict[str, tuple[tuple[int, int], re.Pattern[str]]] = {
    "isa.wgmma": ((9, 0), re.compile(r"wgmma|gmma(?!_)|hopper|(^|[^0-9])sm_?90|fa3|flash_attn_?3|flashattention_?3", re.IGNORECASE)),
    "isa.tcgen05": ((10, 0), re.compile(r"tcgen05|umma|(^|[^0-9])sm_?100|two_cta|2cta|cta_group", re.IGNORECASE)),
}
"""fact -> the capability of the part that such a branch is written for, and the words that give it away"""

NVIDIA = {"torch.cuda.is_available": True, "torch.version.hip": None}
WORDS = ("identifier", "string_content", "type_identifier", "field_identifier", "namespace_identifier")


@rule.python('((if_statement condition: (_) @test consequence: (_) @body) (#match? @test "major|capability|compute|arch|cc"))')
@rule.python('((elif_clause condition: (_) @test consequence: (_) @body) (#match? @test "major|capability|compute|arch|cc"))')
@rule.cuda('(if_statement condition: (condition_clause value: (_) @test) consequence: (_) @body)')
def branch(test: Node, body: Node) -> Hits:
    if not test.asks("device.capability"):
        return
    words = " ".join(word.text for word in body.walk(*WORDS) if not _is_prose(word) and not _is_switched_off(word))
    for fact, (home, pattern) in FEATURES.items():
        feature = pattern.search(words)
        if feature and test.may_hold({**NVIDIA, "device.capability": home}):
            guards = (*body.guards, test.holds)
            yield Hit(test, assumes={fact: "native"}, words={"feature": feature[0].strip()}, guards=guards)


def _is_prose(word: Node) -> bool:
    """An error message names the feature that is missing."""
    return " " in word.text.strip()


def _is_switched_off(word: Node) -> bool:
    """`use_wgmma=False` names the feature in order not to use it."""
    parent = word.parent
    value = parent.get("value") or parent.get("right") if parent is not None else None
    return value is not None and value != word and value.text in ("False", "false", "None", "0")
