"""The tree-sitter query of the C++ services.

It is one, because a grammar as large as that of C++ makes each query dear to compile, and each walk of a tree counts.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from portlint.source.kept import with_source

if TYPE_CHECKING:
    from tree_sitter import Node, Query

    from portlint.source import Source

_SCOPES = """
(function_definition) @function
(lambda_expression) @lambda
(compound_statement) @block
(for_statement) @block
(for_range_loop) @block
(if_statement) @if
(while_statement) @block
(template_declaration) @template
(namespace_definition) @namespace
[(class_specifier) (struct_specifier) (union_specifier)] @type
(enum_specifier "class") @enum
(enum_specifier "struct") @enum
"""
_DEFINITIONS = """
(declaration declarator: (_) @variable)
(field_declaration declarator: (_) @field)
(parameter_declaration declarator: (_) @parameter)
(optional_parameter_declaration declarator: (_) @parameter)
(for_range_loop declarator: (_) @range)
(expression_statement (binary_expression left: (binary_expression operator: "<") operator: ">"
    right: [(identifier) (assignment_expression left: (identifier))] @templated))
(enumerator) @enumerator
(assignment_expression left: (identifier)) @assignment
(update_expression argument: (identifier)) @assignment
(gnu_asm_output_operand value: (identifier)) @output
(namespace_alias_definition) @alias
(alias_declaration) @alias
(type_definition declarator: (type_identifier)) @alias
(using_declaration) @using
"""
_LAUNCH_BOUNDS = """
(launch_bounds) @bounds
(call_expression function: (identifier) @_name arguments: (argument_list) @bounds
    (#match? @_name "LAUNCH_BOUNDS|launch_bounds"))
(init_declarator declarator: (identifier) @_name value: (argument_list) @bounds
    (#match? @_name "LAUNCH_BOUNDS|launch_bounds"))
"""
_SYNC_MASKS = """
(call_expression function: (identifier) @_name arguments: (argument_list . (identifier) @mask)
    (#match? @_name "^__(shfl|ballot|any|all|match|reduce|syncwarp)"))
"""


@cache
def compiled() -> Query:
    """The query, compiled once for all files."""
    from tree_sitter import Query

    from portlint.source.grammar import language

    return Query(language("cuda"), _SCOPES + _DEFINITIONS + _LAUNCH_BOUNDS + _SYNC_MASKS)


@with_source
def captured(_source: Source, root: Node) -> dict[str, list[Node]]:
    """The nodes of a tree that the services are built on, by capture name."""
    from tree_sitter import QueryCursor

    return QueryCursor(compiled()).captures(root)


def text_of(node: Node | None) -> str:
    """The text of a node in the tree that it is from; "" for None."""
    return (node.text or b"").decode(errors="replace") if node is not None else ""
