"""Memory-efficient attention of xformers is called on float32 tensors.

Tensors made without a dtype are float32. The CUTLASS operators take that; those of other back ends take half types only, and
xformers raises NotImplementedError since no operator fits.

## Exceptions
Tensors with a half type, or whose type is not known, and files that set another default type or use autocast are silent.

## References
https://github.com/facebookresearch/xformers/blob/04cf84bf/xformers/ops/fmha/ck.py
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, on_platform

rule = Rule(
    assumes={"library.xformers_float32": "native"},
    message="'{text}' is float32 for xformers' attention; {target} has {fact}.",
    remedy={
        "amd": "Make it `torch.float16` or `torch.bfloat16`.",
        "*": "Use `torch.nn.functional.scaled_dot_product_attention`.",
    },
)

MAKERS = frozenset(f"torch.{name}" for name in ("rand", "randn", "zeros", "ones", "empty"))
FLOAT32 = ("torch.float32", "torch.float")
OTHER_DEFAULTS = (b"set_default_dtype", b"set_default_tensor_type", b"autocast")


@rule.calls(
    *(f"xformers.ops.{where}memory_efficient_attention{what}" for where in ("", "fmha.") for what in ("", "_forward"))
)
def attention(call: Node) -> Hits:
    query = call.argument(0, "query")
    if query is None or any(word in call.source.text for word in OTHER_DEFAULTS):
        return
    made = query.assigned if query.type == "identifier" else query
    if made is None or made.type != "call" or made.name not in MAKERS or "**" in made.text:
        return
    dtype = made.argument(None, "dtype")
    if dtype is None or dtype.name in FLOAT32:
        yield Hit(
            made, guards=(*made.guards, *call.guards, on_platform("rocm"))
        )  # the others have kernels for it, or no xformers
