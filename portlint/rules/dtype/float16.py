"""Half precision is taken to mean float16.

Where the matrix unit takes bfloat16 and not float16, as on TPU, mixed precision in float16 saves nothing: operands are converted,
and the narrow range of the type remains, with its loss scaling.

## Exceptions
Only choices for a whole model or run are looked at: mixed precision of a trainer, autocast, and the type that weights are
loaded in. Tests, code behind a test of the device, and types that the user chooses are silent.

## Fix safety
Unsafe: bfloat16 has the range of float32 and 8 bits of precision in place of 11. A scaler is left, and so is the dtype of a
file that has float16 elsewhere, as in a conversion or in `bnb_4bit_compute_dtype`.

## References
https://docs.pytorch.org/xla/master/perf/amp.html
"""

from __future__ import annotations

import re

from portlint.rule import Edit, Hit, Hits, Node, Rule, has, on_platform, regex, replace

rule = Rule(
    assumes={"dtype.matmul": has("float16")},
    otherwise="degrades",
    message="'{text}' computes in float16; {target} has {fact}.",
    remedy={
        "tpu": "Use bfloat16: `bf16=True`, `mixed_precision='bf16'`, `torch.autocast('xla', dtype=torch.bfloat16)`, and no gradient scaler.",
        "*": "Use bfloat16, and no gradient scaler.",
    },
)

OPTIONS = regex(r"(Config|Arguments|Args|Trainer|Accelerator|Fabric)$")
"""how the classes end that take the precision of a run"""
HALF = regex(r"fp16|float16|half", re.IGNORECASE)
"""in a test, what says that somebody chose the type"""
MENTIONS = regex(rb"\.(?:float16|half)\b")
ARGUMENTS = regex(rb"\b(?:torch_)?dtype\s*=\s*\w+\.(?:float16|half)\b")
STATED = on_platform("tpu")
"""the operands of the matrix unit are a choice on no other platform"""
FLOAT16 = {"fp16": True, "mixed_precision": "fp16", "precision": "16-mixed"}


@rule.python(
    "((keyword_argument name: (identifier) @_key value: (_) @value) @option"
    ' (#any-of? @_key "fp16" "mixed_precision" "precision"))'
)
def of_a_run(option: Node, value: Node) -> Hits:
    call = next(option.ancestors("call"), None)
    if call is None or not OPTIONS.search(call["function"].text) or _is_in_a_test(call):
        return
    for choice in value.choices:
        if choice.constant == FLOAT16[option["name"].text]:
            edits = _in_bfloat16(option, call) if choice == value else ()
            yield Hit(option, guards=(*option.guards, *choice.guards, STATED), edits=edits)


def _in_bfloat16(option: Node, call: Node) -> tuple[Edit, ...]:
    """The same option for bfloat16, unless the call says something of that already."""
    if option["name"].text == "fp16":
        return (replace(option["name"], "bf16"),) if call.argument(None, "bf16") is None else ()
    new = {"fp16": '"bf16"', "16-mixed": '"bf16-mixed"'}.get(str(option["value"].constant), "")
    return (replace(option["value"], new),) if new and option["value"].type == "string" else ()


@rule.calls("torch.autocast", "torch.amp.autocast")
def autocast(call: Node) -> Hits:
    device, dtype = call.argument(0, "device_type"), call.argument(1, "dtype")
    if dtype is not None and (device is None or device.constant not in ("cuda", "cpu")):
        yield from _asked(call, dtype)


@rule.python('((call function: (attribute attribute: (identifier) @_name)) @call (#eq? @_name "from_pretrained"))')
def loaded(call: Node) -> Hits:
    dtype = call.argument(None, "torch_dtype") or call.argument(None, "dtype")
    if dtype is not None:
        yield from _asked(call, dtype)


def _asked(call: Node, dtype: Node) -> Hits:
    """The places where a dtype is float16, each under its own conditions."""
    if _is_in_a_test(call):
        return
    for named, place in dtype.dtypes:
        if named == "float16":
            is_torch = place == dtype and dtype.type == "attribute" and dtype.name in ("torch.float16", "torch.half")
            is_asked_for = any(HALF.search(guard.text) for guard in call.guards)
            is_free = is_torch and not is_asked_for and not _is_converted_to(dtype)
            edits = (replace(dtype["attribute"], "bfloat16"),) if is_free else ()
            yield Hit(dtype, guards=(*call.guards, *place.guards, STATED), edits=edits)


def _is_converted_to(dtype: Node) -> bool:
    """Whether the file has float16 elsewhere than as an argument: what is converted to it would no longer fit."""
    text = dtype.source.text
    return len(MENTIONS.findall(text)) != len(ARGUMENTS.findall(text))


def _is_in_a_test(call: Node) -> bool:
    return any(one["name"].text.startswith("test") for one in call.ancestors("function_definition"))
