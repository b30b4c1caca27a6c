"""`torch.version.cuda` is taken to be a string.

It is None in every build that is not for CUDA, ROCm's included, where `torch.cuda.is_available()` is true all the same:
`torch.version.cuda.split(".")` raises AttributeError there.

## Fix safety
Safe: on NVIDIA's builds the version is a string, and the added test is true. Only comparisons are fixed.

## References
https://docs.pytorch.org/docs/stable/notes/hip.html
"""

from __future__ import annotations

from portlint.rule import Edit, Hit, Hits, Node, Rule, put_after, put_before

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
STANDS_ALONE = frozenset(("if_statement", "elif_clause", "return_statement", "assignment", "assert_statement"))
"""around a comparison, what takes any test"""
NEED_A_STRING = frozenset(("<", "<=", ">", ">=", "in", "not in", "+"))


@rule.references("torch.version.cuda")
def version(name: Node) -> Hits:
    parent = name.parent
    if parent is None or name.role("guarded-call"):
        return
    if parent.type == "attribute" or (parent.type == "subscript" and parent["value"] == name):
        yield Hit(parent, edits=_tested(parent, name), safe=True)
    elif parent.type == "argument_list" and parent.parent is not None and parent.parent.name in READERS:
        yield Hit(parent.parent, edits=_tested(parent.parent, name), safe=True)
    elif parent.type in OPERATIONS and any(raw.type in NEED_A_STRING for raw in parent.raw.children):
        yield Hit(parent, edits=_tested(parent, name), safe=True)


def _tested(part: Node, name: Node) -> tuple[Edit, ...]:
    """A test before the comparison that a use of the version is part of."""
    around = [part, *part.ancestors()]
    whole = next((one for one in around if one.type == "comparison_operator"), None)
    if whole is None or whole.parent is None:
        return ()
    test = f"{name.text} is not None and "
    if whole.parent.type in STANDS_ALONE:
        return (put_before(whole, test),)
    return (put_before(whole, f"({test}"), put_after(whole, ")"))
