"""An extension is built with CUDA wherever the package is installed.

`CUDAExtension` asks for the toolkit as soon as it is called. Where PyTorch was built without CUDA and without ROCm it raises
"CUDA_HOME environment variable is not set", and nothing of the package is installed, code that never needs the kernels included.

## Exceptions
Silent where a test, of whatever, decides whether the extension is built, and in files that build a `CppExtension` as well. AMD's
PyTorch translates the sources and builds them with hipcc.

## References
https://github.com/pytorch/pytorch/blob/0011ec5c5d6171a395bb339b873343a4cdfebd18/torch/utils/cpp_extension.py
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"isa.cuda_cxx": "native"},
    message="'{text}' is built wherever the package is installed; {target} has {fact}.",
    remedy={
        "*": "Build the extension only where `torch.cuda.is_available()` or `CUDA_HOME` says so, and keep a path in Python without it.",
    },
)

EXTENSION = "torch.utils.cpp_extension.CUDAExtension"


@rule.calls(EXTENSION)
def built(call: Node) -> Hits:
    source = call.source
    calls = [one for one in source.root.walk("call") if one.name == EXTENSION]
    if call == calls[0] and not any(one.guards for one in calls) and b"CppExtension(" not in source.text:
        yield Hit(call["function"])
