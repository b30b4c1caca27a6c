"""A scratch tensor is put on the default GPU, and the input is taken to be there as well.

`.cuda()` and `device="cuda"` mean the current GPU of the process, `cuda:0` unless somebody set it. An input on another
one meets the scratch in the next operation: "Expected all tensors to be on the same device".

## Exceptions
A file that selects the GPU itself (`torch.cuda.set_device`, `with torch.cuda.device(...)`) is silent, and so are a
package whose processes do, and a function that moves its input too.

## Fix safety
Unsafe: the scratch is made where the input is, which is another GPU, or the CPU, if the input is there. Where the function
puts more on "cuda" than that, all is left.

## References
https://docs.pytorch.org/docs/stable/notes/cuda.html
"""

from __future__ import annotations

from portlint.rule import Edit, Hit, Hits, Node, Rule, add_argument, replace, when

rule = Rule(
    assumes={"device.default": "the input's"},
    message="'{text}' is the default GPU, whatever device '{input}' is on; {target} has {fact}.",
    remedy={"*": "Create the scratch where the input is: `device=x.device`, or `torch.empty_like`."},
    otherwise="degrades",
)

CREATORS = frozenset(
    f"torch.{name}"
    for name in "arange empty empty_like empty_strided full full_like linspace ones ones_like rand rand_like randint randn "
    "randn_like randperm zeros zeros_like".split()
)
SELECTS = (b"set_device", b"cuda.device(", b"device_of(", b"CUDA_VISIBLE_DEVICES", b"device_guard")
ABOUT_ONLY = frozenset(
    "device dim dtype element_size is_contiguous is_cuda layout ndim ndimension numel requires_grad shape size stride".split()
)
"""attributes that say something of a tensor, and do not use it"""


@rule.calls(".cuda")
def moved(call: Node) -> Hits:
    scratch = call["function"]["object"]
    made = scratch.assigned if scratch.type == "identifier" else scratch
    if made is not None and made.type == "call" and made.name in CREATORS and not call["arguments"].children:
        yield from _beside_an_input(call, call)


@rule.calls(*CREATORS)
def made(call: Node) -> Hits:
    device = call.argument(None, "device")
    if device is not None and device.constant == "cuda" and device.type == "string":
        yield from _beside_an_input(call, device)


def _beside_an_input(value: Node, place: Node) -> Hits:
    """The place, where a scratch value is used together with a tensor that the function was given."""
    function, assignment = value.function, value.parent
    if function is None or assignment is None or assignment.type != "assignment" or value.role("test"):
        return
    target = assignment["left"]
    if target.type != "identifier" or any(word in value.source.text for word in SELECTS):
        return
    if value.role("selected-gpu"):
        return
    for given in _tensors(function):
        if any(_meets(use, given) for use in target.uses if use.function == function and use.start > value.start):
            guards = (*place.guards, when("torch.cuda.is_available"))
            edits = _beside(place, f"{given}.device") if not _is_given_to_others(function) else ()
            yield Hit(place, words={"input": given}, guards=guards, edits=edits)
            return


def _is_given_to_others(function: Node) -> bool:
    """Whether a function puts on "cuda" what is not known to be scratch: half of it would stay there."""
    keywords = (one for one in function.walk("keyword_argument") if one["name"].text == "device")
    on_cuda = (one for one in keywords if one["value"].type == "string" and one["value"].constant == "cuda")
    calls = (next(one.ancestors("call"), None) for one in on_cuda)
    return any(call is not None and call.name not in CREATORS for call in calls)


def _beside(place: Node, device: str) -> tuple[Edit, ...]:
    """The device in place of "cuda", or as an argument of what makes the scratch, in place of `.cuda()`."""
    if place.type == "string":
        return (replace(place, device),)
    made = place["function"]["object"]
    if made.type != "call" or not made["arguments"].children:
        return ()
    return (add_argument(made, f"device={device}"), Edit(made.end, place.end, ""))


def _tensors(function: Node) -> list[str]:
    """The parameters that are tensors by their annotation, and that the function does not replace."""
    found: list[str] = []
    for parameter in function["parameters"].children:
        annotation = parameter.get("type")
        if annotation is not None and annotation.text.rpartition(".")[2] == "Tensor" and parameter.children:
            name = (parameter.get("name") or parameter.children[0]).text
            replaced = any(one["left"].text == name for one in function["body"].walk("assignment"))
            if not replaced:
                found.append(name)
    return found


def _meets(use: Node, name: str) -> bool:
    """Whether the statement around a use of the scratch works with the input as well."""
    statement = next(use.ancestors("expression_statement", "return_statement"), None)
    if statement is None:
        return False
    return any(one.text == name and not _is_about(one) for one in statement.walk("identifier"))


def _is_about(use: Node) -> bool:
    """Whether only a property of a tensor is read: `x.shape[0]`, `len(x)`; or another object has that attribute."""
    parent = use.parent
    if parent is None:
        return False
    if parent.type == "attribute":
        return parent["attribute"] == use or parent["attribute"].text in ABOUT_ONLY
    if parent.type == "keyword_argument":
        return parent["name"] == use
    return parent.type == "argument_list" and next(parent.ancestors()).name in ("len", "isinstance")
