"""A tensor grows by concatenation in every step.

`ids = torch.cat([ids, following], dim=-1)` in a decoding loop, or `self.keys = torch.cat([self.keys, k], dim=1)` in a
module, has another shape in every round. A graph compiler then compiles in every round, and everything that takes the
tensor is compiled with it.

## Exceptions
Loops over layers and over short written lists, tensors on the host, modules while they are built, data sets, tests, and
functions that also write in place (`index_copy_`, `x[...] = `) are silent.

## References
https://github.com/pytorch/xla/blob/master/docs/source/perf/recompilation.md
https://docs.habana.ai/en/latest/PyTorch/Model_Optimization_PyTorch/Dynamic_Shapes.html
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"shape.dynamic": "native"},
    message="'{text}' makes '{grown}' longer in every step; {target} has {fact}.",
    remedy={
        "*": "Allocate the full length once and write each step's part in place with `index_copy_` at a position that is a tensor (`jax.lax.dynamic_update_slice` in JAX); collect results in a list and concatenate after the loop.",
    },
)

CACHE = regex(r"cache|past|history|memory|keys|values|states|buffer|kv", re.IGNORECASE)
BUILDING = regex(r"^(__init__|build\w*|_?init\w*|reset\w*|load\w*|setup|create\w*|make\w*|get_\w*embed\w*)$")
IN_PLACE = frozenset(("index_copy_", "index_copy", "scatter_", "index_put_", "dynamic_update_slice"))


@rule.calls("torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack")
def grown(call: Node) -> Hits:
    target = _target(call)
    if target is None or not call.arguments or call.arguments[0].type not in ("list", "tuple"):
        return
    parts = call.arguments[0].children
    own = next((part for part in parts if part.text == target.text), None)
    if own is None or len(parts) < 2:
        return
    function = call.function
    if call.role("host-code") or any(part.role("on-host") for part in parts):
        return
    if function is not None and (BUILDING.match(function["name"].text) or _has_static_twin(call, target)):
        return
    if own.role("accumulated") if target.type == "identifier" else CACHE.search(target.text):
        yield Hit(call["function"], words={"grown": target.text})


def _target(call: Node) -> Node | None:
    """What the concatenation is assigned to."""
    assignment = call.parent
    if assignment is None or assignment.type != "assignment" or assignment["right"] != call:
        return None
    left = assignment["left"]
    is_own = left.type == "attribute" and left["object"].text == "self"
    return left if is_own or left.type == "identifier" else None


def _has_static_twin(call: Node, target: Node) -> bool:
    """Whether the function writes in place as well, or another branch stores into the same tensor."""
    function = call.function
    called = (one["function"].get("attribute") for one in function["body"].walk("call")) if function is not None else ()
    if any(name is not None and name.text in IN_PLACE for name in called):
        return True
    branch = next(call.ancestors("if_statement"), None)
    stores = (one["left"] for one in branch.walk("assignment")) if branch is not None else ()
    return any(one.type == "subscript" and one["value"].text == target.text for one in stores)
