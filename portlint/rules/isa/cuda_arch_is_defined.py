"""`__CUDA_ARCH__` is taken to be defined in all device code.

Only NVIDIA's compilers define it. HIP does not, so what stands under `#if __CUDA_ARCH__ >= 300` is left out there
without a word: the kernel runs, a step of it is missing, and results are wrong.

## Exceptions
Silent where there is an `#else`, where another test of the function takes the part of the missing branch, where the
architecture matters (`>= 800`), and where nothing under the test writes a result: hints, traces, assertions.

## Fix safety
Safe: CUDA's compilers do not define the other macro. Left is what names CUDA's own C++ library, and files that choose by
the architecture what they define.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html
"""

from __future__ import annotations

import re

from portlint.rule import Edit, Hit, Hits, Node, Rule, put_after, put_before, regex

rule = Rule(
    assumes={"isa.cuda_arch_macro": "native"},
    message="'{text}' keeps code that every platform needs; {target} has {fact}, and the code vanishes.",
    remedy={
        "amd": "Test for device code of either platform: `#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)`, or drop the test if every supported architecture passes it.",
        "*": "Test the platform, not NVIDIA's architecture macro, and give every platform a branch.",
    },
)

OF_HIP = "defined(__HIP_DEVICE_COMPILE__)"
OTHER_PLATFORM = regex(r"HIP|ROCM|AMD|GFX|SYCL|MUSA", re.IGNORECASE)
OF_NVIDIA = regex(r"\basm\b|__asm|\b(?:nvcuda|cute|cutlass)::|\b__(?:ldg|ldc[avgs]|ldlu|st[cw][bgst])\b")
"""PTX and libraries that are NVIDIA's, and loads with a hint, for which there is a plain one besides"""
HINT = regex(r"printf|assert|prefetch|trap|sleep|trace|check|sync|fence|^load", re.IGNORECASE)
"""names of functions whose calls leave no result"""
ONLY_CUDA_HAS = regex(r"\bcuda::(?!std\b)|\b(?:labeled_partition|memcpy_async|barrier_arrive)\b")
"""what HIP has under no name: code with it would no longer be left out, and stop the compiler"""
TESTS = ("preproc_if", "preproc_ifdef", "preproc_elif")
WRITES = ("assignment_expression", "update_expression")


@rule.cuda("(preproc_if condition: (_) @test) @branch")
@rule.cuda("(preproc_ifdef name: (_) @test) @branch")
def condition(test: Node, branch: Node) -> Hits:
    if "__CUDA_ARCH__" not in test.text or branch.get("alternative") is not None:
        return
    function = branch.function
    if function is None or not branch.role("device-code") or not branch.role("for-every-architecture"):
        return
    if OF_NVIDIA.search(branch.text) or _has_another_branch(branch, function):
        return
    if _returns(branch, function) or any(
        _is_needed(write, branch, function) for write in branch.walk(*WRITES, "call_expression")
    ):
        yield Hit(test, guards=branch.guards, otherwise="corrupts", edits=_for_both(test, branch), safe=True)


def _for_both(test: Node, branch: Node) -> tuple[Edit, ...]:
    """The test, made to ask for device code of either platform, where what is behind it can be compiled there."""
    if ONLY_CUDA_HAS.search(branch.text) or any(map(_is_of_the_file, branch.source.root.walk(*TESTS))):
        return ()
    directive = branch.text.split()[0]
    if directive == "#ifdef":
        return (Edit(branch.start, test.end, f"#if defined(__CUDA_ARCH__) || {OF_HIP}"),)
    if re.fullmatch(r"defined *(\(__CUDA_ARCH__\)|__CUDA_ARCH__)", test.text):
        return (put_after(test, f" || {OF_HIP}"),)
    return (put_before(test, "("), put_after(test, f") || {OF_HIP}")) if directive == "#if" else ()


def _is_of_the_file(test: Node) -> bool:
    """Whether a test of the architecture chooses what a file defines: functions that are called behind another."""
    asked = test.get("condition") or test.get("name")
    return asked is not None and "__CUDA_ARCH__" in asked.text and test.function is None


def _has_another_branch(branch: Node, function: Node) -> bool:
    """Whether another test of the function may hold the code for other platforms, or stops the compilation."""
    for other in function.walk("preproc_if", "preproc_ifdef", "preproc_call"):
        if other == branch:
            continue
        asked = other.get("condition") or other.get("name") or other
        if OTHER_PLATFORM.search(asked.text) or "#error" in asked.text:
            return True
        if "__CUDA_ARCH__" in asked.text and not other.role("for-every-architecture"):
            return True
    return False


def _is_needed(write: Node, branch: Node, function: Node) -> bool:
    """Whether something is written that outlives the branch, other than a flag."""
    if write.type == "call_expression":
        name = write.name.rpartition("::")[2]
        return name.startswith("atomic") or (not HINT.search(name) and _may_write_through(write, function))
    target = write.get("left") or write["argument"]
    value = write.get("right")
    if target.type == "identifier" and value is not None and value.constant is not None:
        return write["operator"].text != "="
    base = next(target.walk("identifier"), None)
    declared = base.declaration if base is not None else None
    if base is None or (declared is not None and branch.start <= declared.start < branch.end):
        return False
    return any(use.start >= branch.end for use in base.uses if use.start < function.end) or target.type in (
        "subscript_expression",
        "pointer_expression",
        "field_expression",
    )


def _may_write_through(call: Node, function: Node) -> bool:
    """Whether a call whose own value nobody takes is handed a pointer that the function was handed."""
    if call.parent is None or call.parent.type != "expression_statement":
        return False
    names = (name.declaration for argument in call.arguments for name in argument.walk("identifier"))
    return any(
        one is not None
        and one.type == "parameter_declaration"
        and "*" in one.text
        and "const" not in one.text.partition("*")[0]
        and function.start <= one.start < function.end
        for one in names
    )


def _returns(branch: Node, function: Node) -> bool:
    """Whether the only value that the function returns is under the test."""
    values = [one for one in function.walk("return_statement") if one.children]
    return bool(values) and all(branch.start <= one.start < branch.end for one in values)
