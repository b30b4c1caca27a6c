"""A name that HIP got late is taken to be in every ROCm release.

HIP 7.0 brought counterparts for `cudaLaunchKernelExC` and its attributes, for FP4 types and for `__syncwarp`; HIP 7.1 for
batched copies, libraries of kernels and attributes of streams. Code that uses them builds there, and stops on the releases
before, which many clusters still run.

## Exceptions
Silent for parts that need that release anyway, where the file or a header of its tree defines the name, and behind a test
of the HIP or ROCm version. A name is reported where it is first used.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/hip-7-changes.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, asked_by, at_most, cuda_name, on_platform, regex

rule = Rule(
    assumes={},
    otherwise="degrades",
    message="'{name}' is in HIP from ROCm {assumed} on; {target} has {fact}.",
    remedy={
        "amd": "Ask for that release in the build, or keep a path without it behind a test of `HIP_VERSION`, which is at least 70000000 for 7.0 and 70100000 for 7.1 (for `__syncwarp`: `__builtin_amdgcn_wave_barrier()` with a fence).",
        "*": "Ask for the toolkit that has it in the build.",
    },
)

VERSION = regex(r"(HIP|ROCM)\w*VERSION")


def came_late(name: str) -> bool:
    row = cuda_name(name)
    return row is not None and bool(row.since)


@rule.cuda_words(came_late)
def used(word: Node) -> Hits:
    name = word.text.split()[0]
    row = cuda_name(name)
    if row is None or word.type == "field_identifier" or word.source.defines(name) or word.declaration is not None:
        return
    guards = word.guards
    if word.is_first_use and not any(VERSION.search(one) for one in asked_by(guards)):
        needed = {"api.oldest_rocm": at_most(float(row.since))}
        yield Hit(word, assumes=needed, words={"name": name}, guards=(*guards, on_platform("rocm")))
