"""A package that exists for some vendors' machines only is required on every machine.

pip finds no wheel for the machine, tries to build the package and stops where it looks for nvcc; nothing of the project is
installed then, code that never needs the package included.

## Exceptions
Silent in extras, where a marker leaves the machine out, where a requirements file is named for the platform, and in container
files and scripts.

## References
https://packaging.python.org/en/latest/specifications/dependency-specifiers/
"""

from __future__ import annotations

from portlint.rule import Entry, Hit, Hits, Rule

rule = Rule(
    assumes={},
    message="'{text}' is required on every machine; {target} has {fact}.",
    remedy={
        "*": "Move it into an extra (`[project.optional-dependencies]`) or a requirements file of its own, and import it where it is used.",
    },
)

FACTS = {
    "deep-gemm": "library.deep_gemm",
    "fbgemm-gpu": "library.fbgemm_gpu",
    "flash-attn": "library.flash_attn",
    "flashinfer-python": "library.flashinfer",
    "nvidia-cutlass-dsl": "library.cutlass",
    "nvidia-dali-cuda120": "library.nvidia_dali",
    "nvidia-tensorrt": "library.tensorrt",
    "pycuda": "library.pycuda",
    "tensorrt": "library.tensorrt",
    "transformer-engine": "library.transformer_engine",
    "xformers": "library.xformers",
}


@rule.recipes("package")
def required(entry: Entry) -> Hits:
    fact = FACTS.get(entry.name.partition("[")[0])
    if fact is not None and entry.is_in_manifest and not entry.choice:
        yield Hit(entry.node, assumes={fact: "native"})
