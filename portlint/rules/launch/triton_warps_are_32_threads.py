"""The threads of a Triton program are counted as `num_warps * 32`.

A program runs on `num_warps` times the width of a warp. Where a wavefront has 64 lanes the count is half of what runs: a
launch through the driver starts half of the threads, and a bound on the block is twice too high.

## Exceptions
Only what is called a number of threads, or goes where a block's size does, is reported; sizes of tiles are silent. So is
what is written with TileLang, whose kernels take their number of threads and not of warps.

## Fix safety
Unsafe: it takes Triton 3.0 and a device at that time; on NVIDIA's the answer is 32. Inside of kernels nothing is fixed.

## References
https://github.com/triton-lang/triton/blob/main/python/triton/backends/compiler.py
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, regex, replace

rule = Rule(
    assumes={"lanes.width": 32},
    otherwise="corrupts",
    message="'{text}' counts 32 threads a warp; {target} has {fact}.",
    remedy={
        "*": "Multiply by the width of the target: `triton.runtime.driver.active.get_current_target().warp_size`, or the kernel's `metadata.warp_size`.",
    },
)

WIDTH = "triton.runtime.driver.active.get_current_target().warp_size"
THREADS = regex(r"thread|block_?dim|block_?size_?x|workgroup", re.IGNORECASE)


@rule.python(
    '((binary_operator left: (_) @one operator: "*" right: (_) @other) @product (#match? @product "num_warps"))'
)
def product(product: Node, one: Node, other: Node) -> Hits:
    sides = {"warps" if _counts_warps(side) else side.constant for side in (one, other)}
    if product.source.imports("tilelang"):
        return
    if sides == {"warps", 32} and product.source.imports("triton") and THREADS.search(_called(product)):
        width = one if one.constant == 32 else other
        edits = (replace(width, WIDTH),) if _is_on_host(product) else ()
        yield Hit(product, language="triton", edits=edits)


def _is_on_host(product: Node) -> bool:
    """Whether a product stands in a function that no compiler of kernels takes, where `triton` is known."""
    function = product.function
    marks = next(product.ancestors("decorated_definition"), None)
    return function is not None and marks is None and product.role("sees-triton")


def _counts_warps(node: Node) -> bool:
    return node.type in ("identifier", "attribute") and node.text.rpartition(".")[2] == "num_warps"


def _called(value: Node) -> str:
    """What the code calls a value: the name that it is given, the one it is compared with, or its function's."""
    for parent in value.ancestors():
        match parent.type:
            case "assignment":
                return parent["left"].text
            case "keyword_argument":
                return parent["name"].text
            case "pair":
                return parent["key"].text
            case "comparison_operator":
                return " ".join(one.text for one in parent.children if one != value)
            case "return_statement":
                return parent.function["name"].text if parent.function is not None else ""
            case "call" | "subscript" | "block":
                return ""
    return ""
