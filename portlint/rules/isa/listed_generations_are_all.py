"""A list of compute capabilities is taken to name every device that can run the code.

`if capability not in ((9, 0), (10, 0)): raise` stops on 10.3 and 12.0, which came later and often can run the same path.
Nothing says that the list is out of date until someone starts the program there.

## Exceptions
The test is evaluated for each target; lists of one entry, which name a requirement, and other platforms are silent. So is
a list of parts of one generation, such as `((10, 0), (10, 3))`, for the parts of others: it names what that one has.

## References
https://docs.nvidia.com/cuda/blackwell-compatibility-guide/
"""

from __future__ import annotations

from portlint.rule import ASKS_FOR_DEVICE, Hit, Hits, Node, Rule, any_of, in_generation, on_platform

rule = Rule(
    assumes={},
    message="'{text}' refuses {target}, which has {fact}.",
    remedy={
        "nvidia": "Ask for the feature that the code needs, or add the generation to the list once it has run there.",
        "*": "Ask for the feature that the code needs.",
    },
)


@rule.python(
    '((if_statement condition: (_) @test consequence: (block . (raise_statement))) (#match? @test "not in"))',
    mentions=ASKS_FOR_DEVICE,
)
@rule.python('((assert_statement . (comparison_operator) @test) (#match? @test " in "))', mentions=ASKS_FOR_DEVICE)
def closed_list(test: Node) -> Hits:
    if not test.asks("device.capability"):
        return
    served = [entry for entry in set(test.children[-1].items) if isinstance(entry, tuple)]
    if len(served) < 2:
        return
    around = test.parent
    refused = test.holds if around is not None and around.type == "if_statement" else test.fails
    names = sorted(".".join(map(str, entry)) for entry in served)
    majors = {entry[0] for entry in served if entry}
    own = [in_generation(one) for one in majors if isinstance(one, int) and len(majors) == 1]
    guards = (*test.guards, refused, on_platform("nvidia"), *own)
    yield Hit(test, assumes={"isa.capability": any_of(names)}, guards=guards)
