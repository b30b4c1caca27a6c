"""Every GPU is taken to have texture hardware.

AMD's CDNA3 and CDNA4 parts have no image instructions. Their compiler refuses `tex2D`, `tex1Dfetch`, `surf2Dread` and
the like as unavailable, and the runtime makes no texture or surface object.

## Exceptions
Code behind `__HIP_NO_IMAGE_SUPPORT`, and names that the tree defines itself, are silent.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hardware_features.html
"""

from __future__ import annotations

from portlint.rule import DEVICE_PASS, Hit, Hits, Node, Rule, asked_by

rule = Rule(
    assumes={"memory.textures": "native"},
    message="'{text}' needs texture hardware; {target} has {fact}.",
    remedy={
        "amd": "Read from global memory, through `__ldg` or a `const __restrict__` pointer, clamp and interpolate in code; keep the texture path behind `#if !__HIP_NO_IMAGE_SUPPORT`, and ask for `hipDeviceAttributeImageSupport` on the host.",
        "*": "Read from global memory, and clamp and interpolate in code.",
    },
)

SHAPES = "1D 2D 3D 1DLayered 2DLayered Cubemap CubemapLayered".split()
FETCHES = [f"tex{shape}{way}" for shape in SHAPES for way in ("", "Lod", "Grad")]
SURFACES = [f"surf{shape}{way}" for shape in SHAPES for way in ("read", "write")]


@rule.cuda_calls("tex1Dfetch", "tex2Dgather", *FETCHES, *SURFACES)
def access(call: Node) -> Hits:
    if call["function"].type in ("identifier", "template_function") and not call.source.defines(call.name):
        yield Hit(call["function"], guards=(*call.guards, DEVICE_PASS))


@rule.cuda_calls("cudaCreateTextureObject", "cudaCreateSurfaceObject", "hipCreateTextureObject", "cuTexObjectCreate")
def creation(call: Node) -> Hits:
    asks = "__HIP_NO_IMAGE_SUPPORT" in asked_by(call.guards) or b"ImageSupport" in call.source.text
    if not asks and call.role("of-the-toolkit"):
        yield Hit(call["function"])
