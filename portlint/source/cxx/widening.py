"""Whether 32-bit integers may get 64 bits without a change of what the code does where the upper half is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portlint.regex import regex

if TYPE_CHECKING:
    from portlint.source.cxx.services import CxxServices
    from portlint.source.node import Node

_UNSIGNED = regex(
    r"(?:const )?(?:std::)?(?:unsigned(?: int| long| long long)?|uint|u?int64_t|uint32_t|uint64_t|u32|u64)(?: const)?"
)
_WIDE = regex(
    r"(?:const |static |inline |__device__ |std::)*"
    r"(?:unsigned long long(?: int)?|u?int64_t|unsigned long|u64)(?: const)?"
)
_BALLOTS = regex(r"__(?:ballot|ballot_sync|activemask|match_any_sync|match_all_sync)")
_COUNTS = frozenset(("__popc", "__popcll", "__ffs", "__ffsll"))
_SYNC = regex(r"__\w+_sync|__syncwarp")
_CONDITIONS = frozenset(
    ("condition_clause", "if_statement", "while_statement", "for_statement", "expression_statement")
)
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_SAME = frozenset(("&", "|", "^"))


def is_unsigned(services: CxxServices, node: Node) -> bool:
    """Whether the upper half is empty when an integer of 32 bits is converted to 64."""
    match node.type:
        case "parenthesized_expression" if node.children:
            return is_unsigned(services, node.children[0])
        case "number_literal":
            return isinstance(node.constant, int)
        case "identifier":
            kinds = services.types_of(node)
            return bool(kinds) and all(_UNSIGNED.fullmatch(" ".join(kind.split())) for kind in kinds)
        case "call_expression":
            return _BALLOTS.fullmatch(services.name(node)) is not None
        case "binary_expression":
            symbol, left, right = node["operator"].text, node["left"], node["right"]
            if symbol == ">>":
                return is_unsigned(services, left)
            one, other = is_unsigned(services, left), is_unsigned(services, right)
            return symbol in _SAME and (one or other)
    return False


def may_widen(services: CxxServices, value: Node, *, is_full: bool = False) -> bool:
    """Whether a value with an empty upper half may have 64 bits where it stands, and keeps them there.

    `is_full` says that the half is all ones.
    """
    parent = value.parent
    if parent is None:
        return False
    match parent.type:
        case "parenthesized_expression":
            return may_widen(services, parent, is_full=is_full)
        case "unary_expression":
            symbol = parent["operator"].text
            return symbol == "!" or (symbol == "~" and not is_full and may_widen(services, parent, is_full=True))
        case "binary_expression":
            return _may_widen_in(services, value, parent, is_full=is_full)
        case "assignment_expression":
            return _may_be_stored(services, value, parent, is_full=is_full)
        case "init_declarator":
            declaration = next(parent.ancestors("declaration"), None)
            kind = declaration.get("type") if declaration is not None else None
            return parent["declarator"].type == "identifier" and kind is not None and _is_wide(kind.text)
        case "argument_list" if parent.parent is not None and parent.parent.type == "call_expression":
            name = services.name(parent.parent)
            is_mask = _SYNC.fullmatch(name) is not None and parent.children[0] == value
            return not is_full and (name in _COUNTS or is_mask) and not services.defines(name)
        case "return_statement":
            function = next(parent.ancestors("function_definition", "lambda_expression"), None)
            kind = function.get("type") if function is not None else None
            return kind is not None and _is_wide(kind.text)
        case "cast_expression":
            return _is_wide(parent["type"].text)
        case "conditional_expression":
            return not is_full and parent.get("condition") == value
    return parent.type in _CONDITIONS and not is_full


def may_be_declared_wide(services: CxxServices, name: Node) -> bool:
    """Whether a variable that is given a ballot may have 64 bits instead of 32, wherever the file uses it."""
    return bool(name.uses) and all(_is_wide_use(services, use) for use in name.uses)


def _is_wide_use(services: CxxServices, use: Node) -> bool:
    parent = use.parent
    if parent is None:
        return False
    if parent.type == "assignment_expression" and parent["left"] == use:
        symbol = parent["operator"].text
        return symbol == "&=" or (symbol == "=" and is_unsigned(services, parent["right"]))
    if parent.type == "binary_expression" and parent.text.replace(" ", "") == f"{use.text}-1":
        holder = parent.parent  # `mask & (mask - 1)` takes the lowest lane away
        while holder is not None and holder.type == "parenthesized_expression":
            holder = holder.parent
        other = holder.get("left") if holder is not None else None
        return holder is not None and other is not None and other.text == use.text and holder["operator"].text in "&="
    return may_widen(services, use)


def _may_widen_in(services: CxxServices, value: Node, around: Node, *, is_full: bool) -> bool:
    symbol = around["operator"].text
    other = around["right"] if around["left"] == value else around["left"]
    if symbol == "&":
        return (not is_full or is_unsigned(services, other)) and may_widen(services, around)
    if is_full:
        return False
    if symbol in _SAME:
        return is_unsigned(services, other) and may_widen(services, around)
    if symbol == "-":
        is_bit = value.type in ("binary_expression", "parenthesized_expression") and other.constant == 1
        return is_bit and around["left"] == value and may_widen(services, around)
    if symbol == ">>":
        return around["left"] == value and may_widen(services, around)
    if symbol in _COMPARISONS:
        return is_unsigned(services, other)
    return symbol in ("&&", "||")


def _may_be_stored(services: CxxServices, value: Node, assignment: Node, *, is_full: bool) -> bool:
    if assignment["right"] != value:
        return False
    target, symbol = assignment["left"], assignment["operator"].text
    if symbol not in ("=", "&=", "|=", "^=") or target.type != "identifier":
        return False
    kinds = services.types_of(target)
    return bool(kinds) and all(map(_is_wide, kinds)) and (not is_full or symbol in ("=", "&="))


def _is_wide(kind: str) -> bool:
    return _WIDE.fullmatch(" ".join(kind.split())) is not None
