"""A function that asks what the device can do is tested itself, and not called.

A function is always true. `if torch.cuda.is_available:` takes the branch for CUDA everywhere, and a helper that asks for
shared memory or a generation gives every machine the tile sizes of the one that it was written on.

## Exceptions
Silent are functions that ask for nothing of the device, names that are given a value anywhere else in the file, and targets
on which the answer is yes.

## Fix safety
`torch.cuda.is_available` and `torch.distributed.is_nccl_available` are called, which is safe: the answer is yes where CUDA
is. Whether bfloat16 is supported differs between generations, so that is unsafe. Helpers with parameters are left, and so is
a test that ends the program: called, it shuts out machines on which the program runs now.

## References
https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_available.html
"""

from __future__ import annotations

from portlint.rule import ASKS_FOR_DEVICE, Hit, Hits, Node, Rule, any_of, asked, at_most, put_after

rule = Rule(
    assumes={},
    message="'{text}' is a function that nobody calls here, and always true; {target} has {fact}.",
    remedy={"*": "Call it: write the parentheses, with the arguments that it needs."},
)

PROBES = {
    "torch.cuda.is_available": "device.cuda",
    "torch.cuda.is_bf16_supported": "device.cuda",
    "torch.distributed.is_nccl_available": "device.nccl",
}
QUERIES = ("device.capability", "torch.version.hip", "torch.version.cuda", "gcn_arch", "triton.backend")
SHARED = ("shared_memory_per_block", "max_shared_mem", "shared_memory_per_multiprocessor")
WITH_CUDA, _ = asked("torch.cuda.is_available")
LEAVING = frozenset(("sys.exit", "exit", "quit", "os._exit"))
SIGNS = {">=": 0, ">": 0, "<=": 1, "<": 1}
"""by sign, which side has to be the larger"""


@rule.references(*PROBES)
def probe(name: Node) -> Hits:
    if _is_test(name):
        safe = name.name != "torch.cuda.is_bf16_supported"
        edits = (put_after(name, "()"),) if not _refuses(name) else ()
        yield Hit(name, {PROBES[name.name]: "native"}, edits=edits, safe=safe)


@rule.python("(if_statement condition: (_) @test)", mentions=ASKS_FOR_DEVICE)
@rule.python("(elif_clause condition: (_) @test)", mentions=ASKS_FOR_DEVICE)
@rule.python("(conditional_expression . (_) . (_) @test . (_) .)", mentions=ASKS_FOR_DEVICE)
def helper(test: Node) -> Hits:
    for name in _operands(test):
        function = name.declaration if name.type == "identifier" else None
        if function is None or function.type != "function_definition":
            continue
        returned = [one.children[0] for one in function["body"].walk("return_statement") if one.children]
        if len(returned) != 1:
            continue
        if (needed := _shared_memory(function, returned[0])) is not None:
            yield Hit(name, {"memory.shared_bytes": at_most(needed)}, guards=(*name.guards, WITH_CUDA))
        elif any(map(returned[0].asks, QUERIES)):
            yield Hit(name, {"isa.capability": any_of(())}, guards=(*name.guards, returned[0].fails))


def _operands(test: Node) -> list[Node]:
    """The parts of a test that are taken as true or false."""
    if test.type == "not_operator":
        return _operands(test["argument"])
    if test.type == "boolean_operator":
        return _operands(test["left"]) + _operands(test["right"])
    if test.type == "parenthesized_expression" and test.children:
        return _operands(test.children[0])
    return [test]


def _is_test(name: Node) -> bool:
    """Whether a name is taken as true or false where it stands."""
    child, parent = name, name.parent
    while parent is not None and parent.type in ("not_operator", "boolean_operator", "parenthesized_expression"):
        child, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.type == "conditional_expression":
        return parent.children[1] == child
    if parent.type == "assert_statement":
        return parent.children[0] == child
    return parent.get("condition") == child


def _refuses(name: Node) -> bool:
    """Whether a test decides that the program ends: called, it would shut out what runs now."""
    gate = next(name.ancestors("if_statement", "assert_statement", "conditional_expression"), None)
    if gate is None or gate.type == "conditional_expression":
        return False
    return gate.type == "assert_statement" or any(
        one.type == "raise_statement" or (one.type == "call" and one.name in LEAVING)
        for one in gate.walk("raise_statement", "call")
    )


def _shared_memory(function: Node, returned: Node) -> int | None:
    """The bytes of shared memory that a function asks for where nobody gives it arguments."""
    if returned.type != "comparison_operator" or len(returned.children) != 2:
        return None
    larger = next((side for sign, side in SIGNS.items() if f" {sign} " in returned.text), None)
    if larger is None:
        return None
    asked = returned.children[larger]
    written = (asked.assigned or asked).text if asked.type == "identifier" else asked.text
    needed = function.by_default(returned.children[1 - larger])
    return needed if isinstance(needed, int) and any(word in written for word in SHARED) else None
