"""Triton kernels as host code compiles them: launches, autotune lists, and the numbers that they give to parameters.

A `triton.Config` in a comprehension or a loop stands for many configurations, one a round. A round is dropped where a
filter is false for it, and is uncertain where a filter asks for something that is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from portlint.condition import UNKNOWN, Environment, Guard, Literal, Name, Op, any_way, evaluate
from portlint.regex import regex
from portlint.source.node import Node
from portlint.source.python.constants import constant
from portlint.source.python.queries import calls_of

if TYPE_CHECKING:
    from portlint.condition import Expression, Value
    from portlint.source.python.scopes import Scopes

_DEPTH = 8
_MOST_ROUNDS = 1024
"""configurations that one call may stand for; beyond that nothing is said"""
_COMPREHENSIONS = ("list_comprehension", "generator_expression", "set_comprehension")
OPTIONS: dict[str, Value] = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}
"""what `triton.Config` takes for an option that it is not given, in the order of its parameters after the first"""
_MARKS = frozenset(("triton.jit", "triton.experimental.gluon.jit"))

_FITS = regex(r"sh(ared)?_?mem|smem|lds(?![a-z])", re.IGNORECASE)
"""the file's own test of what fits into shared memory"""

Values: TypeAlias = "dict[str, Value]"
Element: TypeAlias = "tuple[Value, tuple[Guard, ...]]"


class Configuration(msgspec.Struct, frozen=True):
    """One way in which a kernel is compiled, as far as it is written in the file."""

    place: Node
    """the `triton.Config` call, or the launch"""
    values: Mapping[str, Value]
    """parameters and options (`num_warps`, `num_stages`, `num_ctas`) whose values are known"""
    written: Mapping[str, Node] = {}
    """where the file gives a parameter or an option its value, known or not"""
    guards: tuple[Guard, ...] = ()
    is_certain: bool = True
    """whether nothing unknown may drop it"""


class Listed(msgspec.Struct, frozen=True):
    """A list of configurations."""

    configs: tuple[Node, ...]
    """the `triton.Config` calls"""
    is_complete: bool = True
    """whether these are all that it may hold"""
    is_pruned: bool = False
    """whether a function of the file's own drops some of them"""


class Tuned(msgspec.Struct, frozen=True):
    """What `triton.autotune` gives a kernel."""

    call: Node
    kernel: Node
    """the function definition"""
    listed: Listed


class Triton:
    """The Triton kernels of one file."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self._known: dict[int, tuple[Configuration, ...]] = {}

    # ---- kernels ---------------------------------------------------------------------------------------------------

    @cached_property
    def tuned(self) -> tuple[Tuned, ...]:
        """Every kernel of the file that is tuned."""
        found: list[Tuned] = []
        for call in calls_of(self.scopes.source, ("autotune",)):
            decorated = next(call.ancestors("decorated_definition"), None)
            listed = call.argument(0, "configs")
            if call.name != "triton.autotune" or decorated is None or listed is None:
                continue
            configs = self._listed(listed, _DEPTH)
            if call.argument(None, "prune_configs_by") is not None:
                configs = msgspec.structs.replace(configs, is_pruned=True)
            found.append(Tuned(call, decorated["definition"], configs))
        return tuple(found)

    def tunings(self, call: Node) -> list[Tuned]:
        """The kernels that a `triton.Config` call is listed for; of `triton.autotune`, that which it tunes."""
        return [one for one in self.tuned if call in one.listed.configs or call == one.call]

    def is_kernel(self, function: Node) -> bool:
        """Whether a function is compiled by Triton, from the host or from another kernel."""
        decorated = function.parent
        return decorated is not None and any(
            child.type == "decorator" and child.children and child.children[0].name in _MARKS
            for child in decorated.children
        )

    def launched(self, launch: Node) -> Node | None:
        """The kernel of a launch `kernel[grid](...)`, where the file defines it."""
        function = launch["function"]
        name = function["value"] if function.type == "subscript" else function
        binding = self.scopes.only(name.text, name) if name.type == "identifier" else None
        kernel = binding.value if binding is not None and binding.kind == "function" else None
        return kernel if kernel is not None and self.is_kernel(kernel) else None

    def grid(self, launch: Node) -> Node | None:
        """The grid of a launch: its tuple, through a name or a lambda where it is given by one."""
        function = launch["function"]
        grid = function.get("subscript") if function.type == "subscript" else None
        for _ in range(_DEPTH):
            if grid is None or grid.type in ("tuple", "list"):
                return grid
            if grid.type == "lambda":
                grid = grid["body"]
                continue
            if grid.type == "parenthesized_expression" and grid.children:
                grid = grid.children[0]
                continue
            grid = self._given(grid)
        return None

    def _given(self, name: Node) -> Node | None:
        """What a name stands for: an expression, or what the function by that name returns."""
        binding = self.scopes.only(name.text, name) if name.type == "identifier" else None
        if binding is None or binding.value is None:
            return None
        if binding.kind == "function":
            returned = self._returned(binding.value)
            return returned[0] if len(returned) == 1 else None
        return binding.value if binding.kind == "assign" else None

    # ---- configurations --------------------------------------------------------------------------------------------

    def compilations(self, kernel: Node) -> list[Configuration]:
        """The ways in which a kernel is compiled: those that it is tuned over, else one for each launch."""
        launches = [self._of_launch(launch, kernel) for launch in self.scopes.launches(kernel)]
        tuned = [one for one in self.tuned if one.kernel == kernel]
        if not tuned:
            return launches
        always = {
            name: value
            for name, value in (launches[0].values.items() if launches else ())
            if all(one.values.get(name) == value for one in launches)
        }
        said = launches[0].written if len(launches) == 1 else {}
        return [
            msgspec.structs.replace(one, values={**always, **one.values}, written={**said, **one.written})
            for config in tuned[0].listed.configs
            for one in self.configurations(config)
        ]

    def configurations(self, call: Node) -> tuple[Configuration, ...]:
        """Of a `triton.Config` call, each configuration that it stands for; of a launch, the one that it asks for."""
        if call.start not in self._known:
            kernel = None if call.name == "triton.Config" else self.launched(call)
            if call.name == "triton.Config":
                found = tuple(self._of_config(call))
            else:
                found = (self._of_launch(call, kernel),) if kernel is not None else ()
            self._known[call.start] = found
        return self._known[call.start]

    def _of_config(self, call: Node) -> Iterator[Configuration]:
        given = call.argument(0, "kwargs")
        written = self._mapping(given, _DEPTH) if given is not None else {}
        for position, option in enumerate(OPTIONS, 1):
            if (said := call.argument(position, option)) is not None:
                written[option] = said
        used = self._used(call)
        for values, guards, is_certain in self._rounds(call):
            own = {name: constant(self.scopes, node, known=values) for name, node in written.items()}
            known = {name: value for name, value in {**OPTIONS, **own}.items() if value is not None}
            yield Configuration(call, known, written, (*guards, *used), is_certain)

    def _used(self, config: Node) -> tuple[Guard, ...]:
        """That one of the kernels is launched which a configuration is listed for, where the file launches all."""
        launches = [self.scopes.launches(tuned.kernel) for tuned in self.tunings(config)]
        ways = [launch.guards for found in launches for launch in found]
        if not launches or not all(launches) or not all(ways):
            return ()
        return (any_way(ways, "launches of the kernel", config.line),)

    def _of_launch(self, launch: Node, kernel: Node) -> Configuration:
        written: dict[str, Node] = {}
        # A `*` or `/` between parameters has no name, and takes no argument.
        named = [one for one in kernel["parameters"].children if one.type == "identifier" or one.children]
        for position, parameter in enumerate(named):
            is_bare = parameter.type == "identifier"
            name = parameter if is_bare else parameter.get("name") or parameter.children[0]
            said = launch.argument(position, name.text) or (None if is_bare else parameter.get("value"))
            if said is not None:
                written[name.text] = said
        for child in launch["arguments"].children:
            if child.type == "keyword_argument":
                written[child["name"].text] = child["value"]
            elif child.type == "dictionary_splat" and child.children:
                written |= self._mapping(child.children[0], _DEPTH)
        values = {name: value for name, node in written.items() if (value := constant(self.scopes, node)) is not None}
        return Configuration(launch, values, written, launch.guards)

    def _mapping(self, node: Node, depth: int) -> dict[str, Node]:
        """The entries of a dictionary that is written in the file."""
        found: dict[str, Node] = {}
        match node.type if depth else "":
            case "dictionary":
                for child in node.children:
                    if child.type == "dictionary_splat":
                        found |= self._mapping(child.children[0], depth - 1)
                    elif child.type == "pair" and isinstance(key := child["key"].constant, str):
                        found[key] = child["value"]
            case "call" if node.name == "dict":
                for child in node["arguments"].children:
                    if child.type == "keyword_argument":
                        found[child["name"].text] = child["value"]
            case "binary_operator":
                found = self._mapping(node["left"], depth - 1) | self._mapping(node["right"], depth - 1)
            case "identifier":
                binding = self.scopes.only(node.text, node)
                if binding is not None and binding.kind == "assign" and binding.value is not None:
                    found = self._mapping(binding.value, depth - 1)
        return found

    # ---- rounds ----------------------------------------------------------------------------------------------------

    def _rounds(self, node: Node) -> list[tuple[Values, tuple[Guard, ...], bool]]:
        """The rounds of the loops around a node: the loops' variables, the guards left, and whether it surely runs."""
        rounds: list[tuple[Values, tuple[Guard, ...]]] = [({}, ())]
        for target, over in self._loops(node):
            elements = self._elements(over, _DEPTH)
            if elements is None:
                continue
            rounds = [
                ({**values, **bound}, (*guards, *needed))
                for values, guards in rounds
                for value, needed in elements
                if (bound := _bound(target, value)) is not None
            ]
            if not 0 < len(rounds) <= _MOST_ROUNDS:
                return []
        around = node.guards
        found: list[tuple[Values, tuple[Guard, ...], bool]] = []
        for values, guards in rounds:
            left = [*guards]
            is_live = True
            is_certain = not any(_FITS.search(guard.text) for guard in (*guards, *around))
            for guard in around:
                outcome = evaluate(guard.condition, Environment(values))
                if outcome is UNKNOWN:
                    rest = _with(guard.condition, values)
                    # what asks for a round's variable and for something else may be the file's own test of what fits
                    is_certain = is_certain and rest == guard.condition and not _mentions(guard.text, values)
                    left.append(msgspec.structs.replace(guard, condition=rest))
                elif bool(outcome) is not guard.expected:
                    is_live = False
            if is_live:
                found.append((values, tuple(left), is_certain))
        return found

    def _loops(self, node: Node) -> list[tuple[Node, Node]]:
        """(target, what is looped over) of the loops around a node in its function, the outermost first."""
        found: list[tuple[Node, Node]] = []
        for parent in node.ancestors():
            if parent.type in ("function_definition", "lambda"):
                break
            if parent.type in _COMPREHENSIONS:
                clauses = [child for child in parent.children if child.type == "for_in_clause"]
                found[:0] = [(clause["left"], clause["right"]) for clause in clauses]
            elif parent.type == "for_statement":
                found.insert(0, (parent["left"], parent["right"]))
        return found

    def _elements(self, node: Node, depth: int) -> list[Element] | None:
        """What a loop over an expression goes through, each with the guards that it needs; None where not known."""
        if not depth:
            return None
        match node.type:
            case "parenthesized_expression":
                return self._elements(node.children[0], depth - 1)
            case "list" | "tuple" | "set":
                found: list[Element] = []
                for child in node.children:
                    inner = (
                        self._elements(child.children[0], depth - 1)
                        if child.type == "list_splat"
                        else self._alternatives(child)
                    )
                    if inner is None:
                        return None
                    found += inner
                return found
            case "conditional_expression" if len(node.children) == 3:
                body, test, other = node.children
                first, second = self._elements(body, depth - 1), self._elements(other, depth - 1)
                if first is None or second is None:
                    return None
                return [(value, (test.holds, *needed)) for value, needed in first] + [
                    (value, (test.fails, *needed)) for value, needed in second
                ]
            case "binary_operator" if node["operator"].text == "+":
                left, right = self._elements(node["left"], depth - 1), self._elements(node["right"], depth - 1)
                return None if left is None or right is None else left + right
            case "identifier":
                binding = self.scopes.only(node.text, node)
                if binding is not None and binding.kind == "assign" and binding.value is not None:
                    return self._elements(binding.value, depth - 1)
            case "call":
                return self._called_elements(node, depth)
            case kind if kind in _COMPREHENSIONS:
                return self._comprehended(node)
        return None

    def _alternatives(self, child: Node) -> list[Element] | None:
        """The values of one element of a list."""
        if child.type == "conditional_expression" and len(child.children) == 3:
            body, test, other = child.children
            first, second = body.constant, other.constant
            if first is not None and second is not None:
                return [(first, (test.holds,)), (second, (test.fails,))]
        value = child.constant
        return None if value is None else [(value, ())]

    def _comprehended(self, node: Node) -> list[Element] | None:
        """The elements of a comprehension over constants."""
        found: list[Element] = []
        for values, guards, is_certain in self._rounds(node["body"]):
            value = constant(self.scopes, node["body"], known=values)
            if value is None or not is_certain:
                return None
            found.append((value, guards))
        return found or None

    def _called_elements(self, call: Node, depth: int) -> list[Element] | None:
        if call.name == "range":
            bounds = [one.constant for one in call.arguments]
            if 1 <= len(bounds) <= 3 and all(isinstance(one, int) for one in bounds):
                try:
                    run = range(*bounds)  # type: ignore[arg-type]
                except ValueError:
                    return None
                return [(value, ()) for value in run] if len(run) <= _MOST_ROUNDS else None
        if call.name in ("list", "tuple", "sorted", "set") and len(call.arguments) == 1:
            return self._elements(call.arguments[0], depth - 1)
        if call.name == "itertools.product" and call.argument(None, "repeat") is None:
            lists = [self._elements(one, depth - 1) for one in call.arguments]
            if not lists or any(one is None for one in lists):
                return None
            rows = [one for one in lists if one is not None]
            if _size(rows) > _MOST_ROUNDS:
                return None
            return [
                (tuple(value for value, _ in row), tuple(guard for _, needed in row for guard in needed))
                for row in product(*rows)
            ]
        return None

    # ---- lists -----------------------------------------------------------------------------------------------------

    def _listed(self, node: Node, depth: int) -> Listed:
        """The `triton.Config` calls of a list of configurations."""
        match node.type if depth else "":
            case "parenthesized_expression" | "list_splat":
                return self._listed(node.children[0], depth - 1)
            case "list" | "tuple":
                return self._all(node.children, depth)
            case "conditional_expression" if len(node.children) == 3:
                return self._all([node.children[0], node.children[2]], depth)
            case "binary_operator":
                return self._all([node["left"], node["right"]], depth)
            case "call" if node.name == "triton.Config":
                return Listed((node,))
            case "call" if node.name in ("list", "tuple") and len(node.arguments) == 1:
                return self._listed(node.arguments[0], depth - 1)
            case "call" if node["function"].text == "filter" and len(node.arguments) == 2:
                return msgspec.structs.replace(self._listed(node.arguments[1], depth - 1), is_pruned=True)
            case "call" if node["function"].type == "identifier":
                binding = self.scopes.only(node["function"].text, node)
                if binding is not None and binding.kind == "function" and binding.value is not None:
                    return self._all(self._returned(binding.value), depth)
            case kind if kind in _COMPREHENSIONS:
                return self._comprehended_list(node, depth)
            case "identifier":
                return self._bound_list(node, depth)
        return Listed((), is_complete=False)

    def _all(self, nodes: list[Node], depth: int) -> Listed:
        found = [self._listed(one, depth - 1) for one in nodes]
        return Listed(
            tuple(config for one in found for config in one.configs),
            all(one.is_complete for one in found),
            any(one.is_pruned for one in found),
        )

    def _comprehended_list(self, node: Node, depth: int) -> Listed:
        """A comprehension that makes configurations, or takes those of another list."""
        if node["body"].name == "triton.Config":
            return Listed((node["body"],))
        clauses = [child for child in node.children if child.type == "for_in_clause"]
        found = self._all([clause["right"] for clause in clauses], depth)
        is_pruned = any(child.type == "if_clause" for child in node.children)
        return msgspec.structs.replace(found, is_pruned=found.is_pruned or is_pruned)

    def _bound_list(self, name: Node, depth: int) -> Listed:
        """What a name holds: all that it is given, and what is appended to it."""
        bindings = self.scopes.bindings(name.text, name)
        given = [one.value for one in bindings if one.kind in ("assign", "augmented") and one.value is not None]
        if not given or len(given) != len(bindings):
            return Listed((), is_complete=False)
        scope = self.scopes.function(given[0])
        added: list[Node] = []
        for use in self.scopes.uses(name.text):
            method, call = use.parent, use.parent.parent if use.parent is not None else None
            if method is None or method.type != "attribute" or call is None or call.type != "call":
                continue
            if self.scopes.function(use) == scope and method["attribute"].text in ("append", "extend", "insert"):
                added += call.arguments[-1:]
        return self._all([*given, *added], depth)

    def _returned(self, function: Node) -> list[Node]:
        statements = (one for one in function["body"].walk("return_statement") if self.scopes.function(one) == function)
        return [one.children[0] for one in statements if one.children]


def _bound(target: Node, value: Value) -> Values | None:
    """The names of a loop's target with their values in one round."""
    if target.type == "identifier":
        return {target.text: value}
    names = [child.text for child in target.children]
    if not isinstance(value, tuple) or len(value) != len(names):
        return None
    return dict(zip(names, value, strict=True))


def _with(expression: Expression, values: Values) -> Expression:
    """An expression with the names replaced whose values are known."""
    if isinstance(expression, Name) and expression.text in values:
        return Literal(values[expression.text])
    if isinstance(expression, Op):
        return Op(expression.operator, tuple(_with(one, values) for one in expression.operands))
    return expression


def _mentions(text: str, values: Values) -> bool:
    words = set("".join(char if char.isalnum() or char == "_" else " " for char in text).split())
    return not words.isdisjoint(values)


def _size(rows: list[list[Element]]) -> int:
    size = 1
    for row in rows:
        size *= len(row)
    return size
