"""A lane of a warp is taken to go on while another lane of it waits.

Since Volta each thread has a program counter of its own, so that a lane that holds a lock reaches the line that releases
it while its neighbours spin. The lanes of a wavefront leave a loop together: the one that got the lock waits for those that
wait for it, and the kernel never ends.

## Exceptions
A lock that one lane of the warp takes for all is silent, and so is one that is released inside the loop that asks for it,
a bounded number of tries, a flag of another block, and a device function whose callers are in another file.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_cpp_language_extensions.html
https://reviews.llvm.org/D75546
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"lanes.independent_scheduling": "native"},
    message="'{text}' spins until another lane of the warp releases '{lock}'; {target} has {fact}.",
    remedy={
        "amd": "Put the critical section and the release inside the loop (`if (atomicCAS(lock, 0, 1) == 0) { ...; atomicExch(lock, 0); done = true; }`), or let one lane of the wavefront take the lock.",
        "*": "Put the critical section and the release inside the loop, or let one lane of the warp take the lock.",
    },
)

LOOPS = ("while_statement", "do_statement", "for_statement")
CALLS = ("atomicCAS", "atomicCAS_block", "atomicCAS_system", "atomicExch", "atomicExch_block", "atomicExch_system")
GIVES_BACK = regex(r"atomic(Exch|CAS|And|Sub)(_block|_system)?|\w*(unlock|release)\w*", re.IGNORECASE)
UNLOCKS = regex(r"\w*(unlock|release)\w*", re.IGNORECASE)
CAST = regex(r"\((?:unsigned|int|uint|volatile|long|u?int\d+_t|\*)+\)|reinterpret_cast<[^<>]*>")
PAUSES = regex(r"__nanosleep|__threadfence\w*|__syncwarp|__builtin_amdgcn_s_sleep")


@rule.cuda_calls(*CALLS)
def waits_for_a_lock(call: Node) -> Hits:
    function, loop = call.function, _spins(call)
    if function is None or loop is None or not _takes(call) or loop.role("chosen-lane"):
        return
    lock = _place(call.arguments[0])
    given_back = list(_given_back(function, lock))
    if any(loop.start <= one.start < loop.end for one in given_back):
        return
    users = [loop] if any(one.start >= loop.end for one in given_back) else list(_users(function))
    if any(one.role("several-lanes") for one in users):
        yield Hit(call, words={"lock": call.arguments[0].text})


@rule.cuda("(while_statement condition: (_) @test body: (_) @body) @loop")
def waits_for_a_neighbour(loop: Node, test: Node, body: Node) -> Hits:
    """`while (!ready[before]);` ahead of `ready[thread] = 1;`."""
    function = loop.function
    if function is None or not _is_idle(body) or "&&" in test.text or not loop.role("several-lanes"):
        return
    for read in test.walk("subscript_expression"):
        index = _index(read)
        if index is None or index.role("block-index"):
            continue
        for assignment in function.walk("assignment_expression"):
            left = assignment["left"]
            if assignment.start < loop.end or left.type != "subscript_expression":
                continue
            own = _index(left)
            if own is None or left["argument"].text != read["argument"].text or own.text == index.text:
                continue
            if own.role("thread-index") and left.role("several-lanes"):
                yield Hit(test.get("value") or test, words={"lock": read.text})
                return


def _spins(call: Node) -> Node | None:
    """The loop that a call keeps going until it succeeds, however often that takes."""
    loop = next(call.ancestors(*LOOPS), None)
    if loop is None or (call.function is not None and loop.start < call.function.start):
        return None
    test, body = loop.get("condition"), loop["body"]
    if test is not None and test.start <= call.start < test.end:
        return None if "&&" in test.text else loop
    if not (body.start <= call.start < body.end):
        return None
    around = next(call.ancestors("if_statement"), None)
    asked = around is not None and around.start > loop.start and around["condition"].end > call.start
    if _is_endless(test):
        return loop if asked and around is not None and _is_break(around["consequence"]) else None
    if test is None or "&&" in test.text or "<" in test.text:
        return None
    given = next(call.ancestors("assignment_expression", "init_declarator"), None)
    target = (given.get("left") or given.get("declarator")) if given is not None and given.start > loop.start else None
    return loop if target is not None and any(one.text == target.text for one in test.walk("identifier")) else None


def _is_endless(test: Node | None) -> bool:
    return test is None or (test.get("value") or test).constant in (1, True)


def _is_break(branch: Node) -> bool:
    only = branch.children if branch.type == "compound_statement" else [branch]
    return len(only) == 1 and only[0].type == "break_statement"


def _takes(call: Node) -> bool:
    """Whether a call takes a lock: it changes a known value, and not a place of its own thread's."""
    given = call.arguments
    exchanges = call.name.rpartition("::")[2].startswith("atomicExch")
    if len(given) != (2 if exchanges else 3):
        return False
    indices = [_index(one) for one in given[0].walk("subscript_expression")]
    if given[0].role("thread-index") or any(one is not None and one.role("thread-index") for one in indices):
        return False
    before, after = given[1].constant, given[-1].constant
    if exchanges:
        return isinstance(after, int) and after != 0
    return isinstance(before, int) and before != after


def _given_back(function: Node, lock: str) -> Iterator[Node]:
    """Where a function sets a lock free."""
    for one in function.walk("call_expression", "assignment_expression"):
        if one.type == "assignment_expression":
            given = _place(one["left"], stored=True) == lock
        else:
            given = GIVES_BACK.fullmatch(one.name.rpartition("::")[2]) is not None
            given = given and any(_place(argument) == lock for argument in one.arguments)
        if given and not (one.type == "call_expression" and _spins(one) is not None):
            yield one


def _users(function: Node) -> Iterator[Node]:
    """The calls of a function that takes a lock, in device code that sets it free later."""
    name = function.name.rpartition("::")[2]
    same = (one for one in function.source.root.walk("function_definition") if one.name.rpartition("::")[2] == name)
    if len(list(same)) != 1:
        return
    for call in function.source.root.walk("call_expression"):
        called, user = call["function"], call.function
        field = called.get("field") if called.type == "field_expression" else None
        if (field.text if field is not None else call.name.rpartition("::")[2]) != name or user is None:
            continue
        later = (one for one in user.walk("call_expression") if one.start > call.end)
        if user.role("device-only") and any(UNLOCKS.fullmatch(_last_name(one)) for one in later):
            yield call


def _last_name(call: Node) -> str:
    return re.split(r"::|\.", call.name)[-1]


def _place(pointer: Node, *, stored: bool = False) -> str:
    """What a pointer points at, or what is stored to, in one spelling: `*p`, `p[i]`, `x`."""
    text = CAST.sub("", "".join(pointer.text.split()))
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    if stored:
        return text
    if text.startswith("&"):
        return text[1:].strip("()")
    base, plus, offset = text.partition("+")
    return f"{base}[{offset}]" if plus else f"*{text}"


def _index(element: Node) -> Node | None:
    indices = element["indices"].children
    return indices[0] if len(indices) == 1 else None


def _is_idle(body: Node) -> bool:
    """Whether the body of a loop does nothing but pass time."""
    calls = list(body.walk("call_expression"))
    idle = all(PAUSES.fullmatch(one.name) for one in calls)
    return idle and not any(True for _ in body.walk("assignment_expression", "break_statement", "return_statement"))
