"""A test of the compute capability lets in machines that its branch was not written for.

`cc >= 90` is also true of 10.0 and 12.0, which have no `wgmma`, and `major == 9` is true of AMD's gfx942, which answers
(9, 4). The branch then runs code for Hopper, or for data-centre Blackwell, where it does not exist.

## Exceptions
The test is evaluated for each target: a closed interval, and a test behind a check of the platform, are silent. Where the
branch switches the feature on in a call (`two_cta=True`), that is the place reported, else the test is.

## References
https://docs.nvidia.com/cuda/blackwell-compatibility-guide/
"""

from __future__ import annotations

import re
from itertools import islice

from portlint.rule import Hit, Hits, Node, Rule, on_platform, regex

rule = Rule(
    assumes={},
    message="'{text}' is true of {target}, which has {fact}, and leads to '{feature}'.",
    remedy={
        "amd": "Test `torch.version.hip` (or `USE_ROCM`) before the capability: on ROCm it is the number of the gfx target.",
        "*": "Close the interval (`cc >= 90 && cc < 100`), and add a branch for the newer parts.",
    },
)

FEATURES: dict[str, tuple[tuple[int, int], re.Pattern[str]]] = {
    "isa.wgmma": (
        (9, 0),
        regex(r"wgmma|gmma(?!_)|hopper|(^|[^0-9])sm_?90|fa3|flash_attn_?3|flashattention_?3", re.IGNORECASE),
    ),
    "isa.tcgen05": ((10, 0), regex(r"tcgen05|umma|(^|[^0-9])sm_?100|two_cta|2cta|cta_group", re.IGNORECASE)),
}
"""fact -> the capability of the part that such a branch is written for, and the words that give it away"""

_OF_TEXT = regex(r"_(?:suffix|prefix|name|label|msg|message)$")
"""a variable with text, `hopper_suffix`: no instruction comes of it"""

NVIDIA = {"torch.cuda.is_available": True, "torch.version.hip": None}
WORDS = ("identifier", "string_content", "type_identifier", "field_identifier", "namespace_identifier")


@rule.python(
    '((if_statement condition: (_) @test consequence: (_) @body) (#match? @test "major|capability|compute|arch|cc"))'
)
@rule.python(
    '((elif_clause condition: (_) @test consequence: (_) @body) (#match? @test "major|capability|compute|arch|cc"))'
)
@rule.cuda("(if_statement condition: (condition_clause value: (_) @test) consequence: (_) @body)")
def branch(test: Node, body: Node) -> Hits:
    if not test.asks("device.capability"):
        return
    words = [word for word in body.walk(*WORDS) if _counts(word, body)]
    for fact, (home, pattern) in FEATURES.items():
        feature = pattern.search(" ".join(word.text for word in words))
        if feature and test.may_hold({**NVIDIA, "device.capability": home}):
            switch = next((word.parent for word in words if pattern.search(word.text) and _is_switched_on(word)), None)
            named = {"text": " ".join(test.text.split()), "feature": feature[0].strip()}
            guards = (*body.guards, test.holds, on_platform("cuda"))
            yield Hit(switch or test, assumes={fact: "native"}, words=named, guards=guards)


def _counts(word: Node, body: Node) -> bool:
    """Whether a word of a branch says what the branch is for."""
    return not (
        _is_prose(word) or _OF_TEXT.search(word.text) or _is_switched_off(word) or _is_behind_another_gate(word, body)
    )


def _is_prose(word: Node) -> bool:
    """An error message names the feature that is missing, a path the file that would be loaded."""
    return " " in word.text.strip() or (word.type == "string_content" and "/" in word.text)


def _is_switched_off(word: Node) -> bool:
    """`use_wgmma=False` and `{"use_wgmma": False}` name the feature in order not to use it."""
    for parent in islice(word.ancestors(), 2):
        value = parent.get("value") or parent.get("right")
        if value is not None and value.start > word.start and value.text in ("False", "false", "None", "0"):
            return True
    return False


def _is_switched_on(word: Node) -> bool:
    """`two_cta=True` in a call says on its own line what the test lets in."""
    parent = word.parent
    return parent is not None and parent.type == "keyword_argument" and parent["value"].text == "True"


def _is_behind_another_gate(word: Node, body: Node) -> bool:
    """Whether a test of the capability within the branch decides about the word; it is looked at by itself."""
    return any(
        gate.start >= body.start and gate["condition"].end <= word.start and gate["condition"].asks("device.capability")
        for gate in word.ancestors("if_statement", "elif_clause")
    )
