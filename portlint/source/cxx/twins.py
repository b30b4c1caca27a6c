"""Whether a CUDA file has a twin in the same tree for another platform or generation, which then never reads it.

Projects keep twins under a few conventions: `scan.cu` beside `scan.hip` or `scan_hip.cpp`, `cuda/scan.cu` beside
`hip/scan.cu`, `nvidia_detail/` beside `amd_detail/`; `gemm_sm90.cu` beside `gemm_sm120.cu`, `sm90/` beside `sm100/`.
"""

from __future__ import annotations

import os
import re

from portlint.condition import Guard, Literal, Name, Op
from portlint.regex import regex
from portlint.source import nearby
from portlint.source.cxx.users import files_of
from portlint.source.language import CXX_COMPILED, CXX_HEADERS
from portlint.source.nearby import project

_THEIRS = regex(r"cuda|nvidia|nvcc|cu(?=$|[^a-z])", re.IGNORECASE)
_OURS = ("hip", "rocm", "amd")
_NUMBERED = regex(r"(?:^|[_.-])sm_?(\d{2,3})[af]?(?=[_.-]|$)", re.IGNORECASE)
_ELSEWHERE = frozenset("ascend habana hpu metal musa npu sycl xpu".split())
_FIRST_WITH_TWINS = 90
"""code for older parts runs on newer ones; from Hopper on generations have instructions that the next one lacks"""
_FOLDERS_UP = 4
"""how far above a file a folder for CUDA is looked for"""


@nearby.remembered
def twin_guards(file: str) -> tuple[Guard, ...]:
    """That a file with a twin is not built for AMD; nothing for a file without one."""
    twin = _twin(file)
    own = (Guard(Name("is_rocm"), False, f"{os.path.basename(twin)} takes its place on AMD", 0),) if twin else ()
    return (*own, *_generation_guards(file), *_platform_guards(file))


def _platform_guards(file: str) -> tuple[Guard, ...]:
    """For a file in a folder named for a platform without CUDA or HIP, such as `csrc/xpu/`, that it is built there."""
    parts = os.path.dirname(nearby.within(file, file)).lower().split(os.sep)
    return tuple(
        Guard(Name(f"is_{part}"), True, f"the folder '{part}' is of another platform", 0)
        for part in parts[-_FOLDERS_UP:]
        if part in _ELSEWHERE
    )


def _generation_guards(file: str) -> tuple[Guard, ...]:
    """For a file named for Hopper or later, that the device is none for which another is named.

    A source counts those beside it; a header those of its project that are for the same thing by their names, for what
    includes it chooses one by the architecture.
    """
    folder, base = os.path.split(file)
    for around, name in ((folder, base), os.path.split(folder)):
        own = _generation(name)
        if own:
            others = {_generation(other) for other in _files(around)}
            if file.endswith(CXX_HEADERS):
                others |= {number for number, words in _generations_in(project(file)) if _is_alike(words, _words(base))}
            return tuple(_is_not(number) for number in sorted(others - {own}) if number >= _FIRST_WITH_TWINS)
    return ()


@nearby.remembered
def _generations_in(root: str | None) -> frozenset[tuple[int, frozenset[str]]]:
    names = map(os.path.basename, files_of(root) if root else ())
    return frozenset((number, _words(name)) for name in names if (number := _generation(name)))


def _words(name: str) -> frozenset[str]:
    """What a file is named for beside the generation."""
    return frozenset(re.findall(r"[a-z]+", _NUMBERED.sub("_", os.path.splitext(name)[0].lower())))


def _is_alike(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two names are for the same thing: all words of the shorter are in the longer, or most."""
    return 2 * len(words & others) > min(len(words), len(others))


def _generation(name: str) -> int:
    """The compute capability, times ten, that a file or folder is named for; 0 for a general name."""
    found = _NUMBERED.search(name)
    number = int(found[1]) if found else 0
    return number if number >= _FIRST_WITH_TWINS else 0


def _is_not(number: int) -> Guard:
    test = Op("==", (Name("device.capability"), Literal(divmod(number, 10))))
    return Guard(test, False, f"a file beside it is for sm_{number}", 0)


def _twin(file: str) -> str | None:
    folder, base = os.path.split(file)
    stem, extension = os.path.splitext(base)
    if _is_ours(base) or any(_is_ours(part) for part in folder.split(os.sep)[-_FOLDERS_UP:]):
        return None
    names = {f"{stem}_{word}" for word in _OURS} | {_renamed(stem, word) for word in _OURS} - {stem}
    found = _first(folder, names, CXX_COMPILED + CXX_HEADERS) or (
        extension != ".hip" and _first(folder, {stem}, (".hip",))
    )
    return found or _in_other_folder(folder, names | {stem})


def _in_other_folder(folder: str, names: set[str]) -> str | None:
    """A twin in a folder for AMD beside a folder for CUDA."""
    parts = folder.split(os.sep)
    for at in range(len(parts) - 1, max(0, len(parts) - 1 - _FOLDERS_UP), -1):
        for word in _OURS:
            other = _renamed(parts[at], word)
            if other != parts[at]:
                found = _first(os.sep.join([*parts[:at], other, *parts[at + 1 :]]), names, CXX_COMPILED + CXX_HEADERS)
                if found:
                    return found
    return None


def _renamed(name: str, word: str) -> str:
    return _THEIRS.sub(word, name)


def _is_ours(name: str) -> bool:
    return re.search(r"(^|[^a-z])(hip|rocm|amd)([^a-z]|$)", name, re.IGNORECASE) is not None


def _first(folder: str, names: set[str], extensions: tuple[str, ...]) -> str | None:
    files = _files(folder)
    return next((one for name in sorted(names) for end in extensions if (one := name + end) in files), None)


@nearby.remembered
def _files(folder: str) -> frozenset[str]:
    return frozenset(nearby.entries(folder))
