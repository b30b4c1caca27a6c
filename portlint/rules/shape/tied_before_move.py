"""Weights are tied before the model is moved to the device.

`self.head.weight = self.embedding.weight` in a constructor ties two parameters on the CPU. XLA makes a copy of each when
the model moves: memory grows, and training changes one without the other.

## Exceptions
Ties in a method of their own, which can be called again after the move, branches for another platform, and tests are
silent.

## References
https://github.com/pytorch/xla/blob/master/docs/source/learn/troubleshoot.md#xla-tensor-quirks
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, on_platform

rule = Rule(
    assumes={"shape.early_ties": "native"},
    otherwise="corrupts",
    message="'{text}' ties weights while the model is on the CPU; {target} has {fact}.",
    remedy={"*": "Tie the weights in a method of its own, and call it again after `model.to(device)`."},
)


@rule.python(
    "(assignment left: (attribute attribute: (identifier) @name) @left right: (attribute attribute: (identifier) @other)"
    ' (#eq? @name "weight") (#eq? @other "weight")) @tie'
)
def tied(tie: Node, left: Node) -> Hits:
    function = tie.function
    if function is None or function["name"].text != "__init__" or not tie.source.imports("torch"):
        return
    if left.text.startswith("self.") and not tie.role("host-file"):
        yield Hit(tie, otherwise="corrupts", guards=(*tie.guards, on_platform("xla")))
