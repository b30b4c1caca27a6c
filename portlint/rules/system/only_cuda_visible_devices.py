"""The devices of a program are chosen with CUDA_VISIBLE_DEVICES alone.

HIP has a variable of its own, and where that is set, or with a ROCm that no longer lists CUDA's, the choice has no effect:
the program runs on another device than its option says.

## Exceptions
Files that set HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES as well, values that are written out, tests, and code behind a
test of the platform are silent.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/env_variables.html
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, on_platform

rule = Rule(
    assumes={"system.visible_devices": "CUDA_VISIBLE_DEVICES"},
    otherwise="degrades",
    message="'{text}' is the only variable that the choice of devices is written to; {target} has {fact}.",
    remedy={
        "amd": "Write the same value to `HIP_VISIBLE_DEVICES`, before the framework is imported.",
        "*": "Write the vendor's variable as well.",
    },
)

OTHERS = (b"HIP_VISIBLE_DEVICES", b"ROCR_VISIBLE_DEVICES")
TEST = re.compile(r"(^|[/\\])(tests?[/\\]|test_|conftest)")


@rule.python('((subscript value: (_) @owner) @target (#match? @target "CUDA_VISIBLE_DEVICES"))')
def set_from_an_option(target: Node, owner: Node) -> Hits:
    source = target.source
    assignment = target.parent
    if owner.name != "os.environ" or target["subscript"].constant != "CUDA_VISIBLE_DEVICES":
        return
    if assignment is None or assignment.type != "assignment" or assignment["left"] != target:
        return
    if any(name in source.text for name in OTHERS) or TEST.search(source.path):
        return
    if assignment["right"].constant is None:
        yield Hit(target, guards=(*target.guards, on_platform("amd")))
