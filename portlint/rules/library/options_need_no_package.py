"""An option of Transformers names an implementation whose package is not on every machine.

`attn_implementation="flash_attention_2"` loads flash_attn, `load_in_8bit=True` bitsandbytes, `optim="adamw_apex_fused"` apex.
Where there is no build, `from_pretrained` or the trainer raises ImportError after the weights are there.

## Exceptions
Silent where a test asks for the package or for the device, where the failure is caught, and where the option comes from the
user, and in tests, which are skipped where a package is missing.

## Fix safety
Unsafe: `sdpa` and `adamw_torch` compute the same with other rounding, other speed and more memory.

## References
https://huggingface.co/docs/transformers/attention_interface
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, regex, replace

rule = Rule(
    assumes={},
    message="'{text}' loads {package}; {target} has {fact}.",
    remedy={
        "gaudi": "Choose by device: `sdpa` for the attention, or Optimum for Intel Gaudi's own classes with `use_flash_attention`; `adamw_torch` for the optimizer.",
        "*": "Choose by device: `sdpa` for the attention, weights in bfloat16, `adamw_torch` for the optimizer.",
    },
)

ATTENTION = frozenset(("flash_attention_2", "flash_attention_3"))
OPTIMIZERS = (
    (regex(r"(paged_)?(adamw|lion|ademamix|rmsprop)_(bnb_)?(8|32)bit|paged_adamw|adamw_bnb_8bit|rmsprop_bnb\w*"),
     "bitsandbytes"),
    (regex(r"adamw_apex_fused"), "apex"),
)  # fmt: skip
FACTS = {"flash_attn": "library.flash_attn", "bitsandbytes": "library.bitsandbytes", "apex": "library.apex"}
TRAINING = regex(r"(Config|Arguments|Args)$")
"""how the classes end that take the options of a trainer"""


@rule.python(
    "((keyword_argument name: (identifier) @_key value: (_) @value)"
    ' (#any-of? @_key "attn_implementation" "_attn_implementation"))'
)
@rule.python(
    "((assignment left: (attribute attribute: (identifier) @_key) right: (_) @value)"
    ' (#any-of? @_key "attn_implementation" "_attn_implementation"))'
)
@rule.python(
    '((pair key: (string) @_key value: (_) @value) (#match? @_key "^.attn_implementation.$"))',
    mentions=("attn_implementation",),
)
@rule.python(
    "((assignment left: (subscript subscript: (string) @_key) right: (_) @value)"
    ' (#match? @_key "^.attn_implementation.$"))',
    mentions=("attn_implementation",),
)
def attention(value: Node) -> Hits:
    for choice in value.choices:
        if choice.constant in ATTENTION:
            yield from _needs("flash_attn", value, choice, "sdpa")


@rule.python(
    "((keyword_argument name: (identifier) @_key value: (true) @value) @option"
    ' (#any-of? @_key "load_in_8bit" "load_in_4bit" "use_flash_attention_2"))'
)
def switch(option: Node, value: Node) -> Hits:
    flash = option["name"].text == "use_flash_attention_2"
    yield from _needs("flash_attn" if flash else "bitsandbytes", option, value)


@rule.python('((keyword_argument name: (identifier) @_key value: (_) @value) @option (#eq? @_key "optim"))')
def optimizer(option: Node, value: Node) -> Hits:
    call = next(option.ancestors("call"), None)
    if call is None or not TRAINING.search(call["function"].text):
        return
    for choice in value.choices:
        name = str(choice.constant)
        for pattern, package in OPTIMIZERS:
            if pattern.fullmatch(name):
                yield from _needs(package, value, choice, "adamw_torch")


def _needs(package: str, place: Node, choice: Node, instead: str = "") -> Hits:
    guards = (*place.guards, *choice.guards)
    words = {package, package.replace("_", ""), "flash" if package == "flash_attn" else package}
    looked_for = any(word in guard.text.lower() for word in words for guard in guards)
    function = place.function
    if function is not None and function["name"].text.startswith("test"):
        return
    if not looked_for and not place.role("guarded-call") and not place.role("guarded-import"):
        edits = (replace(place, f'"{instead}"'),) if instead and place == choice and place.type == "string" else ()
        yield Hit(place, {FACTS[package]: "native"}, {"package": package}, guards, edits=edits)
