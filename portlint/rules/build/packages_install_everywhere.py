"""A package that exists for some vendors' machines only is required on every machine.

pip finds no wheel for the machine, tries to build the package and stops where it looks for nvcc; nothing of the project is
installed then, code that never needs the package included. Or it takes a wheel that wants a newer PyTorch, and that of PyPI
replaces the machine's own. Where wheels install on any Linux they are ballast, and the program fails where it imports them.

## Exceptions
Silent in extras, where a marker leaves the machine out, where a requirements file is named for the platform or asks for nothing
else, in projects most of whose modules import the package, and in container files and scripts.

## References
https://packaging.python.org/en/latest/specifications/dependency-specifiers/
"""

from __future__ import annotations

from portlint.rule import Entry, Hit, Hits, Rule, unless, when

rule = Rule(
    assumes={},
    message="'{text}' is required on every machine; {target} has {fact}.",
    remedy={
        "*": "Move it into an extra (`[project.optional-dependencies]`) or a requirements file of its own, and import it where it is used.",
    },
)

LINUX, ELSEWHERE = unless("is_mps"), when("is_mps")
PACKAGES = {
    "deep-gemm": ("library.deep_gemm", "deep_gemm"),
    "fbgemm-gpu": ("library.fbgemm_gpu", "fbgemm_gpu"),
    "flash-attn": ("library.flash_attn", "flash_attn"),
    "flashinfer-python": ("library.flashinfer", "flashinfer"),
    "nvidia-cutlass-dsl": ("library.cutlass", "cutlass"),
    "nvidia-dali-cuda120": ("library.nvidia_dali", "nvidia"),
    "nvidia-tensorrt": ("library.tensorrt", "tensorrt"),
    "pycuda": ("library.pycuda", "pycuda"),
    "tensorrt": ("library.tensorrt", "tensorrt"),
    "transformer-engine": ("library.transformer_engine", "transformer_engine"),
    "xformers": ("library.xformers", "xformers"),
}
"""each with the fact that says where it runs, and the module that it brings"""
INSTALLING = frozenset(
    "fbgemm-gpu flashinfer-python nvidia-cutlass-dsl nvidia-dali-cuda120 nvidia-tensorrt tensorrt transformer-engine".split()
)
"""those whose wheels install on any Linux and leave PyTorch alone"""


@rule.recipes("package")
def required(entry: Entry) -> Hits:
    fact, module = PACKAGES.get(entry.name.partition("[")[0], ("", ""))
    if not fact or not entry.is_in_manifest or entry.choice or entry.is_subject(module):
        return
    if entry.name in INSTALLING:
        yield Hit(entry.node, assumes={fact: "native"}, guards=(*entry.guards, LINUX), otherwise="degrades")
        yield Hit(entry.node, assumes={fact: "native"}, guards=(*entry.guards, ELSEWHERE))
    else:
        yield Hit(entry.node, assumes={fact: "native"})
