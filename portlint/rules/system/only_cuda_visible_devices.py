"""The devices of a program are chosen with CUDA_VISIBLE_DEVICES alone.

Other vendors have variables of their own. HIP's decides where it is set, and with a ROCm that no longer lists CUDA's; Gaudi
and Neuron read no other. Then the choice has no effect: the program runs on another device than its option says, or on all.

## Exceptions
Files that set another vendor's variable as well, values that are written out, tests, and code behind a
test of the platform are silent.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/env_variables.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, asks_for_platform, on_platform

rule = Rule(
    assumes={"system.visible_devices": "CUDA_VISIBLE_DEVICES"},
    otherwise="degrades",
    message="'{text}' is the only variable that the choice of devices is written to; {target} has {fact}.",
    remedy={
        "amd": "Write the same value to `HIP_VISIBLE_DEVICES`, before the framework is imported.",
        "gaudi": "Write the module numbers to `HABANA_VISIBLE_MODULES`, before the framework is imported.",
        "neuron": "Write the range of cores to `NEURON_RT_VISIBLE_CORES`, before the framework is imported.",
        "*": "Write the vendor's variable as well.",
    },
)

OTHERS = (
    b"HIP_VISIBLE_",
    b"ROCR_VISIBLE_",
    b"HABANA_VISIBLE_",
    b"NEURON_RT_VISIBLE_",
    b"ZE_AFFINITY_MASK",
    b"TPU_VISIBLE_",
)
PLATFORMS = ("amd", "hpu", "neuron")
"""those that have such a variable"""


@rule.python('((subscript value: (_) @owner) @target (#match? @target "CUDA_VISIBLE_DEVICES"))')
def set_from_an_option(target: Node, owner: Node) -> Hits:
    source = target.source
    assignment = target.parent
    if owner.name != "os.environ" or target["subscript"].constant != "CUDA_VISIBLE_DEVICES":
        return
    if assignment is None or assignment.type != "assignment" or assignment["left"] != target:
        return
    if any(name in source.text for name in OTHERS) or target.role("test"):
        return
    if asks_for_platform(target.guards, "hip", "rocm"):
        return
    if assignment["right"].constant is None:
        for platform in PLATFORMS:
            yield Hit(target, guards=(*target.guards, on_platform(platform)))
