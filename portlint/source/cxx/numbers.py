"""Numbers as C++ sees them on an LP64 platform: literals, widths, wrap-around, sizes of types."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from portlint.regex import regex


class Integer(msgspec.Struct, frozen=True):
    """An integer of a type. Narrower types than `int` are not kept apart: arithmetic promotes them."""

    value: int
    bits: int = 32
    signed: bool = True


Number: TypeAlias = Integer | float

_INTEGER = regex(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)([uU]?)(ll?|LL?|[zZ])?([uU]?)")
_FLOAT = regex(r"([0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)(?:[fFlLhH]|f16|bf16|_r|_h)?")
_MOST_DIGITS = 64

_INTEGER_TYPES = {
    "bool": (1, False),
    **dict.fromkeys(("char", "signed char", "int8_t", "std::int8_t"), (8, True)),
    **dict.fromkeys(("unsigned char", "uchar", "uint8_t", "std::uint8_t", "u8"), (8, False)),
    **dict.fromkeys(("short", "short int", "int16_t", "std::int16_t"), (16, True)),
    **dict.fromkeys(("unsigned short", "ushort", "uint16_t", "std::uint16_t"), (16, False)),
    **dict.fromkeys(("int", "signed", "signed int", "int32_t", "std::int32_t"), (32, True)),
    **dict.fromkeys(("unsigned", "unsigned int", "uint", "uint32_t", "std::uint32_t", "u32"), (32, False)),
    **dict.fromkeys(("long", "long int", "long long", "long long int", "int64_t", "std::int64_t"), (64, True)),
    **dict.fromkeys(("ptrdiff_t", "std::ptrdiff_t", "ssize_t", "intptr_t"), (64, True)),
    **dict.fromkeys(("unsigned long", "unsigned long int", "unsigned long long", "ulong"), (64, False)),
    **dict.fromkeys(("unsigned long long int", "uint64_t", "std::uint64_t", "u64"), (64, False)),
    **dict.fromkeys(("size_t", "std::size_t", "uintptr_t", "std::uintptr_t"), (64, False)),
}
_FLOAT_TYPES = ("float", "double", "long double")
_VECTOR = regex(r"(u?(?:char|short|int|long|longlong)|float|double)([1-4])")
_ELEMENT_SIZES = {"char": 1, "short": 2, "int": 4, "long": 8, "longlong": 8, "float": 4, "double": 8}
_SIZES = {
    "float": 4,
    "double": 8,
    "void*": 8,
    "dim3": 12,
    **dict.fromkeys(("half", "__half", "__nv_bfloat16", "nv_bfloat16", "__hip_bfloat16", "_Float16", "__bf16"), 2),
    **dict.fromkeys(("half_t", "bfloat16_t", "Half", "BFloat16", "bfloat16"), 2),
    **dict.fromkeys(("half2", "__half2", "__nv_bfloat162", "nv_bfloat162", "__hip_bfloat162"), 4),
    **dict.fromkeys(("__nv_fp8_e4m3", "__nv_fp8_e5m2", "__hip_fp8_e4m3", "__hip_fp8_e5m2"), 1),
    **dict.fromkeys(("float_e4m3_t", "float_e5m2_t", "Float8_e4m3fn", "Float8_e5m2", "int4b8_t"), 1),
    **dict.fromkeys(("cuComplex", "cuFloatComplex", "hipFloatComplex"), 8),
    **dict.fromkeys(("cuDoubleComplex", "hipDoubleComplex"), 16),
}


def literal(text: str) -> Number | None:
    """The value of a numeric literal in any of C++'s forms; None where it is none."""
    digits = text.replace("'", "")
    if len(digits) > _MOST_DIGITS:
        return None
    if match := _INTEGER.fullmatch(digits):
        return _integer_literal(match)
    if digits[:2] in ("0x", "0X"):
        try:
            return float.fromhex(digits.rstrip("fFlL"))
        except (ValueError, OverflowError):
            return None
    match = _FLOAT.fullmatch(digits)
    try:
        return float(match[1]) if match else None
    except ValueError:
        return None


def _integer_literal(match: re.Match[str]) -> Integer | None:
    body, suffix = match[1], match[3]
    decimal = body.isdigit() and (not body.startswith("0") or body == "0")
    try:
        value = int(body, 10 if decimal else 8 if body.isdigit() else 0)
    except ValueError:
        return None
    unsigned = bool(match[2] or match[4])
    for bits in (32, 64):
        if suffix and bits == 32:
            continue
        if not unsigned and value < 1 << (bits - 1):
            return Integer(value, bits, True)
        if (unsigned or not decimal) and value < 1 << bits:
            return Integer(value, bits, False)
    return None


def integer(value: int, bits: int, *, signed: bool) -> Integer:
    """A value brought into a type's range by wrap-around."""
    value &= (1 << bits) - 1
    if signed and value >> (bits - 1):
        value -= 1 << bits
    return Integer(value, bits, signed)


def convert(number: Number, type_name: str) -> Number | None:
    """A number as a value of a type; unchanged for a type that is not known, None where it has no such value."""
    if type_name in _FLOAT_TYPES:
        return float(number.value if isinstance(number, Integer) else number)
    if type_name not in _INTEGER_TYPES:
        return number
    bits, signed = _INTEGER_TYPES[type_name]
    if isinstance(number, float) and not math.isfinite(number):
        return None
    value = number.value if isinstance(number, Integer) else int(number)
    if bits == 1:
        return Integer(int(value != 0))
    wrapped = integer(value, bits, signed=signed)
    return Integer(wrapped.value, max(bits, 32), signed or bits < 32)


def is_arithmetic(type_name: str) -> bool:
    """Whether a type's name is that of a built-in number type."""
    return type_name in _INTEGER_TYPES or type_name in _FLOAT_TYPES


def size_of(type_name: str) -> int | None:
    """The bytes of a type: built-in types, CUDA and HIP vector types, 16-bit and 8-bit floats; None for any other."""
    if type_name.endswith("*"):
        return 8
    if type_name in _INTEGER_TYPES:
        return max(_INTEGER_TYPES[type_name][0] // 8, 1)
    plain = type_name.rpartition("::")[2]
    if vector := _VECTOR.fullmatch(plain):
        element = vector[1] if vector[1] in _ELEMENT_SIZES else vector[1].removeprefix("u")
        return _ELEMENT_SIZES[element] * int(vector[2])
    return _SIZES.get(plain)


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def unary(symbol: str, operand: Number) -> Number | bool | None:
    """`-x`, `+x`, `~x` or `!x`; None where C++ has no value for it."""
    if symbol == "!":
        return not (operand.value if isinstance(operand, Integer) else operand)
    if isinstance(operand, float):
        return {"-": -operand, "+": operand}.get(symbol)
    values = {"-": -operand.value, "+": operand.value, "~": ~operand.value}
    return integer(values[symbol], operand.bits, signed=operand.signed) if symbol in values else None


def binary(symbol: str, left: Number, right: Number) -> Number | bool | None:
    """`left symbol right` with the usual arithmetic conversions; None where C++ has no value for it."""
    if isinstance(left, float) or isinstance(right, float):
        a = left.value if isinstance(left, Integer) else left
        b = right.value if isinstance(right, Integer) else right
        return _binary_float(symbol, float(a), float(b))
    if symbol in ("<<", ">>"):
        if not 0 <= right.value < left.bits:
            return None
        shifted = left.value << right.value if symbol == "<<" else left.value >> right.value
        return integer(shifted, left.bits, signed=left.signed)
    bits = max(left.bits, right.bits)
    signed = all(one.signed for one in (left, right) if one.bits == bits)
    a, b = integer(left.value, bits, signed=signed).value, integer(right.value, bits, signed=signed).value
    if symbol in _COMPARISONS:
        return _COMPARISONS[symbol](a, b)
    if symbol in ("/", "%"):
        if b == 0:
            return None
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return integer(quotient if symbol == "/" else a - quotient * b, bits, signed=signed)
    return integer(_ARITHMETIC[symbol](a, b), bits, signed=signed) if symbol in _ARITHMETIC else None


def _binary_float(symbol: str, a: float, b: float) -> float | bool | None:
    if symbol in _COMPARISONS:
        return _COMPARISONS[symbol](a, b)
    if symbol == "/":
        return a / b if b else None
    return {"+": a + b, "-": a - b, "*": a * b}.get(symbol)
