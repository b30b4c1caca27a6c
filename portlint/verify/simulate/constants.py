"""What the compiler computes before the run: calls of `constexpr` functions, and what the library says of types."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from portlint.verify.simulate import values as v
from portlint.verify.simulate.faults import Fault, Undecided
from portlint.verify.simulate.machine import Block, Dimensions, Launch, Wave
from portlint.verify.simulate.memory import Buffer
from portlint.verify.simulate.program import Function, text_of, walk
from portlint.verify.simulate.values import CType, Pointer, Scalar

if TYPE_CHECKING:
    import tree_sitter

    from portlint.verify.simulate.compiler import Compiler, Expr

_SECONDS = 0.5
"""for one call"""
_OF_ONE: Mapping[str, Callable[[CType], bool]] = {
    "is_integral": lambda one: isinstance(one, Scalar) and not one.is_float,
    "is_floating_point": lambda one: one in (v.FLOAT, v.DOUBLE),
    "is_arithmetic": lambda one: isinstance(one, Scalar) and (not one.is_float or one in (v.FLOAT, v.DOUBLE)),
    "is_signed": lambda one: one in (v.FLOAT, v.DOUBLE) or (isinstance(one, Scalar) and one.kind == "i"),
    "is_unsigned": lambda one: isinstance(one, Scalar) and one.kind in "ub",
    "is_pointer": lambda one: isinstance(one, Pointer),
    "is_void": lambda one: one is v.VOID,
}


def may_be_folded(function: Function, arguments: list[Expr], unknown: Any) -> bool:
    """Whether a call is one of a `constexpr` function with constants, which does not ask for the width."""
    return (
        "constexpr" in function.words
        and all(one.const is not unknown for one in arguments)
        and "warpSize" not in text_of(function.node)
    )


def folded(compiler: Compiler, expr: Expr, unknown: Any) -> Any:
    """The value of a call that needs nothing of a launch; `unknown` where it has none that is understood."""
    if not isinstance(expr.ctype, Scalar):
        return unknown
    module = {}
    for key, (name, size, fill) in compiler.constants.items():
        module[key] = Buffer(name, size)
        if fill is not None:
            fill(module[key])
    launch = Launch(compiler.code(_nothing, []), Dimensions((1, 1, 1)), {}, module)
    launch.until = time.process_time() + _SECONDS
    try:
        value = expr.ev(Wave(Block(launch, (0, 0, 0), 0), 0, [0], 1), [0])[0]
    except (Fault, Undecided):
        return unknown
    return unknown if value is None else value


def _nothing(_: Wave, __: list[int]) -> Any:
    raise NotImplementedError  # a launch that is not run


def trait(compiler: Compiler, name: str, given: list[tree_sitter.Node], node: tree_sitter.Node) -> bool | None:
    """What a type trait of the library says; None for another name. Raises Undecided for types with qualifiers."""
    count = 2 if name == "is_same" else 1
    if (name != "is_same" and name not in _OF_ONE) or len(given) != count:
        return None
    if any(next(walk(one, "type_qualifier", "abstract_reference_declarator"), None) for one in given):
        raise compiler.undecided(f"'{text_of(node)[:40]}'", node)
    types = [compiler.known_type(one) for one in given]
    return v.same(*types) if name == "is_same" else _OF_ONE[name](types[0])
