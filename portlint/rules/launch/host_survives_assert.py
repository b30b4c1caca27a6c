"""A device assertion is taken to come back to the host as an error.

With CUDA `assert` and `__trap` end the kernel, and the next call returns `cudaErrorAssert`. With HIP they end the whole
process, so that code which looks for that error never runs: a test that expects it does not pass, and nothing is cleaned up.

## Exceptions
A table of errors and their names is silent, and so is a branch that ends the program itself or raises.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/kernel_language_cpp_support.html#assertions
https://github.com/ROCm/hip/issues/3317
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"launch.assert_returns": "native"},
    message="'{text}' waits for an error that never comes back; {target} has {fact}.",
    remedy={
        "amd": "Write a flag to memory that the host reads, and leave the kernel; in a test, run the kernel in a process of its own and look at how that ended.",
        "*": "Write a flag to memory that the host reads, and leave the kernel.",
    },
)

ERRORS = ("cudaErrorAssert", "CUDA_ERROR_ASSERT", "hipErrorAssert")
ENDS = regex(r"exit|_exit|abort|quick_exit|terminate|\w*(ERROR|FATAL|FAIL|THROW|UNREACHABLE)\w*")


@rule.cuda('(binary_expression left: (_) @one operator: ["==" "!="] right: (_) @other) @test')
def compared(test: Node, one: Node, other: Node) -> Hits:
    if not {one.text, other.text} & set(ERRORS) or test.source.defines(ERRORS[0]):
        return
    branch = next(test.ancestors("if_statement", "compound_statement"), None)
    if branch is not None and branch.type == "if_statement" and _ends(branch["consequence"]):
        return
    yield Hit(test)


def _ends(branch: Node) -> bool:
    """Whether a branch ends the program, or raises, or only names the error."""
    if any(True for _ in branch.walk("throw_statement")):
        return True
    if any(ENDS.fullmatch(call.name.rpartition("::")[2]) for call in branch.walk("call_expression")):
        return True
    returned = [value for one in branch.walk("return_statement") for value in one.children]
    return any(isinstance(value.constant, str) for value in returned)
