"""A Python float is passed to a Triton kernel that computes in float32, and is taken to be float32 there.

It is where Triton launches the kernel. Inside `torch.compile` Inductor makes it float64, and one such factor turns the whole
expression into float64, the exponentials included: a kernel that waits for memory then takes twice the time.

## Exceptions
Only a scalar is reported that meets a block of which the kernel says `.to(tl.float32)`, on its way into `tl.sigmoid`, `tl.exp`
and the like. `tl.constexpr` parameters, and scalars that are converted, are silent. So are kernels that the file hides from
`torch.compile` (`torch.library.custom_op`, `torch.compiler.disable`).

## References
https://github.com/linkedin/Liger-Kernel/pull/1350
https://github.com/pytorch/pytorch/pull/170289
"""

from __future__ import annotations

from collections.abc import Iterator

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"dtype.triton_python_float": "fp32"},
    otherwise="degrades",
    message="'{text}' is float32 only where '{name}' is; {target} has {fact}.",
    remedy={"*": "Write `.to(tl.float32)` behind the scalar in the kernel, or make the parameter a `tl.constexpr`."},
)

DEAR = frozenset(
    f"triton.language.{name}" for name in "sigmoid exp exp2 log log2 sqrt rsqrt sin cos erf softmax".split()
)
HIDING = ("custom_op", "compiler.disable", "allow_in_graph", "dynamo.disable")


@rule.python("(call function: (subscript)) @call", mentions=("triton",))
def scalar(call: Node) -> Hits:
    kernel = call.launched
    if kernel is None or any(map(call.source.mentions, HIDING)):
        return
    for one in call.configurations:
        for parameter in kernel["parameters"].children:
            value = one.written.get(parameter.text) if parameter.type == "identifier" else None
            if value is not None and _is_float(value):
                for product in _promoted(kernel, parameter.text):
                    yield Hit(product, words={"name": parameter.text}, guards=one.guards, language="triton")


def _is_float(value: Node) -> bool:
    """Whether the host passes a Python float."""
    return value.type == "float" or (value.type == "identifier" and value.annotation == "float")


def _promoted(kernel: Node, name: str) -> Iterator[Node]:
    """The first operation of a kernel that the scalar's type makes dear, if there is one."""
    for operation in kernel["body"].walk("binary_operator"):
        sides = operation["left"], operation["right"]
        scalars = [side for side in sides if side.text == name and side.assigned is None]
        blocks = [side for side in sides if side.type == "identifier" and _is_converted(side)]
        target = operation.parent
        if not scalars or not blocks or target is None or target.type != "assignment":
            continue
        if any(_is_dear(use) for use in target["left"].uses if operation.end < use.start < kernel.end):
            yield operation
            return


def _is_converted(block: Node) -> bool:
    value = block.assigned
    return value is not None and value.type == "call" and value.text.endswith(".to(tl.float32)")


def _is_dear(use: Node) -> bool:
    return any(call.name in DEAR for call in use.ancestors("call"))
