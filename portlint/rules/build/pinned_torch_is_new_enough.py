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

import re

from portlint.rule import Entry, Hit, Hits, Rule, at_least, on_platform

rule = Rule(
    assumes={},
    message="'{text}' holds PyTorch to {assumed}; {target} has {fact}.",
    remedy={
        "nvidia-blackwell": "Let in PyTorch 2.7 or later, from an index of CUDA 12.8 or later (`--index-url https://download.pytorch.org/whl/cu128`).",
        "*": "Let in a release whose wheels have code for the part.",
    },
)

CLAUSE = re.compile(r"(===?|~=|<=?|>=?|!=)\s*v?(\d+)\.(\d+)([\w.*]*)(\+?)")

OTHERS = re.compile(r"/whl/(?:\w+/)?(cpu|rocm|xpu)")


@rule.recipes("package")
def pinned(entry: Entry) -> Hits:
    clauses = CLAUSE.findall(entry.value)
    if entry.name != "torch" or entry.choice or "+" in entry.value or _is_of_another_build(entry):
        return
    newest = min((found for one in clauses if (found := _newest(*one[:4])) is not None), default=None)
    if newest is not None and newest < (2, 10):  # no later release lacks a part
        release = float(f"{newest[0]}.{newest[1]}")
        yield Hit(
            entry.node, assumes={"build.oldest_torch": at_least(release)}, guards=(*entry.guards, on_platform("nvidia"))
        )


def _is_of_another_build(entry: Entry) -> bool:
    """Whether the wheel comes from an index that has none for CUDA."""
    return any(one.kind == "index" and OTHERS.search(one.value) for one in entry.node.source.entries)


def _newest(operator: str, major: str, minor: str, rest: str) -> tuple[int, int] | None:
    """The newest release, major and minor, that a clause lets in."""
    version = (int(major), int(minor))
    if operator == "<" and not rest.strip(".0*"):
        return (version[0], version[1] - 1) if version[1] else (version[0] - 1, 13)
    if operator == "~=" and not rest:
        return None
    return version if operator in ("==", "===", "~=", "<", "<=") else None
