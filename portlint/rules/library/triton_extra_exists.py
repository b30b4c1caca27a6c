"""A Triton kernel uses a module that only one vendor's back end can compile.

`triton.language.extra.cuda` is PTX and CUDA's libdevice, `triton.language.extra.hip` is AMD's, and Gluon has modules for each
vendor and generation. The import works everywhere; the kernel does not compile. `triton.language.extra.libdevice` is
neutral, but holds 139 functions that AMD's library does not have.

## Exceptions
Silent are names that nothing uses, that the file also takes from a neutral module, or that are used behind a test of the
platform. So are waits for a dependent launch under a flag of the kernel's.

## Fix safety
Safe where a file takes `libdevice` from `triton.language.extra.cuda`, and only functions that each vendor's library has:
on NVIDIA's devices both names mean the same functions, from Triton 3.0 on.

## References
https://triton-lang.org/main/getting-started/tutorials/07-extern-functions.html
https://github.com/triton-lang/triton/issues/10375
"""

from __future__ import annotations

import re

from portlint.rule import (
    Hit,
    Hits,
    Node,
    Rule,
    has,
    on_platform,
    one_runs,
    regex,
    replace,
    triton_functions,
    triton_vendor,
)

rule = Rule(
    assumes={},
    message="'{text}' is for one vendor's Triton; {target} has {fact}.",
    remedy={
        "amd": "Take math from `triton.language.extra.libdevice`, which Triton replaces by the library of the back end, or write it with `tl.math`; keep what has no counterpart behind a test of `torch.version.hip`.",
        "*": "Take math from `triton.language.extra.libdevice`; keep what belongs to one vendor behind a test of the platform.",
    },
)

CUDA = "triton.language.extra.cuda"
EXTRA = "triton.language.extra"
NEUTRAL = "triton.language.extra.libdevice"
CUDA_ONLY = triton_functions(f"{CUDA}.libdevice")
ON_BOTH = ("num_threads", "num_warps")
"""arithmetic on the options, which compiles anywhere"""
OPTED_IN = regex(r"pdl|gdc|dependent", re.IGNORECASE)
"""a flag of the kernel's for dependent launches, which the host sets where it has them"""
TCGEN05 = ("tcgen05_mma", "tcgen05_mma_scaled", "tcgen05_copy", "tcgen05_commit", "allocate_tensor_memory")
GLUON = "triton.experimental.gluon.language.nvidia"


@rule.python("(import_from_statement module_name: (dotted_name) @module) @statement", mentions=("triton",))
def imported(statement: Node, module: Node) -> Hits:
    names = [one for one in statement.children if one != module]
    for one in names:
        name, local = one.get("name") or one, one.get("alias") or one
        vendor = triton_vendor(module.text) or triton_vendor(f"{module.text}.{name.text}")
        uses = [use for use in local.uses if _is_use(use)] if vendor else []
        if not vendor or name.text in ON_BOTH or not uses or _has_twin(statement, local.text):
            continue
        guards = (*statement.guards, one_runs(uses))
        edits = (replace(module, EXTRA),) if module.text == CUDA and _is_neutral(names, uses) else ()
        assumes = {"library.triton_modules": has(vendor)}
        yield Hit(statement, assumes, guards=guards, language="triton", edits=edits, safe=True)
        return


@rule.references(
    *(f"{CUDA}.{name}" for name in ("libdevice", "globaltimer", "smid", "gdc_wait", "gdc_launch_dependents"))
)
def named(name: Node) -> Hits:
    if name.type == "attribute" and not any(OPTED_IN.search(guard.text) for guard in name.guards):
        yield Hit(name, {"library.triton_modules": has("NVIDIA")}, language="triton")


@rule.calls(*(f"{NEUTRAL}.{name}" for name in CUDA_ONLY))
def without_counterpart(call: Node) -> Hits:
    yield Hit(call["function"], {"library.triton_libdevice": "libdevice.10.bc"}, language="triton")


@rule.calls(*(f"{GLUON}.blackwell.{name}" for name in TCGEN05))
def tensor_memory(call: Node) -> Hits:
    guards = (*call.guards, on_platform("nvidia"))
    yield Hit(call["function"], {"isa.tcgen05": "native"}, guards=guards, language="triton")


@rule.calls(f"{GLUON}.hopper.warpgroup_mma")
def warpgroup(call: Node) -> Hits:
    guards = (*call.guards, on_platform("nvidia"))
    yield Hit(call["function"], {"isa.wgmma": "native"}, guards=guards, language="triton")


def _is_neutral(names: list[Node], uses: list[Node]) -> bool:
    """Whether an import is of `libdevice` alone, and only functions are used that all vendors' libraries have."""
    if len(names) != 1 or (names[0].get("name") or names[0]).text != "libdevice":
        return False
    functions = [
        use.parent["attribute"].text for use in uses if use.parent is not None and use.parent.type == "attribute"
    ]
    return len(functions) == len(uses) and set(functions).isdisjoint(CUDA_ONLY)


def _is_use(name: Node) -> bool:
    """Whether a word of the file stands for the imported name: not for an attribute, and not in an import."""
    parent = name.parent
    is_attribute = parent is not None and parent.type == "attribute" and parent["attribute"] == name
    return not is_attribute and not any(True for _ in name.ancestors("import_from_statement"))


def _has_twin(statement: Node, local: str) -> bool:
    """Whether the file imports the same name from elsewhere as well, or catches that it cannot."""
    others = statement.source.root.walk("import_from_statement", "import_statement")
    for other in others:
        if other != statement and any(
            (one.get("alias") or one.get("name") or one).text == local for one in other.children
        ):
            return True
    return any(True for _ in statement.ancestors("except_clause"))
