"""Matrix products are written with `nvcuda::wmma`.

`mma.h` and its namespace come with NVIDIA's compiler. HIP has neither: hipcc stops at the include. rocWMMA has the same
shape of interface under another namespace, with fragment sizes of its own for each gfx target.

## References
https://rocm.docs.amd.com/projects/rocWMMA/en/latest/what-is-rocwmma.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"api.nvcuda_wmma": "native"},
    message="'{text}' is NVIDIA's warp matrix interface; {target} has {fact}.",
    remedy={
        "amd": "Include `<rocwmma/rocwmma.hpp>` and use the namespace `rocwmma` in the AMD branch; check each fragment shape and type against its table for the gfx target, and do not count on 32 lanes holding a fragment.",
        "*": "Keep this path behind a test of the platform, and use the vendor's matrix library elsewhere.",
    },
)


@rule.cuda('((preproc_include path: (_) @path) (#any-of? @path "<mma.h>" "\\"mma.h\\""))')
def header(path: Node) -> Hits:
    yield Hit(path)


@rule.cuda_calls("load_matrix_sync", "store_matrix_sync", "mma_sync", "fill_fragment")
def operation(call: Node) -> Hits:
    if call.name.startswith("nvcuda::") and not call.source.defines("nvcuda"):
        yield Hit(call["function"])
