"""A Triton launch counts the rows of a matrix along the second or third axis of its grid.

Only the first axis is long: the others end at 65,535 blocks or one more, and a batch of more rows than that does not launch.
Tests with small batches pass.

## Exceptions
Silent are rows that go by tiles (`triton.cdiv(rows, BLOCK)`), sizes of tensors whose number of dimensions the file does not
say, and files that know the limit: they name 65535 or 65536.

## References
https://github.com/NVIDIA/cccl/blob/571f2fc3/libcudacxx/include/cuda/__device/arch_traits.h
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, at_most

rule = Rule(
    assumes={},
    message="'{text}' is as many blocks on axis {axis} of the grid as there are rows, {assumed} at most; {target} has {fact}.",
    remedy={
        "*": "Put the rows on axis 0, which takes 2**31 - 1 blocks, and take both indices from it: `pid % tiles`, `pid // tiles`.",
    },
)

FIRST_AXIS = 2**31 - 1
KNOWS = ("65535", "65536", "65_535", "65_536")
FLATTENING = ("view", "reshape")


@rule.python("(call function: (subscript)) @call", mentions=("triton",))
def launch(call: Node) -> Hits:
    grid = call.grid if call.launched is not None else None
    if grid is None or any(map(call.source.mentions, KNOWS)):
        return
    for axis, size in list(enumerate(grid.children))[1:3]:
        most = size.constant if isinstance(size.constant, int) else FIRST_AXIS if _counts_rows(size) else 0
        if most:
            assumes = {"launch.blocks_per_other_axis": at_most(most)}
            guards = (*call.guards, *size.guards)
            yield Hit(size, assumes, words={"axis": axis}, guards=guards, language="triton")


def _counts_rows(size: Node, depth: int = 4) -> bool:
    """Whether a size is the number of rows of a matrix, or that times something."""
    if not depth:
        return False
    if size.type == "binary_operator" and size["operator"].text == "*":
        return _counts_rows(size["left"], depth - 1) or _counts_rows(size["right"], depth - 1)
    if size.type == "subscript":
        shape = size["value"]
        is_first = size["subscript"].constant == 0 and shape.type == "attribute" and shape["attribute"].text == "shape"
        return is_first and _is_flattened(shape["object"])
    if size.type != "identifier":
        return False
    unpacked = size.unpacked
    if unpacked is not None:
        value, index, count = unpacked
        return index == 0 and count == 2 and _is_shape(value)
    return size.assigned is not None and _counts_rows(size.assigned, depth - 1)


def _is_shape(value: Node) -> bool:
    if value.type == "attribute":
        return value["attribute"].text == "shape"
    return value.type == "call" and value["function"].text.endswith(".size") and not value.arguments


def _is_flattened(tensor: Node) -> bool:
    """Whether a tensor is made a matrix: `x.view(-1, size)`."""
    made = tensor.assigned if tensor.type == "identifier" else tensor
    if made is None or made.type != "call" or made["function"].type != "attribute":
        return False
    return made["function"]["attribute"].text in FLATTENING and (
        len(made.arguments) == 2 and made.arguments[0].constant == -1
    )
