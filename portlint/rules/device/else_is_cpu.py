"""Whatever is not CUDA is taken to be a CPU.

`"cuda" if torch.cuda.is_available() else "cpu"` knows two kinds of machine. On a third one nothing fails: the model runs
on the host, and the accelerator stays idle. `"cuda" in device` makes the same mistake about a device that was named.

## Exceptions
A choice that an option or a parameter can override is silent, and so is a file that names another accelerator anywhere
in its code. Where a checkpoint is only loaded to (`map_location`) says nothing of where it is used.

## Fix safety
Unsafe, and only for targets that `torch.accelerator` knows: it takes PyTorch 2.6. A choice between "cuda" and "cpu" in one
expression asks for any accelerator instead.

## References
https://docs.pytorch.org/docs/stable/generated/torch.accelerator.current_accelerator.html
"""

from __future__ import annotations

from portlint.rule import (
    ACCELERATOR,
    Edit,
    Hit,
    Hits,
    Node,
    Rule,
    any_of,
    mended_by_accelerator,
    regex,
    replace,
    words_of,
)

rule = Rule(
    assumes={"device.type": any_of(("cuda", "cpu"))},
    message="'{text}' takes what is not CUDA for a CPU; {target} has {fact}.",
    remedy={
        "mps": "Ask `torch.accelerator.current_accelerator()` (PyTorch 2.6 and newer), or add a branch for `torch.backends.mps.is_available()`.",
        "gaudi": "Add a branch for `torch.hpu.is_available()`, after `import habana_frameworks.torch.core`.",
        "tpu": "Add a branch that takes `torch_xla.device()` where `torch_xla` is installed.",
        "neuron": "Add a branch that takes `torch_xla.device()` where `torch_xla` is installed.",
        "intel-xpu": "Ask `torch.accelerator.current_accelerator()` (PyTorch 2.6 and newer), or add a branch for `torch.xpu.is_available()`.",
        "*": "Ask `torch.accelerator.current_accelerator()` (PyTorch 2.6 and newer), or let the caller choose.",
    },
    otherwise="degrades",
)

WITH_CUDA: dict[str, bool | str] = {"torch.cuda.is_available": True, "device.is_cuda": True, "device.type": "cuda"}
QUERIES = ("torch.cuda.is_available", "device.is_cuda", "device.type")
OPTIONS = frozenset(("add_argument", "option", "Option", "Argument", "Field", "field", "getenv", "get", "add_parser"))
"""calls that give what they are passed only where nobody says otherwise"""
CHOSEN = regex(r"\bdevice|\bis None\b|\bis not None\b|\bauto\b|\bno_cuda|\bcpu\b")
"""words of a test around a choice by which somebody else can choose"""


@rule.python('((conditional_expression . (_) @body . (_) @test . (_) @other) (#match? @body "cuda"))')
def expression(body: Node, test: Node, other: Node) -> Hits:
    choice = body.parent
    if choice is None or not _is_two_way(test, body, other):
        return
    if not _is_optional(choice) and not _only_loads(choice):
        guards = (*choice.guards, test.fails)
        yield from mended_by_accelerator(choice, guards, _any_accelerator(test, body))


@rule.python(
    '((if_statement condition: (_) @test consequence: (block . (_) @first) !alternative) (#match? @first "cuda"))'
)
def one_branch(test: Node, first: Node) -> Hits:
    statement = next(test.ancestors("if_statement"))
    if _is_optional(statement):
        return
    if first.type == "return_statement" and first.children:
        follows = _next(statement)
        given = (
            follows.children[0]
            if follows is not None and follows.type == "return_statement" and follows.children
            else None
        )
        if given is not None and _is_two_way(test, first.children[0], given):
            yield Hit(given, guards=(*statement.guards, test.fails))
    target, value = _assigned(first)
    before = target.assigned if target is not None else None
    if value is not None and before is not None and _is_two_way(test, value, before) and not _is_optional(before):
        yield Hit(before, guards=(*before.guards, test.fails))
    if _moves(first) and test.must_hold(WITH_CUDA) and _asks_for_cuda(test) and _is_candidate(test):
        yield Hit(test, guards=(*test.guards, test.fails))


@rule.python("""
    ((if_statement condition: (_) @test consequence: (block . (_) @first)
        alternative: (else_clause body: (block . (_) @last))) (#match? @first "cuda"))
""")
def two_branches(test: Node, first: Node, last: Node) -> Hits:
    statement = next(test.ancestors("if_statement"))
    if _is_optional(statement) or any(one.type == "elif_clause" for one in statement.children):
        return
    if first.type == last.type == "return_statement" and first.children and last.children:
        body, other = first.children[0], last.children[0]
    else:
        (one, body_), (two, other_) = _assigned(first), _assigned(last)
        if one is None or two is None or one.text != two.text or body_ is None or other_ is None:
            return
        body, other = body_, other_
    if _is_two_way(test, body, other):
        yield Hit(other, guards=(*statement.guards, test.fails))


def _any_accelerator(test: Node, body: Node) -> tuple[Edit, ...]:
    """A choice between CUDA and the CPU that takes any accelerator."""
    named = body.arguments[0] if body.type == "call" and body.arguments else body
    if test.text != "torch.cuda.is_available()" or named.type != "string" or named.constant != "cuda":
        return ()
    kind = "torch.accelerator.current_accelerator().type"
    return (replace(named, kind), replace(test, f"{ACCELERATOR}()"))


def _is_two_way(test: Node, body: Node, other: Node) -> bool:
    """Whether a choice gives CUDA where a test finds it, and the CPU everywhere else."""
    return (
        _device(body).partition(":")[0] == "cuda"
        and _device(other) == "cpu"
        and _asks_for_cuda(test)
        and _is_candidate(test)
    )


def _asks_for_cuda(test: Node) -> bool:
    """Whether a test is about CUDA, and can be true where that is: `torch.cuda.is_available()`, `self.use_cuda`."""
    asks = any(map(test.asks, QUERIES)) or any(map(_is_flag, test.walk("identifier")))
    return asks and test.may_hold(WITH_CUDA)


def _is_flag(word: Node) -> bool:
    """Whether a name, of a variable or of an attribute, is given somewhere what `torch.cuda.is_available()` says."""
    if "cuda" not in words_of(word.text):
        return False
    for use in word.uses:
        target = use.parent if use.parent is not None and use.parent.type == "attribute" else use
        given = target.parent
        value = given.get("right") if given is not None and given.type == "assignment" else None
        if (
            given is not None
            and value is not None
            and given["left"] == target
            and value.asks("torch.cuda.is_available")
        ):
            return True
    return False


def _only_loads(choice: Node) -> bool:
    """Whether a device is only where a checkpoint is loaded to, and says nothing of where it is used."""
    assignment = choice.parent
    if assignment is None or assignment.type != "assignment" or assignment["left"].type != "identifier":
        return False
    uses = [use for use in assignment["left"].uses if use.function == assignment.function]
    keywords = [use.parent for use in uses if use.parent is not None and use.parent.type == "keyword_argument"]
    return bool(uses) and len(uses) == len(keywords) and all(one["name"].text == "map_location" for one in keywords)


def _is_candidate(node: Node) -> bool:
    return node.source.imports("torch") and node.role("two-kinds-of-device") and not node.role("test")


def _device(node: Node) -> str:
    """The device that an expression names: `"cuda:0"`, `f"cuda:{rank}"`, `torch.device("cuda")`."""
    if node.type == "call" and node.name == "torch.device" and node.arguments:
        return _device(node.arguments[0])
    if node.type != "string":
        return ""
    return str(node.constant or node.text.lstrip("fFrR").strip("'\""))


def _assigned(statement: Node) -> tuple[Node | None, Node | None]:
    """The target and the value of a statement that assigns."""
    assignment = statement.children[0] if statement.type == "expression_statement" and statement.children else None
    if assignment is None or assignment.type != "assignment":
        return None, None
    return assignment["left"], assignment.get("right")


def _moves(statement: Node) -> bool:
    """Whether a statement does nothing but move a model or a tensor: `model = model.cuda()`, `model.cuda()`."""
    target, value = _assigned(statement)
    call = value if value is not None else next(iter(statement.children), None)
    if call is None or call.type != "call" or call.arguments or call["function"].type != "attribute":
        return False
    function = call["function"]
    moved = function["object"]
    return (
        function["attribute"].text == "cuda"
        and moved.type in ("identifier", "attribute")
        and (target is None or target.text == moved.text)
    )


def _next(statement: Node) -> Node | None:
    """The statement after one."""
    siblings = statement.parent.children if statement.parent is not None else []
    return next((one for one in siblings if one.start > statement.start), None)


def _is_optional(choice: Node) -> bool:
    """Whether somebody else can choose: a parameter's default, an option, a branch for where nothing was said."""
    child = choice
    for parent in choice.ancestors():
        match parent.type:
            case "default_parameter" | "typed_default_parameter" | "boolean_operator":
                return True
            case "keyword_argument" if parent["name"].text in ("map_location", "default", "default_factory"):
                return True
            case "call" if parent["function"].text.rpartition(".")[2] in OPTIONS:
                return True
            case "assignment" if parent.get("type") is not None and _is_field(parent):
                return True
            case "if_statement" | "conditional_expression" | "elif_clause":
                test = parent.get("condition") or parent.children[1]
                if child != test and CHOSEN.search(test.text):
                    return True
            case "function_definition" | "module":
                return False
        child = parent
    return False


def _is_field(assignment: Node) -> bool:
    """Whether an assignment declares a field of a class."""
    around = next(assignment.ancestors("class_definition", "function_definition"), None)
    return around is not None and around.type == "class_definition"
