"""A Triton product runs over fewer elements than the matrix unit of the machine takes.

`tl.dot` has a smallest inner dimension, which is the back end's. AMD's falls back to ordinary multiplications; on NVIDIA
the kernel does not compile with fewer than 16 elements of 16 bits, 32 of 8 bits, or 8 of 32 bits.

## Exceptions
Sizes that are known at run time only are silent, and so are 8 elements that the kernel converts to float32.

## References
https://triton-lang.org/main/python-api/generated/triton.language.dot.html
https://github.com/triton-lang/triton/blob/main/third_party/nvidia/backend/compiler.py
"""

from __future__ import annotations

from portlint.rule import Configuration, Hit, Hits, Node, Rule, at_least

rule = Rule(
    assumes={},
    message="'{text}' makes a product over {assumed} elements; {target} has {fact}.",
    remedy={
        "*": "Pad the inner dimension: load 16 elements with a mask and `other=0.0`, or multiply and add with `tl.sum` instead.",
    },
)

DEEPEST = 16
"""where 16-bit types are taken everywhere"""
OF_32_BITS = 8
"""where 32-bit types are"""


@rule.calls("triton.language.dot")
def product(call: Node) -> Hits:
    left, right, kernel = call.argument(0, "input"), call.argument(1, "other"), call.function
    if left is None or right is None or kernel is None:
        return
    for one in kernel.compilations or [Configuration(call, {})]:
        depth = _depth(left, one) or _depth(right, one, is_right=True)
        if depth is None or depth >= DEEPEST or not one.is_certain:
            continue
        if depth >= OF_32_BITS and (_is_wide(left) or _is_wide(right) or call.argument(None, "input_precision")):
            continue
        shown = _decides(one, left) or left
        guards = (*call.guards, *one.guards)
        yield Hit(shown, {"launch.triton_dot_depth": at_least(depth)}, guards=guards, language="triton")


def _depth(operand: Node, one: Configuration, *, is_right: bool = False) -> int | None:
    """The inner dimension of a factor under a configuration."""
    shape = operand.shape_under(one.values)
    return None if shape is None or len(shape) != 2 else shape[0 if is_right else 1]


def _is_wide(operand: Node) -> bool:
    """Whether a factor is float32 by a conversion that stands in the kernel."""
    value = operand.assigned or operand
    return any(word.name == "triton.language.float32" for word in value.walk("attribute"))


def _decides(one: Configuration, left: Node) -> Node | None:
    """Where the parameter is given its value that the depth comes from."""
    for name, node in one.written.items():
        without = {key: value for key, value in one.values.items() if key != name}
        shape = left.shape_under(without)
        if name in one.values and (shape is None or shape[-1] is None):
            pair = node.parent
            return pair if pair is not None and pair.type in ("pair", "keyword_argument") else node
    return None
