"""The toolkit is taken to say which CUDA it is.

`CUDA_VERSION` and `CUDART_VERSION` come from CUDA's headers, and HIPIFY leaves them as they are. HIP's headers do not have
them: in an expression they stop the compiler, and in `#if` they count as 0, older than every CUDA, so that the `#error` for
old toolkits stops it.

## Exceptions
A test that only chooses between branches is silent, for the branch of an old CUDA is mostly right. So are tests behind one
of the platform or of the macro itself, macros that the tree defines, and expressions in extensions of PyTorch, whose
hipify gives them a version.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, asked_by, regex

rule = Rule(
    assumes={"api.cuda_version_macros": "native"},
    message="'{test}' {what}; {target} has {fact}.",
    remedy={
        "amd": "Ask for the platform first: `#if defined(__HIP_PLATFORM_AMD__)` with a test of `HIP_VERSION` there, `#elif CUDA_VERSION >= ...` after it.",
        "*": "Ask for the platform first, and for CUDA's version only with CUDA.",
    },
)

VERSIONS = frozenset(("CUDA_VERSION", "CUDART_VERSION"))
CUDA_HEADER = regex(rb"^[ \t]*#[ \t]*include[ \t]*[<\"]\S*cuda", re.MULTILINE)


@rule.cuda("(preproc_call directive: (preproc_directive) @directive) @whole")
def stops(whole: Node, directive: Node) -> Hits:
    guards = whole.guards
    if directive.text.replace(" ", "") != "#error" or not guards or not _is_from_cuda(whole, *VERSIONS):
        return
    asked = asked_by(guards)
    if asked & VERSIONS and asked <= VERSIONS:
        words = {"test": guards[-1].text, "what": "stops the compiler where CUDA's headers give no version"}
        yield Hit(directive, words=words)


@rule.cuda_words(VERSIONS.__contains__)
def computes(word: Node) -> Hits:
    if _is_in_directive(word) or not _is_from_cuda(word, word.text) or word.role("torch-extension"):
        return
    before = (use for use in word.uses if use.start < word.start and not _is_in_directive(use))
    if all(use.guards != word.guards for use in before):  # once is enough
        yield Hit(word, words={"test": word.text, "what": "is a name that CUDA's headers define"})


def _is_from_cuda(node: Node, *names: str) -> bool:
    """Whether the macros are CUDA's here, and neither the tree's nor given by the build to a file without CUDA."""
    source = node.source
    compiled_for_cuda = source.path.endswith((".cu", ".cuh")) or CUDA_HEADER.search(source.text) is not None
    return compiled_for_cuda and not any(map(source.defines, names))


def _is_in_directive(word: Node) -> bool:
    """Whether a word is in a directive, bodies of macros included, also where the tree is broken around it."""
    lines = word.source.text[: word.start].replace(b"\\\r\n", b"").replace(b"\\\n", b"")
    return lines.rpartition(b"\n")[2].lstrip().startswith(b"#")
