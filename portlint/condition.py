"""Conditions in source code, and what they come to on a target.

A guard is a condition under which code is live. Preprocessor directives and Python tests are both brought into the
small expression language below, whose names are macros (`USE_ROCM`) or queries (`torch.cuda.is_available`,
`device.type`); an `Environment` gives them values. Evaluation is three-valued: `UNKNOWN` is a legal answer, and an
unknown condition never hides code.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec


class Unknown:
    """The type of `UNKNOWN`, which has no truth value on purpose: compare with `is`."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        raise TypeError("UNKNOWN is neither true nor false; test with 'is UNKNOWN'")

    def __reduce__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()

Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | None"
Outcome: TypeAlias = "Value | Unknown"


class Literal(msgspec.Struct, frozen=True):
    """A constant."""

    value: Value


class Name(msgspec.Struct, frozen=True):
    """A macro or a query, looked up in the environment."""

    text: str


class Op(msgspec.Struct, frozen=True):
    """An operator over expressions: see `_OPERATORS` for the strict ones; and, or, not, if, known, defined are lazy."""

    operator: str
    operands: tuple[Expression, ...]


Expression: TypeAlias = Literal | Name | Op


UNANSWERABLE = Op("call", ())
"""an expression that no environment can answer; it evaluates to UNKNOWN"""


class Guard(msgspec.Struct, frozen=True):
    """Code that is live only where `condition` comes to `expected`."""

    condition: Expression
    expected: bool
    text: str
    """the condition as it is written, for messages"""
    line: int


def any_way(ways: Iterable[tuple[Guard, ...]], text: str, line: int) -> Guard:
    """That at least one of several places can run, each given by its guards."""
    held = (
        Op("and", tuple(one.condition if one.expected else Op("not", (one.condition,)) for one in guards))
        for guards in ways
    )
    return Guard(Op("or", tuple(held)), True, text, line)


class Environment(msgspec.Struct, frozen=True):
    """What one build or one run on a target knows.

    `values` maps a name to its value; names in `undefined` are known not to be defined; `guess` is asked last (naming
    conventions), and everything else is UNKNOWN.
    """

    values: Mapping[str, Value]
    undefined: frozenset[str] = frozenset()
    guess: Callable[[str], Outcome] | None = None

    def lookup(self, name: str) -> Outcome:
        """The value of a name; an undefined macro is 0, as for the preprocessor."""
        if name in self.values:
            return self.values[name]
        if name in self.undefined:
            return 0
        return self.guess(name) if self.guess else UNKNOWN

    def defined(self, name: str) -> bool | Unknown:
        """Whether a macro is defined."""
        if name in self.values:
            return True
        if name in self.undefined:
            return False
        guessed = self.guess(name) if self.guess else UNKNOWN
        return UNKNOWN if guessed is UNKNOWN else bool(guessed)

    def extended(self, values: Mapping[str, Value], undefined: Iterable[str] = ()) -> Environment:
        """The same environment with some names fixed."""
        gone = frozenset(undefined)
        kept = {k: v for k, v in self.values.items() if k not in gone}
        return Environment({**kept, **values}, (self.undefined | gone) - frozenset(values), self.guess)


def _contains(item: Value, container: Value) -> bool:
    if isinstance(container, str):
        return str(item) in container
    return item in container if isinstance(container, tuple) else False


def _shift_left(value: int, by: int) -> int:
    return value << min(by, 64)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": lambda a, b: a is None or a < b,  # what is not there is less than anything: no capability, no version
    "<=": lambda a, b: a is None or a <= b,
    ">": lambda a, b: a is not None and a > b,
    ">=": lambda a, b: a is not None and a >= b,
    "+": lambda a, b: None if a is None else a + b,
    "-": operator.sub,
    "*": lambda a, b: None if a is None else a * b,
    "/": operator.floordiv,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": _shift_left,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "~": operator.invert,
    "neg": operator.neg,
    "is": lambda a, b: a is b if b is None or isinstance(b, bool) else a == b,
    "in": _contains,
    "startswith": lambda text, prefix: str(text).startswith(prefix),
    "item": lambda value, index: None if value is None else value[index],
    "truth": bool,
}


def evaluate(expression: Expression, environment: Environment) -> Outcome:
    """What an expression comes to; UNKNOWN where the environment does not say or the operands do not fit."""
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Name):
        return environment.lookup(expression.text)
    operands = expression.operands
    match expression.operator:
        case "defined":
            name = operands[0]
            return environment.defined(name.text) if isinstance(name, Name) else UNKNOWN
        case "not":
            inner = evaluate(operands[0], environment)
            return UNKNOWN if inner is UNKNOWN else not inner
        case "and":
            return _decide(operands, environment, stops_at=False)
        case "or":
            return _decide(operands, environment, stops_at=True)
        case "if":
            test = evaluate(operands[0], environment)
            if test is not UNKNOWN:
                return evaluate(operands[1 if test else 2], environment)
            either, other = evaluate(operands[1], environment), evaluate(operands[2], environment)
            return either if either is not UNKNOWN and other is not UNKNOWN and either == other else UNKNOWN
        case "known":  # the first operand that can be answered
            return next(
                (one for one in (evaluate(each, environment) for each in operands) if one is not UNKNOWN), UNKNOWN
            )
    values = [evaluate(operand, environment) for operand in operands]
    if any(value is UNKNOWN for value in values) or expression.operator not in _OPERATORS:
        return UNKNOWN
    try:
        result: Value = _OPERATORS[expression.operator](*values)
    except (TypeError, ValueError, ArithmeticError, LookupError, MemoryError):
        return UNKNOWN
    return result


def _decide(operands: tuple[Expression, ...], environment: Environment, *, stops_at: bool) -> bool | Unknown:
    """`and` (stops at False) and `or` (stops at True) over three values."""
    unsure = False
    for operand in operands:
        value = evaluate(operand, environment)
        if value is UNKNOWN:
            unsure = True
        elif bool(value) is stops_at:
            return stops_at
    return UNKNOWN if unsure else not stops_at


def is_live(guards: Iterable[Guard], environment: Environment) -> bool | Unknown:
    """Whether code under all these guards can be live: True, False, or UNKNOWN."""
    outcome: bool | Unknown = True
    for guard in guards:
        value = evaluate(guard.condition, environment)
        if value is UNKNOWN:
            outcome = UNKNOWN
        elif bool(value) is not guard.expected:
            return False
    return outcome


def names(expression: Expression) -> frozenset[str]:
    """Every name that an expression asks for."""
    if isinstance(expression, Name):
        return frozenset([expression.text])
    if isinstance(expression, Op):
        return frozenset().union(*map(names, expression.operands))
    return frozenset()


PLATFORM_WORDS = frozenset(
    "rocm hip hipcc hcc amd cuda nvidia nvcc cudart musa sycl xpu hpu habana gaudi tpu xla mps metal neuron npu ascend"
    " cann cpu".split()
)
"""the words that name a platform, in code and in builds"""


def words_of(name: str) -> list[str]:
    """The lower-case words of an identifier: `IS_ROCM`, `isRocm` and `current_platform.is_rocm` alike."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
