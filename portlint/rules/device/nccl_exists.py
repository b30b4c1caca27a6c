"""Processes are joined over NCCL whatever the machine.

The backend `nccl` exists on NVIDIA and, as RCCL, on AMD. Elsewhere `init_process_group` fails.

## References
https://docs.pytorch.org/docs/stable/distributed.html#backends
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"device.nccl": "native"},
    message="{text} is the only backend that is asked for; {target} has {fact}.",
    remedy={
        "gaudi": "Choose the backend by device: `hccl` after `import habana_frameworks.torch.distributed.hccl`.",
        "intel-xpu": "Choose the backend by device: `xccl`.",
        "tpu": "Choose the backend by device: `xla` after `import torch_xla.distributed.xla_backend`.",
        "neuron": "Choose the backend by device: `xla` after `import torch_xla.distributed.xla_backend`.",
        "*": "Choose the backend by device: `torch.distributed.get_default_backend_for_device(device)` (PyTorch 2.6 and newer) names it, `gloo` for the CPU.",
    },
)


@rule.calls("torch.distributed.init_process_group", "torch.distributed.new_group")
def process_group(call: Node) -> Hits:
    position = 0 if call.name.endswith("init_process_group") else None
    backend = call.argument(position, "backend")
    if backend is not None and backend.constant == "nccl" and not call.role("guarded-call"):
        yield Hit(backend)
