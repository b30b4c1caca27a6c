"""Whether a CUDA file has a twin for AMD in the same tree, so that an AMD build never reads it.

Projects keep twins under a few conventions: `scan.cu` beside `scan.hip` or `scan_hip.cpp`, `cuda/scan.cu` beside
`hip/scan.cu`, `nvidia_detail/` beside `amd_detail/`.
"""

from __future__ import annotations

import os
import re
from functools import cache

from portlint.condition import Guard, Name

_THEIRS = re.compile(r"cuda|nvidia|nvcc|cu(?=$|[^a-z])", re.IGNORECASE)
_OURS = ("hip", "rocm", "amd")
_EXTENSIONS = (".hip", ".cu", ".cuh", ".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh", ".inl")
_FOLDERS_UP = 4
"""how far above a file a folder for CUDA is looked for"""


@cache
def twin_guards(file: str) -> tuple[Guard, ...]:
    """That a file with a twin is not built for AMD; nothing for a file without one."""
    twin = _twin(file)
    return (Guard(Name("is_rocm"), False, f"{os.path.basename(twin)} takes its place on AMD", 0),) if twin else ()


def _twin(file: str) -> str | None:
    folder, base = os.path.split(file)
    stem, extension = os.path.splitext(base)
    if _is_ours(base) or any(_is_ours(part) for part in folder.split(os.sep)[-_FOLDERS_UP:]):
        return None
    names = {f"{stem}_{word}" for word in _OURS} | {_renamed(stem, word) for word in _OURS} - {stem}
    found = _first(folder, names, _EXTENSIONS) or (extension != ".hip" and _first(folder, {stem}, (".hip",)))
    return found or _in_other_folder(folder, names | {stem})


def _in_other_folder(folder: str, names: set[str]) -> str | None:
    """A twin in a folder for AMD beside a folder for CUDA."""
    parts = folder.split(os.sep)
    for at in range(len(parts) - 1, max(0, len(parts) - 1 - _FOLDERS_UP), -1):
        for word in _OURS:
            other = _renamed(parts[at], word)
            if other != parts[at]:
                found = _first(os.sep.join([*parts[:at], other, *parts[at + 1 :]]), names, _EXTENSIONS)
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


@cache
def _files(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder or "."))
    except OSError:
        return frozenset()
