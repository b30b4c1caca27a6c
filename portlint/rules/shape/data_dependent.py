"""A result's shape depends on the data.

`nonzero`, `unique`, `masked_select`, indexing with a boolean mask and `repeat_interleave` by a tensor give as many
elements as the data decides. Graph compilers need shapes before they run: torch_xla and Gaudi cut the graph, read the
size back and compile again for each new size; Neuron and `jax.jit` refuse.

## Exceptions
The same operations on host data (NumPy, lists, tensors on the CPU, data sets and collators, tests) are silent, in
`__init__`, over a state dict and in what only these call, and so is a mask on the left of an assignment, which keeps the shape.

## References
https://github.com/pytorch/xla/blob/master/docs/source/perf/recompilation.md
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"shape.data_dependent": "native", "shape.traced_data_dependent": "native"},
    message="The shape of '{text}' depends on the data; {target} has {fact}.",
    remedy={
        "*": "Keep the shape and mask the values: `torch.where(mask, x, 0)`, a multiplication by the mask, `torch.topk` with a fixed k, or padding to a bucket; in JAX pass `size=`.",
    },
)

EAGER_ONLY = {"shape.data_dependent": "native"}
TRACED_ONLY = {"shape.traced_data_dependent": "native"}
EAGER = ("nonzero", "argwhere", "unique", "unique_consecutive", "masked_select")
OF_ARRAYS_TOO = frozenset(("unique", "nonzero"))
"""methods that NumPy and pandas have as well"""
MASKS = frozenset("comparison_operator identifier unary_operator binary_operator parenthesized_expression call".split())
TRACED = (
    "nonzero",
    "argwhere",
    "flatnonzero",
    "unique",
    "unique_values",
    "extract",
    "compress",
    "union1d",
    "setdiff1d",
)


@rule.calls(*(f"torch.{name}" for name in EAGER), *(f".{name}" for name in EAGER))
def eager(call: Node) -> Hits:
    method = not call.name.startswith("torch.")
    value = call["function"].get("object") if method else next(iter(call.arguments), None)
    if value is None or not call.source.imports("torch") or not value.role("on-device") or value.role("traced"):
        return
    if method and call["function"]["attribute"].text in OF_ARRAYS_TOO and not _is_tensor(value):
        return
    if not call.role("at-rest"):
        yield Hit(call, assumes=EAGER_ONLY)


@rule.calls("torch.where")
def where(call: Node) -> Hits:
    if len(call.arguments) != 1 or call.argument(None, "input") is not None or call.role("at-rest"):
        return
    if call.arguments[0].role("on-device"):
        yield Hit(call, assumes=EAGER_ONLY)


@rule.calls("torch.repeat_interleave", ".repeat_interleave")
def repeated(call: Node) -> Hits:
    repeats = call.argument(1 if call.name == "torch.repeat_interleave" else 0, "repeats")
    if repeats is None or call.argument(None, "output_size") is not None:
        return
    if repeats.role("device-tensor") and not call.role("at-rest"):
        yield Hit(call, assumes=EAGER_ONLY)


@rule.calls("torch.bincount", ".bincount")
def counted(call: Node) -> Hits:
    function = call["function"]
    value = next(iter(call.arguments), None) if call.name == "torch.bincount" else function["object"]
    if value is not None and value.role("device-tensor") and not call.role("at-rest"):
        yield Hit(call, assumes=EAGER_ONLY)


@rule.python(
    "(subscript value: (_) @value subscript: (_) @mask) @indexing", mentions=("torch", "jax", "tensor", "Tensor")
)
def mask_indexing(indexing: Node, value: Node, mask: Node) -> Hits:
    if mask.type not in MASKS or _repeats(indexing, mask) or not mask.role("bool"):
        return
    if mask.role("device-tensor") and not _is_stored_to(indexing):
        if not value.role("on-host") and not value.role("at-rest"):  # what is on the CPU takes no mask from the device
            yield Hit(indexing, assumes=EAGER_ONLY)
    elif value.role("traced") and indexing.role("jax-jitted") and not _is_stored_to(indexing):
        yield Hit(indexing, assumes=TRACED_ONLY, language="jax")


@rule.calls(*(f"jax.numpy.{name}" for name in TRACED))
def traced(call: Node) -> Hits:
    if call.role("jax-jitted") and call.argument(None, "size") is None:
        yield Hit(call, assumes=TRACED_ONLY, language="jax")


@rule.calls("jax.numpy.where")
def traced_where(call: Node) -> Hits:
    if len(call.arguments) == 1 and call.argument(None, "size") is None and call.role("jax-jitted"):
        yield Hit(call, assumes=TRACED_ONLY, language="jax")


def _is_tensor(value: Node) -> bool:
    """Whether a value is a tensor, or the file has nothing else with such methods."""
    others = value.source.imports("numpy") or value.source.imports("pandas") or value.role("object")
    return value.role("tensor") or not others


def _repeats(indexing: Node, mask: Node) -> bool:
    """Whether the same mask selects already earlier in the same simple statement."""
    statement = next(indexing.ancestors("expression_statement", "return_statement", "assert_statement"), None)
    earlier = statement.walk("subscript") if statement is not None else ()
    return any(one.end <= indexing.start and one["subscript"].text == mask.text for one in earlier)


def _is_stored_to(indexing: Node) -> bool:
    parent = indexing.parent
    return parent is not None and parent.type in ("assignment", "augmented_assignment") and parent["left"] == indexing
