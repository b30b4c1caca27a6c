"""A checkpoint is loaded onto the device that it was saved from.

`torch.load` puts tensors back on the device that is written in the file. A checkpoint saved on a GPU cannot be loaded
where that device does not exist: "Attempting to deserialize object on a CUDA device".

## Exceptions
A test that loads a checkpoint mostly loads what it has saved itself, and is silent; so is a load of what the same file
saves under the same name, or hands a call that saves, for it comes from the machine that it goes to. Where all that a file saves has been brought to
the CPU first, what it loads has been, too. Bytes in memory in a file that also saves, the states of scalers and
schedulers, and what a program with `torch_neuronx` loads, which was compiled on the host, are silent.

## Fix safety
Unsafe: `map_location="cpu"` changes where the tensors are until something moves them.

## References
https://docs.pytorch.org/docs/stable/generated/torch.load.html
"""

from __future__ import annotations

from portlint.rule import Edit, Hit, Hits, Node, Rule, add_argument, regex, replace, words_of

rule = Rule(
    assumes={"device.cuda": "native"},
    message="'{text}' restores tensors to the device they were saved from; {target} has {fact}.",
    remedy={"*": "Load with `map_location='cpu'` and move the model afterwards."},
)


OF_SCALARS = frozenset(("scaler", "scheduler"))
"""words in names of what has numbers for a state, and no tensors"""
OF_ANY_FILE = frozenset(("Path", "PurePath", "open", "str"))
"""what makes a path of whatever it is given"""
COMPILES_FOR_NEURON = ("torch_neuronx", "torch_neuron")
"""what a program loads that imports these was compiled on the host"""
WRITES = regex(r"(^|[._])(save|export|dump|write)(_|$)")
SAVING = ("torch.save", "torch.jit.save", "torch_xla.core.xla_model.save")


@rule.calls("torch.load", "torch.jit.load")
def load(call: Node) -> Hits:
    if (
        any(map(call.source.imports, COMPILES_FOR_NEURON))
        or call.role("test")
        or _is_of_scalars(call)
        or (call.arguments and _is_saved_here(call.arguments[0]))
    ):
        return  # a test loads what it has saved
    if call.arguments and _is_bytes(call.arguments[0]) and _saves(call):
        return
    place = call.argument(1, "map_location")
    splat = any(child.type in ("dictionary_splat", "list_splat") for child in call["arguments"].children)
    if (place is None or place.type == "none") and not splat and not call.role("guarded-call"):
        yield Hit(call["function"], edits=_on_cpu(call, place))


def _on_cpu(call: Node, place: Node | None) -> tuple[Edit, ...]:
    """The location, written where there is none."""
    if place is not None:
        return (replace(place, '"cpu"'),)
    return (add_argument(call, 'map_location="cpu"'),) if call.arguments else ()


def _is_bytes(file: Node) -> bool:
    """Whether what is loaded comes from memory, where this program or its peers have written it."""
    function = file.function
    parameters = function["parameters"].children if function is not None else []
    given = [file, file.assigned, *(one for one in parameters if one.text.startswith(f"{file.text}:"))]
    return any(one is not None and "BytesIO" in one.text for one in given)


def _is_of_scalars(call: Node) -> bool:
    """Whether what is loaded goes to a scaler or a scheduler, whose states are numbers."""
    call_around = next(call.ancestors("call"), None)
    owner = call_around["function"].get("object") if call_around is not None else None
    statement = next(call.ancestors("assignment"), None)
    names = [one.text for one in (owner, statement.get("left") if statement is not None else None) if one is not None]
    return any(not OF_SCALARS.isdisjoint(words_of(name)) for name in names)


def _is_saved_here(file: Node) -> bool:
    """Whether the same file saves under the name that is loaded, as one that goes on where it stopped."""
    saves = _saves(file)
    names = _names(file)
    if any(call.arguments[1].text == file.text or names & _names(call.arguments[1]) for call in saves):
        return True
    if file.type == "identifier" and any(_is_written_by(use) for use in file.uses if use.start < file.start):
        return True
    return bool(saves) and all(call.arguments[0].role("on-host") for call in saves)


def _is_written_by(use: Node) -> bool:
    """Whether a call that saves by its name is given a path: `export_for_inference(model, save_path=path)`."""
    call = next(use.ancestors("call"), None)
    return call is not None and WRITES.search(call["function"].text) is not None


def _names(file: Node, depth: int = 3) -> frozenset[str]:
    """What the name of a file may end in, or the function that makes it: `rng_state.pth`, `{MODEL}_{rank}.bin`."""
    made = (call["function"] for call in file.walk("call"))
    found = {f"{one.text}()" for one in made if one.type == "identifier" and one.text not in OF_ANY_FILE}
    for string in file.walk("string"):
        ending = string.text.strip("\"'frb").rpartition("/")[2]
        if "." in ending.strip("."):
            found.add(ending)
    if depth:
        for name in file.walk("identifier"):
            if (value := name.assigned) is not None:
                found |= _names(value, depth - 1)
    return frozenset(found)


def _saves(node: Node) -> list[Node]:
    """The calls that save something in the file of a node."""
    module = list(node.ancestors())[-1]
    return [call for call in module.walk("call") if call.name in SAVING and len(call.arguments) > 1]
