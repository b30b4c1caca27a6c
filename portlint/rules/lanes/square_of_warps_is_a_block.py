"""A block is a square whose edge is the width of a warp.

Where a warp has 32 lanes, 32 x 32 threads are the largest block there is. With a width of 64 the same square has 4,096
threads: the kernel does not launch.

## Exceptions
A tile edge of its own, which happens to be 32, is silent, and so is a width that is 32 wherever the code is compiled.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hardware_features.html
"""

from __future__ import annotations

import re

from portlint.rule import DEVICE_PASS, HOST_PASS, Hit, Hits, Node, Rule, at_most

rule = Rule(
    assumes={},
    message="'{text}' is a block of {assumed} threads where a warp is this wide; {target} has {fact}.",
    remedy={
        "amd": "Give the tile an edge of its own, such as `constexpr int kTile = 32;`, and keep the warp's width for lanes.",
        "*": "Give the tile an edge of its own.",
    },
)

BLOCK = re.compile(r"block|thread|cta", re.IGNORECASE)


@rule.cuda("(launch_bounds . (binary_expression) @threads)")
def launch_bounds(threads: Node) -> Hits:
    left, right = threads["left"], threads["right"]
    if threads["operator"].text != "*" or left.text != right.text or not left.role("warp-size"):
        return
    for value, guards in threads.values:
        if isinstance(value, int):
            assumes = {"launch.threads_per_block": at_most(value)}
            yield Hit(threads, assumes=assumes, guards=(*threads.guards, *guards, DEVICE_PASS))


@rule.cuda("(init_declarator declarator: (identifier) @name value: [(argument_list) (initializer_list)] @edges)")
@rule.cuda("(function_declarator declarator: (identifier) @name parameters: (parameter_list) @edges)")
def declared_block(name: Node, edges: Node) -> Hits:
    """`dim3 block(w, w)`, which the grammar takes for a function unless a literal is in it."""
    declared = next(edges.ancestors("declaration"), None)
    if declared is not None and declared["type"].text == "dim3" and BLOCK.search(name.text):
        yield from _square(edges)


@rule.cuda("(kernel_call_syntax . (_) . (call_expression arguments: (argument_list) @edges) @_block)")
def launched_block(edges: Node) -> Hits:
    """`kernel<<<grid, dim3(w, w)>>>`."""
    yield from _square(edges)


def _square(edges: Node) -> Hits:
    given = [(one.get("type") or one) if one.type == "parameter_declaration" else one for one in edges.children]
    if len(given) < 2 or given[0].text != given[1].text or not given[0].role("warp-size"):
        return
    for value, guards in given[0].values:
        if isinstance(value, int) and value > 1:
            assumes = {"launch.threads_per_block": at_most(value * value)}
            yield Hit(edges, assumes=assumes, guards=(*edges.guards, *guards, HOST_PASS))
