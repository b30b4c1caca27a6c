"""Copies from global to shared memory are taken to be asynchronous instructions.

`cuda_pipeline.h`, `cuda::memcpy_async` and `cooperative_groups::memcpy_async` stand for `cp.async`, which only NVIDIA has;
HIP ships none of these headers.

## References
https://docs.nvidia.com/cuda/cuda-c-programming-guide/#asynchronous-data-copies
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"isa.async_copy": "native"},
    message="'{text}' is an asynchronous copy to shared memory; {target} has {fact}.",
    remedy={
        "amd": "Load into registers and store to LDS before the barrier; keep two buffers in registers to overlap the next load. Put both versions behind one inline function.",
        "*": "Load into registers and store to shared memory before the barrier.",
    },
)

FUNCTIONS = (
    "__pipeline_memcpy_async __pipeline_commit __pipeline_wait_prior __pipeline_arrive_on memcpy_async"
    " producer_commit consumer_wait consumer_release producer_acquire"
)
HEADERS = (
    "cuda_pipeline.h cuda_pipeline_primitives.h cuda/pipeline cuda/barrier cooperative_groups/memcpy_async.h".split()
)
PATHS = " ".join(f'"<{name}>" "\\"{name}\\""' for name in HEADERS)
OWNERS = ("cuda", "cooperative_groups", "nvcuda", "nv")


@rule.cuda_calls(*FUNCTIONS.split())
def copy(call: Node) -> Hits:
    name = call.name
    is_copy = name.startswith("__pipeline") or name.split("::")[0] in OWNERS
    if is_copy and not call.source.defines(name):
        yield Hit(call["function"])


@rule.cuda(f"(preproc_include path: (_) @path (#any-of? @path {PATHS}))")
def header(path: Node) -> Hits:
    yield Hit(path)
