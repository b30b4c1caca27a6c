"""A kernel's shared memory is sized for the machine that it was written on.

A100 lets a block have 163 KiB, H100 227 KiB; consumer NVIDIA parts stop at 99 KiB, and most AMD parts at 64 KiB of LDS.
More than that does not launch, or, for a static array, does not compile.

## Exceptions
Sizes that the program computes at run time, such as those bounded by a query of the device, are silent, and so is a
named size that the file compares with the shared memory that the device says it has. Sizes chosen by the compute
capability are judged for the capability that the target answers.

## References
https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, at_most

rule = Rule(
    assumes={},
    message="'{text}' asks for {assumed} bytes of shared memory; {target} has {fact}.",
    remedy={
        "amd": "Use smaller tiles or fewer stages where LDS is 64 KiB, chosen by the device's `sharedMemPerBlock`.",
        "*": "Choose the tile by `cudaDevAttrMaxSharedMemoryPerBlockOptin` of the device.",
    },
)


OPT_INS = ("MaxDynamicSharedMemorySize", "MAX_DYNAMIC_SHARED_SIZE_BYTES")
DRIVER_POSITION = 7
"""of the shared memory among the arguments of cuLaunchKernel and hipModuleLaunchKernel"""


@rule.cuda_calls("cudaFuncSetAttribute", "hipFuncSetAttribute", "cuFuncSetAttribute")
def opt_in(call: Node) -> Hits:
    attribute, size = call.argument(1), call.argument(2)
    if attribute is not None and attribute.text.endswith(OPT_INS):
        yield from _judge(size, "memory.shared_bytes")


@rule.cuda("(call_expression (kernel_call_syntax)) @call")
@rule.cuda_calls("hipLaunchKernelGGL", "hipLaunchKernel", "cudaLaunchKernel")
def launch(call: Node) -> Hits:
    yield from _judge(call.launched_bytes, "memory.shared_bytes")


@rule.python("(call function: (subscript)) @call", mentions=("numba", "cupy"))
def launch_in_python(call: Node) -> Hits:
    yield from _judge(call.launched_bytes, "memory.shared_bytes")


@rule.calls("numba.cuda.shared.array", "numba.hip.shared.array", "cupyx.jit.shared_memory")
def array_in_python(call: Node) -> Hits:
    if needed := call.storage_bytes:
        yield Hit(call, assumes={"memory.shared_static_bytes": at_most(needed)}, language="cuda")


@rule.cuda_calls("cuLaunchKernel", "hipModuleLaunchKernel")
def driver_launch(call: Node) -> Hits:
    yield from _judge(call.argument(DRIVER_POSITION), "memory.shared_bytes")


@rule.cuda(
    "((assignment_expression left: (field_expression field: (_) @_field) right: (_) @size)"
    ' (#any-of? @_field "dynamicSmemBytes" "sharedMemBytes"))'
)
def configuration(size: Node) -> Hits:
    yield from _judge(size, "memory.shared_bytes")


@rule.cuda("(declaration (type_qualifier) declarator: (array_declarator) @array)")
def static_array(array: Node) -> Hits:
    if not array.role("shared-array"):
        return
    if needed := array.storage_bytes:
        yield Hit(array, assumes={"memory.shared_static_bytes": at_most(needed)})
        return
    for guards, most in array.instance_bytes.items():
        assumes = {"memory.shared_static_bytes": at_most(most)}
        yield Hit(array, assumes=assumes, guards=(*array.guards, *guards))


def _judge(size: Node | None, fact: str) -> Hits:
    if size is None or (size.source.language == "cuda" and size.role("compared-with-the-device")):
        return
    for rung, guards in size.ladder:
        needed = rung.constant
        if isinstance(needed, int) and needed > 0:
            both = (*guards, *rung.origin.guards)
            yield Hit(rung.origin, assumes={fact: at_most(needed)}, guards=both, language="cuda")
