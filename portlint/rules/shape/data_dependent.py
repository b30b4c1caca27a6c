"""A result's shape depends on the data.

`nonzero`, `unique`, `masked_select` and indexing with a boolean mask give as many elements as the data decides. Graph
compilers need shapes before they run: torch_xla and Gaudi cut the graph, read the size back and compile again for each
new size; Neuron and `jax.jit` refuse.

## Exceptions
The same operations on host data (NumPy, lists, tensors on the CPU) are silent, and so is a mask on the left of an
assignment, which keeps the shape.

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


@rule.calls(*(f"torch.{name}" for name in EAGER), *(f".{name}" for name in EAGER if name != "unique"))
def eager(call: Node) -> Hits:
    value = call.arguments[0] if call.name and call.arguments else call["function"].get("object")
    if value is None or not call.source.imports("torch") or value.role("on-host") or value.role("traced"):
        return
    yield Hit(call, assumes=EAGER_ONLY)


@rule.calls("torch.where")
def where(call: Node) -> Hits:
    if len(call.arguments) == 1 and call.argument(None, "input") is None and not call.arguments[0].role("on-host"):
        yield Hit(call, assumes=EAGER_ONLY)


@rule.python("(subscript value: (_) @value subscript: [(comparison_operator) (identifier)] @mask) @indexing")
def mask_indexing(indexing: Node, value: Node, mask: Node) -> Hits:
    if _repeats(indexing, mask):
        return
    if mask.role("bool") and mask.role("tensor") and mask.role("on-device") and not _is_stored_to(indexing):
        yield Hit(indexing, assumes=EAGER_ONLY)
    elif value.role("traced") and mask.role("bool") and indexing.role("jax-jitted") and not _is_stored_to(indexing):
        yield Hit(indexing, assumes=TRACED_ONLY, language="jax")


@rule.calls(*(f"jax.numpy.{name}" for name in TRACED))
def traced(call: Node) -> Hits:
    if call.role("jax-jitted") and call.argument(None, "size") is None:
        yield Hit(call, assumes=TRACED_ONLY, language="jax")


@rule.calls("jax.numpy.where")
def traced_where(call: Node) -> Hits:
    if len(call.arguments) == 1 and call.argument(None, "size") is None and call.role("jax-jitted"):
        yield Hit(call, assumes=TRACED_ONLY, language="jax")


def _repeats(indexing: Node, mask: Node) -> bool:
    """Whether the same mask selects already earlier in the same simple statement."""
    statement = next(indexing.ancestors("expression_statement", "return_statement", "assert_statement"), None)
    earlier = statement.walk("subscript") if statement is not None else ()
    return any(one.end <= indexing.start and one["subscript"].text == mask.text for one in earlier)


def _is_stored_to(indexing: Node) -> bool:
    parent = indexing.parent
    return parent is not None and parent.type in ("assignment", "augmented_assignment") and parent["left"] == indexing
