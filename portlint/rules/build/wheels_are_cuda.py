"""Wheels that are built for CUDA are installed on every machine.

`torch==2.5.1+cu121`, an index that ends in `/cu124`, `cupy-cuda12x` or `nvidia-cublas-cu12` name one vendor's build. On
another machine pip replaces the PyTorch that came with it, and no device is found any more. On a part of NVIDIA's that is newer
than the toolkit of the wheel, every kernel fails with "no kernel image is available".

## Exceptions
Silent where a marker leaves the machine out, where a file named for the platform (`requirements-rocm.txt`, `Dockerfile.rocm`) or
another stage or index serves it, and in workflows. NVIDIA's own libraries (`nvidia-*-cu12`) under a marker of the machine are
silent: elsewhere they are only ballast, and the first of a file stands for all. An extra index that ended before the PyTorch that
is let in gives pip nothing, as that of PyPI is newer; uv takes what it finds there first.

## References
https://pytorch.org/get-started/previous-versions
https://github.com/pytorch/pytorch/issues/134015
https://github.com/pytorch/pytorch/issues/138609
https://github.com/pytorch/pytorch/issues/147383
https://docs.astral.sh/uv/concepts/indexes
"""

from __future__ import annotations

import re

from portlint.rule import Assumed, Entry, Hit, Hits, Rule, at_least, regex

rule = Rule(
    assumes={},
    message="'{text}' asks for wheels built for CUDA{version}; {target} has {fact}.",
    remedy={
        "amd": "Install PyTorch from its index for ROCm there (`--index-url https://download.pytorch.org/whl/rocm6.4`), and keep CUDA's wheels in a requirements file or an extra of their own.",
        "nvidia-blackwell": "Take wheels of CUDA 12.8 or later (`--index-url https://download.pytorch.org/whl/cu128`, PyTorch 2.7 or later).",
        "nvidia": "Take wheels that are built with that toolkit or a later one.",
        "intel-xpu": "Install PyTorch from its index for XPU there (`--index-url https://download.pytorch.org/whl/xpu`), and keep CUDA's wheels in a requirements file or an extra of their own.",
        "mps": "Require plain `torch` there, whose wheel for macOS has Metal, and put CUDA's wheels behind a marker (`; sys_platform == 'linux'`).",
        "cpu": "Install PyTorch from its index for the processor there (`--index-url https://download.pytorch.org/whl/cpu`).",
        "*": "Leave PyTorch to the vendor's installation there, and keep CUDA's wheels in a requirements file or an extra of their own.",
    },
)

LOCAL = regex(r"(?:\+|%2B)cu(\d{2,3})(?!\d)")
"""the local version of a wheel"""
INDEX = regex(r"(?:/whl/(?:\w+/)?|torch-[\d.]+\+)cu(\d{2,3})(?!\d)|jax_cuda_releases")
NAMES = regex(
    r"nvidia-[\w-]+-cu1\d|cupy-cuda\d+x?|jax(lib)?\[cuda[\w,]*\]|jax-cuda\d+-\w+|[\w-]+-cu1\d|(onnxruntime|paddlepaddle|faiss|tensorflow)-gpu"
)
LAST = {
    "102": (1, 12),
    "113": (1, 12),
    "116": (1, 13),
    "117": (2, 0),
    "118": (2, 7),
    "121": (2, 5),
    "124": (2, 6),
}
"""the last PyTorch in an index of a CUDA that later releases are not built for"""
CONDA = regex(r"pytorch-cuda|cudatoolkit|cuda-toolkit|cuda-nvcc|pytorch-gpu")


@rule.recipes("package")
def package(entry: Entry) -> Hits:
    found = LOCAL.search(entry.value) or INDEX.search(entry.value)
    if entry.choice or not (found or NAMES.fullmatch(entry.name)):
        return
    if found:
        yield _hit(entry, found[1])
    elif not entry.name.startswith("nvidia-"):
        yield _hit(entry, "")
    elif _is_library(entry) and entry.node == next(filter(_is_library, entry.node.source.entries)).node:
        yield Hit(entry.node, assumes={"build.cuda_wheels": "native"}, words={"version": ""}, otherwise="degrades")


def _is_library(entry: Entry) -> bool:
    """Whether an entry is a library of NVIDIA's, which is ballast elsewhere: the first of a file stands for all."""
    return entry.name.startswith("nvidia-") and NAMES.fullmatch(entry.name) is not None and not entry.marked


@rule.recipes("index")
def index(entry: Entry) -> Hits:
    found = INDEX.search(entry.value)
    if found and not entry.choice:
        tag = found[1] or ""
        hit = _hit(entry, tag)
        if entry.name == "--extra-index-url" and _is_outranked(entry, tag):
            hit = Hit(entry.node, assumes={"build.cuda_wheels": "native"}, words=hit.words)
        yield hit


def _is_outranked(index: Entry, tag: str) -> bool:
    """Whether pip finds a later PyTorch on PyPI than in an index that it looks into as well."""
    bounds = [one.newest for one in index.node.source.entries if one.name in ("torch", "torchvision", "torchaudio")]
    pytorch = [one.newest for one in index.node.source.entries if one.name == "torch"]
    if tag not in LAST or not pytorch:
        return False
    return not any(bounds) or all(one is not None and one > LAST[tag] for one in pytorch)


@rule.recipes("conda")
def conda(entry: Entry) -> Hits:
    if CONDA.fullmatch(entry.name) or (entry.name == "pytorch" and "cuda" in entry.value):
        found = re.match(r"(\d+)\.(\d)(?!\d)", entry.value)
        yield _hit(entry, found[1] + found[2] if found else "")


def _hit(entry: Entry, tag: str) -> Hit:
    """What a wheel with that tag assumes: 121 stands for CUDA 12.1."""
    if not tag:
        return Hit(entry.node, assumes={"build.cuda_wheels": "native"}, words={"version": ""})
    version = f"{tag[:-1]}.{tag[-1]}"
    needed: dict[str, Assumed] = {"build.cuda_wheels": "native", "build.oldest_cuda": at_least(float(version))}
    return Hit(entry.node, assumes=needed, words={"version": f" {version}"})
