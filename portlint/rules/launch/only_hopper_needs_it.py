"""A list of Triton configurations leaves some out on Hopper, and on no later generation.

A filter such as `if not (is_hopper() and warps == 4)` works around a fault that was seen on compute capability 9.x. The next
generation starts with the whole list again, the configurations that fail included, and nobody has looked at it there.

## Exceptions
Silent are lists that ask for later generations too, or for `>=`, and filters whose condition is not known for both.
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, any_of, in_generation, may_run

rule = Rule(
    assumes={},
    otherwise="degrades",
    message="'{text}' leaves configurations out on compute capability 9.x alone; {target} has {fact}.",
    remedy={"*": "Run the configurations that it leaves out on this generation, and ask for both, or for `>= 9`."},
)

BEFORE, HOPPER, AFTER = (8, 0), (9, 0), (10, 0)


@rule.calls("triton.Config")
def filtered(call: Node) -> Hits:
    around = next(call.ancestors("list_comprehension", "generator_expression"), None)
    clauses = around.children if around is not None else []
    tests = [one.children[0] for one in clauses if one.type == "if_clause" and one.children]
    asking = [test for test in tests if test.asks("device.capability")]
    if asking and _kept(call, HOPPER) < _kept(call, BEFORE) == _kept(call, AFTER):
        guards = (*call.guards, in_generation(AFTER[0]))
        yield Hit(asking[0], {"isa.capability": any_of(("9.0",))}, guards=guards, language="triton")


def _kept(call: Node, capability: tuple[int, int]) -> int:
    """The configurations that are left on NVIDIA's devices of a capability."""
    answers = {"device.capability": capability, "torch.version.hip": None, "triton.backend": "cuda"}
    return sum(may_run(one.guards, answers) for one in call.configurations)
