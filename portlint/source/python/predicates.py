"""Small functions that tests call, such as `is_hip_or_a100()` or `has_deep_gemm()`, of this file or of another.

A function comes to one condition: its branches and the handlers of its `try` are taken path by path. What a name means
is looked up where it is imported from, as long as that is in the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from portlint.condition import UNANSWERABLE, Expression, Literal, Name, Op
from portlint.source.node import Node
from portlint.source.python import users

if TYPE_CHECKING:
    from portlint.source.python.scopes import Scopes

_MOST_BRANCHES = 8
"""a function with more is no small predicate"""
_BLOCKS = frozenset(("for_statement", "while_statement", "match_statement", "with_statement"))


def function(scopes: Scopes, name: Node) -> Node | None:
    """The function that a name means, here or in the file that it is imported from."""
    found = users.meaning(scopes, name)
    return found.binding.value if found is not None and found.binding.kind == "function" else None


def outcome(definition: Node, test: Callable[[Node], Expression]) -> Expression | None:
    """What a function returns, as a condition that leaves its parameters open; None where it is not a small one."""
    body = definition["body"]
    branches = sum(1 for _ in body.walk("if_statement", "elif_clause", "try_statement"))
    if branches > _MOST_BRANCHES or not any(True for _ in body.walk("return_statement")):
        return None
    return _path(body.children, test)


def is_plain(definition: Node) -> bool:
    """Whether a function returns one expression, whatever happens."""
    return sum(1 for _ in definition["body"].walk("return_statement")) == 1


def applied(expression: Expression, arguments: Mapping[str, Expression]) -> Expression:
    """A condition with what a call passes in place of the parameters."""
    if isinstance(expression, Name):
        return arguments.get(expression.text, expression)
    if not isinstance(expression, Op):
        return expression
    operands = tuple(applied(one, arguments) for one in expression.operands)
    return is_installed(operands[0]) if expression.operator == "installed" else Op(expression.operator, operands)


def is_installed(package: Expression) -> Expression:
    """Whether a package can be installed; of a parameter, once a call says what it is."""
    if isinstance(package, Literal):
        return Name(f"installed {str(package.value).partition('.')[0]}")
    return Op("installed", (package,))


def imported_in(block: Node) -> Iterator[str]:
    """The packages that the statements of a block import."""
    for statement in block.children:
        if statement.type == "import_statement":
            yield from ((one.get("name") or one).text.partition(".")[0] for one in statement.children)
        elif statement.type == "import_from_statement" and not statement["module_name"].text.startswith("."):
            yield statement["module_name"].text.partition(".")[0]


def _path(statements: Sequence[Node], test: Callable[[Node], Expression]) -> Expression:
    """What a run of statements returns."""
    for index, statement in enumerate(statements):
        rest = statements[index + 1 :]
        if statement.type == "return_statement":
            return test(statement.children[0]) if statement.children else Literal(None)
        if statement.type == "raise_statement":
            return UNANSWERABLE
        if not any(True for _ in statement.walk("return_statement", "raise_statement")):
            continue
        if statement.type == "if_statement":
            return _branches(statement, rest, test)
        if statement.type == "try_statement":
            return _tried(statement, rest, test)
        if statement.type in _BLOCKS:
            return UNANSWERABLE
    return Literal(None)


def _branches(statement: Node, rest: Sequence[Node], test: Callable[[Node], Expression]) -> Expression:
    otherwise = rest
    clauses = [one for one in statement.children if one.type in ("elif_clause", "else_clause")]
    if clauses and clauses[-1].type == "else_clause":
        otherwise = [*clauses.pop()["body"].children, *rest]
    found = _path(otherwise, test)
    for clause in (*reversed(clauses), statement):
        taken = _path([*clause["consequence"].children, *rest], test)
        found = Op("if", (test(clause["condition"]), taken, found))
    return found


def _tried(statement: Node, rest: Sequence[Node], test: Callable[[Node], Expression]) -> Expression:
    """The body of a `try`; its first handler where the body imports a package that cannot be installed."""
    clauses = {one.type: one for one in reversed(statement.children)}
    after = clauses["else_clause"]["body"].children if "else_clause" in clauses else []
    body = _path([*statement["body"].children, *after, *rest], test)
    handler = clauses.get("except_clause")
    packages = [Name(f"installed {package}") for package in imported_in(statement["body"])]
    if handler is None or not packages:
        return body
    loads = Op("and", tuple(Op("known", (one, Literal(True))) for one in packages))
    handled = [child for one in handler.children if one.type == "block" for child in one.children]
    return Op("if", (loads, body, _path([*handled, *rest], test)))
