"""A product of matrices that were converted to float32 is taken to be computed in float32.

On TPU the matrix unit multiplies bfloat16: float32 operands are rounded to 8 bits of mantissa on their way in, unless the
call asks for more. Code that converts both operands first wanted the precision, and pays for the conversion without getting
it.

## Exceptions
Calls with a `precision`, and files that set `jax_default_matmul_precision`, are silent, and so are products of values whose
type the code does not state: what comes as float32 anyway may be a matter of no choice. Files with kernels for TPU know
its matrix unit.

## References
https://docs.jax.dev/en/latest/pallas/tpu/details.html
https://docs.jax.dev/en/latest/_autosummary/jax.default_matmul_precision.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, on_platform

rule = Rule(
    assumes={"numerics.float32_matmul": "native"},
    message="'{text}' multiplies operands that were converted to float32; {target} has {fact}.",
    remedy={
        "*": 'Ask for it: `precision="highest"` in the call, or `jax.default_matmul_precision("float32")` around it; or leave the operands in bfloat16 with `preferred_element_type=jnp.float32`.',
    },
)

PRODUCTS = (
    "jax.numpy.dot",
    "jax.numpy.matmul",
    "jax.numpy.einsum",
    "jax.numpy.tensordot",
    "jax.lax.dot",
    "jax.lax.dot_general",
)
CONVERSIONS = ("jax.numpy.asarray", "jax.numpy.array")
OPERANDS = 2


@rule.calls(*PRODUCTS)
def product(call: Node) -> Hits:
    operands = [one for one in call.arguments if one.type != "string"][:OPERANDS]
    if call.argument(None, "precision") is None:
        yield from _of_converted(operands, call["function"])


@rule.python('((binary_operator left: (_) @left operator: "@" right: (_) @right) @product)')
def operator(left: Node, right: Node, product: Node) -> Hits:
    if product.source.imports("jax"):
        yield from _of_converted([left, right], product)


def _of_converted(operands: list[Node], place: Node) -> Hits:
    source = place.source
    knows_better = b"matmul_precision" in source.text or source.imports("jax.experimental.pallas.tpu")
    if len(operands) == OPERANDS and not knows_better and all(map(_is_converted, operands)):
        yield Hit(place, guards=(*place.guards, on_platform("tpu")), otherwise="degrades", language="jax")


def _is_converted(operand: Node) -> bool:
    """Whether an operand is `x.astype(jnp.float32)` or `jnp.asarray(x, jnp.float32)`, in place, by name or transposed."""
    while operand.type == "attribute" and operand["attribute"].text in ("T", "mT"):
        operand = operand["object"]
    made = operand.assigned or operand
    if made.type != "call":
        return False
    function = made["function"]
    is_cast = function.type == "attribute" and function["attribute"].text == "astype"
    dtype = made.argument(0 if is_cast else 1, "dtype")
    return dtype is not None and dtype.name == "jax.numpy.float32" and (is_cast or made.name in CONVERSIONS)
