"""The accelerator is taken to be a CUDA device.

A device string, `.cuda()`, or a call of `torch.cuda` that needs a driver fails where PyTorch has another backend:
"Torch not compiled with CUDA enabled". On ROCm `cuda` is the right name, so nothing is said there.

## Exceptions
Code behind `torch.cuda.is_available()`, a test of the device's type, `is_cuda`, or a skip mark is silent, and so are
the calls of `torch.cuda` that do nothing without a device (`empty_cache`, `manual_seed`, `memory_allocated`).

## References
https://docs.pytorch.org/docs/stable/torch.html#accelerators
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, one_runs

rule = Rule(
    assumes={"device.cuda": "native"},
    message="'{text}' needs a CUDA device; {target} has {fact}.",
    remedy={
        "mps": "Take the device from `torch.accelerator.current_accelerator()` (PyTorch 2.6 and newer) or the input's `.device`; `mps` is its name here, and `torch.mps` has `synchronize` and `empty_cache`.",
        "gaudi": "Take the device from the input's `.device`, or use `torch.device('hpu')` after `import habana_frameworks.torch.core`; `torch.hpu` has `synchronize` and the memory queries.",
        "tpu": "Take the device from `torch_xla.device()`, and synchronise with `torch_xla.sync()`.",
        "neuron": "Take the device from `torch_xla.device()`, and synchronise with `torch_xla.sync()`.",
        "intel-xpu": "Take the device from `torch.accelerator.current_accelerator()` (PyTorch 2.6 and newer) or the input's `.device`; `torch.xpu` mirrors `torch.cuda`.",
        "*": "Take the device from the input's `.device` or from an option, and keep calls of `torch.cuda` behind `torch.cuda.is_available()`.",
    },
)

NEED_A_DRIVER = (
    "CUDAGraph Event ExternalStream Stream can_device_access_peer caching_allocator_alloc current_blas_handle "
    "current_device current_stream default_stream get_device_capability get_device_name get_device_properties "
    "get_rng_state graph init ipc_collect mem_get_info reset_max_memory_allocated reset_peak_memory_stats set_device "
    "set_per_process_memory_fraction set_rng_state synchronize utilization device"
)
"""functions of torch.cuda that initialise CUDA or raise without it (torch/cuda/__init__.py, memory.py, streams.py)"""

TAKES_A_DEVICE = frozenset(("dev", "device", "map_location", "device_map", "torch_device"))
RECORDS = frozenset(("SimpleNamespace", "Mock", "MagicMock"))
"""what stands for something else in tests: nothing is put on a device"""
TAKES_A_DEVICE_FIRST = frozenset(("torch.device", "torch.set_default_device"))


@rule.calls(*(f"torch.cuda.{name}" for name in NEED_A_DRIVER.split()))
def driver_call(call: Node) -> Hits:
    if call.role("guarded-call"):
        return
    yield Hit(call["function"])
    function = call.function
    for use in function.callers if function is not None else ():
        if use.role("import-time") and not use.role("guarded-call"):
            yield Hit(use, guards=(*use.guards, *call.guards))


@rule.calls(".cuda")
def move(call: Node) -> Hits:
    if not call.source.imports("torch") or call.source.defines("cuda"):
        return
    if not call.role("guarded-call"):
        yield Hit(call)


@rule.python('((string) @literal (#match? @literal "^[fF]?[\'\\"]cuda(:.*)?[\'\\"]$"))')
def device_string(literal: Node) -> Hits:
    if not literal.source.imports("torch") or not _names_a_device(literal) or literal.role("guarded-call"):
        return
    assignment = literal.parent
    named = assignment["left"] if assignment is not None and assignment.type == "assignment" else None
    uses = named.uses if named is not None and named.type == "identifier" else []
    yield Hit(literal, guards=(*literal.guards, one_runs(uses)) if uses else None)


def _names_a_device(literal: Node) -> bool:
    """Whether a string stands where a device is expected, and no option can change it."""
    parent = literal.parent
    if parent is None:
        return False
    if parent.type == "conditional_expression" and parent.parent is not None:
        return _names_a_device(parent)
    if parent.type == "keyword_argument":
        call = next(parent.ancestors("call"), None)
        record = call is not None and call["function"].text.rpartition(".")[2] in RECORDS
        return parent["name"].text in TAKES_A_DEVICE and not record
    if parent.type in ("default_parameter", "typed_default_parameter"):
        return parent["name"].text in TAKES_A_DEVICE and not parent.role("default-not-used")
    if parent.type == "assignment":
        return parent["left"].text.rpartition(".")[2].lower() in TAKES_A_DEVICE
    if parent.type == "argument_list" and parent.parent is not None and parent.children[0] == literal:
        call = parent.parent
        function = call["function"]
        return call.name in TAKES_A_DEVICE_FIRST or (
            function.type == "attribute" and function["attribute"].text == "to"
        )
    return False
