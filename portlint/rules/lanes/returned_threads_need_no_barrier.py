"""Some threads of a warp return before a barrier that the others wait at.

On NVIDIA, from Volta on, `__syncthreads()` waits for the threads that have not returned. HIP says that all threads of the
block have to reach it: on AMD such kernels hung or faulted, depending on which threads returned and what the compiler
made of the branch. Wavefronts that end as a whole are let off by the hardware, so a test may pass and the next shape hang.

## Exceptions
A return that every thread of the block takes or none does, because its condition is made of block indices and kernel
parameters, is silent. So are conditions that are the same along `threadIdx.x`, returns after the last barrier, and files
that are written for HIP.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_cpp_language_extensions.html#synchronization-functions
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, one_runs

rule = Rule(
    assumes={"lanes.barrier_after_exit": "native"},
    message="Threads with '{text}' return before the barrier at line {line}; {target} has {fact}.",
    remedy={
        "amd": "Let every thread reach the barrier: turn the early return into a condition around the work (`const bool active = ...`), and return after the last barrier.",
        "*": "Let every thread reach the barrier, and return after it.",
    },
)

BARRIERS = ("__syncthreads", "__syncthreads_and", "__syncthreads_or", "__syncthreads_count")


@rule.cuda("(if_statement condition: (condition_clause value: (_) @test) consequence: (_) @body !alternative) @branch")
def early_return(branch: Node, test: Node, body: Node) -> Hits:
    function = branch.function
    if function is None or not function.role("kernel") or not _returns(body) or not test.role("varies-along-x"):
        return
    if branch.role("written-for-hip"):
        return
    later = [call for call in function.walk("call_expression") if call.start > branch.end and call.name in BARRIERS]
    if later and not _is_in_loop_or_lambda(branch, function):
        yield Hit(test, words={"line": later[0].line}, guards=(*branch.guards, one_runs(later)))


def _returns(body: Node) -> bool:
    """Whether a branch ends the thread, as its last statement."""
    last = body if body.type == "return_statement" else next(reversed(body.children), None)
    return last is not None and last.type == "return_statement"


def _is_in_loop_or_lambda(branch: Node, function: Node) -> bool:
    """A return inside a lambda ends the lambda only; one inside a loop may follow the barriers of the loop."""
    around = branch.ancestors("lambda_expression", "for_statement", "while_statement", "do_statement")
    return any(one.start > function.start for one in around)
