"""Every GPU is taken to have texture hardware.

AMD's CDNA3 and CDNA4 parts have no image instructions. Their compiler refuses `tex2D`, `tex1Dfetch`, `surf2Dread` and
the like as unavailable, and the runtime makes no texture or surface object.

## Exceptions
Code behind `__HIP_NO_IMAGE_SUPPORT`, and names that the tree defines itself, are silent, and so is a texture object in a file
whose fetches are all left out on the part.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hardware_features.html
"""

from __future__ import annotations

from portlint.rule import DEVICE_PASS, Hit, Hits, Node, Rule, asked_by, one_runs, regex

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
ACCESSES = ("tex1Dfetch", "tex2Dgather", *FETCHES, *SURFACES)
FETCH = regex(rb"\b(tex|surf)([123]D|Cubemap)")


@rule.cuda_calls(*ACCESSES)
def access(call: Node) -> Hits:
    if call["function"].type in ("identifier", "template_function") and not call.source.defines(call.name):
        yield Hit(call["function"], guards=(*call.guards, DEVICE_PASS))


@rule.cuda_calls("cudaCreateTextureObject", "cudaCreateSurfaceObject", "hipCreateTextureObject", "cuTexObjectCreate")
def creation(call: Node) -> Hits:
    asks = "__HIP_NO_IMAGE_SUPPORT" in asked_by(call.guards) or b"ImageSupport" in call.source.text
    if not asks and call.role("of-the-toolkit"):
        fetches = _fetches(call)
        own = (*call.guards, one_runs(fetches)) if fetches else None
        yield Hit(call["function"], guards=own)


def _fetches(creation: Node) -> list[Node]:
    """The fetches of the file that makes an object."""
    if not FETCH.search(creation.source.text):
        return []
    return [one for one in creation.source.root.walk("call_expression") if one.name in ACCESSES]
