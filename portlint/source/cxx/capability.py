"""Host tests of the compute capability, as conditions that a target can answer.

The number is written as 9, 90 or 900 and kept under a dozen names; what it is compared with says which is meant.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from portlint.condition import UNANSWERABLE, Expression, Literal, Name, Op

if TYPE_CHECKING:
    from portlint.source.node import Node

_MAJOR = re.compile(r"(.*(\.|->|_))?(major|cc_?major|sm_?major|device_?major)(_?version)?_?", re.IGNORECASE)
_WHOLE = re.compile(
    r"(.*(\.|->))?(cc|sm|arch|sm_?(version|arch|number)|cc_?(version|number)?|(compute_?)?capability|device_?(arch|cc|sm)|gpu_?arch)_?",
    re.IGNORECASE,
)
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_DEPTH = 12

_CAPABILITY = Name("device.capability")
_MAJOR_NUMBER = Op("item", (_CAPABILITY, Literal(0)))
_MINOR_NUMBER = Op("item", (_CAPABILITY, Literal(1)))


def condition(node: Node, depth: int = _DEPTH) -> Expression:
    """The condition that a host test amounts to; UNANSWERABLE where it asks for anything but the capability."""
    if not depth:
        return UNANSWERABLE
    match node.type:
        case "parenthesized_expression" | "condition_clause":
            return condition(node.children[0], depth - 1) if node.children else UNANSWERABLE
        case "unary_expression" if node["operator"].text == "!":
            return Op("not", (condition(node["argument"], depth - 1),))
        case "binary_expression":
            symbol = node["operator"].text
            if symbol in ("&&", "||"):
                both = condition(node["left"], depth - 1), condition(node["right"], depth - 1)
                return Op("and" if symbol == "&&" else "or", both)
            if symbol in _COMPARISONS:
                return _comparison(symbol, node["left"], node["right"])
    return UNANSWERABLE


def _comparison(symbol: str, left: Node, right: Node) -> Expression:
    number = right.constant
    if not isinstance(number, int):
        left, number, symbol = right, left.constant, _FLIPPED[symbol]
    if not isinstance(number, int) or isinstance(number, bool):
        return UNANSWERABLE
    asked = _asked(left.text, number)
    return UNANSWERABLE if asked is None else Op(symbol, (asked, Literal(number)))


def _asked(text: str, number: int) -> Expression | None:
    """What a name stands for when it is compared with a number: the major version, 90 or 900."""
    if _MAJOR.fullmatch(text) and 2 <= number < 30:
        return _MAJOR_NUMBER
    if _WHOLE.fullmatch(text) is None:
        return None
    tens = Op("+", (Op("*", (_MAJOR_NUMBER, Literal(10))), _MINOR_NUMBER))
    if 30 <= number < 300:
        return tens
    return Op("*", (tens, Literal(10))) if 300 <= number < 3000 else None
