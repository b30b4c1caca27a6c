"""A product of matrices that were converted to float32 is taken to be computed in float32.

On TPU the matrix unit multiplies bfloat16: float32 operands are rounded to 8 bits of mantissa on their way in, unless the
call asks for more. Code that converts both operands first wanted the precision, and pays for the conversion without getting
it.

## Exceptions
Calls with a `precision`, and files that set `jax_default_matmul_precision`, are silent, and so are products of values whose
type the code does not state: what comes as float32 anyway may be a matter of no choice. What was bfloat16 before loses
nothing; where a file speaks of narrow types, or gives its results the type of its inputs, the inputs are taken to be
narrow unless it says that they are not. Sums of products without a matrix, as `"bd,bd->b"`, never reach the matrix unit.
Files with kernels for TPU know it.

## References
https://docs.jax.dev/en/latest/pallas/tpu/details.html
https://docs.jax.dev/en/latest/_autosummary/jax.default_matmul_precision.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, on_platform, regex

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
WIDE = ("float32", "float64", "int32", "int64")
LITERALS = ("list", "tuple", "integer", "float")
OF_NARROW_TYPES = regex(rb"bfloat16|bf16|float8|fp8|int8|int4|quant|\.dtype\b")
EINSUM = "jax.numpy.einsum"


@rule.calls(*PRODUCTS)
def product(call: Node) -> Hits:
    operands = [one for one in call.arguments if one.type != "string"][:OPERANDS]
    multiplies = call.name != EINSUM or _is_matrix_product(call.arguments[0].constant if call.arguments else None)
    if call.argument(None, "precision") is None and multiplies:
        yield from _of_converted(operands, call["function"])


@rule.python('((binary_operator left: (_) @left operator: "@" right: (_) @right) @product)', mentions=("jax",))
def operator(left: Node, right: Node, product: Node) -> Hits:
    if product.source.imports("jax"):
        yield from _of_converted([left, right], product)


def _is_matrix_product(subscripts: object) -> bool:
    """Whether an einsum of two operands needs a matrix; XLA makes products and a sum of one that does not."""
    if not isinstance(subscripts, str) or subscripts.count(",") != 1:
        return True
    given, _, result = subscripts.replace(" ", "").replace("...", ".").partition("->")
    left, right = map(set, given.split(","))
    kept = set(result) if result or "->" in subscripts else left ^ right
    shared = left & right
    is_vector = not left - right or not right - left
    return bool(shared - kept) and (not is_vector or (left != right and bool(shared & kept)))


def _of_converted(operands: list[Node], place: Node) -> Hits:
    source = place.source
    knows_better = b"matmul_precision" in source.text or source.imports("jax.experimental.pallas.tpu")
    if len(operands) != OPERANDS or knows_better:
        return
    converted = [_converted(one) for one in operands]
    if all(one is not None for one in converted) and any(one is not None and _is_wide(one) for one in converted):
        yield Hit(place, guards=(*place.guards, on_platform("tpu")), otherwise="degrades", language="jax")


def _converted(operand: Node) -> Node | None:
    """The x of `x.astype(jnp.float32)` or `jnp.asarray(x, jnp.float32)`, in place, by name or transposed."""
    while operand.type == "attribute" and operand["attribute"].text in ("T", "mT"):
        operand = operand["object"]
    made = operand.assigned or operand
    if made.type != "call":
        return None
    function = made["function"]
    is_cast = function.type == "attribute" and function["attribute"].text == "astype"
    dtype = made.argument(0 if is_cast else 1, "dtype")
    if dtype is None or dtype.name != "jax.numpy.float32" or not (is_cast or made.name in CONVERSIONS):
        return None
    given = function["object"] if is_cast else made.argument(0)
    return None if given is not None and given.type in LITERALS else given


def _is_wide(value: Node) -> bool:
    """Whether a value has more bits than bfloat16 before it is converted, as far as its file says."""
    if any(map(value.role, WIDE)):
        return True
    return not value.role("bfloat16") and OF_NARROW_TYPES.search(value.source.text) is None
