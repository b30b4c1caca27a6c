"""Preprocessor conditions as expressions of `portlint.condition`.

What cannot be read, or nests deeper than anyone writes, becomes an operator that evaluates to UNKNOWN: an unknown
condition never hides code.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Protocol

from portlint.condition import UNKNOWN, Environment, Expression, Literal, Op, evaluate, names
from portlint.regex import regex

UNREADABLE = Op("unreadable", ())
"""A condition about which nothing is known."""
TRUE, FALSE = Literal(True), Literal(False)

_MOST_NODES = 600
_MOST_TOKENS = 2 * _MOST_NODES
_MOST_LEVELS = 80
_MOST_DIGITS = 80
_TOKEN = regex(
    r"(?P<number>[0-9](?:[\w.]|'(?=\w))*)|(?P<name>[A-Za-z_$][\w$]*)"
    r"|(?P<operator>&&|\|\||<<|>>|[<>=!]=|[-+*/%&|^~!<>()?:,])|(?P<other>\S)",
    re.ASCII,
)
_INTEGER = regex(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlLzZ]*")
_WORDS = {"and": "&&", "or": "||", "not": "!", "bitand": "&", "bitor": "|", "xor": "^", "compl": "~", "not_eq": "!="}
_LOOSEST_FIRST = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"))
_TIGHTEST_LAST = (("+", "-"), ("*", "/", "%"))
_PRECEDENCE = {operator: rank for rank, level in enumerate(_LOOSEST_FIRST + _TIGHTEST_LAST, 1) for operator in level}
_NOTHING_KNOWN = Environment({})


class Macros(Protocol):
    """What the names in a condition stand for."""

    def defined(self, name: str) -> Expression:
        """Whether the macro is defined."""

    def value(self, name: str) -> Expression:
        """What the name is replaced by."""


class _UnreadableError(Exception):
    pass


def negation(expression: Expression) -> Expression:
    """The condition that holds exactly where this one does not."""
    if isinstance(expression, Literal):
        return Literal(not expression.value)
    if isinstance(expression, Op) and expression.operator == "not":
        return expression.operands[0]
    return Op("not", (expression,))


def conjunction(*operands: Expression) -> Expression:
    """`and` over any number of conditions, without those that are always true."""
    return _join("and", operands, stops_at=False)


def disjunction(*operands: Expression) -> Expression:
    """`or` over any number of conditions, without those that are always false."""
    return _join("or", operands, stops_at=True)


def choice(test: Expression, then: Expression, otherwise: Expression) -> Expression:
    """The value of `test ? then : otherwise`."""
    if isinstance(test, Literal):
        return then if test.value else otherwise
    return then if then == otherwise else Op("if", (test, then, otherwise))


def _join(operator: str, operands: tuple[Expression, ...], *, stops_at: bool) -> Expression:
    kept: list[Expression] = []
    for operand in operands:
        inner = operand.operands if isinstance(operand, Op) and operand.operator == operator else (operand,)
        for one in inner:
            if isinstance(one, Literal):
                if bool(one.value) is stops_at:
                    return Literal(stops_at)
            elif negation(one) in kept:
                return Literal(stops_at)
            elif one not in kept:
                kept.append(one)
    if not kept:
        return Literal(not stops_at)
    return kept[0] if len(kept) == 1 else Op(operator, tuple(kept))


def contradict(one: Expression, one_holds: bool, other: Expression, other_holds: bool) -> bool:
    """Whether two conditions cannot come out like this together, as far as their form tells."""
    return (one == other and one_holds is not other_holds) or (negation(one) == other and one_holds is other_holds)


def fits(expression: Expression) -> bool:
    """Whether an expression is small enough to be evaluated by recursion, and to be part of others."""
    pending = [(expression, 1)]
    for count in range(_MOST_NODES):
        if not pending:
            return True
        one, level = pending.pop()
        if level > _MOST_LEVELS or count + len(pending) > _MOST_NODES:
            return False
        if isinstance(one, Op):
            pending += ((operand, level + 1) for operand in one.operands)
    return False


def mentions(expression: Expression, name: str) -> bool:
    """Whether an expression depends on a name."""
    return name in names(expression)


def parse_condition(text: str, macros: Macros) -> Expression:
    """The expression after `#if`: comments and line continuations already gone. `UNREADABLE` where it is none."""
    tokens = [(match.lastgroup or "", match[0]) for match in islice(_TOKEN.finditer(text), _MOST_TOKENS + 1)]
    if len(tokens) > _MOST_TOKENS:
        return UNREADABLE
    try:
        expression = _Parser(tokens, macros).parse()
    except _UnreadableError:
        return UNREADABLE
    return expression if fits(expression) else UNREADABLE


class _Parser:
    """Precedence climbing; recursion ends at `_MOST_LEVELS`."""

    def __init__(self, tokens: list[tuple[str, str]], macros: Macros) -> None:
        self._tokens = tokens
        self._macros = macros
        self._at = 0
        self._levels = 0

    def parse(self) -> Expression:
        expression = self._conditional()
        if self._at < len(self._tokens):
            raise _UnreadableError
        return expression

    def _peek(self) -> str:
        if self._at >= len(self._tokens):
            return ""
        text = self._tokens[self._at][1]
        return _WORDS.get(text, text)

    def _take(self, *expected: str) -> str:
        token = self._peek()
        if not token or (expected and token not in expected):
            raise _UnreadableError
        self._at += 1
        return token

    def _conditional(self) -> Expression:
        self._levels += 1
        if self._levels > _MOST_LEVELS // 2:
            raise _UnreadableError
        test = self._binary(1)
        if self._peek() == "?":
            self._take()
            then = self._conditional()
            self._take(":")
            test = choice(test, then, self._conditional())
        self._levels -= 1
        return test

    def _binary(self, least: int) -> Expression:
        left = self._unary()
        while (rank := _PRECEDENCE.get(self._peek(), 0)) >= least:
            operator = self._take()
            chain = [left, self._binary(rank + 1)]
            while operator in ("&&", "||") and self._peek() == operator:
                self._take()
                chain.append(self._binary(rank + 1))
            left = _apply(operator, *chain)
        return left

    def _unary(self) -> Expression:
        prefixes = []
        while self._peek() in ("!", "-", "+", "~"):
            prefixes.append(self._take())
        if len(prefixes) > _MOST_LEVELS:
            raise _UnreadableError
        operand = self._primary()
        for prefix in reversed(prefixes):
            if prefix != "+":
                operand = _apply({"!": "not", "-": "neg"}.get(prefix, prefix), operand)
        return operand

    def _primary(self) -> Expression:
        kind = self._tokens[self._at][0] if self._at < len(self._tokens) else ""
        word = self._take()
        if word == "(":
            inner = self._conditional()
            self._take(")")
            return inner
        if kind == "number":
            number = _INTEGER.fullmatch(word.replace("'", ""))
            if not number or len(word) > _MOST_DIGITS:
                raise _UnreadableError
            digits = number[1]
            octal = digits.isdigit() and digits.startswith("0") and not set(digits) & {"8", "9"}
            return Literal(int(digits, 8 if octal else 10 if digits.isdigit() else 0))
        if kind != "name":
            raise _UnreadableError
        if word == "defined":
            return self._defined()
        if word in ("true", "false"):
            return Literal(word == "true")
        if self._peek() == "(":
            self._skip_arguments()
            return Op("call", (Literal(word),))
        return self._macros.value(word)

    def _defined(self) -> Expression:
        parenthesised = self._peek() == "("
        if parenthesised:
            self._take()
        if self._at >= len(self._tokens) or self._tokens[self._at][0] != "name":
            raise _UnreadableError
        name = self._tokens[self._at][1]
        self._at += 1
        if parenthesised:
            self._take(")")
        return self._macros.defined(name)

    def _skip_arguments(self) -> None:
        depth = 0
        while True:
            bracket = self._take()
            depth += (bracket == "(") - (bracket == ")")
            if depth == 0:
                return


def _apply(operator: str, *operands: Expression) -> Expression:
    if operator == "&&":
        return conjunction(*operands)
    if operator == "||":
        return disjunction(*operands)
    if operator == "not" and isinstance(operands[0], Literal):
        return negation(operands[0])
    expression = Op(operator, operands)
    if all(isinstance(operand, Literal) for operand in operands):
        value = evaluate(expression, _NOTHING_KNOWN)
        if value is not UNKNOWN:
            return Literal(value)  # type: ignore[arg-type]  # "is not" does not narrow an instance away
    return expression
