"""Launch shapes, template arguments and inputs that fit a kernel, derived from the code around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import msgspec

from portlint.verify.simulate import values as v
from portlint.verify.simulate.compiler import UNKNOWN, Compiler, Expr
from portlint.verify.simulate.faults import Undecided
from portlint.verify.simulate.launch import Fill
from portlint.verify.simulate.launches import KernelLaunch, launches_of
from portlint.verify.simulate.machine import Dimensions
from portlint.verify.simulate.program import Function, Program, children, declared_name, text_of, walk
from portlint.verify.simulate.statements import Statements
from portlint.verify.simulate.templates import TemplateName, is_template, template_name
from portlint.verify.simulate.values import Array, CType, Pointer, Record, Scalar

if TYPE_CHECKING:
    import tree_sitter

    from portlint.source import Source
    from portlint.verify.simulate.machine import Machine

_PLAUSIBLE_BLOCKS = (256, 64, 128, 1024)
_SMALL_BLOCK = 32
"""tried where nothing else fits: on the target it is half a wave, which code that asks for its width need not serve"""
_BLOCK_NAMES = re.compile(r"block|threads?|nt$|tpb|tb_?size|cta", re.IGNORECASE)
_PER_OTHERS = re.compile(r"per(?!_?(?:block|cta|tb))", re.IGNORECASE)
_WARP_NAMES = re.compile(r"warp|wave|lanes?", re.IGNORECASE)
_SIZES = re.compile(
    r"^(n|m|k|num\w*|n_\w+|size\w*|\w*_size|len\w*|\w*_len\w*|count\w*|\w*_count|elements?|total\w*|numel|rows?|cols?|dim\w*"
    r"|\w*_dim|width|height|stride\w*|\w*stride|batch\w*|seq\w*|hidden\w*|limit|end|bound\w*|[nN][A-Z]\w*|N|M|K|inc|ld\w)$"
)
_ROWS = re.compile(r"row|batch|height|^m$|^M$|outer", re.IGNORECASE)
_ZEROS = re.compile(r"offset|start|begin|axis|id$|idx|rank|pad|base|shift|seed", re.IGNORECASE)
_LANE_NAMES = re.compile(r"tid|lane|thread|idx|index", re.IGNORECASE)
_BOUNDS = re.compile(r"__launch_bounds__\s*\(\s*([^,()]+)")
_MOST_TEMPLATES = 4
_MOST_BLOCK = 1024
_ONES = (1 << 64) - 1


class Profile(msgspec.Struct, frozen=True):
    """What numbers inputs have."""

    integers: int
    """they are below that"""
    seed: int
    negative: bool = False
    floats: int = 41
    """how many values floating numbers have, around zero"""


PROFILES = (Profile(7, 1), Profile(32, 2, floats=2001), Profile(2, 3), Profile(1000, 4, True, 2001))
DISTINCT = (Profile(30_000, 5, floats=20_001), Profile(3, 6, floats=5), Profile(1000, 7, True, 2001))
"""for functions that may look for an extreme, which few values would hide"""
"""small first: an integer may be an index"""


class Trial(msgspec.Struct, frozen=True):
    """One launch to try."""

    dimensions: Dimensions
    template: Mapping[str, Any]
    numbers: Mapping[str, Any]
    """the scalar parameters, and by offset those in structs"""
    fields: Mapping[str, Fields]
    """what the structs of a buffer hold"""
    profile: Profile
    is_guess: bool = False
    """whether its block is smaller than the waves of the target, and nobody says that the kernel serves it"""

    def __str__(self) -> str:
        grid, block = (" x ".join(map(str, _cut(one))) for one in (self.dimensions.grid, self.dimensions.block))
        given = ", ".join(f"{name} = {value}" for name, value in self.numbers.items() if not isinstance(value, Mapping))
        template = ", ".join(f"{name} = {_shown(value)}" for name, value in self.template.items())
        parts = [f"<<<{grid}, {block}>>>", given, template, f"inputs of seed {self.profile.seed}"]
        return "; ".join(part for part in parts if part)


def _cut(axes: tuple[int, int, int]) -> tuple[int, ...]:
    return axes if axes[2] > 1 else axes[:2] if axes[1] > 1 else axes[:1]


def _shown(value: Any) -> str:
    return str(value.const if isinstance(value, Expr) else value)


def fill_of(trial: Trial) -> Fill:
    """The inputs of a launch."""
    by_profile, known = fill_by(trial.profile), trial.fields

    def fill(name: str, at: int, ctype: CType) -> Any:
        fields = known.get(name)
        held = fields.held.get(at % fields.size) if fields is not None and isinstance(ctype, Scalar) else None
        return by_profile(name, at, ctype) if held is None else held

    return fill


def fill_by(profile: Profile) -> Fill:
    """The inputs of a profile: the same for the same buffer and offset, whatever the machine."""

    def fill(name: str, at: int, ctype: CType) -> Any:
        if not isinstance(ctype, Scalar):
            raise Undecided(f"'{name}' holds pointers")
        number = _mixed(at * 31 + profile.seed * 1_000_003 + sum(map(ord, name)) * 7919)
        if ctype.is_float:
            return (
                float(number % profile.floats - profile.floats // 2) / 4
            )  # quarters: their sums are exact, whatever the order
        value = number % profile.integers
        if profile.negative and ctype.kind == "i":
            value -= profile.integers // 2
        return v.wrap(value, ctype)

    return fill


def _mixed(number: int) -> int:
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & _ONES
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & _ONES
    return number ^ (number >> 31)


def trials(source: Source, program: Program, machine: Machine, kernel: Function, most: int) -> Iterator[Trial]:
    """Launches that fit a kernel, different ones first."""
    launches = launches_of(source, program, machine, kernel.name)
    blocks, are_known = _blocks(source, kernel, launches)
    templates = list(islice(_templates(program, machine, kernel, launches), _MOST_TEMPLATES)) or [{}]
    shapes = list(product(blocks, templates))
    two_dimensional = "threadIdx.y" in text_of(kernel.node)
    found = (
        Trial(dimensions, chosen, numbers, fields, profile, not are_known and block < machine.width)
        for number, (turn, (at, (block, template))) in enumerate(product(range(most), enumerate(shapes)))
        for variant in (number + turn // len(PROFILES),)  # later turns pair their inputs with other sizes
        for profile in (PROFILES[(turn + at) % len(PROFILES)],)
        if block < _MOST_BLOCK or turn == 0 or len(blocks) == 1
        for dimensions in (Dimensions(block=_shape(block, two_dimensional), grid=(2 if variant % 2 else 1, 1, 1)),)
        for chosen in (_for_block(template, block),)
        for numbers, fields in (_given(program, machine, kernel, chosen, dimensions, variant, launches),)
    )
    return islice(found, most)


def _shape(block: int, two_dimensional: bool) -> tuple[int, int, int]:
    if not two_dimensional:
        return block, 1, 1
    across = 32 if block >= 32 else block
    return across, max(1, block // across), 1


# ---- blocks ----------------------------------------------------------------------------------------------------------


def _blocks(source: Source, kernel: Function, launches: list[KernelLaunch]) -> tuple[list[int], bool]:
    """Block sizes: those of the launches, else what the kernel is bound to, else plausible ones; and which it is."""
    known = [size for launch in launches for size in launch.blocks if 1 <= size <= _MOST_BLOCK]
    if known and all(launch.blocks for launch in launches):
        return list(dict.fromkeys(known)), True
    lines = source.text.decode(errors="replace").splitlines()
    head = "\n".join(lines[max(0, kernel.first_line - 2) : kernel.node.start_point[0] + 4])
    bound = _BOUNDS.search(head) if not kernel.unit else None
    found = list(known)
    if bound is not None:
        found += [size for size in _constants_named(source, bound[1].strip()) if 1 <= size <= _MOST_BLOCK]
        if found:
            return list(dict.fromkeys(found)), True
    used = set(re.findall(r"\b[A-Z]\w*\b|\bk[A-Z]\w*\b", "\n".join(lines)))
    for name in sorted(one for one in used if _BLOCK_NAMES.search(one)):
        found += [
            size for size in _constants_named(source, name) if size in (32, 64, 96, 128, 192, 256, 384, 512, 1024)
        ]
    guessed = [*found[:2], *(one for one in _PLAUSIBLE_BLOCKS if one != _MOST_BLOCK or not found), _SMALL_BLOCK]
    return list(dict.fromkeys(guessed)), False


def _constants_named(source: Source, name: str) -> list[int]:
    if name.isdigit():
        return [int(name)]
    found = []
    for node in source.analysis.identifiers(lambda word: word == name):
        from portlint.source.node import Node

        value = Node(source, node).constant
        if isinstance(value, int) and not isinstance(value, bool):
            found.append(value)
            break
    return found


# ---- template arguments -------------------------------------------------------------------------------------------


def _templates(
    program: Program, machine: Machine, kernel: Function, launches: list[KernelLaunch]
) -> Iterator[dict[str, Any]]:
    if kernel.template is None:
        return
    parameters = children(kernel.template)
    compiler = Statements(program, machine)
    seen = set()
    for launch in launches:
        values = _written(compiler, parameters, launch.template)
        key = str({name: _shown(value) for name, value in values.items()})
        if len(values) == len(parameters) and key not in seen:
            seen.add(key)
            yield values
    choices = [_candidates(compiler, one) for one in parameters]
    for chosen in product(*choices):
        yield {template_name(one): value for one, value in zip(parameters, chosen, strict=True)}


def _written(compiler: Compiler, parameters: list[tree_sitter.Node], given: tuple[str, ...]) -> dict[str, Any]:
    """The template arguments of a launch, as far as they are constants and plain types."""
    found: dict[str, Any] = {}
    for parameter, text in zip(parameters, given, strict=False):
        try:
            if is_template(parameter):
                if text not in compiler.program.templates:
                    break
                found[template_name(parameter)] = TemplateName(text)
            elif "type_parameter" in parameter.type:
                found[template_name(parameter)] = compiler.named_type(text, parameter)
            elif text.isdigit():
                found[template_name(parameter)] = compiler.const(int(text), v.INT)
            elif text in ("true", "false"):
                found[template_name(parameter)] = compiler.const(int(text == "true"), v.BOOL)
            else:
                known = compiler.variable(text, parameter)
                if known is not None and known.const is not UNKNOWN:
                    found[template_name(parameter)] = known
        except Undecided:
            break
    return found


def _candidates(compiler: Compiler, parameter: tree_sitter.Node) -> list[Any]:
    name = template_name(parameter)
    if is_template(parameter) and (known := _template_for(compiler.program, parameter)) is not None:
        return [known]
    if parameter.type.startswith("variadic") or is_template(parameter):
        raise Undecided(f"template parameter '{name}' is not known", parameter.start_point[0] + 1)
    if parameter.type.startswith("optional"):
        default = parameter.child_by_field_name("default_value")
        if default is not None:
            try:
                return [compiler.expression(default)]
            except Undecided:
                pass
        named = parameter.child_by_field_name("default_type")
        if named is not None:
            try:
                return [compiler.known_type(named)]
            except Undecided:
                pass
    if "type_parameter" in parameter.type:
        if re.search(r"idx|index|int", name, re.IGNORECASE):
            return [v.INT]
        return [v.FLOAT, v.INT]
    ctype = compiler.known_type(parameter.child_by_field_name("type"))
    if ctype is v.BOOL:
        return [compiler.const(0, v.BOOL), compiler.const(1, v.BOOL)]
    if is_block_size(name):
        return [_OfBlock()]
    values = (32,) if _WARP_NAMES.search(name) else (4, 1)
    return [compiler.const(one, v.INT) for one in values]


def _template_for(program: Program, parameter: tree_sitter.Node) -> TemplateName | None:
    """A class template that the file passes to some template, and that takes what a parameter is to take."""
    wanted = parameter.child_by_field_name("parameters")
    kinds = [one.type.removeprefix("optional_") for one in children(wanted)] if wanted is not None else []
    for listed in walk(program.root, "template_argument_list"):
        for name in map(text_of, children(listed)):
            taken = program.templates.get(name, [])
            if any([one.type.removeprefix("optional_") for one in children(each)] == kinds for each in taken):
                return TemplateName(name)
    return None


class _OfBlock:
    """A template argument that is the size of the block."""


def _for_block(template: Mapping[str, Any], block: int) -> dict[str, Any]:
    return {
        name: Expr(v.INT, lambda _, lanes: [block] * len(lanes), block) if isinstance(value, _OfBlock) else value
        for name, value in template.items()
    }


# ---- parameters ---------------------------------------------------------------------------------------------------


class Fields(msgspec.Struct, frozen=True):
    """What the fields of structs in a buffer hold, where their names say it."""

    size: int
    """of a struct"""
    held: Mapping[int, int | float]
    """by offset in it"""


def _given(
    program: Program,
    machine: Machine,
    kernel: Function,
    template: Mapping[str, Any],
    dimensions: Dimensions,
    variant: int,
    launches: list[KernelLaunch],
) -> tuple[dict[str, Any], dict[str, Fields]]:
    """A number for each scalar parameter, by its name and type, and what the structs hold that others lead to."""
    compiler = Statements(program, machine)
    compiler.unit = kernel.unit
    compiler.scope.names.update(template)
    numbers = _Numbers(kernel, dimensions, variant)
    found: dict[str, Any] = {}
    fields: dict[str, Fields] = {}
    fixed = [one.arguments for one in launches if len(one.arguments) == len(kernel.parameters)]
    for place, parameter in enumerate(kernel.parameters):
        name = text_of(declared_name(parameter.child_by_field_name("declarator")))
        ctype = compiler.parameter_type(parameter, None)[0]
        if isinstance(ctype, Record):
            found[name] = numbers.of_fields(ctype)
            for at, _, leaf in named_leaves(ctype):
                fields |= numbers.pointed_to(f"{name}+{at}", leaf)
        fields |= numbers.pointed_to(name, ctype)
        if not isinstance(ctype, Scalar):
            continue
        given = {one[place] for one in fixed}
        known = given.pop() if len(given) == 1 else None
        found[name] = known if known is not None else numbers.of(name, ctype)
    return found, fields


class _Numbers:
    """Numbers that fit a launch, by what they are called."""

    def __init__(self, kernel: Function, dimensions: Dimensions, variant: int) -> None:
        self.threads, self.blocks, self.variant = dimensions.threads, dimensions.grid[0], variant
        total = self.threads * self.blocks if "blockIdx" in text_of(kernel.node) else self.threads
        self.size = (total, total - 5, total // 2 + 3, 2 * min(total, 512) + 7)[variant % 4]
        self.sizes = 0
        """how many have been given"""

    def of(self, name: str, ctype: Scalar) -> int | float:
        """The number for a scalar."""
        if ctype.is_float:
            return 1e-5 if "eps" in name.lower() else 0.5 if self.variant % 2 else 1.0
        if ctype.kind == "b":
            return self.variant % 2
        if _ZEROS.search(name):
            return 0
        if _SIZES.match(name):
            self.sizes += 1
            return self.blocks if self.sizes > 1 and _ROWS.search(name) else max(1, self.size)
        return self.threads if _BLOCK_NAMES.search(name) else 1 + self.variant % 3

    def of_fields(self, record: Record) -> dict[int, int | float]:
        """The numbers for the fields of a struct whose names say what they are; the others are data."""
        return {
            at: self.of(name, leaf)
            for at, name, leaf in named_leaves(record)
            if isinstance(leaf, Scalar) and not leaf.is_float and (_ZEROS.search(name) or _SIZES.match(name))
        }

    def pointed_to(self, name: str, ctype: CType) -> dict[str, Fields]:
        """What the structs of a buffer hold, every other time: the same in all of them, it could hide a mistake."""
        of = ctype.to if isinstance(ctype, Pointer) else None
        if not isinstance(of, Record) or not self.variant % 2:
            return {}
        return {name: Fields(of.size, self.of_fields(of))}


def named_leaves(record: Record) -> Iterator[tuple[int, str, CType]]:
    """The scalars in a struct: offset, name without what marks a member, and type; no arrays."""
    for name, (at, ctype) in record.fields.items():
        if isinstance(ctype, Record):
            yield from ((at + inner, field, leaf) for inner, field, leaf in named_leaves(ctype))
        elif not isinstance(ctype, Array):
            yield at, name.removeprefix("m_").strip("_"), ctype


def is_block_size(name: str) -> bool:
    """Whether a number is that of the threads of a block, and not a number per thread, or of threads per something."""
    return all((_BLOCK_NAMES.search(name), not _WARP_NAMES.search(name), not _PER_OTHERS.search(name)))


def asks_for_lane(name: str) -> bool:
    """Whether a parameter of a function is the number of a thread or lane."""
    return _LANE_NAMES.search(name) is not None


def names_in(node: tree_sitter.Node) -> set[str]:
    """The identifiers in a piece of code."""
    return {text_of(one) for one in walk(node, "identifier", "type_identifier", "field_identifier")}
