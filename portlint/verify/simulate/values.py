"""C's types and the conversions between them.

Lanes hold plain Python numbers: an `int` for integers, a `float` rounded to its type, a tuple of leaves for a struct,
`(buffer, offset)` for a pointer. `None` is a value that nothing has set.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

Lanes: TypeAlias = "list[int]"
Values: TypeAlias = "list[Any]"
"""one value for each lane that executes, in the order of the lanes"""


class CType:
    """A type. Equal types are the same object, except arrays and pointers: compare with `same`."""

    size = 0

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    @property
    def leaves(self) -> tuple[tuple[int, CType], ...]:
        """The scalars in it, by offset."""
        return ((0, self),)


class Scalar(CType):
    """An arithmetic type: kind "i" signed, "u" unsigned, "b" bool, "f" floating."""

    def __init__(self, name: str, kind: str, size: int, rank: int, code: str) -> None:
        super().__init__(name)
        self.kind = kind
        self.size = size
        self.bits = size * 8
        self.rank = rank
        self.code = code
        """of the struct module; "" for bfloat16"""

    @property
    def is_float(self) -> bool:
        """Whether it is a floating type."""
        return self.kind == "f"


class Pointer(CType):
    """A pointer; `to` is None for `void*`."""

    size = 8

    def __init__(self, to: CType | None) -> None:
        super().__init__(f"{to.name if to else 'void'}*")
        self.to = to


class Array(CType):
    """An array; `length` is None where the declaration leaves it open."""

    def __init__(self, of: CType, length: int | None) -> None:
        super().__init__(f"{of.name}[{'' if length is None else length}]")
        self.of = of
        self.length = length
        self.size = of.size * (length or 0)

    @property
    def leaves(self) -> tuple[tuple[int, CType], ...]:
        """The scalars in it, by offset."""
        step = self.of.size
        return tuple((i * step + at, leaf) for i in range(self.length or 0) for at, leaf in self.of.leaves)


class Record(CType):
    """A struct, or a union; `declared` is where the program keeps its methods and constants."""

    def __init__(
        self, name: str, fields: Iterable[tuple[str, CType]], declared: Any = None, *, is_union: bool = False
    ) -> None:
        super().__init__(name)
        self.declared = declared
        self.is_union = is_union
        self.fields: dict[str, tuple[int, CType]] = {}
        at, alignment, end = 0, 1, 0
        for field, ctype in fields:
            own = _alignment(ctype)
            at = 0 if is_union else -(-at // own) * own
            self.fields[field] = (at, ctype)
            at += ctype.size
            end = max(end, at)
            alignment = max(alignment, own)
        self.size = max(1, -(-end // alignment) * alignment)
        self.alignment = alignment
        held = list(self.fields.values())
        if is_union:  # as memory, it is the largest of its members, as integers where one is of these
            held = sorted(held, key=lambda one: (-one[1].size, not _is_whole(one[1])))[:1]
        self._leaves = tuple((at + inner, leaf) for at, one in held for inner, leaf in one.leaves)

    @property
    def leaves(self) -> tuple[tuple[int, CType], ...]:
        """The scalars in it, by offset."""
        return self._leaves

    def leaf_range(self, field: str) -> tuple[int, int]:
        """Which of the leaves a field has."""
        first = 0
        for name, (_, ctype) in self.fields.items():
            if name == field:
                return first, first + len(ctype.leaves)
            first += len(ctype.leaves)
        raise KeyError(field)


def _is_whole(ctype: CType) -> bool:
    """Whether all bits of a type are those of integers, which a copy keeps as they are."""
    return all(isinstance(leaf, Scalar) and not leaf.is_float for _, leaf in ctype.leaves)


def _alignment(ctype: CType) -> int:
    if isinstance(ctype, Array):
        return _alignment(ctype.of)
    return ctype.alignment if isinstance(ctype, Record) else max(1, ctype.size)


VOID = CType("void")
BOOL = Scalar("bool", "b", 1, 0, "?")
CHAR = Scalar("char", "i", 1, 1, "b")
UCHAR = Scalar("unsigned char", "u", 1, 1, "B")
SHORT = Scalar("short", "i", 2, 2, "h")
USHORT = Scalar("unsigned short", "u", 2, 2, "H")
INT = Scalar("int", "i", 4, 3, "i")
UINT = Scalar("unsigned", "u", 4, 3, "I")
LONG = Scalar("long long", "i", 8, 4, "q")
ULONG = Scalar("unsigned long long", "u", 8, 4, "Q")
HALF = Scalar("half", "f", 2, 5, "e")
BFLOAT = Scalar("bfloat16", "f", 2, 5, "")
FLOAT = Scalar("float", "f", 4, 6, "f")
DOUBLE = Scalar("double", "f", 8, 7, "d")

NAMED: dict[str, CType] = {
    "void": VOID,
    "bool": BOOL,
    **dict.fromkeys(("char", "signed char", "int8_t"), CHAR),
    **dict.fromkeys(("unsigned char", "uchar", "uint8_t"), UCHAR),
    **dict.fromkeys(("short", "short int", "int16_t", "signed short"), SHORT),
    **dict.fromkeys(("unsigned short", "unsigned short int", "ushort", "uint16_t"), USHORT),
    **dict.fromkeys(("int", "signed", "signed int", "int32_t"), INT),
    **dict.fromkeys(("unsigned", "unsigned int", "uint", "uint32_t"), UINT),
    **dict.fromkeys(("long", "long int", "long long", "long long int", "int64_t", "ptrdiff_t", "clock_t"), LONG),
    **dict.fromkeys(("signed long", "signed long long", "intptr_t", "ssize_t"), LONG),
    **dict.fromkeys(("unsigned long", "unsigned long int", "unsigned long long", "unsigned long long int"), ULONG),
    **dict.fromkeys(("uint64_t", "size_t", "uintptr_t", "ulong"), ULONG),
    **dict.fromkeys(("half", "__half", "_Float16", "half_t", "Half", "at::Half", "c10::Half"), HALF),
    **dict.fromkeys(("__nv_bfloat16", "nv_bfloat16", "__hip_bfloat16", "hip_bfloat16", "__bf16"), BFLOAT),
    **dict.fromkeys(("bfloat16", "BFloat16", "at::BFloat16", "c10::BFloat16"), BFLOAT),
    "float": FLOAT,
    "double": DOUBLE,
}

_OF_VECTORS: dict[str, CType] = {
    "float": FLOAT, "double": DOUBLE, "int": INT, "uint": UINT, "short": SHORT, "ushort": USHORT, "char": CHAR,
    "uchar": UCHAR, "longlong": LONG, "ulonglong": ULONG,
}  # fmt: skip
for _name, _of in _OF_VECTORS.items():
    for _count in (1, 2, 3, 4):
        NAMED[f"{_name}{_count}"] = Record(f"{_name}{_count}", [(axis, _of) for axis in "xyzw"[:_count]])
DIM3 = Record("dim3", [(axis, UINT) for axis in "xyz"])
NAMED["dim3"] = DIM3
NAMED["half2"] = NAMED["__half2"] = Record("half2", [("x", HALF), ("y", HALF)])
NAMED["__nv_bfloat162"] = NAMED["nv_bfloat162"] = Record("bfloat162", [("x", BFLOAT), ("y", BFLOAT)])


def same(one: CType | None, other: CType | None) -> bool:
    """Whether two types are the same."""
    if isinstance(one, Pointer) and isinstance(other, Pointer):
        return same(one.to, other.to)
    if isinstance(one, Array) and isinstance(other, Array):
        return one.length == other.length and same(one.of, other.of)
    return one is other


def promoted(ctype: Scalar) -> Scalar:
    """The type after integer promotion."""
    return INT if not ctype.is_float and ctype.rank < INT.rank else ctype


def common(one: Scalar, other: Scalar) -> Scalar:
    """The type that both operands of an arithmetic operator become."""
    one, other = promoted(one), promoted(other)
    if one.is_float or other.is_float:
        if one.is_float and other.is_float and one.rank == other.rank and one is not other:
            return FLOAT
        return one if one.rank >= other.rank else other
    if one.rank != other.rank:
        return one if one.rank > other.rank else other
    return one if one.kind == "u" else other


# ---- rounding and wrapping --------------------------------------------------------------------------------------


def wrap(value: int, ctype: Scalar) -> int:
    """An integer brought into a type's range by wrap-around."""
    if ctype.kind == "b":
        return int(value != 0)
    value &= (1 << ctype.bits) - 1
    return value - (1 << ctype.bits) if ctype.kind == "i" and value >> (ctype.bits - 1) else value


def _to_half(value: float) -> float:
    try:
        return float(struct.unpack("<e", struct.pack("<e", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _to_bfloat(value: float) -> float:
    if math.isnan(value) or math.isinf(value):
        return value
    bits: int = struct.unpack("<I", struct.pack("<f", _to_float(value)))[0]
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0])


def _to_float(value: float) -> float:
    return array("f", (value,))[0]


def round_all(values: Iterable[float], ctype: Scalar) -> Values:
    """Floating values as a type holds them; none of them may be None."""
    if ctype is FLOAT:
        return array("f", values).tolist()
    if ctype is DOUBLE:
        return list(values)
    return [(_to_half if ctype is HALF else _to_bfloat)(value) for value in values]


def _float_to_int(value: float, ctype: Scalar) -> int:
    """Truncation, and the nearest value of the type where it does not fit, as GPUs do it."""
    if math.isnan(value):
        return 0
    low = -(1 << ctype.bits - 1) if ctype.kind == "i" else 0
    high = low + (1 << ctype.bits) - 1
    return high if value >= high else low if value <= low else int(value)


def convert_one(value: Any, source: Scalar, target: Scalar) -> Any:
    """One value of an arithmetic type as another."""
    if value is None or source is target:
        return value
    return converter(source, target)([value])[0]


def converter(source: Scalar, target: Scalar) -> Callable[[Values], Values]:
    """What turns values of one arithmetic type into another."""
    key = (source.name, target.name)
    if key not in _CONVERTERS:
        _CONVERTERS[key] = _poison_safe(_plain_converter(source, target))
    return _CONVERTERS[key]


_CONVERTERS: dict[tuple[str, str], Callable[[Values], Values]] = {}


def _plain_converter(source: Scalar, target: Scalar) -> Callable[[Values], Values]:
    if target.kind == "b":
        return lambda values: [int(value != 0) for value in values]
    if target.is_float:
        if source.is_float and source.rank <= target.rank and not source.rank == HALF.rank == target.rank:
            return lambda values: values
        return lambda values: round_all(map(float, values), target)
    if source.is_float:
        return lambda values: [_float_to_int(value, target) for value in values]
    if source.kind == "b" or (source.bits < target.bits and (source.kind == "u" or target.kind == "i")):
        return lambda values: values
    ones = (1 << target.bits) - 1
    if target.kind == "u":
        return lambda values: [value & ones for value in values]
    half = 1 << (target.bits - 1)
    return lambda values: [((value + half) & ones) - half for value in values]


def _poison_safe(plain: Callable[[Values], Values]) -> Callable[[Values], Values]:
    def run(values: Values) -> Values:
        if None in values:
            return [None if value is None else plain([value])[0] for value in values]
        return plain(values)

    return run


# ---- operators ----------------------------------------------------------------------------------------------------


def _divide(a: int, b: int) -> int | None:
    if a >= 0 and b > 0:
        return a // b
    if b == 0:
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int | None:
    if a >= 0 and b > 0:
        return a % b
    quotient = _divide(a, b)
    return None if quotient is None else a - quotient * b


def float_divide(a: float, b: float) -> float:
    """Division as IEEE 754 has it."""
    if b:
        return a / b
    if not a or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _remainder,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
_FLOATING: Mapping[str, Callable[[Any, Any], Any]] = {**_ARITHMETIC, "/": float_divide}
ALTERNATIVES = {"and": "&&", "or": "||", "not": "!", "bitand": "&", "bitor": "|", "xor": "^", "compl": "~"}


def lift(function: Callable[..., Any]) -> Callable[..., Values]:
    """A function of single values as one of lanes; what it gets from an undefined value is undefined."""

    def run(*operands: Values) -> Values:
        if any(None in one for one in operands):
            return [None if None in args else function(*args) for args in zip(*operands, strict=True)]
        return list(map(function, *operands))

    return run


def operation(symbol: str, ctype: Scalar) -> Callable[[Values, Values], Values] | None:
    """A binary operator whose operands both have a type; None where the type has no such operator."""
    key = (symbol, ctype.name)
    if key not in _OPERATIONS:
        _OPERATIONS[key] = _operation(symbol, ctype)
    return _OPERATIONS[key]


_OPERATIONS: dict[tuple[str, str], Callable[[Values, Values], Values] | None] = {}


def _operation(symbol: str, ctype: Scalar) -> Callable[[Values, Values], Values] | None:
    if symbol in COMPARISONS:
        compare = COMPARISONS[symbol]
        return lift(lambda a, b: int(compare(a, b)))
    if ctype.is_float:
        function = _FLOATING.get(symbol)
        if function is None or symbol in "%&|^":
            return None
        return _float_operation(function, ctype)
    if symbol in ("<<", ">>"):
        return _shift(symbol, ctype)
    function = _ARITHMETIC.get(symbol)
    if function is None:
        return None
    if symbol in "&|^%":
        return lift(function)  # stays in range
    return lift(_wrapped(function, ctype))


def _wrapped(function: Callable[[int, int], int | None], ctype: Scalar) -> Callable[[int, int], int | None]:
    ones, half = (1 << ctype.bits) - 1, 1 << (ctype.bits - 1)

    def signed(a: int, b: int) -> int | None:
        value = function(a, b)
        return None if value is None else ((value + half) & ones) - half

    def unsigned(a: int, b: int) -> int | None:
        value = function(a, b)
        return None if value is None else value & ones

    return signed if ctype.kind == "i" else unsigned


def _float_operation(function: Callable[[float, float], float], ctype: Scalar) -> Callable[[Values, Values], Values]:
    def run(a: Values, b: Values) -> Values:
        if None in a or None in b:
            pairs = zip(a, b, strict=True)
            return [None if x is None or y is None else round_all((function(x, y),), ctype)[0] for x, y in pairs]
        try:
            return round_all(map(function, a, b), ctype)
        except OverflowError:
            return [math.inf] * len(a)

    return run


def _shift(symbol: str, ctype: Scalar) -> Callable[[Values, Values], Values]:
    def shift(a: int, by: int) -> int | None:
        if not 0 <= by < ctype.bits:
            return None  # undefined in C, and every GPU does something else
        return wrap(a << by, ctype) if symbol == "<<" else a >> by

    return lift(shift)


# ---- bytes --------------------------------------------------------------------------------------------------------


def to_bytes(value: Any, ctype: CType) -> bytes | None:
    """How memory holds a value; None for what has no bytes here, such as a pointer."""
    if not isinstance(ctype, Scalar):
        return None
    if ctype is BFLOAT:
        return struct.pack("<f", value)[2:]
    if ctype.is_float:
        return struct.pack("<" + ctype.code, value)
    return int(value & ((1 << ctype.bits) - 1)).to_bytes(ctype.size, "little")


def from_bytes(data: bytes, ctype: CType) -> Any:
    """The value that bytes stand for; None for a pointer."""
    if not isinstance(ctype, Scalar):
        return None
    if ctype is BFLOAT:
        return struct.unpack("<f", b"\0\0" + data)[0]
    if ctype.is_float:
        return struct.unpack("<" + ctype.code, data)[0]
    return wrap(int.from_bytes(data, "little"), ctype)
