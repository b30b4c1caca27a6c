"""Instructions of one AMD generation are taken to exist on all of them.

CDNA has MFMA and RDNA has WMMA, neither has the other. The scaled FP4 and FP6 forms came with gfx950, DPP row broadcasts
went with RDNA, and FP64 atomics exist on CDNA only. The compiler stops at a builtin or a mnemonic that the gfx target
lacks.

## Exceptions
Each gfx target is judged with its own macros, so code under `#if defined(__gfx950__)` is silent elsewhere. So is what
stands in a template or an inline function that the file does not call: it is compiled only where it is used.

## References
https://llvm.org/docs/AMDGPUUsage.html
"""

from __future__ import annotations

from portlint.rule import Guard, Hit, Hits, Node, Rule, amdgcn, on_platform, regex

rule = Rule(
    assumes={},
    message="'{instruction}' is not on every AMD GPU; {target} has {fact}.",
    remedy={
        "amd-cdna": "Keep it under the gfx macros that have it, and give CDNA its own branch: MFMA builtins for matrix products, DPP or `__shfl_*` for data exchange, plain conversions before gfx950.",
        "amd-rdna": "Keep it under the gfx macros that have it, and give RDNA its own branch: WMMA builtins for matrix products, `__builtin_amdgcn_ds_bpermute` or `__shfl_*` for data exchange, a plain load and a store to LDS.",
        "*": "Keep it under the gfx macros that have it, and give every other target a branch.",
    },
)

INLINE = regex(r"\binline\b|__forceinline__|__inline__|\bstatic\b|\bconstexpr\b|\w*(?:INLINE|HOST_DEVICE|DEVICE)\b")
TYPES = ("class_specifier", "struct_specifier")
CALL = """((call_expression function: (identifier) @name arguments: (_)) @call
    (#match? @name "^__builtin_amdgcn_"))"""
DEEPEST = 4


@rule.cuda(CALL)
def builtin(call: Node, name: Node) -> Hits:
    numbers = tuple(one.constant if isinstance(one.constant, int) else None for one in call.arguments)
    row = amdgcn.row_of_builtin(name.text.removeprefix(amdgcn.PREFIX), numbers)
    if row and not name.source.defines(name.text) and _is_compiled(name, DEEPEST):
        yield _hit(name, row, name.text, name.guards)


@rule.cuda("(translation_unit) @file")
def assembly(file: Node) -> Hits:
    if file != file.source.root:
        return
    for one in file.source.assembly:
        for row, mnemonic in amdgcn.rows_of_assembly(one.text).items():
            if _is_compiled(one.node, DEEPEST):
                yield _hit(one.node, row, mnemonic, one.guards)


def _hit(node: Node, row: str, instruction: str, guards: tuple[Guard, ...]) -> Hit:
    guards = (*guards, on_platform("amd"))
    return Hit(node, assumes={f"isa.amd.{row}": "native"}, words={"instruction": instruction}, guards=guards)


def _is_compiled(place: Node, depth: int) -> bool:
    """Whether the function around a place is compiled whoever uses the file."""
    function = place.function
    if function is None or not depth:
        return False
    around = list(function.ancestors("template_declaration", *TYPES))
    if any(one.type == "template_declaration" for one in around):
        return False
    head = function.text[: function["body"].start - function.start]
    if function.role("kernel") or not (around or INLINE.search(head)):
        return True
    return any(call.function != function and _is_compiled(call, depth - 1) for call in function.callers)
