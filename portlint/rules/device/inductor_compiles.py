"""`torch.compile` is told to use Inductor, which has no code for the device.

Gaudi, TPU and Trainium bring backends of their own. With Inductor named there, or one of the modes that only it has, the
first call of the compiled model fails.

## References
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler.html
https://docs.pytorch.org/xla/release/r2.8/perf/dynamo.html
https://docs.habana.ai/en/latest/PyTorch/Reference/PyTorch_Support_Matrix.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"device.inductor": "native"},
    message="'{text}' asks for Inductor; {target} has {fact}.",
    remedy={
        "gaudi": "Choose the backend by device: `torch.compile(model, backend='hpu_backend')`.",
        "tpu": "Choose the backend by device: `torch.compile(model, backend='openxla')`.",
        "neuron": "Choose the backend by device: `torch.compile(model, backend='neuron')` with TorchNeuron.",
        "*": "Choose the backend by device.",
    },
)

MODES = ("reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@rule.calls("torch.compile")
def compiled(call: Node) -> Hits:
    backend, mode = call.argument(None, "backend"), call.argument(None, "mode")
    if call.role("guarded-call") or call.role("test"):
        return
    if backend is not None and backend.constant == "inductor":
        yield Hit(backend)
    elif backend is None and mode is not None and mode.constant in MODES:
        yield Hit(mode)
