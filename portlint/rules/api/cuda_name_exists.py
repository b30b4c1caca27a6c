"""A name of the CUDA toolkit is taken to exist wherever CUDA code builds.

HIP has a counterpart for most CUDA names, and HIPIFY puts it there. Names that came late, that belong to hardware of NVIDIA's
or to a library without a sibling have none: hipcc stops at them. New CUDA toolkits drop names as well, and a new part needs
a new toolkit.

## Exceptions
Names that HIPIFY translates are silent, and so are those that the file or a header of its tree defines, code that another
platform never sees, and files with a twin for AMD. Those that stand for a feature of the hardware are reported by
`isa/hopper-only`. A removed name behind a test of the toolkit's version is silent for NVIDIA.

## References
https://rocm.docs.amd.com/projects/HIPIFY/en/latest/reference/supported_apis.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, asked_by, cuda_name, has, is_cuda_name, on_platform, regex

rule = Rule(
    assumes={},
    message="'{name}' is not in {fact}, which {target} is built with{instead}.",
    remedy={
        "amd": "Keep the call behind `#ifndef USE_ROCM` (or `__HIP_PLATFORM_AMD__`) and write the AMD branch with the nearest replacement; where there is none, do without the feature there.",
        "nvidia": "Use what replaced it in the CUDA toolkit, or keep it behind a test of `CUDART_VERSION`.",
        "*": "Use the vendor's own interface.",
    },
)

DECLARING = (
    "function_declarator",
    "preproc_def",
    "preproc_function_def",
    "preproc_ifdef",
    "preproc_defined",
    "preproc_call",
)
TYPES = ("struct_specifier", "union_specifier", "enum_specifier")
PLAIN = frozenset("llmax llmin ullmax ullmin umax umin".split())
"""names that anybody may use for something else: the toolkit's only where device code calls them"""
VERSION = regex(r"VERSION|VER_M")


@rule.cuda_words(is_cuda_name)
def used(word: Node) -> Hits:
    name = word.text.split()[0]
    row = cuda_name(name)
    if row is None or row.feature or not _is_a_use(word):
        return
    settled = row.hip and not row.removed  # in every toolkit, and only counted
    if not settled and (word.source.defines(name) or word.declaration is not None):
        return
    if row.torch and word.role("torch-extension"):
        return
    guards = word.guards
    if row.removed and any(VERSION.search(name) for name in asked_by(guards)):
        guards = (*guards, on_platform("amd"))
    yield Hit(word, assumes={"api.cuda_names": has(name)}, words={"name": name}, guards=guards)


def _is_a_use(word: Node) -> bool:
    """Whether the name is the toolkit's here, and not declared, tested for, or another's member."""
    parent = word.parent
    if parent is None or word.type in ("field_identifier", "ERROR"):
        return False
    if word.text in PLAIN and not (parent.type == "call_expression" and word.role("device-only")):
        return False
    if parent.type in DECLARING:
        return word.type == "preproc_arg"  # what a macro stands for
    if parent.type in TYPES and parent.parent is not None and parent.parent.type == "type_definition":
        return False  # `typedef struct name *pointer;` declares the structure
    if parent.type == "enumerator":
        return parent["name"] != word
    if parent.type == "qualified_identifier":
        scope = parent.get("scope")
        return scope is None or not scope.text
    return True
