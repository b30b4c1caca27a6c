"""What names stand for at a place of code that is not run: the types of what is declared around it and before it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from portlint.verify.simulate.compiler import Slot
from portlint.verify.simulate.faults import Undecided
from portlint.verify.simulate.program import Program, children, declared_name, function_declarator, text_of, walk
from portlint.verify.simulate.statements import Statements
from portlint.verify.simulate.templates import template_name
from portlint.verify.simulate.values import CType

if TYPE_CHECKING:
    import tree_sitter

    from portlint.verify.simulate.machine import Machine

_UNKNOWN = CType("a type that is not known")
_DEVICE = re.compile(r"__device__|__global__|[A-Z]\w*_DEVICE(?:_[A-Z]+)*")
_HEADS = ("if_statement", "for_statement", "while_statement", "switch_statement", "for_range_loop", "lambda_expression")


def compiler_at(program: Program, place: tree_sitter.Node, target: Machine) -> Statements | None:
    """A compiler that knows the names that are visible at a place; None in a method that stands outside its struct."""
    compiler = Statements(program, target)
    for node in _around(place):
        if node.type == "template_declaration":
            _declare_template(compiler, node)
        elif node.type == "field_declaration_list":
            _declare_all(compiler, children(node))
        elif node.type == "compound_statement":
            _declare_all(compiler, [one for one in children(node) if one.end_byte <= place.start_byte])
        elif node.type == "function_definition":
            declarator = function_declarator(node)
            named = declarator.child_by_field_name("declarator") if declarator is not None else None
            if declarator is None or named is None or named.type == "qualified_identifier":
                return None
            _declare_all(compiler, list(walk(declarator, "parameter_declaration", "optional_parameter_declaration")))
        elif node.type in _HEADS:
            _declare_head(compiler, node, place)
    return compiler


def is_of_device(place: tree_sitter.Node) -> bool:
    """Whether a place is in a function of the device, by the words in front of that, or a macro that is called so."""
    function = next((one for one in reversed(_around(place)) if one.type == "function_definition"), None)
    declarator = function_declarator(function) if function is not None else None
    if function is None or declarator is None:
        return False
    words = [text_of(one) for one in function.children if one.end_byte <= declarator.start_byte]
    return any(_DEVICE.fullmatch(word) for text in words for word in text.split())


def _around(place: tree_sitter.Node) -> list[tree_sitter.Node]:
    """The nodes that a place is in, the outermost first."""
    found = []
    node = place.parent
    while node is not None:
        found.append(node)
        node = node.parent
    return found[::-1]


def _declare_template(compiler: Statements, template: tree_sitter.Node) -> None:
    listed = template.child_by_field_name("parameters")
    for one in children(listed) if listed is not None else ():
        if one.type in ("parameter_declaration", "optional_parameter_declaration"):
            _declare(compiler, one)
        else:
            compiler.scope.names[template_name(one)] = _UNKNOWN


def _declare_head(compiler: Statements, node: tree_sitter.Node, place: tree_sitter.Node) -> None:
    """What the head of a loop, a branch or a lambda declares."""
    for part in node.named_children:
        if part.start_byte <= place.start_byte < part.end_byte:
            break
        _declare_all(compiler, list(walk(part, "declaration", "parameter_declaration")))


def _declare_all(compiler: Statements, nodes: list[tree_sitter.Node]) -> None:
    for node in nodes:
        _declare(compiler, node)


def _declare(compiler: Statements, node: tree_sitter.Node) -> None:
    """Variables and aliases; what has a type that is not known hides the names outside all the same."""
    names = compiler.scope.names
    if node.type == "alias_declaration":
        names[text_of(node.child_by_field_name("name"))] = _UNKNOWN
        compiler.statement(node)
    elif node.type == "type_definition":
        names[text_of(declared_name(node.child_by_field_name("declarator")))] = _UNKNOWN
        compiler.statement(node)
    elif node.type.endswith("declaration"):
        for one in node.children_by_field_name("declarator"):
            ctype = _declared_type(compiler, one, node)
            names[text_of(declared_name(one))] = Slot(ctype or _UNKNOWN, compiler.new_slot())


def _declared_type(compiler: Statements, declarator: tree_sitter.Node, node: tree_sitter.Node) -> CType | None:
    inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
    value = declarator.child_by_field_name("value")
    try:
        base = compiler.type_of(node.child_by_field_name("type"))
        if base is not None:
            return compiler.declared(base, inner)[0]
        return compiler.expression(value).ctype if value is not None else None
    except Undecided:
        return None
