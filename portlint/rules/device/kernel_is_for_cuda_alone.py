"""A custom operator, or a whole extension, exists for CUDA only.

An operator that is registered for the dispatch key CUDA has no kernel for tensors of any other device: "Could not run
... with arguments from the '...' backend". An extension of `.cu` files needs nvcc, or on ROCm hipcc, to be built at all.

## Exceptions
A file that registers or builds something for another device as well is silent, and so is code behind a test of CUDA.

## References
https://docs.pytorch.org/docs/stable/library.html
https://docs.pytorch.org/docs/stable/cpp_extension.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"device.cuda": "native"},
    message="'{text}' serves CUDA devices alone; {target} has {fact}.",
    remedy={
        "*": "Register an implementation in PyTorch operations for all other devices (`CompositeExplicitAutograd`, or `device_types=None`), and build the CUDA part where CUDA is.",
    },
)

REGISTERING = ("torch.library.impl", "torch.library.custom_op", "torch.library.register_kernel")
BUILDING = ("torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline")
EXTENSIONS = ("torch.utils.cpp_extension.CUDAExtension",)
ELSEWHERE = (b"CppExtension", b"SyclExtension", b"CPUExtension", b"sycl_sources", b"mps_sources", b'.mm"')
NOT_A_DEVICE = frozenset(("Meta", "meta", "Autograd", "AutogradCUDA", "Functionalize"))


@rule.calls(*REGISTERING, ".impl")
def operator(call: Node) -> Hits:
    key = _key(call)
    if key is not None and key.constant in ("CUDA", "cuda") and not _serves_others(call):
        yield Hit(key)


@rule.calls(*EXTENSIONS)
def extension(call: Node) -> Hits:
    if not _builds_others(call):
        yield Hit(call["function"])


@rule.calls(*BUILDING)
def built_when_needed(call: Node) -> Hits:
    sources = call.argument(None, "cuda_sources")
    if sources is None and call.name.endswith(".load"):
        sources = _cuda_files(call.argument(1, "sources"))
    if sources is not None and not call.role("guarded-call") and not _builds_others(call):
        yield Hit(sources)


def _key(call: Node) -> Node | None:
    """The dispatch key, or the kind of device, that a registration is for."""
    if not call.source.imports("torch"):
        return None
    if call.name == "torch.library.custom_op":
        return call.argument(None, "device_types")
    named = [call.argument(None, "dispatch_key"), call.argument(None, "types"), call.argument(None, "device_types")]
    return next(
        (one for one in (*named, *reversed(call.arguments[1:])) if one is not None and one.type == "string"), None
    )


def _serves_others(call: Node) -> bool:
    """Whether the file registers a kernel for another device."""
    module = list(call.ancestors())[-1]
    for other in module.walk("call"):
        function = other["function"]
        last = function["attribute"].text if function.type == "attribute" else function.text
        if last in ("impl", "custom_op", "register_kernel") and other != call:
            key = _key(other)
            said = key.constant if key is not None else None
            if said is None or (said not in ("CUDA", "cuda") and said not in NOT_A_DEVICE):
                return True
    return False


def _cuda_files(sources: Node | None) -> Node | None:
    if sources is None:
        return None
    return next((one for one in sources.walk("string") if one.text.strip("'\"").endswith(".cu")), None)


def _builds_others(call: Node) -> bool:
    return any(word in call.source.text for word in ELSEWHERE)
