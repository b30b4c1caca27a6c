"""How code uses its warp: over its real width, or in groups of 32 lanes that it lays out itself.

Shuffles up, down and across by less than 32 lanes stay within a group of 32 on any hardware; votes, ballots, broadcasts
and everything that mentions `warpSize` do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from portlint.regex import regex
from portlint.source.node import Node

if TYPE_CHECKING:
    from portlint.source.cxx.services import CxxServices

GROUP = 32

_SHUFFLE = regex(r"\w*(shfl|shuffle)\w*", re.IGNORECASE)
_WIDTH_POSITIONS = {
    **dict.fromkeys(("__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"), 3),
    **dict.fromkeys(("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor"), 2),
}
"""builtin -> the position of its optional width"""

_OVER_THE_WARP = regex(r"__(any|all|ballot|activemask|match_any|match_all|reduce_\w+)(_sync)?$")
_HARDWARE_LANE = regex(r"\bwarpSize\b|\b__lane_id\b|%laneid|\bmbcnt\b")
_SPLITS = {"%": GROUP, "&": GROUP - 1, "/": GROUP, ">>": 5}

_CALLS_FOLLOWED = 3

_CHOSEN = regex(r"\w*(elect|leader|first|last|master|winner|owner|single|main_thread)\w*", re.IGNORECASE)
"""what tests and variables are called that hold for one thread among several"""


class Warps:
    """The warp-level habits of one file."""

    def __init__(self, analysis: CxxServices) -> None:
        self.analysis = analysis

    def operations(self, function: Node) -> list[Node]:
        """What a function does whose result depends on how many lanes a warp really has."""
        return self._width_reads(function) + [
            call
            for call in function.walk("call_expression")
            if self._covers_warp(call) and not self.is_in_first_group(call)
        ]

    def is_one_group(self, function: Node) -> bool:
        """Whether a kernel says in its launch bounds that a block has no more than 32 threads."""
        signature = self.analysis.function(function)
        bounds = signature.launch_bounds if signature is not None else ()
        threads = bounds[0].constant if bounds else None
        return isinstance(threads, int) and threads <= GROUP

    def works_in_groups(self, function: Node) -> bool:
        """Whether a function splits its threads into groups of 32 by literals and never asks for the real width."""
        if self._width_reads(function):
            return False
        return any(self._splits(one) for one in function.walk("binary_expression"))

    def is_shuffle(self, call: Node) -> bool:
        """Whether a call is a shuffle: a builtin, or a wrapper by its name."""
        return _SHUFFLE.fullmatch(call.name.rpartition("::")[2]) is not None

    def has_group_width(self, call: Node) -> bool:
        """Whether a shuffle states a width of 32 lanes, itself or in the macro that it goes through."""
        return any(self._states_width(one) for one in self._builtins(call))

    def is_hardware_lane(self, node: Node) -> bool:
        """Whether a lane number comes from the hardware's width, and so may reach 63."""
        if not node.role("lane-id"):
            return False
        return any(_HARDWARE_LANE.search(one.text) for one in (node, *node.choices))

    def is_bounded(self, index: Node) -> bool:
        """Whether a test around an index says that it is less than something."""
        for parent in index.ancestors("conditional_expression", "if_statement", "binary_expression"):
            test = parent.get("condition") if parent.type != "binary_expression" else parent.get("left")
            if test is not None and test.end <= index.start and _compares(test, index.text):
                return True
        return False

    def is_in_first_group(self, node: Node) -> bool:
        """Whether a node runs in the first 32 threads only, by a test around it or around all calls of its function."""
        return self._is_in_first_group(node, _CALLS_FOLLOWED)

    def _is_in_first_group(self, node: Node, depth: int) -> bool:
        for statement in node.ancestors("if_statement"):
            within = statement["consequence"]
            inside = within.start <= node.start < within.end
            if inside and self.admits_first_group(statement["condition"]):
                return True
        function = node.function
        callers = function.callers if function is not None and depth else []
        return bool(callers) and all(self._is_in_first_group(call, depth - 1) for call in callers)

    def admits_first_group(self, condition: Node) -> bool:
        """Whether a condition lets in the first 32 threads of a block only."""
        return any(self._keeps_first_group(one) for one in _conjuncts(condition))

    def _keeps_first_group(self, test: Node) -> bool:
        """`threadIdx.x < 32`, `threadIdx.x / 32 == 0`, or the same through a name."""
        if test.type != "binary_expression":
            return False
        operator, left, right = test["operator"].text, test["left"], test["right"].constant
        if operator in ("<", "<="):
            return right in (GROUP, GROUP - 1) and left.role("thread-index")
        number = left.origin
        if operator != "==" or right != 0 or number.type != "binary_expression":
            return False
        return number["operator"].text in ("/", ">>") and self._splits(number)

    def is_in_several_lanes(self, node: Node) -> bool:
        """Whether several lanes of a warp are known to run a node: no test before it or its callers chooses one."""
        return self._is_in_several_lanes(node, _CALLS_FOLLOWED)

    def is_chosen_lane(self, node: Node) -> bool:
        """Whether a test before a node, in the same function, may let in one lane only."""
        function = node.function
        return function is not None and any(map(self._chooses_a_lane, _tests_before(node, function)))

    def _is_in_several_lanes(self, node: Node, depth: int) -> bool:
        function = node.function
        if function is None or self.is_chosen_lane(node):
            return False
        if function.role("kernel"):
            return not self._has_one_thread(function)
        callers = function.callers if depth else []
        if callers:
            return any(self._is_in_several_lanes(call, depth - 1) for call in callers)
        indices = (one["indices"] for one in function.walk("subscript_expression"))
        return any(index.role("thread-index") for one in indices for index in one.children)

    def _chooses_a_lane(self, test: Node, depth: int = _CALLS_FOLLOWED) -> bool:
        """Whether a test compares a thread or a lane with one number, or is called as if it did."""
        for one in test.walk("binary_expression", "unary_expression"):
            sides = (one["left"], one["right"]) if one.type == "binary_expression" else (one["argument"],)
            if one["operator"].text in ("==", "!=", "!") and any(map(self._counts_threads, sides)):
                return True
        for name in test.walk("identifier", "field_identifier"):
            values = [value for value in name.choices if value != name] if depth else []
            if _CHOSEN.fullmatch(name.text) or any(self._chooses_a_lane(value, depth - 1) for value in values):
                return True
        bare = test.get("value") or test
        return bare.type in ("identifier", "field_expression") and self._counts_threads(bare)

    def _counts_threads(self, node: Node) -> bool:
        return any(node.role(role) for role in ("thread-index", "lane-id"))

    def _has_one_thread(self, kernel: Node) -> bool:
        """Whether every launch of a kernel in the file has blocks of one thread."""
        name = kernel.name.rpartition("::")[2]
        root = Node(self.analysis.source, self.analysis.source.tree.root_node)
        launches = [call for call in root.walk("call_expression") if call.launched_block is not None]
        blocks = [call.launched_block for call in launches if name in call.text]
        sizes = [size for block in blocks if block is not None for size, _ in block.block_sizes]
        return bool(sizes) and set(sizes) == {1}

    def _width_reads(self, function: Node) -> list[Node]:
        if self.analysis.defines("warpSize"):
            return []
        return [one for one in function.walk("identifier") if one.text == "warpSize"]

    def _covers_warp(self, call: Node) -> bool:
        name = call.name.rpartition("::")[2]
        if name in ("__shfl", "__shfl_sync"):
            return not self._states_width(call)
        return _OVER_THE_WARP.match(name) is not None

    def _states_width(self, call: Node) -> bool:
        """Whether a call names a width of its own: 32, or a constant of the project's, but not the hardware's."""
        given = call.arguments
        position = _WIDTH_POSITIONS.get(call.name)
        if position is None:  # a wrapper: `SHFL_XOR(value, mask, 32)`
            return len(given) > 2 and given[-1].constant == GROUP
        width = given[position] if position < len(given) else None
        if width is None or "warpSize" in width.text:
            return False
        return width.constant in (GROUP, None)

    def _builtins(self, call: Node) -> Iterator[Node]:
        """The shuffles that a call stands for: itself, or those in the bodies of the macro that it names."""
        bodies = self.analysis.bodies_of_macro(call.name)
        if not bodies:
            yield call
        for body in bodies:
            yield from (one for one in body.walk("call_expression") if self.is_shuffle(one))

    def _splits(self, expression: Node) -> bool:
        operator, left, right = expression.get("operator"), expression.get("left"), expression.get("right")
        if operator is None or left is None or right is None or operator.text not in _SPLITS:
            return False
        return right.constant == _SPLITS[operator.text] and left.role("thread-index")


def _tests_before(node: Node, function: Node) -> Iterator[Node]:
    """The tests that decide whether a node runs: those around it, and those behind which threads leave before it."""
    for around in node.ancestors("if_statement", "conditional_expression", "binary_expression"):
        test = around.get("condition") if around.type != "binary_expression" else around.get("left")
        if around.start >= function.start and test is not None and test.end <= node.start:
            yield test
    for one in function.walk("if_statement"):
        leaves = one["consequence"].walk("return_statement", "continue_statement", "break_statement")
        if one.end <= node.start and any(True for _ in leaves):
            yield one["condition"]


def _conjuncts(test: Node) -> Iterator[Node]:
    """The tests that must all hold: `a`, `b` and `c` of `(a && b && c)`."""
    if test.type in ("parenthesized_expression", "condition_clause") and len(test.children) == 1:
        yield from _conjuncts(test.children[0])
    elif test.type == "binary_expression" and test["operator"].text == "&&":
        yield from _conjuncts(test["left"])
        yield from _conjuncts(test["right"])
    else:
        yield test


def _compares(test: Node, name: str) -> bool:
    return any(
        one.get("operator") is not None and one["operator"].text in ("<", "<=") and one["left"].text == name
        for one in test.walk("binary_expression")
    )
