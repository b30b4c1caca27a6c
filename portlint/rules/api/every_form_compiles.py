"""Every form of an operation is taken to compile where its common form does.

Neuron's compiler takes convolutions, top-k, reductions over windows and random bits, but stops at some of their forms: a
top-k of integers, an input and a kernel that are both dilated (as a transposed convolution with stride and dilation is),
windows over dilated values or several operands, and random bits by a named algorithm.

## Exceptions
Sizes that are not written in the file, values of a type that is not known, and values on the host are silent.

## References
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/compiler/error-codes/index.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, on_platform

rule = Rule(
    assumes={
        "api.integer_topk": "native",
        "api.dilated_input": "native",
        "api.dilated_windows": "native",
        "api.joint_windows": "native",
        "api.random_algorithms": "native",
    },
    message="'{text}' is taken to compile; {target} has {fact}.",
    remedy={
        "*": "Convert integers to float32 for a top-k, dilate in a step of its own, reduce one operand at a time, and leave the algorithm of random bits to the framework.",
    },
)


@rule.calls("torch.topk", ".topk")
def of_integers(call: Node) -> Hits:
    value = call.argument(0, "input") if call.name else call["function"]["object"]
    if value is None or not value.role("tensor") or value.role("on-host"):
        return
    if value.role("int64") or value.role("int32"):
        yield _hit(call, "api.integer_topk")


@rule.calls(*(f"torch.nn.ConvTranspose{n}d" for n in "123"))
def transposed_module(call: Node) -> Hits:
    if _exceeds_one(call.argument(3, "stride")) and _exceeds_one(call.argument(8, "dilation")):
        yield _hit(call, "api.dilated_input")


@rule.calls(*(f"torch.nn.functional.conv_transpose{n}d" for n in "123"))
def transposed(call: Node) -> Hits:
    if _exceeds_one(call.argument(3, "stride")) and _exceeds_one(call.argument(7, "dilation")):
        yield _hit(call, "api.dilated_input")


@rule.calls("jax.lax.conv_general_dilated", "jax.lax.conv_transpose")
def convolved(call: Node) -> Hits:
    if call.name.endswith("transpose"):
        dilates, others = call.argument(2, "strides"), [call.argument(4, "rhs_dilation")]
    else:
        dilates = call.argument(4, "lhs_dilation")
        others = [call.argument(2, "window_strides"), call.argument(5, "rhs_dilation")]
    if _exceeds_one(dilates) and any(map(_exceeds_one, others)):
        yield _hit(call, "api.dilated_input", "jax")


@rule.calls("jax.lax.reduce_window")
def windows(call: Node) -> Hits:
    operand = call.argument(0, "operand")
    if _exceeds_one(call.argument(6, "base_dilation")) or _exceeds_one(call.argument(7, "window_dilation")):
        yield _hit(call, "api.dilated_windows", "jax")
    elif operand is not None and operand.type == "tuple" and len(operand.children) > 1:
        yield _hit(call, "api.joint_windows", "jax")


@rule.calls("jax.lax.rng_bit_generator")
def random_bits(call: Node) -> Hits:
    algorithm = call.argument(3, "algorithm")
    if algorithm is not None and algorithm.text.endswith(("RNG_THREE_FRY", "RNG_PHILOX")):
        yield _hit(algorithm, "api.random_algorithms", "jax")


def _hit(node: Node, fact: str, language: str = "") -> Hit:
    return Hit(node, assumes={fact: "native"}, guards=(*node.guards, on_platform("neuron")), language=language)


def _exceeds_one(size: Node | None) -> bool:
    """Whether a size, or one of several, is known to be more than 1."""
    value = None if size is None else size.constant
    sizes = value if isinstance(value, tuple) else (value,)
    return any(isinstance(one, int) and one > 1 for one in sizes)
