"""Processes are joined over NCCL whatever the machine.

The backend `nccl` exists on NVIDIA and, as RCCL, on AMD. Elsewhere `init_process_group` fails.

## Fix safety
Unsafe: where a name `device` has a value, PyTorch 2.6 is asked for the backend of that.

## References
https://docs.pytorch.org/docs/stable/distributed.html#backends
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, replace

rule = Rule(
    assumes={"device.nccl": "native"},
    message="{text} asks for NCCL; {target} has {fact}.",
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
    if backend is not None and _is_nccl(backend) and not call.role("guarded-call"):
        module, device = call["function"].get("object"), call.device_nearby
        named = module is not None and backend.type == "string" and device
        edits = (
            (replace(backend, f"{module.text}.get_default_backend_for_device({device})"),) if module and named else ()
        )
        yield Hit(backend, edits=edits)


def _is_nccl(backend: Node) -> bool:
    """Whether a backend is NCCL, or NCCL for all devices but the CPU: "cpu:gloo,cuda:nccl"."""
    if backend.name == "torch.distributed.Backend.NCCL":
        return True
    named = backend.constant
    parts = [part for part in named.split(",") if not part.startswith("cpu:")] if isinstance(named, str) else []
    return parts in (["nccl"], ["cuda:nccl"])
