"""PyTorch is held to a release that is older than the part.

The wheels of a release hold machine code for the parts of its day, and PTX for none. On a newer part PyTorch warns that it is not
compatible, and every kernel fails with "no kernel image is available for execution on the device".

## Exceptions
A lower bound (`torch>=2.2`) lets in newer releases and is silent, and so is a file with an index of other builds. A wheel that names its CUDA (`+cu121`) is judged by that, by
`build/wheels-are-cuda`.

## References
https://github.com/pytorch/pytorch.github.io/pull/1989
"""

from __future__ import annotations

from portlint.rule import Entry, Hit, Hits, Rule, at_least, on_platform

rule = Rule(
    assumes={},
    message="'{text}' holds PyTorch to {assumed}; {target} has {fact}.",
    remedy={
        "nvidia-blackwell": "Let in PyTorch 2.7 or later, from an index of CUDA 12.8 or later (`--index-url https://download.pytorch.org/whl/cu128`).",
        "*": "Let in a release whose wheels have code for the part.",
    },
)


@rule.recipes("package")
def pinned(entry: Entry) -> Hits:
    if (
        entry.name != "torch"
        or entry.choice
        or "+" in entry.value
        or any(one.is_of_another_build for one in entry.node.source.entries)
    ):
        return
    newest = entry.newest
    if newest is not None and newest < (2, 10):  # no later release lacks a part
        release = float(f"{newest[0]}.{newest[1]}")
        yield Hit(
            entry.node, assumes={"build.oldest_torch": at_least(release)}, guards=(*entry.guards, on_platform("nvidia"))
        )
