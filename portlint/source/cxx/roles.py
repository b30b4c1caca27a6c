"""What the value of an expression is to the machine: the index of a thread, a lane, a mask of lanes.

A local dataflow: names are followed to all that is assigned to them in their scope, through the file's macros, without
regard to order. Calls of other functions are judged by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from portlint.regex import regex
from portlint.source.cxx.constants import Frame
from portlint.source.cxx.numbers import is_arithmetic
from portlint.source.cxx.query import captured, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

    from portlint.source import Source
    from portlint.source.cxx.constants import Constants
    from portlint.source.cxx.definitions import Definition, Definitions
    from portlint.source.cxx.functions import Functions
    from portlint.source.cxx.names import Names
    from portlint.source.cxx.preprocessor import Macro

EXPRESSION_ROLES = frozenset(
    ("thread-index", "block-index", "lane-id", "warp-id", "warp-size", "lane-mask", "ballot", "shared-array")
)

# Facts beside the roles themselves, which `has` answers for too. A `linear` thread index runs along the lanes of a
# warp: threadIdx.x has factor 1 in it. A `warp-base` is the index of a warp's first thread. A vector has components x,
# y and z.
_LINEAR, _WARP_BASE = "linear", "warp-base"
_THREAD_VECTOR, _BLOCK_VECTOR = "thread-vector", "block-vector"
_THREAD = frozenset(("thread-index", _LINEAR))
_UPPER_THREAD = frozenset(("thread-index",))
_BLOCK = frozenset(("block-index",))
_LANE = frozenset(("lane-id",))
_WARP = frozenset(("warp-id",))
_WIDTH = frozenset(("warp-size",))
_MASK = frozenset(("lane-mask",))
_BALLOT = frozenset(("lane-mask", "ballot"))
_SHARED = frozenset(("shared-array",))
_NOTHING: frozenset[str] = frozenset()
_MASKS = _BALLOT

_BUILTINS = {
    "threadIdx": frozenset((_THREAD_VECTOR,)),
    "blockIdx": frozenset((_BLOCK_VECTOR,)),
    "warpSize": _WIDTH,
    "hipThreadIdx_x": _THREAD,
    "hipThreadIdx_y": _UPPER_THREAD,
    "hipThreadIdx_z": _UPPER_THREAD,
    **dict.fromkeys(("hipBlockIdx_x", "hipBlockIdx_y", "hipBlockIdx_z"), _BLOCK),
}
_CALLS = {
    "__builtin_amdgcn_workitem_id_x": _THREAD,
    **dict.fromkeys(("__builtin_amdgcn_workitem_id_y", "__builtin_amdgcn_workitem_id_z"), _UPPER_THREAD),
    **dict.fromkeys((f"__builtin_amdgcn_workgroup_id_{axis}" for axis in "xyz"), _BLOCK),
    **dict.fromkeys(("__builtin_amdgcn_mbcnt_lo", "__builtin_amdgcn_mbcnt_hi", "__nvvm_read_ptx_sreg_laneid"), _LANE),
    **dict.fromkeys(("__builtin_amdgcn_wavefrontsize", "warp_size", "get_warp_size"), _WIDTH),
    **dict.fromkeys(("canonical_warp_idx", "canonical_warp_idx_sync", "canonical_warp_id"), _WARP),
}
_BALLOTS = regex(
    r"_*(?:ballot(?:_sync|64|32)?|match_(?:any|all)(?:_sync)?|activemask)|\w*[a-z_]ballot(?:_sync)?"
    r"|WARP_BALLOT|__builtin_amdgcn_(?:ballot_w(?:32|64)|read_exec\w*|[us]icmp\w*)"
)
_MASK_CALL = regex(r"\w*lane_?mask\w*", re.IGNORECASE)
_SYNC = regex(r"__(?:shfl(?:_up|_down|_xor)?|ballot|any|all|match_any|match_all|reduce_\w+)_sync|__syncwarp")
_UNIFORM = regex(r"__shfl(?:_sync)?|__builtin_amdgcn_readfirstlane|__builtin_amdgcn_readlane")
_WARP_WIDTHS = frozenset((32, 64))

_LANE_NAME = regex(r"(?:my|this|cur|thread)?lane(?:id|idx|index|number)?")
_LANE_CALL = regex(r"(?:get|cub|canonical|ptx|sreg|cuda|hip|at|my|read|current)*lane(?:id|idx|index)")
_WARP_NAME = regex(r"(?:my|this|cur)?(?:warp|wave)(?:id|idx|index|rank)")
_THREAD_NAME = regex(r"(?:linear|flat)?(?:thread|t)(?:id|idx|index)x?")
_WIDTH_NAME = regex(
    r"(?!\w*(?:sub|logical|virtual|half|min|max|log|mask))\w*?"
    r"(?:(?:warp|wave|wavefront)(?:size|width|lanes|threads)|(?:thread|lane)s?(?:per|in|ina)(?:warp|wave|wavefront))"
)
_LOG_WIDTH_NAME = regex(r"\w*(?:log2?)\w*(?:warp|wave)\w*|\w*(?:warp|wave)\w*(?:log2?|bits|shift)\w*")
_MASK_NAME = regex(r"\w*(?:full|all|active|lane|warp|member|shfl|ballot|final)\w*mask(?:32|64|full)?|mask(?:full|all)")
_TILES = (
    "thread_block_tile",
    "coalesced_group",
    "tiled_partition",
    "coalesced_threads",
    "labeled_partition",
    "binary_partition",
)
_SMALL_TILE = regex(r"(?:thread_block_tile|tiled_partition)\s*<\s*(?:1|2|4|8|16|32)[uU]?\s*[,>]")
_CASTS = frozenset(("static_cast", "const_cast", "reinterpret_cast"))
_MOST_LEVELS = 50
_MOST_STEPS = 5_000
"""expressions looked at for one question; nested calls of macros can double them at each level"""


class Roles:
    """The roles of the expressions of one file."""

    def __init__(
        self,
        *,
        source: Source,
        definitions: Definitions,
        names: Names,
        constants: Constants,
        functions: Functions,
        body_of: Callable[[Macro], Node | None],
        roots: list[Node],
    ) -> None:
        self._source = source
        self._definitions = definitions
        self._names = names
        self._constants = constants
        self._functions = functions
        self._body_of = body_of
        self._roots = roots
        self._cache: dict[tuple[str, int], frozenset[str]] = {}
        self._steps = 0

    def has(self, node: Node, role: str) -> bool:
        """Whether an expression has a role."""
        if role == "lane-mask" and self._is_sync_mask(node):
            return True
        self._steps = 0
        return role in self._facts(node, Frame(node.start_byte))

    # ---- expressions ----------------------------------------------------------------------------------------------

    def _facts(self, node: Node | None, frame: Frame) -> frozenset[str]:
        self._steps += 1
        if node is None or frame.level > _MOST_LEVELS or self._steps > _MOST_STEPS:
            return _NOTHING
        frame = Frame(frame.at, frame.bindings, frame.active, frame.level + 1)
        match node.type:
            case "identifier" | "field_identifier" | "type_identifier":  # a broken tree takes some variables for types
                return self._name(text_of(node), frame)
            case "field_expression":
                return self._field(node, frame)
            case "binary_expression":
                return self._binary(node, frame)
            case "call_expression":
                return self._call(node, frame)
            case "qualified_identifier":
                return _by_name(self._names.name(node).rpartition("::")[2])
            case "parenthesized_expression" | "expression_statement" | "argument_list" | "initializer_list":
                return self._facts(node.named_children[-1], frame) if node.named_child_count == 1 else _NOTHING
            case "comma_expression" | "assignment_expression":
                return self._facts(node.child_by_field_name("right"), frame)
            case "init_declarator" | "cast_expression" | "condition_clause":
                return self._facts(node.child_by_field_name("value"), frame)
            case "conditional_expression":
                branches = (node.child_by_field_name(one) for one in ("consequence", "alternative"))
                return _NOTHING.union(*(self._facts(branch, frame) for branch in branches))
            case "unary_expression":
                facts = self._facts(node.child_by_field_name("argument"), frame)
                return facts & _MASKS if text_of(node.child_by_field_name("operator")) == "~" else _NOTHING
            case "array_declarator":
                return self._facts(node.child_by_field_name("declarator"), frame) & _SHARED
            case "subscript_expression" | "pointer_expression":
                return self._facts(node.child_by_field_name("argument"), frame) & _SHARED
            case "gnu_asm_expression":
                return _asm(text_of(node.child_by_field_name("assembly_code")))
            case _:
                return _NOTHING

    def _field(self, node: Node, frame: Frame) -> frozenset[str]:
        field = text_of(node.child_by_field_name("field"))
        if field in ("x", "y", "z"):
            facts = self._facts(node.child_by_field_name("argument"), frame)
            if _THREAD_VECTOR in facts:
                return _THREAD if field == "x" else _UPPER_THREAD
            return _BLOCK if _BLOCK_VECTOR in facts else _NOTHING
        return _by_name(field)

    def _call(self, node: Node, frame: Frame) -> frozenset[str]:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        operands = [one for one in arguments.named_children if one.type != "comment"] if arguments else []
        if function is None:
            return _NOTHING
        if function.type == "field_expression":
            return self._method(function, frame)
        name = self._names.name(function).rpartition("::")[2]
        if macros := self._definitions.macros(name, frame.at):
            return self._macro_call(macros, operands, frame)
        if (name in _CASTS or is_arithmetic(name)) and len(operands) == 1:
            return self._facts(operands[0], frame)
        if _UNIFORM.fullmatch(name):
            values = operands[1:2] if name == "__shfl_sync" else operands[:1]
            return self._facts(values[0], frame) & _WARP if values else _NOTHING
        if name in _CALLS:
            return _CALLS[name]
        if _BALLOTS.fullmatch(name):
            return _BALLOT
        if _LANE_CALL.fullmatch(_squeeze(name)):
            return _LANE
        return _MASK if _MASK_CALL.fullmatch(name) else _by_name(name) & _WIDTH

    def _macro_call(self, macros: list[Macro], operands: list[Node], frame: Frame) -> frozenset[str]:
        found = _NOTHING
        for macro in macros:
            if macro.name in frame.active or macro.parameters is None:
                continue
            bindings = {one: (operand, frame) for one, operand in zip(macro.parameters, operands, strict=False)}
            inner = Frame(frame.at, bindings, frame.active | {macro.name}, frame.level)
            found |= self._macro_body(macro, inner)
        name = macros[0].name
        return found or (_LANE if _LANE_CALL.fullmatch(_squeeze(name)) else _by_name(name) & _WIDTH)

    def _method(self, function: Node, frame: Frame) -> frozenset[str]:
        """A member of a cooperative group; any other method is judged by its name."""
        method = text_of(function.child_by_field_name("field")).partition("<")[0]
        group = self._group(function.child_by_field_name("argument"), frame)
        match method:
            case "thread_rank":
                return _LANE if group else _THREAD
            case "thread_index":
                return frozenset((_THREAD_VECTOR,))
            case "group_index" | "block_index":
                return frozenset((_BLOCK_VECTOR,))
            case "block_rank":
                return _BLOCK
            case "meta_group_rank":
                return _WARP if group else _NOTHING
            case _ if _BALLOTS.fullmatch(method):
                return _NOTHING if group == "small tile" else _BALLOT
            case _:
                return _LANE if _LANE_CALL.fullmatch(_squeeze(method)) else _by_name(method) & _WIDTH

    def _group(self, node: Node | None, frame: Frame) -> str:
        """`tile` for a cooperative group within a warp, `small tile` for one of 32 threads or fewer, "" for any other.

        HIP moves the ballots of a tile down to the lowest bits, so that those of a small one fit 32.
        """
        for _ in range(_MOST_LEVELS):
            if node is None:
                return ""
            if node.type == "call_expression":
                name = self._names.name(node).rpartition("::")[2]
                return _tile(text_of(node.child_by_field_name("function"))) if name in _TILES else ""
            if node.type != "identifier":
                return ""
            declared = self._definitions.declared(text_of(node), frame.at)
            if not declared:
                return ""
            type_text = text_of(declared[-1].node.child_by_field_name("type"))
            if any(tile in type_text for tile in _TILES):
                return _tile(type_text)
            node = declared[-1].value
            if node is not None and node.type in ("argument_list", "initializer_list"):
                node = node.named_children[0] if node.named_child_count == 1 else None
        return ""

    # ---- arithmetic -----------------------------------------------------------------------------------------------

    def _binary(self, node: Node, frame: Frame) -> frozenset[str]:
        symbol = text_of(node.child_by_field_name("operator"))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return _NOTHING
        return self._combine(symbol, self._facts(left, frame), self._facts(right, frame), left, right)

    def _combine(
        self, symbol: str, a: frozenset[str], b: frozenset[str], left: Node | None, right: Node
    ) -> frozenset[str]:
        match symbol:
            case "+" | "-" | "|":
                return self._sum(symbol, a, b, left, right)
            case "*":
                return self._product(a, b, left, right)
            case "/" | ">>":
                by_width = self._is_width(right, b) if symbol == "/" else self._is_log_width(right)
                if _LINEAR in a and by_width:
                    return _WARP
                return a & (_BLOCK | (_MASKS if symbol == ">>" else _NOTHING))
            case "%":
                return _LANE if a & (_LANE | {_LINEAR}) and self._is_width(right, b) else a & _BLOCK
            case "&":
                masks = (a | b) & _MASKS
                if a & (_LANE | {_LINEAR}) and self._is_width_less_one(right):
                    return masks | _LANE
                if left is not None and b & (_LANE | {_LINEAR}) and self._is_width_less_one(left):
                    return masks | _LANE
                return masks
            case "<<":
                if b & _LANE and self._value(left) == {1}:
                    return _MASK
                if a & _WARP and self._is_log_width(right):
                    return frozenset((_WARP_BASE,))
                return a & (_MASKS | _BLOCK) or (a & _UPPER_THREAD if _LINEAR not in a else _NOTHING)
            case "^":
                return (a | b) & _MASKS or (_LANE if (a | b) & _LANE and not (a | b) - _LANE else _NOTHING)
            case _:
                return _NOTHING

    def _sum(self, symbol: str, a: frozenset[str], b: frozenset[str], left: Node | None, right: Node) -> frozenset[str]:
        both = a | b
        if symbol != "-" and ((a & _LANE and _WARP_BASE in b) or (b & _LANE and _WARP_BASE in a)):
            return _THREAD
        if "thread-index" in both and symbol != "|":
            other = b if _LINEAR in a else a
            linear = _LINEAR in both and symbol == "+" and other & {"thread-index", "block-index"}
            return _THREAD if linear else _UPPER_THREAD
        if both & _MASKS:
            return both & _MASKS if symbol == "|" else both & _MASK
        if a & _LANE and not b and self._value(right):
            return _LANE
        if b & _LANE and not a and symbol == "+" and self._value(left):
            return _LANE
        return both & _BLOCK | (both & _SHARED if symbol != "|" else _NOTHING)

    def _product(self, a: frozenset[str], b: frozenset[str], left: Node | None, right: Node) -> frozenset[str]:
        for one, other, factor in ((a, b, right), (b, a, left)):
            if one & _WARP and factor is not None and self._is_width(factor, other):
                return frozenset((_WARP_BASE,))
        if _LINEAR in a | b:
            return _NOTHING
        return (a | b) & (_UPPER_THREAD | _BLOCK)

    def _value(self, node: Node | None) -> set[object]:
        return {value for value, _ in self._constants.values(node, ())} if node is not None else set()

    def _is_width(self, node: Node, facts: frozenset[str]) -> bool:
        values = self._value(node)
        return bool(facts & _WIDTH) or (bool(values) and values <= _WARP_WIDTHS)

    def _is_width_less_one(self, node: Node) -> bool:
        while node.type == "parenthesized_expression" and node.named_child_count == 1:
            node = node.named_children[0]
        values = self._value(node)
        if values:
            return values <= {width - 1 for width in _WARP_WIDTHS}
        if node.type != "binary_expression" or text_of(node.child_by_field_name("operator")) != "-":
            return False
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        return self._value(right) == {1} and bool(self._facts(left, Frame(node.start_byte)) & _WIDTH)

    def _is_log_width(self, node: Node) -> bool:
        values = self._value(node)
        return values <= {5, 6} if values else bool(_LOG_WIDTH_NAME.fullmatch(_squeeze(text_of(node))))

    # ---- names ----------------------------------------------------------------------------------------------------

    def _name(self, name: str, frame: Frame) -> frozenset[str]:
        if name in frame.bindings:
            operand, outer = frame.bindings[name]
            return self._facts(operand, Frame(outer.at, outer.bindings, outer.active, frame.level))
        if name in frame.active:
            return _NOTHING
        key = (name, frame.at)
        if key in self._cache:
            return self._cache[key]
        found = self._named(name, Frame(frame.at, {}, frame.active | {name}, frame.level))
        if self._steps <= _MOST_STEPS:
            self._cache[key] = found
        return found

    def _named(self, name: str, frame: Frame) -> frozenset[str]:
        if macros := self._definitions.macros(name, frame.at):
            return _by_name(name).union(*(self._macro_body(macro, frame) for macro in macros))
        declared = self._definitions.declared(name, frame.at)
        if not declared:
            return _BUILTINS.get(name, _NOTHING) | _by_name(name)
        facts = _NOTHING.union(*(self._declaration(one, frame) for one in declared))
        for one in self._definitions.assigned(name, frame.at):
            facts = self._assignment(one, facts, frame)
        if any(one.offset in self._sync_mask_declarations for one in declared):
            facts |= _MASK
        if all(_is_opaque(one) for one in declared) and self._functions.runs_on(declared[0].offset) == "device":
            facts |= _by_device_name(name)
        return facts | _by_name(name)

    def _macro_body(self, macro: Macro, frame: Frame) -> frozenset[str]:
        body = self._body_of(macro)
        if body is not None:
            return self._facts(body, frame)
        return self._name(macro.body, frame) if macro.body.isidentifier() else _NOTHING

    def _declaration(self, definition: Definition, frame: Frame) -> frozenset[str]:
        if any(text_of(child) == "__shared__" for child in definition.node.children):
            return _SHARED
        if definition.array or definition.kind not in ("variable", "field", "parameter"):
            return _NOTHING
        value = definition.value if definition.kind != "parameter" else None
        return self._facts(value, Frame(definition.offset, {}, frame.active, frame.level)) - _SHARED

    def _assignment(self, definition: Definition, facts: frozenset[str], frame: Frame) -> frozenset[str]:
        """The facts of a variable once an assignment to it is taken into account."""
        operator = definition.node.child_by_field_name("operator")
        symbol = text_of(operator).removesuffix("=")
        assigned = self._facts(definition.value, Frame(definition.offset, {}, frame.active, frame.level)) - _SHARED
        if definition.node.type == "gnu_asm_expression" or (definition.value is not None and not symbol):
            return facts | assigned
        if definition.value is None:
            return facts & (_MASKS | _SHARED)
        if symbol == "+" and not assigned:  # a variable that strides over elements is no index of its thread
            return facts & (_MASKS | _SHARED)
        return self._combine(symbol, facts, assigned, None, definition.value) | (facts & _SHARED)

    # ---- masks of warp-level operations ---------------------------------------------------------------------------

    def _is_sync_mask(self, node: Node) -> bool:
        parent = node.parent
        if parent is not None and parent.type in ("parenthesized_expression", "cast_expression", "unary_expression"):
            node, parent = parent, parent.parent
        if parent is None or parent.type != "argument_list" or parent.parent is None:
            return False
        first = next((one for one in parent.named_children if one.type != "comment"), None)
        return first == node and bool(_SYNC.fullmatch(self._names.name(parent.parent).rpartition("::")[2]))

    @cached_property
    def _sync_mask_declarations(self) -> frozenset[int]:
        """The offsets of the declarations of all variables that some warp-level operation takes as its mask."""
        return frozenset(
            definition.offset
            for root in self._roots
            for mask in captured(self._source, root).get("mask", ())
            for definition in self._definitions.declared(text_of(mask), mask.start_byte)
        )


def _by_name(name: str) -> frozenset[str]:
    """What conventions of naming say."""
    squeezed = _squeeze(name)
    if _LANE_NAME.fullmatch(squeezed):
        return _LANE
    if _WIDTH_NAME.fullmatch(squeezed):
        return _WIDTH
    return _MASK if _MASK_NAME.fullmatch(squeezed) else _NOTHING


def _by_device_name(name: str) -> frozenset[str]:
    """What a name says of a parameter of device code, where nothing else does."""
    squeezed = _squeeze(name)
    if _WARP_NAME.fullmatch(squeezed):
        return _WARP
    return _THREAD if _THREAD_NAME.fullmatch(squeezed) else _NOTHING


def _tile(text: str) -> str:
    """Which tile a type, or a function that makes one, stands for."""
    return "small tile" if _SMALL_TILE.search(text) else "tile"


def _squeeze(name: str) -> str:
    """A name in lower case without underscores and without the `k` of constants."""
    bare = name.strip("_")
    bare = bare[1:] if len(bare) > 1 and bare[0] == "k" and bare[1].isupper() else bare
    return bare.replace("_", "").lower()


def _is_opaque(definition: Definition) -> bool:
    """Whether a variable's value comes from where it cannot be followed to."""
    if definition.kind in ("parameter", "template"):
        return True
    return definition.kind in ("variable", "field") and (
        definition.value is None or definition.value.type == "call_expression"
    )


def _asm(code: str) -> frozenset[str]:
    """What an assembly statement writes, if it reads a special register."""
    for register, facts in (
        ("%laneid", _LANE),
        ("%lanemask", _MASK),
        ("%warpid", _WARP),
        ("%tid.x", _THREAD),
        ("%ctaid", _BLOCK),
    ):
        if register in code:
            return facts
    return _NOTHING
