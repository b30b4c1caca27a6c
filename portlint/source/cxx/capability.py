"""Host tests of the compute capability, as conditions that a target can answer.

The number is written as 9, 90 or 900 and kept under a dozen names; what it is compared with says which is meant.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from portlint.condition import UNANSWERABLE, Expression, Guard, Literal, Name, Op, names
from portlint.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source.node import Node

_MAJOR = regex(r"(.*(\.|->|_))?(major|cc_?major|sm_?major|device_?major)(_?version)?_?", re.IGNORECASE)
_WHOLE = regex(
    r"(.*(?<!config)(?<!cfg)(?<!plan)(\.|->))?(cc|sm|arch|sm_?(version|arch|number)|cc_?(version|number)?|(compute_?)?capability|device_?(arch|cc|sm)|gpu_?arch)_?",
    re.IGNORECASE,
)
"""of the device; `config.sm_version` is what a configuration was written for"""
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_FUNCTIONS = ("function_definition", "lambda_expression")
_EXITS = frozenset(("return_statement", "throw_statement", "break_statement", "continue_statement"))
_DEPTH = 12

_CAPABILITY = Name("device.capability")
_MAJOR_NUMBER = Op("item", (_CAPABILITY, Literal(0)))
_MINOR_NUMBER = Op("item", (_CAPABILITY, Literal(1)))


def condition(test: Node) -> Expression:
    """The condition under which a host test of the capability is reached and holds.

    UNANSWERABLE where the test asks for anything but the capability.
    """
    own = _amounts_to(test, _DEPTH)
    return Op("and", (own, *_path(test))) if _asks(own) else own


def reached(node: Node) -> tuple[Guard, ...]:
    """What the host's tests of the capability say of where a node is reached, as guards."""
    return tuple(Guard(one, True, "the compute capability", node.line) for one in _path(node))


def rungs(value: Node) -> Iterator[tuple[Node, tuple[Guard, ...]]]:
    """What an expression comes to on each capability that it asks for, `cc >= 90 ? a : b`; else the expression."""
    while value.type == "parenthesized_expression" and value.children:
        value = value.children[0]
    test = value.get("condition") if value.type == "conditional_expression" else None
    asked = _amounts_to(test, _DEPTH) if test is not None else UNANSWERABLE
    if test is None or not _asks(asked):
        yield value, ()
        return
    for branch, expected in (("consequence", True), ("alternative", False)):
        own = Guard(asked, expected, " ".join(test.text.split()), test.line)
        for rung, more in rungs(value[branch]):
            yield rung, (own, *more)


def _path(test: Node) -> list[Expression]:
    """What the tests around and before a test say of the capability where it is reached.

    An `else` is reached where its `if` does not hold, and so is what follows an `if` that leaves the block.
    """
    path: list[Expression] = []
    child = test
    for parent in test.ancestors():
        if parent.type in _FUNCTIONS:
            break
        if parent.type == "if_statement" and child != parent["condition"]:
            around = _amounts_to(parent["condition"], _DEPTH)
            path.append(Op("not", (around,)) if child == parent.get("alternative") else around)
        elif parent.type == "compound_statement":
            exits = [one for one in parent.children if one.start < child.start and _leaves(one)]
            path += [Op("not", (_amounts_to(one["condition"], _DEPTH),)) for one in exits]
        child = parent
    return [one for one in path if _asks(one)]


def _asks(expression: Expression) -> bool:
    return _CAPABILITY.text in names(expression)


def _leaves(statement: Node) -> bool:
    """Whether an `if` without `else` leaves the block that it is in."""
    if statement.type != "if_statement" or statement.get("alternative") is not None:
        return False
    last = statement["consequence"]
    if last.type == "compound_statement" and last.children:
        last = last.children[-1]
    return last.type in _EXITS


def _amounts_to(node: Node, depth: int) -> Expression:
    if not depth:
        return UNANSWERABLE
    match node.type:
        case "parenthesized_expression" | "condition_clause":
            return _amounts_to(node.children[0], depth - 1) if node.children else UNANSWERABLE
        case "unary_expression" if node["operator"].text == "!":
            return Op("not", (_amounts_to(node["argument"], depth - 1),))
        case "binary_expression":
            symbol = node["operator"].text
            if symbol in ("&&", "||"):
                both = _amounts_to(node["left"], depth - 1), _amounts_to(node["right"], depth - 1)
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
