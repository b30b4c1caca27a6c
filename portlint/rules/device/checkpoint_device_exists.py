"""A checkpoint is loaded onto the device that it was saved from.

`torch.load` puts tensors back on the device that is written in the file. A checkpoint saved on a GPU cannot be loaded
where that device does not exist: "Attempting to deserialize object on a CUDA device".

## Exceptions
A test that loads a checkpoint mostly loads what it has saved itself, and is silent; so is a load of what the same file
saves under the same name, for it comes from the machine that it goes to.

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


SAVING = ("torch.save", "torch.jit.save", "torch_xla.core.xla_model.save")


@rule.calls("torch.load", "torch.jit.load")
def load(call: Node) -> Hits:
    if any(function["name"].text.startswith("test") for function in call.ancestors("function_definition")):
        return  # a test loads what it has saved
    if call.arguments and _is_saved_here(call.arguments[0]):
        return
    place = call.argument(1, "map_location")
    splat = any(child.type in ("dictionary_splat", "list_splat") for child in call["arguments"].children)
    if (place is None or place.type == "none") and not splat and not call.role("guarded-call"):
        yield Hit(call["function"])


def _is_saved_here(file: Node) -> bool:
    """Whether the same file saves under the name that is loaded, as one that goes on where it stopped."""
    module = list(file.ancestors())[-1]
    return any(
        len(call.arguments) > 1 and call.arguments[1].text == file.text
        for call in module.walk("call")
        if call.name in SAVING
    )
