"""Element types by the values that tell them from narrower ones, as every framework can be asked about them."""

from typing import NamedTuple


class Type(NamedTuple):
    """A number with two parts, of which a narrower type loses the smaller one."""

    large: complex
    small: complex

    @property
    def whole(self) -> complex:
        """The number; arithmetic of Python keeps both of its parts."""
        return self.large + self.small


def _floating(bits: int) -> Type:
    return Type(1.0, 2.0**-bits)


def _integer(bits: int) -> Type:
    return Type(2**bits, 1)


TYPES = {
    "float64": _floating(52),
    "float32": _floating(23),
    "float16": _floating(10),
    "bfloat16": _floating(7),
    "int64": _integer(62),
    "int32": _integer(30),
    "int8": _integer(6),
    "complex64": Type(1j, 2.0**-23 * 1j),
    "complex128": Type(1j, 2.0**-52 * 1j),
}

FACTS = tuple(f"dtype.{name}" for name in TYPES)


def level(kept: complex, small: complex) -> str:
    """Native where what a device has kept of a number, less its larger part, is the smaller part."""
    return "native" if kept == small else "narrowed"
