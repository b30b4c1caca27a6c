"""libcu++ (`cuda::std`, `cuda::atomic_ref`) is taken to come with every GPU toolkit.

The CUDA Toolkit ships it. ROCm did not until its Core SDK 10.1, so hipcc stops at the include; libhipcxx, the port, was a
project to install by itself.

## Exceptions
A namespace `cuda` of the project, or of another library (`at::cuda`, `c10::cuda`), is silent, and so is code behind a test
of the platform or of `__has_include`. Each name is reported where it is first used. The headers of asynchronous copies
belong to `isa/async-copy`.

## References
https://rocm.docs.amd.com/projects/libhipcxx/en/latest/what-is-libhipcxx.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"api.libcudacxx": "native"},
    message="'{text}' is from libcu++; {target} has {fact}.",
    remedy={
        "amd": "Put libhipcxx on the include path (part of the ROCm Core SDK from 10.1 on; for older ROCm install it from ROCm/libhipcxx, where the same names work), or use `<type_traits>`, `<limits>` and HIP's atomics behind `#ifdef USE_ROCM`.",
        "*": "Keep it behind a test of the platform, and use the standard library there.",
    },
)

OF_ASYNC_COPY = ("<cuda/pipeline>", "<cuda/barrier>")
NAMES = frozenset(
    "std atomic atomic_ref atomic_thread_fence counting_semaphore binary_semaphore latch proclaim_return_type ceil_div"
    " maximum minimum annotated_ptr access_property stream_ref ptx".split()
)
"""the names of `cuda::` that are reported; barriers and pipelines belong to `isa/async-copy`"""
QUALIFIED = regex(r"(?:::\s*)?cuda\s*::\s*(\w+)")


@rule.cuda('((preproc_include path: (system_lib_string) @path) (#match? @path "cuda"))')
def header(path: Node) -> Hits:
    if path.text.startswith("<cuda/") and path.text not in OF_ASYNC_COPY:
        yield Hit(path)


@rule.cuda_words("cuda".__eq__)
def used(word: Node) -> Hits:
    name = _whole(word)
    found = QUALIFIED.match(name.text)
    if found is None or found[1] not in NAMES or word.source.defines("cuda"):
        return
    if not any(_is_earlier(use, name) for use in word.uses):
        yield Hit(name)


def _whole(word: Node) -> Node:
    """The qualified name that a word is the first part of."""
    whole = word
    for around in word.ancestors():
        if around.type not in ("qualified_identifier", "nested_namespace_specifier"):
            break
        whole = around
    return whole


def _is_earlier(use: Node, name: Node) -> bool:
    """Whether the same name stands before, live under the same conditions."""
    return use.start < name.start and _bare(_whole(use)) == _bare(name) and use.guards == name.guards


def _bare(name: Node) -> str:
    """A name without its template arguments and what is inside it."""
    return name.text.partition("<")[0]
