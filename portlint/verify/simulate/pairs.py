"""Pairs of small floating numbers: `half2` and `__nv_bfloat162`, which the toolkits compute with element by element."""

from __future__ import annotations

import re
from collections.abc import Callable

from portlint.verify.simulate import values as v
from portlint.verify.simulate.compiler import Expr
from portlint.verify.simulate.machine import Wave
from portlint.verify.simulate.values import CType, Lanes, Scalar, Values

_HALVES, _BFLOATS, _FLOATS = v.NAMED["half2"], v.NAMED["__nv_bfloat162"], v.NAMED["float2"]
_ELEMENTS: dict[CType, Scalar] = {_HALVES: v.HALF, _BFLOATS: v.BFLOAT, _FLOATS: v.FLOAT}
_COMPUTED = {"__hadd2": "+", "__hsub2": "-", "__hmul2": "*", "__h2div": "/"}
_CONVERTED = {
    "__half22float2": (_HALVES, _FLOATS), "__bfloat1622float2": (_BFLOATS, _FLOATS),
    "__float22half2_rn": (_FLOATS, _HALVES), "__float22bfloat162_rn": (_FLOATS, _BFLOATS),
}  # fmt: skip
_MADE = {
    **dict.fromkeys(("__float2half2_rn", "__half2half2", "__halves2half2", "__floats2half2_rn"), _HALVES),
    **dict.fromkeys(
        ("__float2bfloat162_rn", "__bfloat162bfloat162", "__halves2bfloat162", "__floats2bfloat162_rn"), _BFLOATS
    ),
}
_TAKEN = re.compile(r"__(low|high)2(float|half|bfloat16)")


def pair_operator(symbol: str, left: Expr, right: Expr) -> Expr | None:
    """`a + b` of pairs of one type; None for anything else."""
    of = _ELEMENTS.get(left.ctype)
    if left.ctype is not right.ctype or of in (None, v.FLOAT) or symbol not in ("+", "-", "*", "/"):
        return None
    assert of is not None
    operation = v.operation(symbol, of)
    assert operation is not None
    return _by_element(left.ctype, operation, left, right)


def pair_call(name: str, arguments: list[Expr]) -> Expr | None:
    """A function of the toolkits on pairs; None for another one."""
    kinds = [one.ctype for one in arguments]
    if name in _COMPUTED and len(kinds) == 2:
        return pair_operator(_COMPUTED[name], *arguments)
    if name == "__hfma2" and len(kinds) == 3:
        product = pair_operator("*", *arguments[:2])
        return pair_operator("+", product, arguments[2]) if product is not None else None
    if name in _CONVERTED and kinds == [_CONVERTED[name][0]]:
        source, target = _CONVERTED[name]
        return _by_element(target, v.converter(_ELEMENTS[source], _ELEMENTS[target]), arguments[0])
    if name in _MADE and kinds in ([kinds[0]], [kinds[0]] * 2) and isinstance(kinds[0], Scalar):
        return _made(_MADE[name], v.converter(kinds[0], _ELEMENTS[_MADE[name]]), arguments)
    match = _TAKEN.fullmatch(name)
    if match and len(kinds) == 1 and kinds[0] in (_HALVES, _BFLOATS):
        own = _ELEMENTS[kinds[0]]
        wanted = v.FLOAT if match[2] == "float" else own
        at, convert, ev = int(match[1] == "high"), v.converter(own, wanted), arguments[0].ev
        return Expr(wanted, lambda wave, lanes: convert(_elements(ev(wave, lanes), at)))
    return None


def _elements(pairs: Values, at: int) -> Values:
    return [None if one is None else one[at] for one in pairs]


def _by_element(pair: CType, function: Callable[..., Values], *operands: Expr) -> Expr:
    """A pair whose elements are a function of those of other pairs."""
    evs = [one.ev for one in operands]

    def run(wave: Wave, lanes: Lanes) -> Values:
        given = [ev(wave, lanes) for ev in evs]
        parts = [function(*(_elements(one, at) for one in given)) for at in (0, 1)]
        return list(zip(*parts, strict=True))

    return Expr(pair, run)


def _made(pair: CType, convert: Callable[[Values], Values], parts: list[Expr]) -> Expr:
    """A pair of two numbers, or of one twice."""
    evs = [one.ev for one in parts]

    def run(wave: Wave, lanes: Lanes) -> Values:
        given = [convert(ev(wave, lanes)) for ev in evs]
        return list(zip(given[0], given[-1], strict=True))

    return Expr(pair, run)
