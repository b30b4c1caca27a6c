"""A Triton kernel asks for products in TF32 whatever the machine.

With `input_precision="tf32"` the compiler multiplies in TF32 or not at all: where the back end does not have it, as on AMD
outside CDNA 3, the kernel does not compile, not even for float16 operands.

## Exceptions
`allow_tf32=True`, and no precision at all, mean TF32 where there is TF32 and full float32 elsewhere: both are silent. So
is a precision that the caller of the kernel chooses.

## Fix safety
Safe: without the argument, Triton takes TF32 on NVIDIA's devices too. A value that is chosen elsewhere is left.

## References
https://triton-lang.org/main/python-api/generated/triton.language.dot.html
"""

from __future__ import annotations

from portlint.rule import Edit, Hit, Hits, Node, Rule

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
            edits = _left_out(value) if value == precision else ()
            yield Hit(value, guards=(*call.guards, *value.guards), language="triton", edits=edits, safe=True)


def _left_out(value: Node) -> tuple[Edit, ...]:
    """The keyword argument taken away, with the comma before it."""
    option = value.parent
    if option is None or option.type != "keyword_argument" or option.parent is None:
        return ()
    before = [one for one in option.parent.children if one.end <= option.start]
    return (Edit(before[-1].end, option.end, ""),) if before else ()
