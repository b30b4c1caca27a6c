"""A compiler option of one vendor's Triton is passed whatever the machine.

`kpack`, `matrix_instr_nonkdim` and `waves_per_eu` are options of the AMD back end; NVIDIA's refuses a keyword that neither
the kernel nor the back end knows.

## Exceptions
A name that a kernel of the file takes as a parameter is that kernel's own, and silent.

## References
https://github.com/triton-lang/triton/blob/main/third_party/amd/backend/compiler.py
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, has

rule = Rule(
    assumes={},
    message="The Triton option {text} belongs to one vendor; {target} has {fact}.",
    remedy={
        "*": "Add the option only where it exists: `amd = {...} if torch.version.hip else {}`, merged into the configuration.",
    },
)

OPTIONS = frozenset(("kpack", "matrix_instr_nonkdim", "waves_per_eu", "schedule_hint"))


@rule.calls("triton.Config")
def configuration(call: Node) -> Hits:
    tile = call.argument(0, "kwargs")
    if tile is None or tile.type != "dictionary":
        return
    own = {
        parameter.text
        for parameters in call.source.root.walk("parameters")
        for parameter in parameters.walk("identifier")
    }
    for pair in tile.children:
        key = pair.get("key")
        if key is not None and isinstance(key.constant, str) and key.constant in OPTIONS - own:
            yield Hit(key, assumes={"launch.triton_options": has(key.constant)}, language="triton")
