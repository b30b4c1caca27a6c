"""What the names of macros and queries say of a platform where only the convention is known."""

from __future__ import annotations

import re
from functools import cache

from portlint.condition import PLATFORM_WORDS, UNKNOWN, Outcome, words_of

_NEGATIONS = frozenset("no not non disable disabled without skip ignore un never".split())
_OF_NVIDIA_HEADERS = re.compile(r"(CUTE|CUTLASS)_ARCH_\w+")
"""macros that CUTLASS's headers define for NVIDIA architectures only"""
_ONLY_NVIDIA = frozenset("nvidia cutlass cuvs optix npp nvjpeg nvshmem cupti amgx nvcuvid".split())
"""words for NVIDIA and for libraries of NVIDIA's that no other vendor has: `USE_NVIDIA_CUVS`, `WITH_OPTIX`"""
_NEUTRAL = frozenset(
    "is use using used has have with enable enabled on build built platform available supported torch is_on current "
    "backend device target compile compiled extension ggml llama lib for the gpu pytorch system".split()
)


@cache
def guess_platform(name: str, platforms: frozenset[str]) -> Outcome:
    """What a name made of a platform's name says where only the convention is known.

    `USE_ROCM`, `is_hip`, `current_platform.is_rocm` are true exactly on targets that list the word, and so is a macro
    with its project's name in front, `KOKKOS_ENABLE_HIP`. A name with other words in it (`HIP_GRAPH_SUPPORT`) or with a
    negation says nothing.
    """
    if _OF_NVIDIA_HEADERS.fullmatch(name):
        return UNKNOWN if "nvidia" in platforms else False
    words = words_of(name.rpartition(".")[2])
    if words[-2:] in (["cuda", "alike"], ["cuda", "like"]):  # what answers to `torch.cuda`: NVIDIA's and AMD's GPUs
        return bool(platforms & {"nvidia", "rocm"})
    if name.isupper() and len(words) > 2 and words[1] in _NEUTRAL and words[0] not in PLATFORM_WORDS | _NEGATIONS:
        words = words[1:]
    if set(words) & _ONLY_NVIDIA and set(words) <= _ONLY_NVIDIA | _NEUTRAL and "nvidia" not in platforms:
        return False
    named = [word for word in words if word in PLATFORM_WORDS]
    if not named or not set(words) - set(named) <= _NEUTRAL or _NEGATIONS & set(words):
        return UNKNOWN
    answers = {UNKNOWN if f"~{word}" in platforms else word in platforms for word in named}
    return answers.pop() if len(answers) == 1 else UNKNOWN  # USE_AMD_ROCM means one platform, CUDA_HIP says nothing
