"""A kernel launched with programmatic stream serialization is taken to start after its predecessor.

The attribute lets a kernel begin while the one before it still runs. Only `cudaGridDependencySynchronize()`, or
`griddepcontrol.wait`, makes it wait; without one it reads data that may not be written yet. Results change from run to
run where the feature exists, and nothing is wrong where it does not.

## Exceptions
Only kernels of the same file are judged, with the device functions that they call there. One that calls into other
files may wait in them.

## References
https://docs.nvidia.com/cuda/cuda-programming-guide/04-special-topics/programmatic-dependent-launch.html
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, on_platform, regex

rule = Rule(
    assumes={"isa.pdl_implicit_wait": "native"},
    message="'{text}' belongs to a dependent launch of '{kernel}', which never waits; {target} has {fact}.",
    remedy={
        "nvidia": "Call `cudaGridDependencySynchronize()` (or `griddepcontrol.wait`) in the kernel before it touches what the kernel before it writes, under `__CUDA_ARCH__ >= 900`; or launch it without the attribute.",
        "*": "Launch the kernel without the attribute.",
    },
)

ATTRIBUTE = "cudaLaunchAttributeProgrammaticStreamSerialization"
ALLOWED_NOT = regex(r"SerializationAllowed\s*=\s*(0|false)\b")
LAUNCHES = ("cudaLaunchKernelEx", "cudaLaunchKernelExC")
WAITS = regex(r"wait|depend|pdl|acquire|acqbulk|gdc", re.IGNORECASE)
WORDS = ("identifier", "field_identifier", "namespace_identifier", "string_content")
BUILTIN = regex(
    r"__\w+|atomic\w+|make_\w+|\w+_cast|(f?abs|f?min|f?max|r?sqrt|exp2?|log2?|pow|fma|tanh|erf|floor|ceil|round|sin|cos)f?"
    r"|u?int(8|16|32|64)?(_t)?|float|double|half|bool|char|size_t|sizeof|dim3|assert|printf"
)
"""functions and conversions that wait for no other kernel"""


@rule.cuda('((identifier) @asked (#eq? @asked "cudaLaunchAttributeProgrammaticStreamSerialization"))')
@rule.cuda('((field_identifier) @asked (#eq? @asked "programmaticStreamSerializationAllowed"))')
def attribute(asked: Node) -> Hits:
    launcher = asked.function
    if launcher is None or ALLOWED_NOT.search(launcher.text):
        return
    if asked.type == "field_identifier" and any(one.text == ATTRIBUTE for one in launcher.walk("identifier")):
        return  # the attribute itself is looked at
    defined = {one.name: one for one in asked.source.root.walk("function_definition")}
    for call in launcher.walk("call_expression"):
        kernel = _kernel(call, defined)
        if kernel is None or _may_wait(kernel, defined):
            continue
        read = _first_read(kernel)
        if read is not None:
            for place in (asked, read):
                yield Hit(
                    place,
                    guards=(*place.guards, on_platform("nvidia")),
                    words={"kernel": kernel.name},
                    otherwise="corrupts",
                )
            return


def _kernel(call: Node, defined: dict[str, Node]) -> Node | None:
    """The kernel of the file that a call launches with attributes."""
    if call.name not in LAUNCHES or len(call.arguments) < 2:
        return None
    name = next((one for one in call.arguments[1].walk("identifier") if one.text in defined), None)
    kernel = defined[name.text] if name is not None else None
    return kernel if kernel is not None and kernel.role("kernel") else None


def _may_wait(kernel: Node, defined: dict[str, Node]) -> bool:
    """Whether a kernel, or a function that it calls, waits, or calls what is not in the file."""
    pending, seen = [kernel], {kernel.name}
    while pending:
        function = pending.pop()
        if any(WAITS.search(word.text) for word in function["body"].walk(*WORDS)):
            return True
        for call in function["body"].walk("call_expression"):
            name = call.name.rpartition("::")[2]
            if call.name in defined and call.name not in seen:
                seen.add(call.name)
                pending.append(defined[call.name])
            elif (
                call.name not in defined and not BUILTIN.fullmatch(name) and call["function"].type != "field_expression"
            ):
                return True
    return False


def _first_read(kernel: Node) -> Node | None:
    """The first place where a kernel reads through a pointer that it was handed."""
    for place in kernel["body"].walk("subscript_expression", "pointer_expression"):
        base = place.get("argument")
        declared = base.declaration if base is not None and base.type == "identifier" else None
        if declared is None or declared.type != "parameter_declaration" or "*" not in declared.text:
            continue
        parent = place.parent
        only_written = (
            parent is not None
            and parent.type == "assignment_expression"
            and parent["left"] == place
            and parent["operator"].text == "="
        )
        if not only_written:
            return place
    return None
