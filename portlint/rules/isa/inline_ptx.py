"""Inline assembly is PTX, and its instructions are taken to exist.

PTX is NVIDIA's: no other target assembles it. Between NVIDIA parts instructions come and go as well: `wgmma` exists on
sm_90a alone, `tcgen05` never on sm_120, three-input `max` from sm_100 on. Each opcode is judged for itself.

## Exceptions
Assembly for the host or for AMD, and PTX behind a test of the platform or the architecture that keeps it from the
target, is silent.

## References
https://docs.nvidia.com/cuda/parallel-thread-execution/
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, on_platform, ptx

rule = Rule(
    assumes={},
    message="'{opcode}' is inline PTX; {target} has {fact}.",
    remedy={
        "amd": "Keep it behind `#ifndef USE_ROCM` (or `__HIP_PLATFORM_AMD__`) and write the AMD branch with a builtin (`__builtin_nontemporal_load`, `__scoped_atomic_*`, `__builtin_amdgcn_*`) or plain C++; in Triton write it with `triton.language` operations.",
        "nvidia": "Guard it by the architectures that have it (`__CUDA_ARCH__` as an interval, `__CUDA_ARCH_FEAT_SM90_ALL` for `a` variants) and keep a path for the others.",
        "*": "Write the operation in the kernel language of the target; no other vendor assembles PTX.",
    },
)


@rule.cuda("(gnu_asm_expression assembly_code: (_) @code)")
def asm_statement(code: Node) -> Hits:
    yield from _judge(code, "cuda")


@rule.calls("triton.language.inline_asm_elementwise")
def triton_asm(call: Node) -> Hits:
    code = call.argument(0, "asm")
    if code is not None:
        yield from _judge(code, "triton")


def _judge(code: Node, language: str) -> Hits:
    found = ptx.instructions(code.constant) if isinstance(code.constant, str) else ()
    if not found:
        return
    rows = {one.row: one for one in reversed(found)}
    yield Hit(code, words={"opcode": found[0].opcode}, assumes={"isa.ptx": "native"}, language=language)
    for row, one in sorted(rows.items()):
        if row:
            yield Hit(
                code,
                words={"opcode": one.opcode},
                assumes={f"isa.ptx.{row}": "native"},
                guards=(*code.guards, on_platform("nvidia")),
                language=language,
            )
