"""The functions that CUDA and HIP bring: warp operations, atomics, bits, mathematics, cooperative groups."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from portlint.verify.simulate import values as v
from portlint.verify.simulate.compiler import Expr, GroupType, Slot
from portlint.verify.simulate.expressions import Expressions
from portlint.verify.simulate.faults import Fault
from portlint.verify.simulate.machine import Step, Wave, pointee
from portlint.verify.simulate.pairs import pair_call
from portlint.verify.simulate.program import children, text_of
from portlint.verify.simulate.values import CType, Lanes, Pointer, Record, Scalar, Values
from portlint.verify.simulate.warps import ballot, groups, over_groups, shuffle

if TYPE_CHECKING:
    import tree_sitter

_SHUFFLE = re.compile(r"__shfl(_up|_down|_xor)?(_sync)?")
_WRAPPED = re.compile(r"WARP_SHFL(_UP|_DOWN|_XOR)?")
"""PyTorch's, which choose the builtin and the mask by the platform"""
_VOTE = re.compile(r"__(any|all|ballot)(_sync)?")
_REDUCE = re.compile(r"__reduce_(add|min|max|and|or|xor)_sync")
_ATOMIC = re.compile(
    r"atomic(Add|Sub|Min|Max|And|Or|Xor|Exch|CAS|Inc|Dec)(?:_block|_system)?|(gpuAtomicAdd)(?:NoReturn)?"
)
_BARRIER = re.compile(r"__syncthreads(?:_(count|and|or))?|__barrier_sync")
_NOTHING = frozenset(
    "__threadfence __threadfence_block __threadfence_system __nanosleep printf __builtin_assume __prof_trigger"
    " __builtin_prefetch __assume __builtin_amdgcn_s_sleep __builtin_amdgcn_sched_barrier static_assert".split()
)
_TRAPS = frozenset("__trap abort __builtin_trap __builtin_unreachable __assert_fail CUDA_KERNEL_ASSERT_FAIL".split())
_ASSERTIONS = frozenset("assert CUDA_KERNEL_ASSERT CUDA_KERNEL_ASSERT2 CUDA_ASSERT".split())

_COMBINE: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "min": min, "max": max,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip


def _safe(function: Callable[..., float]) -> Callable[..., float]:
    def run(*arguments: float) -> float:
        try:
            return function(*arguments)
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return math.nan

    return run


_MATH: Mapping[str, tuple[int, Callable[..., float]]] = {
    "sqrt": (1, math.sqrt), "exp": (1, math.exp), "exp2": (1, lambda x: 2.0**x), "exp10": (1, lambda x: 10.0**x),
    "expm1": (1, math.expm1), "log": (1, lambda x: math.log(x) if x else -math.inf),
    "log2": (1, lambda x: math.log2(x) if x else -math.inf), "log10": (1, lambda x: math.log10(x) if x else -math.inf),
    "log1p": (1, math.log1p), "sin": (1, math.sin), "cos": (1, math.cos), "tan": (1, math.tan), "tanh": (1, math.tanh),
    "sinh": (1, math.sinh), "cosh": (1, math.cosh), "atan": (1, math.atan), "asin": (1, math.asin),
    "acos": (1, math.acos), "atan2": (2, math.atan2), "erf": (1, math.erf), "erfc": (1, math.erfc),
    "pow": (2, math.pow), "fabs": (1, abs), "fmod": (2, math.fmod), "hypot": (2, math.hypot),
    "floor": (1, lambda x: float(math.floor(x))), "ceil": (1, lambda x: float(math.ceil(x))),
    "trunc": (1, lambda x: float(math.trunc(x))), "rint": (1, lambda x: float(round(x))),
    "nearbyint": (1, lambda x: float(round(x))), "round": (1, lambda x: math.copysign(math.floor(abs(x) + 0.5), x)),
    "rsqrt": (1, lambda x: 1 / math.sqrt(x) if x else math.inf), "rcp": (1, lambda x: v.float_divide(1.0, x)),
    "fma": (3, lambda a, b, c: a * b + c), "copysign": (2, math.copysign), "cbrt": (1, math.cbrt),
    "fmax": (2, lambda a, b: b if math.isnan(a) else a if math.isnan(b) else max(a, b)),
    "fmin": (2, lambda a, b: b if math.isnan(a) else a if math.isnan(b) else min(a, b)),
    "fdivide": (2, v.float_divide), "fdiv": (2, v.float_divide), "saturate": (1, lambda x: min(max(x, 0.0), 1.0)),
    "fadd": (2, lambda a, b: a + b), "fmul": (2, lambda a, b: a * b), "fsub": (2, lambda a, b: a - b),
    "fsqrt": (1, math.sqrt), "frcp": (1, lambda x: v.float_divide(1.0, x)), "fdim": (2, lambda a, b: max(a - b, 0.0)),
    "fmaf": (3, lambda a, b, c: a * b + c),
}  # fmt: skip
_ROUNDED = re.compile(r"__(?:f|d)?(\w+?)_r[nzud]")

_BITS: Mapping[str, tuple[Scalar, Scalar, Callable[[int], int]]] = {
    "__popc": (v.UINT, v.INT, int.bit_count), "__popcll": (v.ULONG, v.INT, int.bit_count),
    "__builtin_popcount": (v.UINT, v.INT, int.bit_count), "__builtin_popcountll": (v.ULONG, v.INT, int.bit_count),
    "__ffs": (v.UINT, v.INT, lambda x: (x & -x).bit_length()),
    "__ffsll": (v.ULONG, v.INT, lambda x: (x & -x).bit_length()),
    "__clz": (v.UINT, v.INT, lambda x: 32 - x.bit_length()), "__clzll": (v.ULONG, v.INT, lambda x: 64 - x.bit_length()),
    "__brev": (v.UINT, v.UINT, lambda x: int(f"{x:032b}"[::-1], 2)),
    "__brevll": (v.ULONG, v.ULONG, lambda x: int(f"{x:064b}"[::-1], 2)),
}  # fmt: skip


def _same_bits(source: str, target: str) -> Callable[[Any], Any]:
    return lambda x: struct.unpack("<" + target, struct.pack("<" + source, x))[0]


_REINTERPRETED: Mapping[str, tuple[Scalar, Scalar, Callable[[Any], Any]]] = {
    "__float_as_int": (v.FLOAT, v.INT, _same_bits("f", "i")), "__int_as_float": (v.INT, v.FLOAT, _same_bits("i", "f")),
    "__float_as_uint": (v.FLOAT, v.UINT, _same_bits("f", "I")),
    "__uint_as_float": (v.UINT, v.FLOAT, _same_bits("I", "f")),
    "__double_as_longlong": (v.DOUBLE, v.LONG, _same_bits("d", "q")),
    "__longlong_as_double": (v.LONG, v.DOUBLE, _same_bits("q", "d")),
    "__half_as_ushort": (v.HALF, v.USHORT, _same_bits("e", "H")),
    "__ushort_as_half": (v.USHORT, v.HALF, _same_bits("H", "e")),
}  # fmt: skip
_CONVERSIONS: Mapping[str, Scalar] = {
    **dict.fromkeys(("__float2half", "__float2half_rn", "__double2half", "__int2half_rn"), v.HALF),
    **dict.fromkeys(
        ("__half2float", "__bfloat162float", "__int2float_rn", "__uint2float_rn", "__double2float_rn"), v.FLOAT
    ),
    **dict.fromkeys(("__float2bfloat16", "__float2bfloat16_rn", "__double2bfloat16"), v.BFLOAT),
}
_ROUNDINGS: Mapping[str, Callable[[float], float]] = {
    "rz": math.trunc, "rn": round, "ru": math.ceil, "rd": math.floor,
}  # fmt: skip
_TO_INTEGER = re.compile(r"__(?:float|double|half|bfloat16)2(int|uint|ll|ull|short|ushort)_(rz|rn|ru|rd)")
_INTEGERS = {"int": v.INT, "uint": v.UINT, "ll": v.LONG, "ull": v.ULONG, "short": v.SHORT, "ushort": v.USHORT}
_HALVES = {"__hadd": "+", "__hsub": "-", "__hmul": "*", "__hdiv": "/", "__hlt": "<", "__hgt": ">", "__heq": "=="}
_LARGEST: Mapping[str, float] = {
    "float": 3.4028234663852886e38, "double": 1.7976931348623157e308, "half": 65504.0,
    "bfloat16": 3.3895313892515355e38,
}  # fmt: skip
_SMALLEST: Mapping[str, float] = {"float": 2.0**-126, "double": 2.0**-1022, "half": 2.0**-14, "bfloat16": 2.0**-126}
_LIMITS: Mapping[str, Callable[[Scalar], Any]] = {
    "max": lambda t: _LARGEST[t.name] if t.is_float else (1 << (t.bits - (t.kind == "i"))) - 1,
    "lowest": lambda t: -_LARGEST[t.name] if t.is_float else -(1 << (t.bits - 1)) if t.kind == "i" else 0,
    "min": lambda t: _SMALLEST[t.name] if t.is_float else -(1 << (t.bits - 1)) if t.kind == "i" else 0,
    "infinity": lambda _: math.inf, "quiet_NaN": lambda _: math.nan,
}  # fmt: skip


class Builtins(Expressions):
    """The functions that need no definition."""

    def built_in(
        self, name: str, template: list[tree_sitter.Node] | None, listed: list[tree_sitter.Node], node: tree_sitter.Node
    ) -> Expr | None:
        """A call of a function of the toolkit; None for one that it does not have, or that is not known."""
        if name in _NOTHING:
            return Expr(v.VOID, lambda _, lanes: [None] * len(lanes))
        if name in _TRAPS:
            return self._trap(self.line(node))
        if template is not None:
            return self._built_in_template(name, template, [self.expression(one) for one in listed], node)
        arguments = [self.decayed(self.expression(one), self.line(node)) for one in listed]
        if name in _ASSERTIONS and arguments:
            return self._assertion(arguments[0], node)
        if match := _BARRIER.fullmatch(name):
            return self.barrier(match[1] or "", arguments, node)
        if name == "__syncwarp":
            return self._sync_wave(arguments, node)
        if match := _WRAPPED.fullmatch(name):
            wrapped = f"__shfl{(match[1] or '').lower()}"
            return self._shuffle(wrapped, (match[1] or "_index")[1:].lower(), arguments[:3], node, sync=False)
        if match := _SHUFFLE.fullmatch(name):
            return self._shuffle(name, (match[1] or "_index")[1:], arguments, node, sync=bool(match[2]))
        if match := _VOTE.fullmatch(name):
            return self._vote(name, match[1], arguments, node, sync=bool(match[2]))
        if match := _REDUCE.fullmatch(name):
            return self._reduce(name, match[1], arguments, node)
        if match := _ATOMIC.fullmatch(name):
            return self._atomic((match[1] or "Add").lower(), arguments, node)
        return self._plain_function(name, arguments, node)

    def _plain_function(self, name: str, arguments: list[Expr], node: tree_sitter.Node) -> Expr | None:
        match name:
            case "__activemask":
                return Expr(self._mask_type, lambda _, lanes: [sum(1 << lane for lane in lanes)] * len(lanes))
            case "__lane_id" | "lane_id":
                return Expr(v.UINT, lambda _, lanes: list(lanes))
            case "__match_any_sync" | "__match_any":
                return self._match_any(name, arguments, node)
            case "__builtin_amdgcn_readfirstlane":
                ev = arguments[0].ev
                return Expr(arguments[0].ctype, lambda wave, lanes: [ev(wave, lanes)[0]] * len(lanes))
            case "__ldg" | "__ldcg" | "__ldca" | "__ldcs" | "__builtin_nontemporal_load":
                followed = self.followed(arguments[0], node)
                return Expr(followed.ctype, followed.ev)
            case "__stcs" | "__stcg" | "__stwb":
                target = self.followed(arguments[0], node)
                return (
                    self._assigned(target.place, self.converted(arguments[1], target.ctype, 0))
                    if target.place
                    else None
                )
            case "this_thread_block":
                return self._group("block")
            case "coalesced_threads":
                return Expr(GroupType("coalesced"), lambda _, lanes: [sum(1 << lane for lane in lanes)] * len(lanes))
            case "sync" if arguments and isinstance(arguments[0].ctype, GroupType):
                return self.group_call(arguments[0], arguments[0].ctype, "sync", [], node)
            case "reduce" if len(arguments) == 3 and isinstance(arguments[0].ctype, GroupType):
                return self._group_reduce(arguments, node)
            case "__builtin_inff" | "__builtin_huge_valf":
                return self.const(math.inf, v.FLOAT)
            case "__builtin_nanf":
                return self.const(math.nan, v.FLOAT)
            case "isnan" | "__isnanf" | "isinf" | "isfinite" if len(arguments) == 1:
                tests: dict[str, Callable[[float], bool]] = {"isinf": math.isinf, "isfinite": math.isfinite}
                test = tests.get(name, math.isnan)
                value = self.converted(arguments[0], v.DOUBLE, self.line(node))
                return self.applied(v.BOOL, v.lift(lambda x: int(test(x))), value)
            case "swap" if len(arguments) == 2 and arguments[0].place and arguments[1].place:
                return self._swap(arguments[0], arguments[1])
            case "min" | "max" | "umin" | "umax" | "__hmin" | "__hmax" if len(arguments) == 2:
                return self._extreme(name, arguments, node)
            case "abs" | "labs" | "llabs" if len(arguments) == 1 and isinstance(arguments[0].ctype, Scalar):
                ctype = v.promoted(arguments[0].ctype)
                return self.applied(ctype, v.lift(abs), self.converted(arguments[0], ctype, 0))
            case "__umulhi" | "__mulhi":
                kind = v.UINT if name == "__umulhi" else v.INT
                high = v.lift(lambda a, b: v.wrap(a * b >> 32, kind))
                return self.applied(kind, high, *(self.converted(one, kind, 0) for one in arguments))
            case "__mul24" | "__umul24" if len(arguments) == 2:
                return self.binary("*", arguments[0], arguments[1], node)
            case "make_pair" | "make_tuple" | "tie":
                return None
        if name.startswith("make_") and name[5:] in v.NAMED:
            return self.construct(v.NAMED[name[5:]], arguments, node)
        return self._table(name, arguments, node)

    def _table(self, name: str, arguments: list[Expr], node: tree_sitter.Node) -> Expr | None:
        line = self.line(node)
        if (pair := pair_call(name, arguments)) is not None:
            return pair
        unary = _BITS.get(name) or _REINTERPRETED.get(name)
        if unary and len(arguments) == 1:
            return self.applied(unary[1], v.lift(unary[2]), self.converted(arguments[0], unary[0], line))
        if name in _CONVERSIONS and len(arguments) == 1:
            return self.converted(arguments[0], _CONVERSIONS[name], line)
        if (whole := _TO_INTEGER.fullmatch(name)) and len(arguments) == 1:
            rounding = v.lift(_safe(lambda x: float(_ROUNDINGS[whole[2]](x)) if math.isfinite(x) else x))
            number = self.applied(v.DOUBLE, rounding, self.converted(arguments[0], v.DOUBLE, line))
            return self.converted(number, _INTEGERS[whole[1]], line)
        if name in _HALVES and len(arguments) == 2:
            return self.binary(_HALVES[name], arguments[0], arguments[1], node)
        if rounded := _ROUNDED.fullmatch(name):
            for short in (f"f{rounded[1]}", rounded[1]):
                if short in _MATH:
                    return self._mathematics(short, v.DOUBLE if name.startswith("__d") else v.FLOAT, arguments, node)
        single = name.startswith("__") or (name.endswith("f") and name.removesuffix("f") in _MATH)
        short = name.removeprefix("__")
        short = short.removesuffix("f") if short not in _MATH else short
        if short in _MATH and len(arguments) == _MATH[short][0]:
            kinds = [one.ctype for one in arguments]
            low = v.FLOAT if single else v.DOUBLE
            if not single and any(one is v.FLOAT for one in kinds) and v.DOUBLE not in kinds:
                low = v.FLOAT
            if any(one in (v.HALF, v.BFLOAT) for one in kinds):
                low = v.FLOAT
            return self._mathematics(short, low, arguments, node)
        return None

    def _mathematics(self, name: str, ctype: Scalar, arguments: list[Expr], node: tree_sitter.Node) -> Expr:
        function = v.lift(_safe(_MATH[name][1]))
        operands = [self.converted(one, ctype, self.line(node)) for one in arguments]

        def operation(*given: Values) -> Values:
            values = function(*given)
            return [None if one is None else v.round_all((one,), ctype)[0] for one in values]

        return self.applied(ctype, operation, *operands)

    def _extreme(self, name: str, arguments: list[Expr], node: tree_sitter.Node) -> Expr:
        one, other = (self.scalar(argument, node) for argument in arguments)
        assert isinstance(one.ctype, Scalar)
        assert isinstance(other.ctype, Scalar)
        ctype = one.ctype if one.ctype is other.ctype else v.common(one.ctype, other.ctype)
        function = _MATH["fmin" if "min" in name else "fmax"][1] if ctype.is_float else (min if "min" in name else max)
        return self.applied(ctype, v.lift(function), self.converted(one, ctype, 0), self.converted(other, ctype, 0))

    def _swap(self, one: Expr, other: Expr) -> Expr:
        first, second = one.place, other.place
        assert first is not None
        assert second is not None

        def run(wave: Wave, lanes: Lanes) -> Values:
            a, b = first.load(wave, lanes), second.load(wave, lanes)
            first.store(wave, lanes, b)
            second.store(wave, lanes, a)
            return [None] * len(lanes)

        return Expr(v.VOID, run)

    def limit(self, scope: tree_sitter.Node, name: str) -> Expr | None:
        """`std::numeric_limits<T>::max()`."""
        template = scope.child_by_field_name("arguments")
        if (
            "numeric_limits" not in text_of(scope.child_by_field_name("name"))
            or template is None
            or name not in _LIMITS
        ):
            return None
        ctype = self.known_type(children(template)[0])
        if not isinstance(ctype, Scalar):
            return None
        return self.const(_LIMITS[name](ctype), ctype)

    def _trap(self, line: int) -> Expr:
        def run(_: Wave, __: Lanes) -> Values:
            raise Fault("trap", "the kernel traps", line)

        return Expr(v.VOID, run)

    def _assertion(self, test: Expr, node: tree_sitter.Node) -> Expr:
        line, ev = self.line(node), self.truth(test, self.line(node))

        def run(wave: Wave, lanes: Lanes) -> Values:
            if 0 in wave.truth(ev(wave, lanes), line):
                raise Fault("trap", "an assertion of the kernel does not hold", line)
            return [None] * len(lanes)

        return Expr(v.VOID, run)

    # ---- the block ------------------------------------------------------------------------------------------------

    def barrier(self, kind: str, arguments: list[Expr], node: tree_sitter.Node) -> Expr:
        """`__syncthreads` and its voting forms."""
        if self.conditional:
            raise self.undecided("a barrier that may not be reached", node)
        self.suspends = True
        line = self.line(node)
        vote = self.converted(arguments[0], v.INT, line).ev if kind and arguments else None
        result = Slot(v.INT, self.new_slot())

        def step(wave: Wave, lanes: Lanes) -> Step:
            all_at_barrier(wave, lanes, line)
            votes = wave.truth(vote(wave, lanes), line) if vote is not None else []
            answer = yield kind, votes
            result.store(wave, lanes, [answer] * len(lanes))
            return lanes

        self.hoisted.append(step)
        return Expr(v.INT if kind else v.VOID, result.load)

    # ---- the wave -------------------------------------------------------------------------------------------------

    @property
    def _mask_type(self) -> Scalar:
        return v.ULONG if self.machine.mask_bits == 64 else v.UINT

    def _masks(self, argument: Expr | None, line: int) -> Callable[[Wave, Lanes], Values] | None:
        return self.converted(argument, self._mask_type, line).ev if argument is not None else None

    def _sync_wave(self, arguments: list[Expr], node: tree_sitter.Node) -> Expr:
        line, machine = self.line(node), self.machine
        masks = self._masks(arguments[0] if arguments else None, line)

        def run(wave: Wave, lanes: Lanes) -> Values:
            if masks is not None:
                groups(machine, wave, lanes, masks(wave, lanes), "__syncwarp", line)
            return [None] * len(lanes)

        return Expr(v.VOID, run)

    def _shuffle(self, name: str, way: str, arguments: list[Expr], node: tree_sitter.Node, *, sync: bool) -> Expr:
        line, machine = self.line(node), self.machine
        masks = self._masks(arguments[0], line) if sync and arguments else None
        rest = arguments[1:] if sync else arguments
        if len(rest) not in (2, 3):
            raise self.undecided(f"'{name}' with other arguments", node)
        ctype: CType = rest[0].ctype
        if isinstance(ctype, Scalar):
            ctype = v.promoted(ctype)
        elif not isinstance(ctype, Record):
            raise self.undecided(f"'{name}' of '{ctype}'", node)
        value, lane = self.converted(rest[0], ctype, line).ev, self.converted(rest[1], v.INT, line).ev
        width = self.converted(rest[2], v.INT, line).ev if len(rest) > 2 else None

        def run(wave: Wave, lanes: Lanes) -> Values:
            members = groups(machine, wave, lanes, masks(wave, lanes) if masks else None, name, line)
            widths = width(wave, lanes) if width else [wave.width] * len(lanes)
            if any(one is not None and (one < 1 or one & (one - 1) or one > wave.width) for one in widths):
                raise Fault("mask", f"'{name}' is given a width that the wave does not have", line)
            return shuffle(members, lanes, value(wave, lanes), lane(wave, lanes), widths, way, line, machine)

        return Expr(ctype, run)

    def _vote(self, name: str, kind: str, arguments: list[Expr], node: tree_sitter.Node, *, sync: bool) -> Expr:
        line, machine = self.line(node), self.machine
        if len(arguments) != 1 + sync:
            raise self.undecided(f"'{name}' with other arguments", node)
        masks = self._masks(arguments[0], line) if sync else None
        test = self.truth(arguments[-1], line)
        combine: Callable[[Lanes, Values], int] = {
            "any": lambda _, held: int(any(held)), "all": lambda _, held: int(all(held)), "ballot": ballot,
        }[kind]  # fmt: skip

        def run(wave: Wave, lanes: Lanes) -> Values:
            members = groups(machine, wave, lanes, masks(wave, lanes) if masks else None, name, line)
            return over_groups(members, lanes, wave.truth(test(wave, lanes), line), combine)

        return Expr(self._mask_type if kind == "ballot" else v.INT, run)

    def _match_any(self, name: str, arguments: list[Expr], node: tree_sitter.Node) -> Expr:
        line, machine = self.line(node), self.machine
        masks = self._masks(arguments[0], line) if name.endswith("sync") else None
        value = arguments[-1].ev

        def run(wave: Wave, lanes: Lanes) -> Values:
            members = groups(machine, wave, lanes, masks(wave, lanes) if masks else None, name, line)
            held = dict(zip(lanes, wave.truth(value(wave, lanes), line), strict=True))
            of = {lane: group for group in members for lane in group}
            return [sum(1 << other for other in of[lane] if held[other] == held[lane]) for lane in lanes]

        return Expr(self._mask_type, run)

    def _reduce(self, name: str, kind: str, arguments: list[Expr], node: tree_sitter.Node) -> Expr:
        line, machine = self.line(node), self.machine
        masks, operand = self._masks(arguments[0], line), self.scalar(arguments[1], node)
        assert isinstance(operand.ctype, Scalar)
        ctype = v.promoted(operand.ctype)
        value = self.converted(operand, ctype, line).ev

        def run(wave: Wave, lanes: Lanes) -> Values:
            members = groups(machine, wave, lanes, masks(wave, lanes) if masks else None, name, line)
            return over_groups(members, lanes, value(wave, lanes), lambda _, held: _folded(kind, held, ctype))

        return Expr(ctype, run)

    # ---- atomics --------------------------------------------------------------------------------------------------

    def _atomic(self, kind: str, arguments: list[Expr], node: tree_sitter.Node) -> Expr:
        line = self.line(node)
        if len(arguments) != (3 if kind == "cas" else 2) or not isinstance(arguments[0].ctype, Pointer):
            raise self.undecided(f"an atomic '{kind}' with other arguments", node)
        ctype = pointee(arguments[0].ctype, line)
        if not isinstance(ctype, Scalar):
            raise self.undecided(f"an atomic '{kind}' of '{ctype}'", node)
        address = arguments[0].ev
        operands = [self.converted(one, ctype, line).ev for one in arguments[1:]]
        change = _atomic_change(kind, ctype)

        def run(wave: Wave, lanes: Lanes) -> Values:
            addresses = address(wave, lanes)
            given = [one(wave, lanes) for one in operands]
            found = []
            for index, lane in enumerate(lanes):
                where = [addresses[index]]
                old = wave.load(where, ctype, line)[0]
                values = [one[index] for one in given]
                new = None if old is None or None in values else change(old, *values)
                if new is None and kind == "exch":
                    new = values[0]
                wave.store(where, ctype, [new], [lane], line, is_atomic=True)
                found.append(old)
            return found

        return Expr(ctype, run)

    # ---- cooperative groups ---------------------------------------------------------------------------------------

    @staticmethod
    def _group(kind: str, width: int = 0) -> Expr:
        return Expr(GroupType(kind, width), lambda _, lanes: [0] * len(lanes))

    def _built_in_template(
        self, name: str, template: list[tree_sitter.Node], arguments: list[Expr], node: tree_sitter.Node
    ) -> Expr | None:
        if name == "tiled_partition" and len(arguments) == 1:
            width = self.template_value(template[0])
            if width > self.machine.width:
                raise self.undecided(f"a tile of {width} threads is wider than the wave", node)
            return self._group("tile", width)
        if name in ("min", "max") and len(arguments) == 2:
            ctype = self.known_type(template[0])
            return self._extreme(name, [self.converted(one, ctype, self.line(node)) for one in arguments], node)
        if name in ("plus", "greater", "less") and not arguments:
            return Expr(Record(f"cg {name}", []), lambda _, lanes: [()] * len(lanes))
        if name in ("move", "forward") and len(arguments) == 1:
            return arguments[0]
        return None

    def group_call(
        self, held: Expr, group: GroupType, name: str, arguments: list[Expr], node: tree_sitter.Node
    ) -> Expr:
        """A method of a cooperative group."""
        if group.kind == "block":
            return self._block_call(name, node)
        if group.kind not in ("tile", "coalesced"):
            raise self.undecided(f"'{name}' of a {group.kind} group", node)
        members = self._members(held, group)
        line = self.line(node)
        match name:
            case "sync":
                return Expr(v.VOID, lambda _, lanes: [None] * len(lanes))
            case "size" | "num_threads":
                if group.kind == "tile":
                    return self.const(group.width, v.UINT)
                return Expr(v.UINT, lambda wave, lanes: [len(one) for one in members(wave, lanes)])
            case "thread_rank":
                return Expr(v.UINT, lambda wave, lanes: _ranks(members(wave, lanes), lanes))
            case "meta_group_rank" if group.kind == "tile":
                return Expr(v.UINT, lambda wave, lanes: [(wave.first + lane) // group.width for lane in lanes])
            case "meta_group_size" if group.kind == "tile":
                return Expr(
                    v.UINT, lambda wave, lanes: [-(-wave.launch.dimensions.threads // group.width)] * len(lanes)
                )
            case "shfl" | "shfl_down" | "shfl_up" | "shfl_xor" if len(arguments) == 2:
                way = name.removeprefix("shfl").removeprefix("_")
                return self._group_shuffle(members, way, arguments, line)
            case "ballot" | "any" | "all" if len(arguments) == 1:
                return self._group_vote(members, name, self.truth(arguments[0], line), line)
        raise self.undecided(f"'{name}' of a {group.kind} group", node)

    def _block_call(self, name: str, node: tree_sitter.Node) -> Expr:
        match name:
            case "sync":
                return self.barrier("", [], node)
            case "thread_rank":
                return Expr(v.UINT, lambda wave, lanes: [wave.first + lane for lane in lanes])
            case "size" | "num_threads":
                return Expr(v.UINT, lambda wave, lanes: [wave.launch.dimensions.threads] * len(lanes))
            case "thread_index" | "group_index":
                found = self._builtin_name("threadIdx" if name == "thread_index" else "blockIdx")
                assert found is not None
                return found
        raise self.undecided(f"'{name}' of a block", node)

    @staticmethod
    def _members(held: Expr, group: GroupType) -> Callable[[Wave, Lanes], list[Lanes]]:
        """The lanes of each lane's group."""
        ev = held.ev

        def coalesced(wave: Wave, lanes: Lanes) -> list[Lanes]:
            return [[lane for lane in range(wave.width) if mask >> lane & 1] for mask in ev(wave, lanes)]

        def tile(_: Wave, lanes: Lanes) -> list[Lanes]:
            width = group.width
            found = {first: list(range(first, first + width)) for first in {lane // width * width for lane in lanes}}
            return [found[lane // width * width] for lane in lanes]

        return tile if group.kind == "tile" else coalesced

    def _group_shuffle(
        self, members: Callable[[Wave, Lanes], list[Lanes]], way: str, arguments: list[Expr], line: int
    ) -> Expr:
        value, rank = arguments[0].ev, self.converted(arguments[1], v.INT, line).ev

        def run(wave: Wave, lanes: Lanes) -> Values:
            held = dict(zip(lanes, value(wave, lanes), strict=True))
            found = []
            for lane, group, by in zip(lanes, members(wave, lanes), rank(wave, lanes), strict=True):
                if by is None:
                    raise Fault("undefined", "the lane that a shuffle asks for is undefined", line)
                own = group.index(lane)
                wanted = {"down": own + by, "up": own - by, "xor": own ^ by}.get(way, by % len(group))
                source = group[wanted] if 0 <= wanted < len(group) else lane
                found.append(held.get(source))
            return found

        return Expr(arguments[0].ctype, run)

    def _group_vote(
        self, members: Callable[[Wave, Lanes], list[Lanes]], name: str, test: Callable[[Wave, Lanes], Values], line: int
    ) -> Expr:
        def run(wave: Wave, lanes: Lanes) -> Values:
            held = dict(zip(lanes, wave.truth(test(wave, lanes), line), strict=True))
            found = []
            for group in members(wave, lanes):
                votes = [held.get(lane, 0) for lane in group]
                if name == "ballot":
                    found.append(sum(1 << rank for rank, vote in enumerate(votes) if vote))
                else:
                    found.append(int(any(votes) if name == "any" else all(held.get(lane, 1) for lane in group)))
            return found

        return Expr(self._mask_type if name == "ballot" else v.INT, run)

    def _group_reduce(self, arguments: list[Expr], node: tree_sitter.Node) -> Expr:
        group, operand = arguments[0].ctype, self.scalar(arguments[1], node)
        assert isinstance(group, GroupType)
        kinds = {"cg plus": "add", "cg greater": "max", "cg less": "min"}
        kind, ctype = kinds.get(arguments[2].ctype.name), operand.ctype
        if kind is None or group.kind not in ("tile", "coalesced") or not isinstance(ctype, Scalar):
            raise self.undecided("a reduction over a group", node)
        members, value = self._members(arguments[0], group), operand.ev

        def run(wave: Wave, lanes: Lanes) -> Values:
            held = dict(zip(lanes, value(wave, lanes), strict=True))
            return [_folded(kind, [held.get(lane) for lane in one], ctype) for one in members(wave, lanes)]

        return Expr(ctype, run)


def all_at_barrier(wave: Wave, lanes: Lanes, line: int) -> None:
    """Raise a fault where some lanes of a wave do not come to a barrier."""
    if len(lanes) + len(wave.exited) != len(wave.lanes):
        missing = [lane for lane in wave.lanes if lane not in lanes and lane not in wave.exited]
        raise Fault("barrier", f"a barrier is reached without {len(missing)} of the lanes of its wave", line)


def _ranks(members: list[Lanes], lanes: Lanes) -> Values:
    return [group.index(lane) for group, lane in zip(members, lanes, strict=True)]


def _folded(kind: str, values: Values, ctype: Scalar) -> Any:
    if None in values:
        return None
    total = values[0]
    for value in values[1:]:
        total = _COMBINE[kind](total, value)
        total = v.round_all((total,), ctype)[0] if ctype.is_float else v.wrap(total, ctype)
    return total


def _atomic_change(kind: str, ctype: Scalar) -> Callable[..., Any]:
    if kind in ("exch", "cas"):
        return (lambda _, new: new) if kind == "exch" else (lambda old, compare, new: new if old == compare else old)
    if kind == "inc":
        return lambda old, limit: 0 if old >= limit else old + 1
    if kind == "dec":
        return lambda old, limit: limit if old == 0 or old > limit else old - 1
    if kind == "sub":
        return lambda old, value: v.wrap(old - value, ctype)
    return lambda old, value: _folded(kind, [old, value], ctype)
