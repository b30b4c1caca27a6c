"""Integers beyond 32 bits are taken to fit on the device.

PyTorch's integers have 64 bits by default. Where the device has 32, as Gaudi in lazy mode, the upper half is cut off without a
word; Neuron's compiler refuses such constants. Masks that are filled with the largest int64, hashes and packed keys are where
it shows.

## Exceptions
Only values that are written in the code and need more than 32 bits are reported: most int64 tensors hold small numbers. Random
seeds (`torch.randint`), tensors on the host or of another type, and code behind a test of the device, are silent.

## Fix safety
Unsafe: the limit of int32 takes the place of that of int64, for which others may look.

## References
https://docs.habana.ai/en/latest/PyTorch/Model_Optimization_PyTorch/Best_Practices_for_Model_Training_on_Gaudi.html
"""

from __future__ import annotations

from portlint.rule import Edit, Hit, Hits, Node, Rule, regex, replace

rule = Rule(
    assumes={"dtype.int64": "native"},
    message="'{text}' needs more than 32 bits; {target} has {fact}.",
    remedy={
        "gaudi": "Use a value that fits into int32 (`torch.iinfo(torch.int32).max` for a mask), compute it on the CPU, or set `PT_ENABLE_INT64_SUPPORT=1`.",
        "*": "Use a value that fits into int32 (`torch.iinfo(torch.int32).max` for a mask), or compute it on the CPU.",
    },
)

BITS = 31
LIMITS = regex(r"torch\.iinfo\(torch\.(int64|long)\)\.(max|min)")
VALUES = {
    "torch.full": (1, "fill_value"),
    "torch.full_like": (1, "fill_value"),
    "torch.tensor": (0, "data"),
    "torch.as_tensor": (0, "data"),
}
"""where functions take the value that the tensor holds"""


@rule.calls(*VALUES)
def created(call: Node) -> Hits:
    device = call.argument(None, "device")
    if device is None and not call.name.endswith("_like"):
        return
    value = call.argument(*VALUES[call.name])
    if value is not None and _is_wide(value) and call.role("on-device") and _is_integer(call):
        yield Hit(value, edits=_in_32_bits(value))


@rule.calls(".masked_fill", ".masked_fill_", ".fill_", ".new_full")
def filled(call: Node) -> Hits:
    owner = call["function"]["object"]
    value = call.argument(0 if call["function"]["attribute"].text == "fill_" else 1, "value")
    if value is None or not _is_wide(value) or not call.source.imports("torch"):
        return
    if owner.role("on-device") and _is_integer(call) and _is_integer(owner):
        yield Hit(value, edits=_in_32_bits(value))


@rule.python(
    '((binary_operator (integer) @number) @operation (#match? @number "^(0[xX][0-9a-fA-F_]{8,}|[0-9_]{10,})$"))',
    mentions=("torch", "tensor", "Tensor"),
)
def combined(operation: Node, number: Node) -> Hits:
    other = operation["right"] if operation["left"] == number else operation["left"]
    if _is_wide(number) and other.role("device-tensor") and other.role("int64"):
        yield Hit(number)


def _is_wide(value: Node) -> bool:
    """Whether an integer needs more than 32 bits."""
    number = value.constant
    numbers = number if isinstance(number, tuple) else (number,)
    wide = any(isinstance(one, int) and not -(1 << BITS) <= one < 1 << BITS for one in numbers)
    return (wide and not any(isinstance(one, float) for one in numbers)) or LIMITS.fullmatch(value.text) is not None


def _is_integer(tensor: Node) -> bool:
    """Whether a tensor is not known to hold floating-point numbers."""
    return not any(tensor.role(dtype) for dtype in ("float64", "float32", "float16", "bfloat16", "bool"))


def _in_32_bits(value: Node) -> tuple[Edit, ...]:
    """The limit of int32 for that of int64."""
    limit = LIMITS.fullmatch(value.text)
    return (replace(value, f"torch.iinfo(torch.int32).{limit[2]}"),) if limit else ()
