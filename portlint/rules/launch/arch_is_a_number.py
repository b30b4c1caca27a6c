"""The name of an architecture is taken to be a number.

NVIDIA's are (`90`); AMD's are names (`gfx942`, `gfx90a`), and `int()` of one raises ValueError.

## References
https://github.com/triton-lang/triton/blob/main/python/triton/backends/compiler.py
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"launch.triton_arch_number": "native"},
    message="'{text}' reads the architecture as a number; {target} has {fact}.",
    remedy={
        "amd": "Compare the name (`arch.startswith('gfx94')`), and parse digits only on NVIDIA.",
        "*": "Test the platform before parsing the name.",
    },
)


@rule.calls("int", "float")
def parsed(call: Node) -> Hits:
    if len(call.arguments) == 1 and _is_architecture(call.arguments[0]) and call.source.imports("triton"):
        yield Hit(call, language="triton")


def _is_architecture(value: Node) -> bool:
    """Whether a text comes from the architecture of Triton's current target."""
    for name in value.walk("identifier", "attribute"):
        for origin in (name, name.assigned):
            if (
                origin is not None
                and origin.type == "attribute"
                and origin["attribute"].text == "arch"
                and "target" in origin["object"].text
            ):
                return True
    return False
