"""Training goes through PyTorch/XLA.

PyTorch/XLA was the way to train with PyTorch on several accelerators. Where the vendor has left it, the next release of
the software no longer trains with this loop, although it may still import.

## Exceptions
Inference through PyTorch/XLA, and branches that are for another platform, are silent.

## References
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/announcements/neuron2.x/announce-no-support-pytorch-xla-training.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, on_platform

rule = Rule(
    assumes={"sync.torch_xla_training": "native"},
    message="'{text}' takes a training step through PyTorch/XLA; {target} has {fact}.",
    remedy={
        "neuron": "Train with TorchNeuron (device `neuron`, DTensor, FSDP, `torch.compile`) from Neuron 2.31 on, or stay on the release with PyTorch 2.9.",
        "*": "Train with the device's native PyTorch backend.",
    },
)


@rule.calls("torch_xla.core.xla_model.optimizer_step")
def step(call: Node) -> Hits:
    yield Hit(call["function"], guards=(*call.guards, on_platform("neuron")))


@rule.calls("torch_xla.core.xla_model.mark_step", "torch_xla.sync")
def marked(call: Node) -> Hits:
    loop = next(call.ancestors("for_statement", "while_statement"), None)
    if loop is None:
        return
    called = {
        one["function"]["attribute"].text for one in loop["body"].walk("call") if one["function"].get("attribute")
    }
    if {"backward", "step"} <= called and "optimizer_step" not in called:
        yield Hit(call["function"], guards=(*call.guards, on_platform("neuron")))
