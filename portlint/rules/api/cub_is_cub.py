"""CUB's namespace is taken to be `cub` on every platform.

PyTorch's hipify turns `<cub/cub.cuh>` into `<hipcub/hipcub.hpp>`, and renames the classes that it knows. Every other
`cub::` stays as it is and names nothing: hipCUB's namespace is `hipcub`.

## Exceptions
Names that PyTorch's hipify translates are silent, and so are files where `cub` is made to mean something, in the file or in
a header of its tree (`namespace cub = hipcub;`), and code behind a test of the platform.

## References
https://rocm.docs.amd.com/projects/hipCUB/en/latest/what-is-hipcub.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"api.cub_namespace": "native"},
    message="'{text}' is still in the namespace 'cub' after PyTorch's hipify; {target} has {fact}.",
    remedy={
        "amd": "After the includes write `#ifdef USE_ROCM`, `namespace cub = hipcub;`, `#endif`, and check that hipCUB has the name.",
        "*": "Keep it behind a test of the platform, and use the vendor's own primitives there.",
    },
)

TRANSLATED = frozenset(
    "ArgMax ArgMin BLOCK_SCAN_WARP_SCANS BLOCK_REDUCE_WARP_REDUCTIONS BLOCK_STORE_WARP_TRANSPOSE BLOCK_LOAD_DIRECT"
    " BLOCK_STORE_DIRECT BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY BlockReduce BlockScan BlockLoad BlockStore"
    " BlockRakingLayout BlockRadixSort Uninitialized RowMajorTid CachingDeviceAllocator CountingInputIterator"
    " DeviceHistogram DeviceRadixSort DeviceReduce DeviceRunLengthEncode DeviceScan DeviceSegmentedRadixSort"
    " DeviceSegmentedReduce DeviceSelect FpLimits KeyValuePair Max Min Sum LaneId WarpMask ShuffleIndex ShuffleDown"
    " ArgIndexInputIterator TransformInputIterator WarpReduce CTA_SYNC".split()
)
"""what PyTorch's hipify renames (torch/utils/hipify/cuda_to_hip_mappings.py)"""
QUALIFIED = regex(r"(?:::\s*)?cub\s*::\s*(\w+)")


@rule.cuda_words("cub".__eq__)
def used(word: Node) -> Hits:
    if word.source.defines("cub"):
        return
    whole = next(word.ancestors("qualified_identifier", "using_declaration"), word)
    found = QUALIFIED.match(whole.text)
    if whole.type == "using_declaration" or (found is not None and found[1] not in TRANSLATED):
        yield Hit(whole)
