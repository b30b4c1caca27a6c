"""A shared library of CUDA is loaded by name as if it were on every machine.

`ctypes.CDLL("libcudart.so")` raises OSError where NVIDIA's toolkit or driver is not installed. ROCm's libraries have the same
functions under other names, in files of other names.

## Exceptions
Loads whose failure is caught, or behind a test of the platform or of the file, are silent, and so are files that know another
vendor's library as well.

## References
https://docs.python.org/3/library/ctypes.html#loading-shared-libraries
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"system.cuda_libraries": "native"},
    message="'{text}' is loaded by name; {target} has {fact}.",
    remedy={
        "amd": "Load `libamdhip64.so` or `librccl.so` there, whose functions begin with `hip` and `nccl`, or go through `torch.cuda`.",
        "*": "Catch OSError and do without, or go through the framework.",
    },
)

LIBRARY = regex(r"(.*/)?lib(cudart|cuda|nccl|nvrtc|cublas|cublasLt|cudnn)\.so(\.\d+)*")
OTHERS = (b"libamdhip64", b"librccl", b"find_library")


@rule.calls("ctypes.CDLL", "ctypes.cdll.LoadLibrary", "ctypes.PyDLL")
def loaded(call: Node) -> Hits:
    given = call.argument(0, "name")
    name = given.constant if given is not None else None
    if given is None or not isinstance(name, str) or not LIBRARY.fullmatch(name):
        return
    if call.role("guarded-command") or any(other in call.source.text for other in OTHERS):
        return
    if not any("exists" in guard.text for guard in call.guards):
        yield Hit(given)
