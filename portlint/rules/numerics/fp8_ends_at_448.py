"""Values are scaled to 448, the end of OCP's e4m3, whatever format they are converted to.

The FNUZ variant of CDNA 3 ends at 240. What lies above saturates or becomes NaN, and where scales are multiplied back
afterwards, all results are wrong without a word.

## Exceptions
Only files that know the FNUZ formats are looked at: elsewhere the format itself is the fault. Files that have 240 or 224
as well, and code behind a test of the platform, are silent.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/low_fp_types.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, at_most, regex

rule = Rule(
    assumes={"numerics.fp8_e4m3_max": at_most(448)},
    otherwise="corrupts",
    message="'{text}' scales to 448; {target} has {fact}.",
    remedy={
        "*": "Take the range from the format that is converted to: `torch.finfo(dtype).max`, with `dtype` chosen for the device.",
    },
)

OTHER_END = regex(rb"\b(240|224)(\.0*)?\b")


@rule.python(
    '((binary_operator operator: "/" right: (_) @end) (#match? @end "448|[Mm][Aa][Xx]|FP8|fp8"))',
    mentions=("448", "max", "Max", "MAX", "fp8", "FP8"),
)
def divided(end: Node) -> Hits:
    yield from _end(end)


@rule.calls(
    ".clamp", ".clip", ".clamp_", "torch.clamp", "triton.language.clamp", "triton.language.minimum", "torch.minimum"
)
def clamped(call: Node) -> Hits:
    position = 1 if call.name == "" else 2
    end = call.argument(position, "max") or (call.arguments[-1] if call.arguments else None)
    if end is not None:
        yield from _end(end)


def _end(end: Node) -> Hits:
    if end.constant == 448.0 and _knows_fnuz(end) and not OTHER_END.search(end.source.text):
        yield Hit(end)


def _knows_fnuz(node: Node) -> bool:
    """Whether the code of the file names an FNUZ format."""
    source = node.source
    return b"fnuz" in source.text and any("fnuz" in one.text for one in source.root.walk("identifier"))
