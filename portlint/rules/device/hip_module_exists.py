"""PyTorch for AMD is taken to have a module `torch.hip`.

ROCm builds keep the name `torch.cuda`; no build has `torch.hip`, so touching it raises AttributeError.

## Fix safety
Unsafe: the code behind it runs on AMD's devices for the first time, and on NVIDIA's as well where nothing tells them apart.

## References
https://docs.pytorch.org/docs/stable/notes/hip.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, replace

rule = Rule(
    assumes={"device.hip_module": "native"},
    message="'{text}' does not exist in any build of PyTorch; {target} has {fact}.",
    remedy={"*": "On ROCm ask `torch.cuda`, and tell the vendor by `torch.version.hip is not None`."},
)


@rule.references("torch.hip")
def module(name: Node) -> Hits:
    if not name.role("guarded-call"):
        yield Hit(name, edits=(replace(name["attribute"], "cuda"),) if name.type == "attribute" else ())
