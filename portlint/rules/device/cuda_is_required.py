"""Code refuses to run where there is no CUDA device.

`assert torch.cuda.is_available()`, or an error for every device type that a list does not name, shuts out machines on
which the rest of the code might run as it is.

## Exceptions
A gate is reported where it closes on the target whatever else it asks: an option (`device == "cuda" and not ...`), a
gate in one branch of a function, a skip, and a test of a backend that the target has are silent. So are a function
named for CUDA, and a test of where a tensor is (`x.is_cuda`), which stands in front of a kernel that needs it there.

## Fix safety
Unsafe, and only for targets that `torch.accelerator` knows: it takes PyTorch 2.6, and lets in every accelerator.
Where the error says that CUDA is needed, or the file names it elsewhere, nothing is changed.

## References
https://docs.pytorch.org/docs/stable/torch.html#accelerators
"""

from __future__ import annotations

from portlint.rule import ACCELERATOR, Guard, Hits, Node, Rule, mended_by_accelerator, regex, replace, words_of

rule = Rule(
    assumes={"device.cuda": "native"},
    message="'{text}' decides that nothing runs without CUDA; {target} has {fact}.",
    remedy={
        "mps": "Let `torch.backends.mps.is_available()` in as well, or ask `torch.accelerator.is_available()` (PyTorch 2.6 and newer).",
        "gaudi": "Let `torch.hpu.is_available()` in as well.",
        "intel-xpu": "Let `torch.xpu.is_available()` in as well, or ask `torch.accelerator.is_available()` (PyTorch 2.6 and newer).",
        "*": "Refuse only what cannot run without CUDA, and let the caller name another device for the rest.",
    },
)

ELSEWHERE: dict[str, bool | str | None] = {
    "torch.cuda.is_available": False,
    "torch.backends.mps.is_available": False,
    "torch.xpu.is_available": False,
    "torch.hpu.is_available": False,
    "torch.version.cuda": None,
    "torch.version.hip": None,
    "device.is_cuda": False,
    "device.type": "other",
}
"""what code learns on a machine of which it knows nothing"""
WITH_CUDA: dict[str, bool | str | None] = {
    "torch.cuda.is_available": True,
    "device.is_cuda": True,
    "device.type": "cuda",
}
QUERIES = ("torch.cuda.is_available", "device.type")
SETTINGS = frozenset(("self", "cls", "args", "cfg", "config", "opt", "options", "params", "torch"))
"""what has the device that was chosen for the whole program as its `.device`"""
LEAVING = frozenset(("sys.exit", "exit", "quit", "os._exit"))
NAMES = frozenset(("cuda", "nvidia", "gpu", "sm"))
SKIPS = ("Skip", "skip")
NAMED = regex(r"(cuda|nccl)\b")


@rule.python('((assert_statement . (_) @test) (#match? @test "cuda|CUDA|gpu|GPU|device"))')
def assertion(test: Node) -> Hits:
    if _is_about_cuda(test) and not test.may_hold(ELSEWHERE) and test.may_hold(WITH_CUDA):
        yield from _refused(test, (*test.guards, test.fails))


@rule.python(
    '((if_statement condition: (_) @test consequence: (block) @body) (#match? @test "cuda|CUDA|gpu|GPU|device"))'
)
def refusal(test: Node, body: Node) -> Hits:
    if not body.children or not _refuses(body.children[-1]) or not _is_about_cuda(test):
        return
    if test.must_hold(ELSEWHERE) and not test.must_hold(WITH_CUDA):
        yield from _refused(test, (*test.guards, test.holds))


def _refused(test: Node, guards: tuple[Guard, ...]) -> Hits:
    """A refusal, with the question for any accelerator where that can be answered."""
    gate = next(test.ancestors("if_statement", "assert_statement"))
    said = gate.text.replace(test.text, "", 1)  # who says that CUDA is needed may have reasons
    named = test.walk("attribute") if "cuda" not in said.lower() and not _names_cuda_besides(test) else ()
    asked = [one for one in named if one.text == "torch.cuda.is_available"]
    yield from mended_by_accelerator(test, guards, tuple(replace(one, ACCELERATOR) for one in asked))


def _names_cuda_besides(test: Node) -> bool:
    """Whether the file has CUDA in it otherwise: what is behind the gate then needs it, or may."""
    for word in test.source.root.walk("identifier", "string_content"):
        around = next(word.ancestors("call"), None)
        if NAMED.match(word.text) and (around is None or around["function"].text != "torch.cuda.is_available"):
            return True
    return False


def _is_about_cuda(test: Node) -> bool:
    """Whether a test asks for CUDA, and decides about all that follows in the function or the module."""
    if not any(map(test.asks, QUERIES)) or not test.source.imports("torch") or test.role("test"):
        return False
    if _is_in_a_branch(test) or _is_named_for_cuda(test) or _is_not_called(test):
        return False
    return not test.asks("device.is_cuda") and not _is_of_a_tensor(test) and not test.role("guarded-call")


def _is_not_called(test: Node) -> bool:
    """Whether a test takes the function for its answer: that is always true, and refuses nobody."""
    asked = (one for one in test.walk("attribute") if one.name == "torch.cuda.is_available")
    return any(one.parent is None or one.parent.get("function") != one for one in asked)


def _is_of_a_tensor(test: Node) -> bool:
    """Whether a test asks where a tensor is, `x.device.type`: the kernel behind it needs its inputs there."""
    return any(
        one["attribute"].text == "device" and one["object"].text not in SETTINGS for one in test.walk("attribute")
    )


def _is_in_a_branch(test: Node) -> bool:
    """Whether only one way through the function meets the gate, as that of an optional feature."""
    gate = next(test.ancestors("if_statement", "assert_statement", "elif_clause"))
    for parent in gate.ancestors():
        if parent.type in ("function_definition", "module"):
            return False
        if parent.type in ("if_statement", "except_clause", "case_clause", "for_statement", "while_statement"):
            return "__main__" not in parent.text.partition("\n")[0]
    return False


def _is_named_for_cuda(test: Node) -> bool:
    """Whether the function around a gate says in its name that it is about CUDA."""
    function = test.function
    words = words_of(function["name"].text) if function is not None else []
    return not NAMES.isdisjoint(words)


def _refuses(statement: Node) -> bool:
    """Whether a statement ends the work with an error: `raise`, `sys.exit("...")`, `sys.exit(1)`; a skip does not."""
    if statement.type == "raise_statement":
        return not any(word in statement.text for word in SKIPS)
    call = statement.children[0] if statement.type == "expression_statement" and statement.children else None
    if call is None or call.type != "call" or call.name not in LEAVING:
        return False
    return bool(call.arguments) and call.arguments[0].constant != 0
