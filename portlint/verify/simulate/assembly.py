"""`asm` in a kernel: its operands, and the PTX between them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from portlint.verify.simulate import ptx
from portlint.verify.simulate import values as v
from portlint.verify.simulate.builtins import Builtins
from portlint.verify.simulate.compiler import Expr
from portlint.verify.simulate.faults import Undecided
from portlint.verify.simulate.machine import Wave
from portlint.verify.simulate.program import children, text_of, walk
from portlint.verify.simulate.values import Lanes, Scalar, Values

if TYPE_CHECKING:
    import tree_sitter

_BITS = {"h": 16, "r": 32, "l": 64, "f": 32, "d": 64, "n": 64}
_CONSTRAINT = re.compile(r'"([=+]?)&?([hrlfdn])"')
_BARRIER = re.compile(r"(bar|barrier)(\.cta)?\.sync(\.aligned)?\s+0\s*;?")
_OPERAND = re.compile(r"%(?:(\d+)|\[(\w+)\]|%|(.))")


class _Operand(msgspec.Struct, frozen=True):
    """An operand of an `asm`: the register that stands for it, and the expression."""

    register: str
    symbol: str
    expr: Expr
    ctype: Scalar
    """as which the register holds it"""
    is_read: bool


class Assembly(Builtins):
    """Assembly in the code: PTX, as far as it is about lanes and bits."""

    def _gnu_asm_expression(self, node: tree_sitter.Node) -> Expr:
        line, machine = self.line(node), self.machine
        outputs = self._operands(node.child_by_field_name("output_operands"), 0)
        inputs = self._operands(node.child_by_field_name("input_operands"), len(outputs))
        code = self._assembly_code(node, [*outputs, *inputs])
        if _BARRIER.fullmatch(code.strip()):
            return self.barrier("", [], node)
        try:
            program = ptx.parsed(code)
        except Undecided as error:
            raise self.undecided(error.reason, node) from None
        if program.asks_for_lanes and machine.width > ptx.LANES:
            self.is_ported = True
        read = [(one.register, one.ctype, one.expr.ev) for one in (*outputs, *inputs) if one.is_read]
        written = [(one.register, one.ctype, one.expr.place) for one in outputs]

        def run(wave: Wave, lanes: Lanes) -> Values:
            registers = ptx.Registers(machine, wave, lanes, line)
            for register, ctype, ev in read:
                bits = [None if one is None else _bits_of(one, ctype) for one in ev(wave, lanes)]
                registers.write(register, lanes, bits, ctype.bits)
            ptx.run(program, registers)
            for register, ctype, place in written:
                assert place is not None
                bits = registers.read(register, lanes)
                place.store(wave, lanes, [None if one is None else _value_of(one, ctype) for one in bits])
            return [None] * len(lanes)

        return Expr(v.VOID, run)

    def _operands(self, listed: tree_sitter.Node | None, first: int) -> list[_Operand]:
        found = []
        for number, node in enumerate(children(listed) if listed is not None else (), first):
            value, match = (
                node.child_by_field_name("value"),
                _CONSTRAINT.fullmatch(text_of(node.child_by_field_name("constraint"))),
            )
            if value is None or match is None:
                raise self.undecided(f"'{text_of(node)[:40]}' of 'asm'", node)
            expr = self.expression(value)
            if match[2] == "n":
                expr = self.converted(expr, v.LONG, self.line(node))
            is_output = bool(match[1])
            if not isinstance(expr.ctype, Scalar) or (is_output and expr.place is None):
                raise self.undecided(f"'{text_of(node)[:40]}' of 'asm'", node)
            if expr.ctype.bits != _BITS[match[2]] and not is_output and not expr.ctype.is_float:
                expr = self.converted(expr, v.UINT if _BITS[match[2]] == 32 else v.ULONG, self.line(node))
            assert isinstance(expr.ctype, Scalar)
            if expr.ctype.bits != _BITS[match[2]] or not expr.ctype.code:
                raise self.undecided(f"'{text_of(node)[:40]}' of 'asm'", node)
            symbol = text_of(node.child_by_field_name("symbol"))
            found.append(_Operand(f"${number}", symbol, expr, expr.ctype, match[1] != "="))
        return found

    def _assembly_code(self, node: tree_sitter.Node, operands: list[_Operand]) -> str:
        """The text of an `asm` as the assembler sees it, with `$0` for its first operand."""
        code = node.child_by_field_name("assembly_code")
        parts: list[str] = []
        for one in walk(code, "string_content", "escape_sequence") if code is not None else ():
            parts.append(text_of(one) if one.type == "string_content" else " \n ")
        text = "".join(parts)
        if not operands:
            return text

        def named(match: re.Match[str]) -> str:
            if match[1]:
                return f"${match[1]}"
            if match[2]:
                return next((one.register for one in operands if one.symbol == match[2]), match[0])
            return "?" if match[3] else "%"  # a lone percent sign is an error

        return _OPERAND.sub(named, text)


def _bits_of(value: object, ctype: Scalar) -> int:
    return int.from_bytes(v.to_bytes(value, ctype) or b"", "little")


def _value_of(bits: int, ctype: Scalar) -> object:
    return v.from_bytes((bits & ((1 << ctype.bits) - 1)).to_bytes(ctype.size, "little"), ctype)
