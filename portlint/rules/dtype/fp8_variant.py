"""The 8-bit float formats of one vendor are taken to be everybody's.

There are two families. OCP `e4m3fn`/`e5m2` (NVIDIA, CDNA 4, RDNA 4) and FNUZ `e4m3fnuz`/`e5m2fnuz` (CDNA 3) differ in
bias, largest value (448 against 240) and NaN, so bits of one read as the other are off by a factor of two. Matrix
units take their own family only.

## Exceptions
Naming a format to compare or to look it up (`x.dtype == torch.float8_e4m3fn`, keys and members of tables) is silent.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/low_fp_types.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={},
    message="'{text}' is used as the FP8 format; {target} has {fact}.",
    remedy={
        "cdna3": "Choose the format from the device: `torch.float8_e4m3fnuz`/`float8_e5m2fnuz` on gfx94x, with scales computed from `torch.finfo` of that type; convert stored OCP weights, whose bits mean half the value as FNUZ.",
        "amd": "Choose the format from the device's `gcnArchName`; without FP8 matrix units use bfloat16 or int8.",
        "nvidia": "Choose the format from the device: OCP `torch.float8_e4m3fn`/`float8_e5m2` from compute capability 8.9 on, bfloat16 or int8 before; FNUZ is for AMD's gfx94x only.",
        "*": "Choose the format from the device; without FP8 use bfloat16 or int8.",
    },
)

FACTS = {
    f"torch.{name}": f"dtype.{fact}"
    for name, fact in {
        "float8_e4m3fn": "fp8_e4m3fn",
        "float8_e5m2": "fp8_e5m2",
        "float8_e4m3fnuz": "fp8_e4m3fnuz",
        "float8_e5m2fnuz": "fp8_e5m2fnuz",
    }.items()
}
USES = frozenset(
    ("to", "view", "type", "empty", "zeros", "ones", "full", "tensor", "finfo", "empty_like", "randn", "rand")
)


@rule.references(*FACTS)
def chosen(name: Node) -> Hits:
    parent = name.parent
    while parent is not None and parent.type in ("conditional_expression", "parenthesized_expression"):
        parent = parent.parent
    if parent is None:
        return
    if parent.type == "keyword_argument":
        used = "dtype" in parent["name"].text
    elif parent.type == "argument_list" and parent.parent is not None:
        used = _called(parent.parent) in USES
    else:
        used = parent.type in ("assignment", "default_parameter", "typed_default_parameter")
    if used:
        yield Hit(name, assumes={FACTS[name.name]: "native"})


def _called(call: Node) -> str:
    function = call["function"]
    return function["attribute"].text if function.type == "attribute" else function.text
