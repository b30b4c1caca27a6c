"""A call with a mask that is a constant, in code that cannot be run: whether a whole wave can execute it.

That needs no more of the code than the call, the mask, and what stands around the call: where no condition looks at the
number of the thread, all lanes of a wave get there together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from portlint.verify.simulate.faults import Undecided
from portlint.verify.simulate.outcome import Counterexample, Outcome
from portlint.verify.simulate.program import Program, children, declared_name, line_of, text_of, walk
from portlint.verify.simulate.statements import Statements
from portlint.verify.simulate.warps import spans

if TYPE_CHECKING:
    import tree_sitter

    from portlint.verify.simulate.machine import Machine

_SYNC = re.compile(r"__(shfl(_up|_down|_xor)?|any|all|ballot|match_any|match_all|reduce_\w+)_sync|__syncwarp")
_CONSTANT = re.compile(r"^\s*(static\s+)?const")
_CONDITIONS = ("if_statement", "for_statement", "while_statement", "do_statement", "switch_statement")
_OF_THE_THREAD = re.compile(
    r"thread|lane|warp|wave|tid|\bid\b|_id\b|idx|index|rank|leader|elect|\[|first|last|row|col|mask", re.IGNORECASE
)


def left_out_by(program: Program, line: int, target: Machine) -> Outcome | None:
    """The proof that a call on a line leaves lanes out; None where the call may be made by some lanes only."""
    for name, call, arguments in calls_on(program, line):
        mask = _constant_mask(program, call, arguments[0], target)
        if mask is None or not mask or _may_diverge(call):
            continue
        outside = [lane for lane in range(target.width) if not mask >> lane & 1]
        if outside and any(lane >= _REFERENCE_WIDTH for lane in outside) and mask & 0xFFFFFFFF == 0xFFFFFFFF:
            reason = f"{spans(outside)} execute '{name}' and the mask {mask:#x} does not name them"
            found = Counterexample("a whole wave that gets there", "", None, "", "", reason, line_of(call))
            return Outcome("proven", f"{reason}, where a whole wave gets there", "", found)
    return None


_REFERENCE_WIDTH = 32


def calls_on(program: Program, line: int) -> Iterator[tuple[str, tree_sitter.Node, list[tree_sitter.Node]]]:
    """The calls on a line of the toolkit's functions with a mask: their names, themselves, and their arguments."""
    for call in walk(program.root, "call_expression"):
        name = text_of(call.child_by_field_name("function"))
        listed = call.child_by_field_name("arguments")
        arguments = children(listed) if listed is not None else []
        on_line = line_of(call) <= line <= call.end_point[0] + 1
        if on_line and arguments and _SYNC.fullmatch(name) and name not in program.functions:
            yield name, call, arguments


def _constant_mask(program: Program, call: tree_sitter.Node, argument: tree_sitter.Node, target: Machine) -> int | None:
    """The mask of a call as the target takes it, if it is a constant."""
    compiler = Statements(program, target)
    for declaration in constants_before(call):
        compiler.statement(declaration)
    try:
        value = compiler.constant(argument)
    except Undecided:
        return None
    return value & ((1 << target.width) - 1)


def constants_before(call: tree_sitter.Node) -> list[tree_sitter.Node]:
    """The constants that the blocks around a call define before it, those of the outer blocks first."""
    found: list[tree_sitter.Node] = []
    node = call.parent
    while node is not None and node.type != "translation_unit":
        if node.type == "compound_statement":
            before = [one for one in children(node) if one.type == "declaration" and one.end_byte <= call.start_byte]
            found = [one for one in before if _CONSTANT.search(text_of(one))] + found
        node = node.parent
    return found


def _may_diverge(call: tree_sitter.Node) -> bool:
    """Whether something around a call decides by the number of the thread, or by what is not a plain name."""
    node = call.parent
    before = call
    while node is not None and node.type != "function_definition":
        if node.type in _CONDITIONS:
            condition = node.child_by_field_name("condition")
            parts = [condition, node.child_by_field_name("initializer"), node.child_by_field_name("update")]
            counter = _counter(node)
            texts = [counter.sub("", text_of(one)) for one in parts if one is not None and one != before]
            if any(_OF_THE_THREAD.search(one) for one in texts):
                return True
        if node.type in ("conditional_expression", "lambda_expression"):
            return True
        if node.type == "binary_expression" and text_of(node.child_by_field_name("operator")) in ("&&", "||"):
            return True
        if node.type == "compound_statement" and _leaves_early(node, before):
            return True
        before, node = node, node.parent
    return node is None


def _counter(loop: tree_sitter.Node) -> re.Pattern[str]:
    """The variable that a loop counts with, whatever it is called: what it starts from says whether lanes differ."""
    name = declared_name(next(walk(loop, "init_declarator"), None)) if loop.type == "for_statement" else None
    return re.compile(rf"\b{re.escape(text_of(name))}\b" if name is not None else r"(?!)")


def _leaves_early(block: tree_sitter.Node, until: tree_sitter.Node) -> bool:
    """Whether lanes may leave a block before a statement of it."""
    for one in children(block):
        if one.start_byte >= until.start_byte:
            return False
        for branch in walk(one, "if_statement"):
            condition = branch.child_by_field_name("condition")
            leaves = any(walk(branch, "return_statement", "break_statement", "continue_statement"))
            if leaves and _OF_THE_THREAD.search(text_of(condition)):
                return True
    return False
