"""`torch.version.cuda` is taken to be a string.

It is None in every build that is not for CUDA, ROCm's included, where `torch.cuda.is_available()` is true all the same:
`torch.version.cuda.split(".")` raises AttributeError there.

## References
https://docs.pytorch.org/docs/stable/notes/hip.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"device.cuda_version": "native"},
    message="'{text}' uses the CUDA version as a string; {target} has {fact}, `torch.version.cuda` is None.",
    remedy={"*": "Test `torch.version.cuda is not None` first, and handle `torch.version.hip` in its own branch."},
)

READERS = frozenset(
    (
        "float",
        "int",
        "len",
        "packaging.version.parse",
        "packaging.version.Version",
        "re.match",
        "re.search",
        "re.findall",
    )
)
OPERATIONS = frozenset(("comparison_operator", "binary_operator"))
NEED_A_STRING = frozenset(("<", "<=", ">", ">=", "in", "not in", "+"))


@rule.references("torch.version.cuda")
def version(name: Node) -> Hits:
    parent = name.parent
    if parent is None or name.role("guarded-call"):
        return
    if parent.type == "attribute" or (parent.type == "subscript" and parent["value"] == name):
        yield Hit(parent)
    elif parent.type == "argument_list" and parent.parent is not None and parent.parent.name in READERS:
        yield Hit(parent.parent)
    elif parent.type in OPERATIONS and any(raw.type in NEED_A_STRING for raw in parent.raw.children):
        yield Hit(parent)
