"""A kernel is taken to convert to the pointer that `cudaFuncSetAttribute` wants.

CUDA's headers have a template for every kernel's own type. HIP's functions take a `const void*` and nothing else, and a
function does not convert to that by itself: hipcc stops at the call.

## Exceptions
Anything that is cast is silent, and so is what is no kernel for certain: the file must define, declare or launch it.
hipify-perl puts the cast in where the argument has no comma; PyTorch's hipify and headers that rename the calls do not.

## Fix safety
Safe: CUDA takes the address of the kernel either way.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hip_runtime_api/modules/execution_control.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, put_after, put_before

rule = Rule(
    assumes={"api.kernel_overloads": "native"},
    message="'{text}' is a kernel where HIP wants a pointer; {target} has {fact}.",
    remedy={
        "amd": "Write `reinterpret_cast<const void*>(kernel)`, or `(const void*)kernel`; CUDA takes that as well.",
        "*": "Cast the kernel to `const void*`.",
    },
)


@rule.cuda_calls("cudaFuncSetAttribute", "cudaFuncSetCacheConfig", "cudaFuncSetSharedMemConfig")
def setting(call: Node) -> Hits:
    yield from _judge(call, call.argument(0))


@rule.cuda_calls("cudaFuncGetAttributes")
def query(call: Node) -> Hits:
    yield from _judge(call, call.argument(1))


def _judge(call: Node, kernel: Node | None) -> Hits:
    if kernel is not None and kernel.role("kernel-value") and call.role("of-the-toolkit"):
        cast = (put_before(kernel, "reinterpret_cast<const void*>("), put_after(kernel, ")"))
        yield Hit(kernel, edits=cast, safe=True)
