"""Kernels are written in CUDA C++, and taken to compile.

NVIDIA's compiler takes them, and AMD's through HIP. For every other target the kernels of the file have to be written
again in its own kernel language; what else the file assumes does not matter there and is not listed.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"isa.cuda_cxx": "native"},
    message="'{text}' is a kernel in CUDA C++; {target} has {fact}.",
    remedy={
        "tpu": "Write the kernel in Pallas, or leave the operation to XLA.",
        "neuron": "Write the kernel in NKI, or leave the operation to the compiler.",
        "gaudi": "Use the framework's operators, or write a TPC kernel.",
        "mps": "Write the kernel in Metal and compile it with `torch.mps.compile_shader`.",
        "intel-xpu": "Write the kernel in SYCL or Triton; SYCLomatic translates much of it.",
        "*": "Write the kernel in the target's own language, or use the framework's operators.",
    },
)


@rule.cuda("(function_definition declarator: (_) @declarator) @function")
def first_kernel(function: Node, declarator: Node) -> Hits:
    if not function.role("kernel"):
        return
    kernels = (one for one in function.source.root.walk("function_definition") if one.role("kernel"))
    if next(kernels, None) == function:
        yield Hit(next(declarator.walk("identifier"), declarator))
