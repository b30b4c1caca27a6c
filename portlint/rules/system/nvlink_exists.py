"""The GPUs of one host are taken to be joined by NVLink.

A bandwidth of NVLink's is zero where boards sit on PCIe, and where another vendor's links join them. Dividing by it fails, or
gives a plan for links that are not there. In a function that does so, ranks that are taken for peers over NVLink because they
share a host are reported too.

## Exceptions
Code that tests the quantity first, in an `if`, a conditional expression, an `assert` or with `max(...)`, and quantities that
are constants of the file are silent.

## References
https://www.nvidia.com/en-us/data-center/nvlink/
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"system.nvlink": "native"},
    message="'{text}' {does}; {target} has {fact}.",
    remedy={
        "*": "Test the quantity before it is used, and plan with the links that are there: PCIe or the vendor's own.",
    },
)

OF_NVLINK = regex(r"(^|_)nvl(ink)?s?(_|$)", re.IGNORECASE)
QUANTITY = regex(r"gbps|gb_?s\b|bw|bandwidth|speed|rate|(num|n|count)_nvlinks|nvlinks$|nvlink_count", re.IGNORECASE)


RANKS = regex(r"(^|_)(ranks?|peers?|gpus?|devices|members)(_|$)", re.IGNORECASE)
OF_A_HOST = regex(r"(ranks|gpus|devices|procs|processes)_per_(host|node)|local_(world_)?size", re.IGNORECASE)


@rule.python('((assignment left: (identifier) @name right: (_) @ranks) (#match? @name "nvl|NVL|Nvl"))')
def peers(name: Node, ranks: Node) -> Hits:
    if not OF_NVLINK.search(name.text) or not RANKS.search(name.text) or not OF_A_HOST.search(_snake(ranks.text)):
        return
    divisions = name.function.walk("binary_operator") if name.function is not None else ()
    if any(one["operator"].text in ("/", "//") and _is_by_nvlink(one, one["right"]) for one in divisions):
        yield Hit(ranks, words={"does": "takes the ranks of a host for peers over NVLink"})


@rule.python(
    '((binary_operator operator: ["/" "//"] right: (_) @divisor) @division)', mentions=("nvl", "NVL", "Nvl", "NvL")
)
def divided(division: Node, divisor: Node) -> Hits:
    if _is_by_nvlink(division, divisor):
        yield Hit(division, words={"does": "divides by a quantity of NVLink's"})


def _is_by_nvlink(division: Node, divisor: Node) -> bool:
    """Whether a division is by a bandwidth or a number of links of NVLink's that nothing has tested."""
    named = next((one for one in divisor.walk("identifier") if _is_quantity(one)), None)
    if named is None or any(True for _ in divisor.walk("call", "boolean_operator", "conditional_expression")):
        return False
    return named.constant is None and not any(OF_NVLINK.search(_snake(guard.text)) for guard in division.guards)


def _is_quantity(name: Node) -> bool:
    """Whether an identifier is named for a bandwidth or a number of links of NVLink's."""
    text = _snake(name.text)
    return OF_NVLINK.search(text) is not None and QUANTITY.search(text) is not None


def _snake(text: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|\W", "_", text)
