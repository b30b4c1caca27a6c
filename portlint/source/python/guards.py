"""The tests that must have gone one way for a Python node to run.

Sources of guards: `if`/`elif`/`else`, `match`, conditional expressions, `and`/`or`, comprehension filters, `while`,
loops over `range(count)`, `assert`, a `with pytest.raises(...)` around the node, an early `return`/`raise`/`continue`
before it, pytest and unittest skip marks on a function, class, module or case; the fixtures and the `setUp` of a test;
a call of a function that raises (`_validate(x)`); for a function that is only called or passed on, that one of these
places can run; for a module that other files import, that one of the imports is reached; that the project names a
private function at all; that a parameter is None, which it is not where every call passes a value; and the place of a
file in a folder of one platform's own (`backends/cuda/` beside `backends/mps/`, `extensions/hpu/`) or the name of a
test for GPUs; for JAX, that the file, or the `conftest.py` of a test, keeps it to the CPU. What other files say is
taken as they say it: no third file is asked, but for the small functions that tests call.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from portlint.condition import Expression, Guard, Literal, Name, Op, any_way, words_of
from portlint.source import nearby
from portlint.source.node import Node
from portlint.source.python import predicates, users
from portlint.source.python.conditions import ONLY_ON_NVIDIA, condition, names_nvidia_part
from portlint.source.python.queries import calls_of

if TYPE_CHECKING:
    from portlint.source import Source
    from portlint.source.python.scopes import Scopes
    from portlint.source.python.values import Values

_DEPTH = 8
"""how many functions deep the calls of functions are followed"""
_SET_UP = frozenset(("setUp", "setUpClass", "setup_method", "setup_class", "asyncSetUp"))
_MOST_CALLS = 64
"""a function that is called more often is taken to be called from anywhere"""
_LEAVES = frozenset(("return_statement", "raise_statement", "continue_statement", "break_statement"))
_LEAVING_CALLS = frozenset(("pytest.skip", "sys.exit", "exit", "quit", "os._exit", "pytest.exit"))
_CONFIGURE = ("jax.config.update", "jax.config.config.update")
_EXPECTING = frozenset(("pytest.raises", "self.assertRaises", "self.assertRaisesRegex"))
_GPU_WORDS = frozenset(("cuda", "gpu", "nvidia"))
_CUDA = Name("torch.cuda.is_available")
_CUDA_NAMES = frozenset(("cuda", "nvidia"))
_OTHER_NAMES = frozenset("mps metal hpu habana gaudi xpu npu ascend tpu xla neuron cpu".split())
"""folders and files of other machines beside those of CUDA"""
_NAMES_OF_PARTS = frozenset("mps hpu habana gaudi xpu npu ascend xla".split())
"""folders that a project has for one machine beside its code for CUDA. What is written for TPUs or Neuron devices is
not among them: such kernels are ported to GPUs as well."""
_BRIDGE = "habana_frameworks"
_LISTS = ("list", "list_comprehension", "tuple", "binary_operator")
_REQUIRING_WORDS = frozenset(("require", "requires", "needs", "only", "skip", "if", "no", "on"))
_PASSING_OVER_WORDS = frozenset(("skip", "disable", "disabled", "exclude", "unsupported", "xfail"))
_REGISTERING_WORDS = frozenset(
    "register fixture hook hookimpl impl command route callback property setter overload export app".split()
)
"""words of decorators that make a function reachable from other files"""
_JOINING_WORDS = frozenset(("if", "on", "for", "in", "test"))


class Guards:
    """The guards of one file's nodes; without its values, as the file alone states them."""

    def __init__(self, scopes: Scopes, values: Values | None = None) -> None:
        self.scopes = scopes
        self._values = values
        self._asks_others = values is not None
        self._blocks: dict[int, list[tuple[int, Guard]]] = {}
        self._calls: dict[int, Guard | None] = {}
        self._following = 0
        self._module_marks: tuple[Guard, ...] | None = None

    def of(self, node: Node) -> tuple[Guard, ...]:
        """The guards of a node, the outermost first."""
        guards: list[Guard] = []
        child = node
        for parent in node.ancestors():
            guards.extend(self._between(parent, child))
            child = parent
        return self._guards_of_file + self._pinned + self._imported + self._marks_of_module() + tuple(reversed(guards))

    @cached_property
    def _imported(self) -> tuple[Guard, ...]:
        """That one of the imports of this module can be reached, where other files have any."""
        statements = users.imports_of(self.scopes.source.file) if self._asks_others else ()
        ways = [_as_written(statement) for statement in statements]
        return (any_way(ways, "imports of this module", 0),) if ways and all(ways) else ()

    @cached_property
    def _guards_of_file(self) -> tuple[Guard, ...]:
        """What the file as a whole asks for: modules that are there, and the machine that its place is for."""
        file = self.scopes.source.file
        if self._asks_others and (missing := users.missing_import(self.scopes.source)) is not None:
            return (Guard(Literal(False), True, missing.text, missing.line),)
        if sibling := nearby.other_platform(file, _CUDA_NAMES, _OTHER_NAMES):
            return (Guard(_CUDA, True, f"{sibling} takes its place elsewhere", 0),)
        part = nearby.part_of(file, _NAMES_OF_PARTS)
        if part:
            return (Guard(Name(part), True, f"the folder {part} is for that machine", 0),)
        if nearby.is_of_tests(self.scopes.source.place):
            name = os.path.basename(self.scopes.source.place)
            if _GPU_WORDS & set(words_of(name)):
                return (Guard(_CUDA, True, f"{name} is for GPUs", 0),)
        return ()

    @cached_property
    def _pinned(self) -> tuple[Guard, ...]:
        """That JAX computes on the CPU, where the file says so for its process, or the `conftest.py` of a test."""
        source = self.scopes.source
        if source.imports("torch") or not source.imports("jax"):
            return ()
        said = _pin_of(source)
        if said is None and source.file and nearby.is_of_tests(source.place):
            shared = nearby.find(source.file, "conftest.py")
            opened = nearby.opened(shared, "python") if shared is not None and shared != source.file else None
            said = _pin_of(opened) if opened is not None else None
        return (Guard(Name("is_cpu"), True, said.text, said.line),) if said is not None else ()

    def _guard(self, test: Node, expected: bool) -> Guard:
        is_none = self._values.is_none(test) if self._values is not None else None
        if is_none is None:
            return _guard(self.scopes, test, expected)
        return Guard(Literal(is_none), expected, " ".join(test.text.split()), test.line)

    def _between(self, parent: Node, child: Node) -> Iterator[Guard]:
        """The guards that `parent` puts on `child`."""
        match parent.type:
            case "if_statement":
                yield from self._branch(parent, child)
            case "conditional_expression" if len(parent.children) == 3:
                body, test, other = parent.children
                if child in (body, other):
                    yield self._guard(test, child == body)
            case "boolean_operator":
                if child == parent["right"]:
                    yield self._guard(parent["left"], parent["operator"].text == "and")
            case "with_statement":
                if child == parent["body"] and _fails_on_purpose(parent):
                    yield Guard(Literal(False), True, "what is expected to fail", parent.line)
            case "while_statement":
                if child == parent["body"]:
                    yield self._guard(parent["condition"], True)
            case "list_comprehension" | "set_comprehension" | "dictionary_comprehension" | "generator_expression":
                if child == parent["body"]:
                    for clause in parent.children:
                        if clause.type == "if_clause" and clause.children:
                            yield self._guard(clause.children[0], True)
                        elif clause.type == "for_in_clause":
                            yield from self._loop(clause)
            case "for_statement":
                if child == parent["body"]:
                    yield from self._loop(parent)
            case "case_clause":
                yield from self._case(parent, child)
            case "assignment" if child == parent.get("right") and child.type in _LISTS:
                if self.scopes.source.mentions("triton") and "Config(" in child.text:
                    yield from self._listed_where(parent)
            case "function_definition":
                if child == parent["body"]:
                    if self._asks_others and users.is_unused(parent):
                        yield Guard(Literal(False), True, f"nothing calls {parent['name'].text}", parent.line)
                    yield from self._fixtures(parent)
                    if (guard := self._called(parent)) is not None:
                        yield guard
            case "block" | "module":
                yield from self._passed_before(parent, child)
            case "class_definition":
                if child == parent["body"]:
                    yield from self._set_up(parent)
            case "argument_list":
                yield from self._marks_of_case(parent, child)
            case "decorated_definition":
                parameter = child.type == "decorator" and "parametrize" in child.text
                if child == parent["definition"] or parameter:
                    for decorator in _decorators(parent):
                        yield from self._mark(decorator)

    def _loop(self, loop: Node) -> Iterator[Guard]:
        """The body of `for i in range(count)` runs only if the count is not zero."""
        over = loop["right"]
        if over.type == "call" and over.name == "range" and len(over.arguments) == 1:
            yield self._guard(over.arguments[0], True)

    def _case(self, clause: Node, child: Node) -> Iterator[Guard]:
        """`case "cuda": x`: that the subject is one of these literals, and none of those in the cases above."""
        if child != clause["consequence"]:
            return
        statement = next(clause.ancestors("match_statement"))
        for other in statement["body"].children:
            if other.type == "case_clause" and other.start <= clause.start:
                test = self._pattern(statement, other)
                own = other == clause
                if test is not None and (own or other.get("guard") is None):
                    yield Guard(test, own, f"case {other.children[0].text}", other.line)
        guard = clause.get("guard")
        if guard is not None and guard.children:
            yield self._guard(guard.children[0], True)

    def _pattern(self, statement: Node, clause: Node) -> Expression | None:
        """The test of a `case` that is made of literals only."""
        patterns = [child for child in clause.children if child.type == "case_pattern"]
        if len(patterns) != 1 or not patterns[0].children:
            return None
        pattern = patterns[0].children[0]
        options = [one.constant for one in (pattern.children if pattern.type == "union_pattern" else [pattern])]
        if not options or any(option is None for option in options):
            return None
        subject = condition(self.scopes, statement["subject"])
        return Op("or", tuple(Op("==", (subject, Literal(option))) for option in options))

    def _called(self, function: Node) -> Guard | None:
        """That one of the calls of a function can run, where calls are all that the file does with it."""
        if function.start not in self._calls:
            self._calls[function.start] = None  # a function that calls itself adds nothing
            self._calls[function.start] = self._any_call(function)
        return self._calls[function.start]

    def _listed_where(self, assignment: Node) -> Iterator[Guard]:
        """That a list of configurations is used, where every use of its name is under guards."""
        name = assignment["left"]
        uses = self.scopes.uses(name.text) if name.type == "identifier" else []
        uses = [use for use in uses if not assignment.start <= use.start < assignment.end]
        if not 0 < len(uses) <= _MOST_CALLS or self._following >= _DEPTH:
            return
        self._following += 1
        ways = [self.of(use) for use in uses]
        self._following -= 1
        if all(ways):
            yield any_way(ways, f"uses of {name.text}", assignment.line)

    def _any_call(self, function: Node) -> Guard | None:
        name, owner = function["name"].text, function.parent
        method = owner is not None and owner.parent is not None and _is_class(owner.parent)
        if owner is not None and owner.type == "decorated_definition":
            words = {word for decorator in _decorators(owner) for word in words_of(decorator.text.partition("(")[0])}
            if words & _REGISTERING_WORDS:
                return None
            method = owner.parent is not None and owner.parent.parent is not None and _is_class(owner.parent.parent)
        open_to_all = method and not name.startswith("_") and not self._is_closed
        if name.startswith("__") or open_to_all or self._following >= _DEPTH:
            return None
        uses = self.scopes.uses(name)
        calls = self.scopes.callers(function) + [use for use in uses if _is_passed_on(use)]
        if method and self._is_closed:
            owner_name = next(function.ancestors("class_definition"))["name"].text
            calls += [use for use in uses if _is_called_of(use, owner_name)]
        elsewhere = (users.calls_from_elsewhere(function) or []) if self._asks_others else []
        if not 0 < len(calls) + len(elsewhere) <= _MOST_CALLS or len(calls) != len(uses):
            return None
        self._following += 1
        ways = [self.of(call) + self._of_forward(call) for call in calls] + [_as_written(call) for call in elsewhere]
        self._following -= 1
        if not all(ways):
            return None
        return any_way(ways, f"calls of {name}", function.line)

    def _of_forward(self, use: Node) -> tuple[Guard, ...]:
        """What the forward function asks for, where a use makes a function the backward one of `f.defvjp(fwd, bwd)`."""
        call = next(use.ancestors("call"), None)
        if call is None or call.last_name != "defvjp" or call.arguments[1:2] != [use]:
            return ()
        forward = call.arguments[0]
        bound = self.scopes.only(forward.text, forward) if forward.type == "identifier" else None
        if bound is None or bound.kind != "function" or bound.value is None:
            return ()
        asked = (guard for _, guard in self._passed(bound.value["body"]))
        return tuple(guard for guard in asked if guard.condition != Literal(False))

    @cached_property
    def _is_closed(self) -> bool:
        """Whether a file of tests is used by no other, so that all uses of what it defines are its own."""
        place = self.scopes.source.place
        return self._asks_others and nearby.is_of_tests(place) and not users.imports_of(self.scopes.source.file)

    def _branch(self, statement: Node, child: Node) -> Iterator[Guard]:
        """`if a: x elif b: y else: z`: the branch's own test, and that all earlier ones failed."""
        if child == statement["condition"]:
            return
        if child == statement["consequence"]:
            yield self._guard(statement["condition"], True)
            return
        if child.type == "elif_clause":
            yield self._guard(child["condition"], True)
        for earlier in reversed([one for one in statement.children if one.start < child.start]):
            if earlier.type == "elif_clause":
                yield self._guard(earlier["condition"], False)
        yield self._guard(statement["condition"], False)

    def _passed_before(self, block: Node, child: Node) -> Iterator[Guard]:
        """What must have held for control to come to a statement of a block, the nearest first."""
        passed = self._passed(block)
        for index in reversed(range(bisect_right(passed, child.start, key=_end))):
            yield passed[index][1]

    def _passed(self, block: Node) -> list[tuple[int, Guard]]:
        """(end of a statement of the block, what must have held to get beyond it)."""
        if block.start not in self._blocks:
            found: list[tuple[int, Guard]] = []
            statements = block.children
            for statement in statements:
                if statement != statements[-1] and (statement.type in _LEAVES or self._aborts(statement)):
                    found.append((statement.end, Guard(Literal(False), True, statement.text, statement.line)))
                elif block.type == "module" and _loads_bridge(statement):
                    found.append((statement.end, Guard(Name("hpu"), True, statement.text, statement.line)))
                elif statement.type == "if_statement":
                    found.extend((statement.end, guard) for guard in self._survives(statement))
                elif statement.type == "assert_statement" and statement.children:
                    found.append((statement.end, self._guard(statement.children[0], True)))
                elif statement.type == "expression_statement":
                    found.extend((statement.end, guard) for guard in self._imported_or_skipped(statement))
                    found.extend((statement.end, guard) for guard in self._demanded(statement))
            self._blocks[block.start] = found
        return self._blocks[block.start]

    def _imported_or_skipped(self, statement: Node) -> Iterator[Guard]:
        """`pytest.importorskip("triton")`: what follows runs only where the package can be installed."""
        call = next(statement.walk("call"), None)
        module = call.arguments[0].constant if call is not None and call.arguments else None
        if call is not None and call.name == "pytest.importorskip" and isinstance(module, str):
            package = module.partition(".")[0]
            yield Guard(Name(f"installed {package}"), True, call.text, call.line)

    def _set_up(self, definition: Node, depth: int = _DEPTH) -> Iterator[Guard]:
        """What a class's `setUp`, or that of a base class, asks for before any of its tests runs."""
        for statement in definition["body"].children:
            method = statement.get("definition") or statement
            if method.type == "function_definition" and method["name"].text in _SET_UP:
                yield from (guard for _, guard in self._passed(method["body"]))
        if depth and (bases := definition.get("superclasses")) is not None:
            for base in bases.children:
                bound = self.scopes.only(base.text, base) if base.type == "identifier" else None
                if bound is not None and bound.kind == "class" and bound.value is not None:
                    yield from self._set_up(bound.value, depth - 1)

    def _fixtures(self, test: Node) -> Iterator[Guard]:
        """What the fixtures of a test skip it for: those that it takes, and those that the file uses for all tests."""
        if not test["name"].text.startswith("test"):
            return
        taken = {(one.get("name") or one).text.partition(":")[0] for one in test["parameters"].children}
        for fixture, for_all in self._fixtures_of_module:
            if for_all or fixture["name"].text in taken:
                yield from (guard for _, guard in self._passed(fixture["body"]))

    @cached_property
    def _fixtures_of_module(self) -> list[tuple[Node, bool]]:
        """(a fixture of the file, whether every test uses it)."""
        found: list[tuple[Node, bool]] = []
        for statement in Node(self.scopes.source, self.scopes.source.tree.root_node).children:
            if statement.type == "decorated_definition" and statement["definition"].type == "function_definition":
                for decorator in _decorators(statement):
                    function = decorator["function"] if decorator.type == "call" else decorator
                    if function.text.rpartition(".")[2] == "fixture":
                        found.append((statement["definition"], "autouse=True" in decorator.text.replace(" ", "")))
        return found

    def _demanded(self, statement: Node) -> Iterator[Guard]:
        """What is known after a call of a function that ends the program or the test where it fails."""
        call = statement.children[0] if statement.children else None
        if call is not None and call.type == "assignment":
            call = call.get("right")
        if call is None or call.type != "call":
            return
        function = predicates.function(self.scopes, call["function"])
        if function is None:
            return
        scopes = self.scopes if function.source == self.scopes.source else users.scopes_of(function.source)
        for inner in function["body"].children:
            if inner.type == "if_statement":
                leaves = inner["consequence"].children[-1:]
                if leaves and self._aborts(leaves[0]):
                    yield _guard(scopes, inner["condition"], False)
                elif any(True for _ in inner.walk("return_statement")):
                    return
            elif inner.type == "assert_statement" and inner.children:
                yield _guard(scopes, inner.children[0], True)

    def _survives(self, statement: Node) -> Iterator[Guard]:
        """What is known after an `if` statement because some of its branches leave."""
        if self._leaves(statement["consequence"]):
            yield self._guard(statement["condition"], False)
            for clause in statement.children:
                if clause.type == "elif_clause" and self._leaves(clause["consequence"]):
                    yield self._guard(clause["condition"], False)
                elif clause.type == "elif_clause":
                    return
            return
        alternatives = [one for one in statement.children if one.type in ("elif_clause", "else_clause")]
        if alternatives and alternatives[-1].type == "else_clause" and self._leaves(alternatives[-1]["body"]):
            taken = [(self._guard(one["condition"], True),) for one in (statement, *alternatives[:-1])]
            yield taken[0][0] if len(taken) == 1 else any_way(taken, f"if {taken[0][0].text} ...", statement.line)

    def _leaves(self, block: Node) -> bool:
        """Whether control never runs off the end of a block."""
        last = block.children[-1] if block.children else None
        return last is not None and (last.type in _LEAVES or self._aborts(last))

    def _aborts(self, statement: Node) -> bool:
        """Whether a statement ends more than its own function: `raise`, `pytest.skip()`, `sys.exit()`."""
        if statement.type == "raise_statement":
            return True
        call = statement.children[0] if statement.type == "expression_statement" and statement.children else None
        if call is None or call.type != "call":
            return False
        function = call["function"]
        return call.name in _LEAVING_CALLS or (
            function.type == "attribute" and function["attribute"].text in ("skipTest", "fail")
        )

    def _mark(self, decorator: Node) -> Iterator[Guard]:
        """What a decorator such as `@pytest.mark.skipif(...)` or `@require_cuda` says of its function or class."""
        name = decorator.name or decorator.text.partition("(")[0]
        last = name.rpartition(".")[2]
        if decorator.type == "call" and last in ("skipif", "skipIf", "skipUnless"):
            test = decorator.argument(0, "condition")
            if test is not None and test.type != "string":
                yield self._guard(test, last == "skipUnless")
            return
        bound = self.scopes.only(decorator.text, decorator) if decorator.type == "identifier" else None
        if bound is not None and bound.kind == "assign" and bound.value is not None and bound.value.type == "call":
            yield from self._mark(bound.value)
            return
        enabled = decorator.argument(None, "enabled") if decorator.type == "call" else None
        if enabled is not None and enabled.constant is None and "register" in words_of(last):
            yield self._guard(enabled, True)
        words = set(last.lower().split("_"))
        if names_nvidia_part(last) and words & _REQUIRING_WORDS:
            yield Guard(ONLY_ON_NVIDIA, True, decorator.text, decorator.line)
        if words & _GPU_WORDS and (words & _REQUIRING_WORDS or name.startswith("pytest.mark.")):
            yield Guard(_CUDA, True, decorator.text, decorator.line)
        if "accelerator" in words and words & _REQUIRING_WORDS:
            yield Guard(Name("torch.accelerator.is_available"), True, decorator.text, decorator.line)
        if decorator.type == "call" and any(map(_asks_for_gpus, decorator["arguments"].children)):
            yield Guard(_CUDA, True, decorator.text, decorator.line)
        platform = _platform_of_mark(last)
        if platform is not None and not _narrows(decorator):
            yield Guard(Name(f"is_{platform[0]}"), platform[1], decorator.text, decorator.line)

    def _marks_of_case(self, arguments: Node, child: Node) -> Iterator[Guard]:
        """`pytest.param(x, marks=pytest.mark.gpu)`: what the marks say of the values."""
        call = arguments.parent
        if call is None or call.type != "call" or call["function"].text.rpartition(".")[2] != "param":
            return
        marks = call.argument(None, "marks")
        if marks is None or child.start >= marks.start:
            return
        for mark in marks.children if marks.type in ("list", "tuple") else [marks]:
            yield from self._mark(mark)

    def _marks_of_module(self) -> tuple[Guard, ...]:
        if self._module_marks is None:
            binding = self.scopes.only("pytestmark", Node(self.scopes.source, self.scopes.source.tree.root_node))
            marks: list[Guard] = []
            if binding is not None and binding.value is not None:
                for call in binding.value.walk("call"):
                    marks.extend(self._mark(call))
            self._module_marks = tuple(marks)
        return self._module_marks


def _pin_of(source: Source) -> Node | None:
    """The call outside of all functions by which a file keeps JAX to the CPU."""
    for call in calls_of(source, {"update", "set_platform"}):
        given = [one.constant for one in call.arguments]
        is_set = call.name in _CONFIGURE and given[:1] in (["jax_platforms"], ["jax_platform_name"])
        is_pin = (is_set or call.name == "numpyro.set_platform") and given[-1:] == ["cpu"]
        if is_pin and next(call.ancestors("function_definition", "if_statement", "try_statement"), None) is None:
            return call
    return None


def _guard(scopes: Scopes, test: Node, expected: bool) -> Guard:
    return Guard(condition(scopes, test), expected, " ".join(test.text.split()), test.line)


def _as_written(node: Node) -> tuple[Guard, ...]:
    """The guards of a node of another file, as that file alone states them."""
    return Guards(users.scopes_of(node.source)).of(node)


def _loads_bridge(statement: Node) -> bool:
    """Whether a file goes on only where PyTorch's bridge to Gaudi is installed.

    The one to XLA is another matter: it serves several machines, and ports begin with it.
    """
    if statement.type not in ("import_statement", "import_from_statement"):
        return False
    module = statement.get("module_name") or statement.children[0]
    return module.text.partition(".")[0] == _BRIDGE


def _fails_on_purpose(statement: Node) -> bool:
    """Whether a test expects the body of a `with` to raise."""
    return any(call["function"].text in _EXPECTING for call in statement.children[0].walk("call"))


def _decorators(definition: Node) -> list[Node]:
    return [child.children[0] for child in definition.children if child.type == "decorator"]


def _asks_for_gpus(argument: Node) -> bool:
    """Whether an argument of a mark says how many GPUs are needed: `min_cuda_gpus=1`."""
    if argument.type != "keyword_argument" or not {"gpus", *_GPU_WORDS} & set(words_of(argument["name"].text)):
        return False
    count = argument["value"].constant
    return isinstance(count, int) and count > 0


def _is_class(node: Node) -> bool:
    return node.type == "class_definition"


def _is_called_of(use: Node, owner: str) -> bool:
    """Whether a use is the call of a method by the name of its class: `Inputs.make(config)`."""
    parent = use.parent
    call = parent.parent if parent is not None and parent.type == "attribute" else None
    return call is not None and call.type == "call" and call["function"].text == f"{owner}.{use.text}"


def _is_passed_on(use: Node) -> bool:
    """Whether a function is handed to a call: `spawn(worker, 2)`, `worker.remote(x)`, `kernel[grid](x)`."""
    parent = use.parent
    if parent is not None and parent.type in ("attribute", "subscript"):
        owner = parent.get("object") or parent.get("value")
        call = parent.parent
        return owner == use and call is not None and call.type == "call" and call["function"] == parent
    while parent is not None and parent.type in ("list", "tuple", "keyword_argument"):
        parent = parent.parent
    return parent is not None and parent.type == "argument_list"


def _narrows(decorator: Node) -> bool:
    """Whether a mark's arguments may keep it to some of a platform's devices: `skipIfRocm(arch=...)`."""
    given = decorator["arguments"].children if decorator.type == "call" else []
    said = (
        one["value"] if one.type == "keyword_argument" and one["name"].text in ("reason", "msg") else one
        for one in given
    )
    return any(one.type != "string" for one in said)


def _platform_of_mark(name: str) -> tuple[str, bool] | None:
    """What a mark named for one platform says: `disable_on_rocm` -> ("rocm", False), `rocm_only` -> ("rocm", True).

    None where more than one word is left over. Whether the word is a platform's, the target knows.
    """
    words = set(words_of(name)) - _JOINING_WORDS
    subject = words - _PASSING_OVER_WORDS - _REQUIRING_WORDS - {"not"}
    if len(subject) != 1:
        return None
    passes_over = bool(words & _PASSING_OVER_WORDS)
    if words & {"no", "not"}:  # `skip_if_no_rocm`, `skip_if_not_rocm`
        return (subject.pop(), True) if passes_over else None
    if passes_over or words & {"only", "require", "requires", "needs"}:
        return subject.pop(), not passes_over
    return None


def _end(passed: tuple[int, Guard]) -> int:
    return passed[0]
