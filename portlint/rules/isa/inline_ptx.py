"""Inline assembly is PTX, and its instructions are taken to exist.

PTX is NVIDIA's: no other target assembles it. Between NVIDIA parts instructions come and go as well: `wgmma` exists on
sm_90a alone, `tcgen05` never on sm_120, three-input `max` from sm_100 on. Each opcode is judged for itself.

## Exceptions
Assembly for the host or for AMD, and PTX behind a test of the platform or the architecture that keeps it from the
target, is silent; between NVIDIA parts also PTX behind a constant that is computed from the architecture.

## References
https://docs.nvidia.com/cuda/parallel-thread-execution/
"""

from __future__ import annotations

from portlint.rule import Guard, Hit, Hits, Node, Rule, on_platform, ptx

rule = Rule(
    assumes={},
    message="'{opcode}' is inline PTX; {target} has {fact}.",
    remedy={
        "amd": "Keep it behind `#ifndef USE_ROCM` (or `__HIP_PLATFORM_AMD__`) and write the AMD branch with a builtin (`__builtin_nontemporal_load`, `__scoped_atomic_*`, `__builtin_amdgcn_*`) or plain C++; in Triton write it with `triton.language` operations.",
        "nvidia": "Guard it by the architectures that have it (`__CUDA_ARCH__` as an interval, `__CUDA_ARCH_FEAT_SM90_ALL` for `a` variants) and keep a path for the others.",
        "*": "Write the operation in the kernel language of the target; no other vendor assembles PTX.",
    },
)


@rule.cuda("(translation_unit) @file")
def asm_statements(file: Node) -> Hits:
    if file == file.source.root:
        for one in file.source.assembly:
            yield from _judge(one.node, one.text, one.guards, "cuda")


@rule.calls("triton.language.inline_asm_elementwise")
def triton_asm(call: Node) -> Hits:
    code = call.argument(0, "asm")
    if code is not None and isinstance(code.constant, str):
        yield from _judge(code, code.constant, code.guards, "triton")


def _judge(code: Node, text: str, guards: tuple[Guard, ...], language: str) -> Hits:
    found = ptx.instructions(text)
    if not found:
        return
    rows = {one.row: one for one in reversed(found)}
    yield Hit(code, words={"opcode": found[0].opcode}, assumes={"isa.ptx": "native"}, guards=guards, language=language)
    for row, one in sorted(rows.items()):
        if row and not (language == "cuda" and code.role("behind-an-architecture")):
            yield Hit(
                code,
                words={"opcode": one.opcode},
                assumes={f"isa.ptx.{row}": "native"},
                guards=(*guards, on_platform("nvidia")),
                language=language,
            )
