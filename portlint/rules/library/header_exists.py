"""The header of a library that only NVIDIA has is included in every build.

HIPIFY translates the headers whose libraries have a sibling in ROCm. These have none, or one with another interface, so the
compiler stops at the include.

## Exceptions
Includes behind a test of the platform or of `__has_include` are silent, and so are headers that the same tree holds, and
files that the build does not compile for the platform, and headers whose path names CUTLASS or a generation of NVIDIA's
(`cutlass_extensions/`, `sm90_pipeline.hpp`): whoever includes them is reported. Each library is reported once per file.

## References
https://rocm.docs.amd.com/en/latest/reference/api-libraries.html
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={},
    message="'{text}' is a header of NVIDIA's; {target} has {fact}.",
    remedy={
        "amd": "Keep the include and what needs it behind `#ifndef USE_ROCM`, and write the AMD branch with what is nearest: Composable Kernel for CUTLASS, hipDNN (beta) or MIOpen for the cuDNN frontend, HIP RT for OptiX, RPP for NPP, rocJPEG for nvJPEG, rocSHMEM for NVSHMEM, ROCprofiler-SDK for CUPTI, hipCUB or shuffles for reductions of cooperative groups, HIP's external memory for EGL and Direct3D.",
        "*": "Keep the include and what needs it behind a test of the platform.",
    },
)

HEADERS = (
    (regex(r"(cutlass|cute)/.*"), "library.cutlass_headers"),
    (regex(r"cudnn_frontend\w*\.h(pp)?"), "library.cudnn_frontend"),
    (regex(r"optix\w*\.h"), "library.optix"),
    (regex(r"npp[is]?(_\w+)?\.h|nppcore\.h|nppdefs\.h"), "library.npp"),
    (regex(r"nvjpeg\.h"), "library.nvjpeg"),
    (regex(r"nvshmemx?\.h|nvshmem_api/.*"), "library.nvshmem"),
    (regex(r"cupti(_\w+)?\.h"), "library.cupti"),
    (regex(r"cudaEGL\.h|cuda_egl_interop\.h|cuda_d3d\w+_interop\.h|cudaD3D\w+\.h"), "api.graphics_interop"),
    (regex(r"cooperative_groups/(reduce|scan)\.h"), "api.cooperative_groups_headers"),
)
OF_CUTLASS = regex(r"(cutlass|(^|[_/])sm_?\d{2,3}[af]?_)[^.]*\.(h|hh|hpp|cuh|inl)$", re.IGNORECASE)
WORDS = "cut|cudnn_|optix|npp|nvjpeg|nvshmem|cupti|cudaEGL|interop|cudaD3D|cooperative_groups"


@rule.cuda(f'((preproc_include path: (_) @path) (#match? @path "{WORDS}"))')
def header(path: Node) -> Hits:
    fact = _fact(path)
    if not fact or path.role("header-of-the-tree") or OF_CUTLASS.search(path.source.place):
        return
    if not _is_again(path, fact):
        yield Hit(path, assumes={fact: "native"})


def _fact(path: Node) -> str:
    """The fact about the library that an included header belongs to, or ""."""
    return next((fact for pattern, fact in HEADERS if pattern.fullmatch(path.text[1:-1])), "")


def _is_again(path: Node, fact: str) -> bool:
    """Whether a header of the same library is included before, under the same conditions."""
    guards = path.guards
    included = (one["path"] for one in path.source.root.walk("preproc_include"))
    return any(one.start < path.start and _fact(one) == fact and one.guards == guards for one in included)
