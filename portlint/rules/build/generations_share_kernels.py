"""Kernels for data-centre Blackwell are built for the other Blackwell as well.

Kernels for sm_100 are written with tcgen05 and tensor memory, which sm_120 does not have: its assembler refuses them, and the
build stops, or the kernels are left out and the first launch fails.

## Exceptions
A list counts where its variable or its target is named for sm_100, sm_101, sm_103 or sm_110, and only what is built for an
architecture-specific variant (`120a`, `12.0f`): plain code may be for every part.

## References
https://docs.nvidia.com/cuda/blackwell-compatibility-guide
"""

from __future__ import annotations

import re

from portlint.rule import Guard, Hit, Hits, Node, Rule, architectures, on_platform, regex

rule = Rule(
    assumes={"isa.tcgen05": "native"},
    message="'{text}' builds kernels that are named for sm_{named} for {odd}; {target} has {fact}.",
    remedy={
        "*": "Take the part out of that list, and give it a list with kernels of its own.",
    },
)

NAMED = regex(r"sm_?(10[013]|110)[af]?s?(?![0-9])(?!\w*(?:plus|up))", re.IGNORECASE)
LISTS = frozenset(("CMAKE_CUDA_ARCHITECTURES", "CUDA_ARCHITECTURES"))


@rule.cmake("(normal_command (identifier) (argument_list)) @command")
def listed(command: Node) -> Hits:
    if command.name == "set":
        values, name = command.arguments[1:], command.arguments[0].text if command.arguments else ""
    elif command.name in ("set_property", "set_target_properties"):
        texts = [one.text for one in command.arguments]
        at = next((index for index, text in enumerate(texts) if text in LISTS), len(texts))
        values, name = command.arguments[at + 1 :], " ".join(texts[:at])
    else:
        return
    found = NAMED.search(name)
    for value in values if found else ():
        items = [str(item) for item in value.items]
        built = architectures.from_cmake(items) or architectures.from_torch(";".join(items)) or frozenset()
        odd = [one for one in built if one.number // 10 == 12 and one.suffix and not one.ptx]
        if odd and found and value.text[:1] != "$":
            guard = Guard(architectures.runs_on_device(odd), True, value.text, value.line)
            words = {"named": found[1], "odd": architectures.shown(odd)}
            yield Hit(value, words=words, guards=(*command.guards, guard, on_platform("nvidia")), language="cuda")
