"""Mixed precision is asked for on CUDA alone.

`torch.autocast("cuda")`, `torch.cuda.amp.autocast()` and `GradScaler()` switch themselves off where there is no CUDA
device. Nothing fails: a warning is printed, and the model runs in full precision, slower and with more memory than the
accelerator needs.

## Exceptions
`enabled=False`, a scaler that is switched by an argument, and code behind a test of the device are silent.

## Fix safety
Unsafe: where a name `device` has a value, its type is passed; for a CPU, autocast is then on. Scalers are left.

## References
https://docs.pytorch.org/docs/stable/amp.html
https://github.com/pytorch/pytorch/issues/73140
"""

from __future__ import annotations

from portlint.rule import Edit, Hit, Hits, Node, Rule, replace

rule = Rule(
    assumes={"device.cuda": "native"},
    message="'{text}' is off without a CUDA device; {target} has {fact}.",
    remedy={
        "mps": "Pass the device's own type: `torch.autocast(x.device.type, dtype=...)`; `mps` is one that it takes.",
        "gaudi": "Pass the device's own type: `torch.autocast('hpu', dtype=torch.bfloat16)`, without a scaler.",
        "tpu": "Use `torch.autocast('xla', dtype=torch.bfloat16)`, without a scaler.",
        "neuron": "Use `torch.autocast('xla', dtype=torch.bfloat16)`, without a scaler.",
        "*": "Pass the device's own type: `torch.autocast(x.device.type, dtype=...)`.",
    },
)

OF_CUDA = ("torch.cuda.amp.autocast", "torch.cuda.amp.autocast_mode.autocast")
BY_TYPE = ("torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast")
SCALERS = ("torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler")
SCALERS_BY_TYPE = ("torch.amp.GradScaler", "torch.GradScaler", "torch.amp.grad_scaler.GradScaler")


@rule.calls(*OF_CUDA, *BY_TYPE)
def autocast(call: Node) -> Hits:
    enabled = call.argument(2 if call.name in BY_TYPE else 0, "enabled")
    if call.name in BY_TYPE and not _is_cuda(call.argument(0, "device_type")):
        return
    if enabled is not None and enabled.constant is False:
        return
    if not call.role("test"):
        guards = call.guards if enabled is None else (*call.guards, enabled.holds)
        yield Hit(call["function"], guards=guards, otherwise="degrades", edits=_by_device(call))


def _by_device(call: Node) -> tuple[Edit, ...]:
    """The type of the device that is known there, for the word "cuda" or for the function that has it in its name."""
    function, device = call["function"], call.device_nearby
    if not device or not function.text.startswith("torch."):
        return ()
    kind = f"torch.device({device}).type"
    named = call.argument(0, "device_type") if call.name in BY_TYPE else None
    if named is not None:
        return (replace(named, kind),)
    if call.arguments or call["arguments"].type != "argument_list":
        return ()
    rest = ", " if call["arguments"].children else ""
    return (Edit(function.start, call["arguments"].start + 1, f"torch.autocast({kind}{rest}"),)


@rule.calls(*SCALERS, *SCALERS_BY_TYPE)
def scaler(call: Node) -> Hits:
    device = call.argument(0, "device") if call.name in SCALERS_BY_TYPE else None
    splat = any(child.type == "dictionary_splat" for child in call["arguments"].children)
    if splat or call.argument(None, "enabled") is not None or (device is not None and not _is_cuda(device)):
        return
    if not call.role("test") and next(call.ancestors("except_clause"), None) is None:  # for an older PyTorch
        yield Hit(call["function"], otherwise="degrades")


def _is_cuda(device: Node | None) -> bool:
    named = device.constant if device is not None else None
    return isinstance(named, str) and named.partition(":")[0] == "cuda"
