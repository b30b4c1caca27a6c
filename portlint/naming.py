"""What the names of macros and queries say of a platform: by convention, or because the project says so."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from portlint.condition import PLATFORM_WORDS, UNKNOWN, Outcome, words_of
from portlint.regex import regex

_NEGATIONS = frozenset("no not non disable disabled without skip ignore un never".split())
_OF_NVIDIA_HEADERS = regex(r"(CUTE|CUTLASS)_ARCH_\w+")
"""macros that CUTLASS's headers define for NVIDIA architectures only"""
_ONLY_NVIDIA = frozenset("nvidia cutlass cuvs optix npp nvjpeg nvshmem cupti amgx nvcuvid".split())
"""words for NVIDIA and for libraries of NVIDIA's that no other vendor has: `USE_NVIDIA_CUVS`, `WITH_OPTIX`"""
_NEUTRAL = frozenset(
    "is use using used has have with enable enabled on build built platform available supported torch is_on current "
    "backend device target compile compiled extension ggml llama lib for the gpu pytorch system".split()
)


_declared: dict[str, frozenset[str]] = {}


def declare(meanings: Mapping[str, frozenset[str]]) -> None:
    """Take a project's word for its own macros, flags and predicates, in place of what was declared before.

    Name -> where it is true: words for platforms, and single targets as `@name`.
    """
    if meanings != _declared:
        _declared.clear()
        _declared.update(meanings)
        guess_platform.cache_clear()


def declared(name: str) -> frozenset[str] | None:
    """Where a name is true by the project's word; None if it says nothing of it. A qualifier does not matter."""
    return _declared.get(name.rpartition(".")[2])


def _by_declaration(meaning: frozenset[str], platforms: frozenset[str]) -> Outcome:
    if meaning & platforms:
        return True
    is_target = any(one.startswith("@") for one in platforms)
    is_open = any(f"~{one}" in platforms or (one.startswith("@") and not is_target) for one in meaning)
    return UNKNOWN if is_open else False


@cache
def guess_platform(name: str, platforms: frozenset[str]) -> Outcome:
    """What a name made of a platform's name says where only the convention is known.

    `USE_ROCM`, `is_hip`, `current_platform.is_rocm` are true exactly on targets that list the word, and so is a macro
    with its project's name in front, `KOKKOS_ENABLE_HIP`. A name with other words in it (`HIP_GRAPH_SUPPORT`) or with a
    negation says nothing. What the project declares of a name comes first. `platforms` are the words that hold, with
    `@name` among them where they are those of one target.
    """
    if (meaning := declared(name)) is not None:
        return _by_declaration(meaning, platforms)
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
