"""A compiler option of one vendor's Triton is passed whatever the machine.

`kpack`, `matrix_instr_nonkdim` and `waves_per_eu` are options of the AMD back end, `maxnreg` and `launch_pdl` of NVIDIA's. A
back end refuses a keyword that neither it nor the kernel knows. CDNA 4 still takes `kpack`, and sets it to 1.

## Exceptions
A name that a kernel of the file takes as a parameter is that kernel's own, and silent. So are launches of kernels that
other files define: their parameters are not known.

## References
https://github.com/triton-lang/triton/blob/main/third_party/amd/backend/compiler.py
https://github.com/triton-lang/triton/blob/main/third_party/nvidia/backend/compiler.py
"""

from __future__ import annotations

from collections.abc import Iterable

from portlint.rule import Configuration, Hit, Hits, Node, Rule, has, on_platform

rule = Rule(
    assumes={},
    message="The Triton option '{text}' is passed whatever the machine; {target} has {fact}.",
    remedy={
        "*": "Add the option only where it exists: `amd = {...} if torch.version.hip else {}`, merged into the configuration.",
    },
)

OPTIONS = frozenset(
    "kpack matrix_instr_nonkdim waves_per_eu schedule_hint allow_flush_denorm"
    " maxnreg launch_pdl ptx_version ptx_options min_shared_mem".split()
)


@rule.calls("triton.Config")
def configuration(call: Node) -> Hits:
    if call.role("test") and not call.tunings:
        return  # what a test hands to a function that prunes lists is not compiled
    own = {
        parameter.text
        for parameters in call.source.root.walk("parameters")
        for parameter in parameters.walk("identifier")
    }
    for one in call.configurations[:1]:
        written = dict(one.written)
        if (limit := call.argument(None, "maxnreg")) is not None:
            written["maxnreg"] = limit
        yield from _passed(one, ((name, node) for name, node in written.items() if name not in own))


@rule.python("(call function: (subscript)) @call", mentions=tuple(OPTIONS))
def launch(call: Node) -> Hits:
    kernel = call.launched
    own = {one.text for one in kernel["parameters"].walk("identifier")} if kernel is not None else set()
    for one in call.configurations:
        yield from _passed(one, ((name, node) for name, node in one.written.items() if name not in own))


def _passed(one: Configuration, written: Iterable[tuple[str, Node]]) -> Hits:
    for name, value in written:
        if name not in OPTIONS or value.type == "none":
            continue
        shown = _key(value)
        guards = (*one.guards, *shown.guards)
        yield Hit(shown, {"launch.triton_options": has(name)}, guards=guards, language="triton")
        if name == "kpack" and value.constant != 1:
            amd = (*guards, on_platform("hip"))
            yield Hit(shown, {"launch.triton_kpack": "native"}, guards=amd, otherwise="degrades", language="triton")


def _key(value: Node) -> Node:
    """The name that a value is given to: the key of a dictionary, or the keyword."""
    pair = value.parent
    if pair is not None and pair.type in ("pair", "keyword_argument"):
        return pair.get("key") or pair["name"]
    return value
