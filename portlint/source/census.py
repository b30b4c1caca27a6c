"""What a file is made of, for reports that add up a tree: its level of programming and the kernels that it defines.

This is counted from the text, since most files of a tree are never parsed: what stands at the start of a line of
Python, and the code of C++ without comments and literals.
"""

from __future__ import annotations

import re

from portlint.finding import Census, Programming
from portlint.regex import regex
from portlint.source import embedded
from portlint.source.cxx import lexer

_FRAMEWORKS = regex(
    rb"^[ \t]*(?:import|from)[ \t]+(?:torch\w*|jax\w*|flax|optax|haiku|equinox|tensorflow|keras|transformers|diffusers"
    rb"|accelerate|lightning|pytorch_lightning|deepspeed|cupy|mlx|optimum|habana_frameworks|neuronx_distributed)\b",
    re.MULTILINE,
)
_TILES = {
    "triton": (
        regex(rb"^[ \t]*(?:(?:import|from)[ \t]+triton|@triton\.jit)\b", re.MULTILINE),
        regex(rb"^[ \t]*@(?:triton\.)?jit\b", re.MULTILINE),
    ),
    "pallas": (
        regex(
            rb"^[ \t]*(?:from[ \t]+jax\.experimental[ \t]+import\b[^\n]*\bpallas|(?:from|import)[ \t]+"
            rb"jax\.experimental\.pallas)\b",
            re.MULTILINE,
        ),
        regex(rb"\bpallas_call\("),
    ),
    "nki": (
        regex(rb"^[ \t]*(?:import|from)[ \t]+(?:neuronxcc\b[^\n]*\b)?nki\b", re.MULTILINE),
        regex(rb"^[ \t]*@(?:nki\.)?(?:jit|baremetal|benchmark|trace)\b", re.MULTILINE),
    ),
}
"""language of tiles -> what imports it, and what begins a kernel"""
_NUMBA = regex(rb"^[ \t]*@(?:numba\.)?(?:cuda|hip)\.jit\b|^[ \t]*@(?:cupyx\.)?jit\.rawkernel\b", re.MULTILINE)
_GLOBAL = regex(rb"\b__global__\b(?!\s*;)")


def census(text: bytes, language: str | None, lines: int) -> Census:
    """Count one file; `language` is what `source.language` says of it, None for plain C++."""
    if language == "cuda":
        kernels = len(_GLOBAL.findall(lexer.mask(text))) if b"__global__" in text else 0
        return Census(Programming.SIMT, frozenset(("cuda",)), kernels, lines)
    if language == "python":
        return _of_python(text, lines)
    return Census(Programming.PLAIN, lines=lines)


def _of_python(text: bytes, lines: int) -> Census:
    kernels = len(_NUMBA.findall(text))
    if embedded.may_hold(text):
        kernels += len(_GLOBAL.findall(text))
    if kernels:
        return Census(Programming.SIMT, frozenset(("cuda",)), kernels, lines)
    found = {name: len(begun.findall(text)) for name, (imported, begun) in _TILES.items() if imported.search(text)}
    kernels = sum(found.values())
    if kernels:
        return Census(Programming.TILE, frozenset(name for name, many in found.items() if many), kernels, lines)
    return Census(Programming.GRAPH if found or _FRAMEWORKS.search(text) else Programming.PLAIN, lines=lines)
