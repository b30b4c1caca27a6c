"""Code is written as if a warp always has 32 lanes.

Lane numbers, warp numbers and buffers computed with a literal 32 still compile where a wavefront has 64 lanes. Votes,
ballots and broadcasts then cover twice the lanes that the code thinks of, and a buffer of 32 slots is written past its end.

Kernels written in Python, for `numba.cuda` or `cupyx.jit`, are read in the same way.

## Exceptions
Splitting a block into groups of 32 is right on any hardware as long as the groups talk among themselves only, so lane
arithmetic is reported only in functions that also use an operation over the whole warp. The first 32 threads of a block
(`threadIdx.x / 32 == 0`) are the same threads on any hardware. A tile edge, a block size, a bit
width or a head size of 32 is none of this rule's business.

## Fix safety
Safe: in a function, all lane and warp numbers become those by `warpSize`, which is 32 on NVIDIA's devices. That is done only
where the function has no other 31 or 32 that could belong to them, and takes these numbers apart no further; constants,
arrays and Python are left.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html
"""

from __future__ import annotations

import re

from portlint.rule import (
    DEVICE_PASS,
    PYTHON_KERNELS,
    Edit,
    Hit,
    Hits,
    Node,
    Rule,
    one_runs,
    put_after,
    put_before,
    replace,
)

rule = Rule(
    assumes={"lanes.width": 32},
    otherwise="corrupts",
    message="'{text}' is right only if a warp has 32 lanes; {target} has {fact}.",
    remedy={
        "amd": "Take the width from `warpSize` in device code (`warpsize` of `cuda` or `jit` in Python) and from the device properties on the host; size arrays for the largest width, 64.",
        "*": "Take the width from the device.",
    },
)

LANE = {"%": 32, "&": 31}
TIGHT = frozenset(
    ("identifier", "field_expression", "parenthesized_expression", "call_expression", "subscript_expression")
)
"""what needs no parentheses as an operand"""
WARP = {"/": 32, "//": 32, ">>": 5}


@rule.cuda(
    '(binary_expression left: (_) @index operator: ["%" "&" "/" ">>"] right: (number_literal) @width) @expression'
)
def lane_arithmetic(expression: Node, index: Node, width: Node) -> Hits:
    operator = expression["operator"].text
    if width.constant != (LANE | WARP)[operator]:
        return
    function = expression.function
    if operator in WARP and _chooses_first_group(expression):
        return
    if function is None or function.role("at-most-32-threads") or not index.role("thread-index"):
        return
    operations = function.warp_operations
    if operations:
        edits = _by_warp_size(function)
        yield Hit(expression, guards=(*expression.guards, one_runs(operations)), edits=edits, safe=True)


@rule.cuda('((preproc_def name: (identifier) @name value: (preproc_arg) @value) (#match? @name "[Ww][Aa][Rr][Pp]"))')
def named_macro(name: Node, value: Node) -> Hits:
    if name.role("warp-size") and value.constant == 32:
        yield from _given_width(name, name, value)


@rule.cuda('((init_declarator declarator: (identifier) @name value: (_) @value) (#match? @name "[Ww][Aa][Rr][Pp]"))')
@rule.cuda('((field_declaration declarator: (_) @name default_value: (_) @value) (#match? @name "[Ww][Aa][Rr][Pp]"))')
@rule.cuda('((enumerator name: (identifier) @name value: (_) @value) (#match? @name "[Ww][Aa][Rr][Pp]"))')
def named_constant(name: Node, value: Node) -> Hits:
    literal = value.type in ("number_literal", "initializer_list")
    # a variable may be given another value later: its own constant says that it keeps the first
    if name.role("warp-size") and literal and name.constant == 32:
        yield from _given_width(name, value, value)


@rule.cuda(
    "(subscript_expression argument: (identifier) @array indices: (subscript_argument_list . (_) @lane)) @access"
)
def lane_indexed_array(access: Node, array: Node, lane: Node) -> Hits:
    """`buffer[lane]` with 32 slots, where the lane number comes from the hardware's width."""
    if lane.role("hardware-lane") and array.role("shared-array") and array.extent == 32 and not lane.role("bounded"):
        stored = array.declaration if access.role("stored-to") else None
        yield Hit(stored or access)


@rule.references(*PYTHON_KERNELS)
def python_kernel(name: Node) -> Hits:
    function = name.compiled
    if function is None or function.role("at-most-32-threads"):
        return
    operations = function.warp_operations
    for expression in function.walk("binary_operator") if operations else ():
        operator, index, width = expression["operator"].text, expression["left"], expression["right"]
        if width.constant != (LANE | WARP).get(operator, 0) or not index.role("thread-index"):
            continue
        if not (operator in WARP and expression.role("names-first-group")):
            yield Hit(expression, guards=(*expression.guards, one_runs(operations)), language="cuda")


@rule.references(*PYTHON_KERNELS)
def lane_indexed_array_in_python(name: Node) -> Hits:
    function = name.compiled
    for access in function.walk("subscript") if function is not None else ():
        lane = access["subscript"]
        if not lane.role("hardware-lane") or access["value"].extent != 32:
            continue
        if not lane.role("bounded") and not access.role("first-32-threads"):
            yield Hit(access, language="cuda")


def _chooses_first_group(expression: Node) -> bool:
    """Whether a warp number is only compared with 0, which chooses 32 threads on any hardware."""
    holder = expression.parent
    while holder is not None and holder.type == "parenthesized_expression":
        holder = holder.parent
    if holder is not None and holder.type == "init_declarator":
        read = [use.parent for use in holder["declarator"].uses]
    else:
        read = [holder]
    return bool(read) and all(one is not None and _is_test_for_0(one) for one in read)


def _is_test_for_0(test: Node) -> bool:
    return test.type == "binary_expression" and test["operator"].text == "==" and test["right"].constant == 0


def _uses_of(name: Node) -> list[Node]:
    """The uses of a constant; of a member, those in its class and those that name a class."""
    body = next(name.ancestors("field_declaration_list"), None)
    if body is None:
        return name.uses
    named = ("qualified_identifier", "field_expression")
    own = range(body.start, body.end)
    return [use for use in name.uses if use.start in own or (use.parent is not None and use.parent.type in named)]


def _given_width(name: Node, shown: Node, value: Node) -> Hits:
    """A width by its name, if a function that uses it does something over the whole warp.

    A width that no function of the file uses is meant for other files.
    """
    uses = _uses_of(name)
    if value.role("by-wave-width") or (name.type == "field_identifier" and not uses):
        return  # chosen by the compiler's own macro; a member that nobody reads
    functions = [function for use in uses if (function := use.function) is not None]
    operations = [operation for function in functions for operation in function.warp_operations]
    if not functions and name.is_read_elsewhere:
        yield Hit(shown, guards=(*value.guards, DEVICE_PASS))
    elif operations:
        yield Hit(shown, guards=(*value.guards, DEVICE_PASS, one_runs(operations)))


def _by_warp_size(function: Node) -> tuple[Edit, ...]:
    """The lane and warp numbers of a function by `warpSize`; none where it has another 31 or 32 that may go with them."""
    edits: list[Edit] = []
    mended: set[Node] = set()
    for expression in function.walk("binary_expression"):
        operator, left, right = expression["operator"].text, expression["left"], expression["right"]
        if right.type != "number_literal" or right.constant != (LANE | WARP).get(operator):
            continue
        if left.role("thread-index") or left.text.startswith("blockDim.") or _rounds_up(left):
            if _has_a_layout(expression):
                return ()
            edits += _operator(expression)
            mended.add(right)
            if _rounds_up(left):
                term = left.children[0]["right"]
                edits.append(replace(term, "warpSize - 1"))
                mended.add(term)
    others = (one for one in function.walk("number_literal") if one.constant in (31, 32) and one not in mended)
    is_alone = all(one.parent is not None and one.parent.type == "array_declarator" for one in others)
    return tuple(edits) if is_alone and not any(map(_names_width, function.walk("identifier"))) else ()


def _operator(expression: Node) -> list[Edit]:
    """`x & 31`, `x >> 5` and `x / 32`, written with `warpSize`."""
    operator, left, right = expression["operator"], expression["left"], expression["right"]
    new = {"&": "%", ">>": "/"}.get(operator.text, operator.text)
    edits = [replace(right, "warpSize")]
    if new != operator.text:
        edits.append(replace(operator, new))
        if left.type not in TIGHT:
            edits += [put_before(left, "("), put_after(left, ")")]
    return edits


def _rounds_up(left: Node) -> bool:
    """Whether an expression is `(blockDim.x + 31)`, which counts a warp that is not full as one."""
    inner = left.children[0] if left.type == "parenthesized_expression" and left.children else left
    return inner != left and re.fullmatch(r"blockDim\.[xyz] *\+ *31", inner.text) is not None


def _names_width(name: Node) -> bool:
    """Whether a name is a constant of 32 lanes."""
    return name.role("warp-size") and name.constant == 32


def _has_a_layout(expression: Node) -> bool:
    """Whether a lane or warp number is taken apart further, as by the layout of a fragment: `threadIdx.x % 32 / 4`."""
    whole = expression
    while whole.parent is not None and whole.parent.type == "parenthesized_expression":
        whole = whole.parent
    declarator = whole.parent
    kept = declarator["declarator"] if declarator is not None and declarator.type == "init_declarator" else None
    values = [whole] if kept is None else kept.uses
    return any(_meets_a_number(one) for one in values)


def _meets_a_number(value: Node) -> bool:
    around = value.parent
    if around is None or around.type != "binary_expression":
        return False
    other = around["right"] if around["left"] == value else around["left"]
    return other.constant not in (None, 0)
