"""A checkpoint is loaded onto the device that it was saved from.

`torch.load` puts tensors back on the device that is written in the file. A checkpoint saved on a GPU cannot be loaded
where that device does not exist: "Attempting to deserialize object on a CUDA device".

## Exceptions
A test that loads a checkpoint mostly loads what it has saved itself, and is silent.

## References
https://docs.pytorch.org/docs/stable/generated/torch.load.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"device.cuda": "native"},
    message="'{text}' restores tensors to the device they were saved from; {target} has {fact}.",
    remedy={"*": "Load with `map_location='cpu'` and move the model afterwards."},
)


@rule.calls("torch.load", "torch.jit.load")
def load(call: Node) -> Hits:
    if any(function["name"].text.startswith("test") for function in call.ancestors("function_definition")):
        return  # a test loads what it has saved
    place = call.argument(1, "map_location")
    splat = any(child.type in ("dictionary_splat", "list_splat") for child in call["arguments"].children)
    if (place is None or place.type == "none") and not splat and not call.role("guarded-call"):
        yield Hit(call["function"])
