"""A Triton kernel asks for products in TF32 whatever the machine.

With `input_precision="tf32"` the compiler multiplies in TF32 or not at all: where the back end does not have it, as on AMD
outside CDNA 3, the kernel does not compile, not even for float16 operands.

## Exceptions
`allow_tf32=True`, and no precision at all, mean TF32 where there is TF32 and full float32 elsewhere: both are silent. So
is a precision that the caller of the kernel chooses.

## References
https://triton-lang.org/main/python-api/generated/triton.language.dot.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"numerics.triton_tf32": "native"},
    message="'{text}' is the only precision that the product is compiled in; {target} has {fact}.",
    remedy={
        "*": "Leave `input_precision` out, or make it a `tl.constexpr` parameter that the caller sets by `torch.version.hip`.",
    },
)


@rule.calls("triton.language.dot")
def product(call: Node) -> Hits:
    precision = call.argument(3, "input_precision")
    for value in precision.choices if precision is not None else ():
        if value.constant == "tf32":
            yield Hit(value, guards=(*call.guards, *value.guards), language="triton")
