"""Features that came with Hopper or Blackwell are taken for granted.

Clusters, programmatic dependent launch, the tensor memory accelerator, `wgmma` and `tcgen05` exist on some NVIDIA parts
only: none of them on AMD, `wgmma` on no Blackwell part, `tcgen05` on no consumer part.

## Exceptions
CUTLASS's functions are silent in files that include a definition of the project's own, as in CUTLASS itself: what stands in
its body is judged.

## References
https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={},
    message="'{text}' needs a feature that only some NVIDIA parts have; {target} has {fact}.",
    remedy={
        "amd": "Keep it behind `#ifndef USE_ROCM`, and launch or copy without it in the AMD branch: a plain launch for clusters and dependent launch, a loop of vector loads into LDS for the tensor memory accelerator, MFMA (CDNA) or WMMA (RDNA) for `wgmma`.",
        "nvidia": "Choose this path by the exact architectures that have the feature, and keep a path for the others.",
        "*": "Choose this path by the device, and keep a path without the feature.",
    },
)

FACTS = {
    "cudaLaunchAttributeClusterDimension": "isa.clusters",
    "cudaLaunchAttributeClusterSchedulingPolicyPreference": "isa.clusters",
    "cudaLaunchAttributePreferredClusterDimension": "isa.clusters",
    "cudaFuncAttributeNonPortableClusterSizeAllowed": "isa.clusters",
    "cudaOccupancyMaxActiveClusters": "isa.clusters",
    "cudaOccupancyMaxPotentialClusterSize": "isa.clusters",
    "__cluster_dims__": "isa.clusters",
    "this_cluster": "isa.clusters",
    "cluster_group": "isa.clusters",
    "cudaLaunchAttributeProgrammaticStreamSerialization": "isa.pdl",
    "cudaLaunchAttributeProgrammaticEvent": "isa.pdl",
    "cudaGridDependencySynchronize": "isa.pdl",
    "cudaTriggerProgrammaticLaunchCompletion": "isa.pdl",
    "CUtensorMap": "isa.tma",
    "cuTensorMapEncodeTiled": "isa.tma",
    "cuTensorMapEncodeIm2col": "isa.tma",
    "cuTensorMapReplaceAddress": "isa.tma",
    "warpgroup_reg_alloc": "isa.setmaxnreg",
    "warpgroup_reg_dealloc": "isa.setmaxnreg",
    "warpgroup_arrive": "isa.wgmma",
}
OF_CUTLASS = ("warpgroup_reg_alloc", "warpgroup_reg_dealloc", "warpgroup_arrive")
"""functions of a library and not of the toolkit; a project that defines them itself is judged there"""
NAMES = " ".join(f'"{name}"' for name in FACTS)


@rule.cuda(f"([(identifier) (type_identifier)] @name (#any-of? @name {NAMES}))")
def feature(name: Node) -> Hits:
    declared = name.declaration is not None and not name.text.startswith("__")  # an attribute may read as a variable
    if declared or name.source.defines(name.text):
        return
    if name.text in OF_CUTLASS and name.role("defined-by-the-project"):
        return
    yield Hit(name, assumes={FACTS[name.text]: "native"})
