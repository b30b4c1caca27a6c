"""A Triton tile configuration is taken to fit the shared memory of the machine it was tuned on.

The software pipeline keeps `num_stages - 1` tiles of both operands in shared memory, at the least. A configuration for
228 KiB of Hopper does not start with 64 KiB of LDS: OutOfResources. In an autotune list Triton drops it and goes on
with the rest, so the tuning is lost but the kernel runs.

## Exceptions
Only operands that reach `tl.dot` in a loop as they were loaded are counted: what is scaled or converted in between passes
through registers.

## References
https://triton-lang.org/main/python-api/generated/triton.Config.html
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, at_most

rule = Rule(
    assumes={},
    message="'{text}' keeps at least {assumed} bytes in shared memory, at {element} an element; {target} has {fact}.",
    remedy={
        "amd": "Add configurations with fewer stages (`num_stages=2`) and smaller BLOCK_K; choose the list by `triton.runtime.driver.active.get_current_target()`.",
        "*": "Add configurations with fewer stages or smaller tiles, and choose the list by the device's shared memory, `max_shared_mem` of `triton.runtime.driver.active.utils.get_device_properties(index)`.",
    },
)

EDGES = {
    "m": ("BLOCK_M", "BLOCK_SIZE_M", "BM", "BLOCK_SIZE_M1"),
    "n": ("BLOCK_N", "BLOCK_SIZE_N", "BN", "BLOCK_SIZE_N1"),
    "k": ("BLOCK_K", "BLOCK_SIZE_K", "BK", "BLOCK_SIZE_K1"),
}
NARROW = re.compile(r"(tl|torch|triton\.language)\.(u?int8|float8\w*)")
"""formats of one byte; a file that names none of them is taken to multiply formats of two"""


@rule.calls("triton.Config")
def configuration(call: Node) -> Hits:
    tile, stages = call.argument(0, "kwargs"), call.argument(2, "num_stages")
    if tile is None or stages is None or tile.type != "dictionary":
        return
    edges = {pair["key"].constant: pair["value"].constant for pair in tile.children if pair.type == "pair"}
    sizes = [next((edges[name] for name in names if name in edges), None) for names in EDGES.values()]
    if any(keyword["name"].text == "prune_configs_by" for keyword in call.source.root.walk("keyword_argument")):
        return  # the file drops what does not fit by itself
    count = stages.constant
    if not isinstance(count, int) or not all(isinstance(size, int) for size in sizes):
        return
    m, n, k = (int(size) for size in sizes)  # type: ignore[arg-type]
    element_bytes = 1 if any(NARROW.fullmatch(one.text) for one in call.source.root.walk("attribute")) else 2
    needed = (count - 1) * _elements_of_a_stage(call, m * k, k * n) * element_bytes
    yield Hit(
        call,
        assumes={"memory.shared_bytes": at_most(needed)},
        words={"element": "1 byte" if element_bytes == 1 else "2 bytes"},
        otherwise="breaks" if call.role("only-element") else "degrades",
        language="triton",
    )


def _elements_of_a_stage(config: Node, left: int, right: int) -> int:
    """The elements that a stage keeps for `tl.dot` in a loop: of an operand that comes from memory as it is.

    An operand that is converted or scaled in between passes through registers. Kernels of other files are taken to
    keep both operands.
    """
    dots = [call for call in config.source.root.walk("call") if call.name == "triton.language.dot"]
    kernel = next(config.ancestors("decorated_definition"), None)
    own = [dot for dot in dots if kernel is not None and dot.function == kernel["definition"]]
    if not dots:
        return left + right
    kept = [_kept(dot, left, right) for dot in own or dots]
    return max(kept) if own else min(kept)


def _kept(dot: Node, left: int, right: int) -> int:
    if not any(True for _ in dot.ancestors("for_statement", "while_statement")):
        return 0
    first, second = dot.argument(0, "input"), dot.argument(1, "other")
    kept_first = first is not None and first.role("loaded")
    kept_second = second is not None and second.role("loaded")
    return left * kept_first + right * kept_second
