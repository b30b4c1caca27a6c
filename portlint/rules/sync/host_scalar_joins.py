"""A scalar tensor on the CPU is an operand beside tensors on the device.

`torch.tensor(1.0) - mask` leaves the scalar on the CPU. CUDA and PyTorch/XLA take such scalars as they take numbers;
compiled graphs elsewhere want all operands on one device.

## Exceptions
Scalars that are made on the device, Python numbers, operands on the host, data sets and tests are silent.

## Fix safety
Unsafe: the scalar is copied to the device each time, which a CUDA graph does not record. Only scalars made in place move.

## References
https://github.com/pytorch/pytorch/pull/127871
"""

from __future__ import annotations

from portlint.rule import Edit, Hit, Hits, Node, Rule, add_argument

rule = Rule(
    assumes={"sync.host_scalar_operand": "native"},
    message="'{text}' is a scalar tensor on the CPU beside a tensor on the device; {target} has {fact}.",
    remedy={
        "*": "Write the number itself, or make the scalar where the other operand is: `torch.tensor(1.0, device=x.device)`."
    },
)


@rule.python("(binary_operator) @operation")
@rule.python("(comparison_operator) @operation")
def operand(operation: Node) -> Hits:
    sides = operation.children
    if len(sides) != 2 or not operation.source.imports("torch"):
        return
    for scalar, other in (sides, sides[::-1]):
        if _is_host_scalar(scalar) and other.role("device-tensor"):
            yield Hit(scalar, edits=_beside(scalar, other))


@rule.calls(".masked_fill", ".masked_fill_", "torch.where", "torch.maximum", "torch.minimum", "torch.full_like")
def filled(call: Node) -> Hits:
    owner = [call["function"]["object"]] if not call.name.startswith("torch.") else []
    if any(one.role("device-tensor") for one in [*owner, *call.arguments]):
        for argument in call.arguments:
            if _is_host_scalar(argument):
                yield Hit(argument)


def _beside(scalar: Node, other: Node) -> tuple[Edit, ...]:
    """The device of the other operand, as an argument of what makes the scalar."""
    if scalar.type != "call" or other.type not in ("identifier", "attribute"):
        return ()
    return (add_argument(scalar, f"device={other.text}.device"),)


def _is_host_scalar(value: Node) -> bool:
    """Whether an expression is `torch.tensor(number)` without a device, perhaps through a name."""
    made = value.assigned or value if value.type == "identifier" else value
    if made.type != "call" or made.name not in ("torch.tensor", "torch.as_tensor", "torch.scalar_tensor"):
        return False
    if made.argument(None, "device") is not None or not made.arguments or not value.role("on-host"):
        return False
    number = made.arguments[0]
    return isinstance(number.constant, int | float) or _is_limit(number)


def _is_limit(number: Node) -> bool:
    """Whether a number is `torch.finfo(dtype).min`."""
    owner = number.get("object")
    return owner is not None and owner.type == "call" and owner.name in ("torch.finfo", "torch.iinfo")
