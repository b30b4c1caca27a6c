"""How often PyTorch/XLA compiles anew where shapes change, depend on data, or where a branch depends on a value.

How it checks itself: steps of one shape must be compiled once; each result is compared with Python's own arithmetic.

Proof: run
"""

from _kernel import options, report, said

asked = options("shape.dynamic", "shape.data_dependent", "shape.value_branches")

import _xla

ROUNDS = 6

where = _xla.device(asked)
torch = _xla.torch


def step(round_: int) -> bool:
    """One step, and whether its result is right."""
    if asked.fact == "shape.dynamic":
        total = (torch.ones(8 + round_).to(where) * 2).sum()
        _xla.mark()
        return bool(total.item() == 2 * (8 + round_))
    numbers = torch.arange(16).to(where)
    limit = torch.tensor(8 + round_).to(where)
    if asked.fact == "shape.data_dependent":
        most = torch.masked_select(numbers, numbers < limit)
        return int((most * 2).sum().item()) == 2 * sum(range(8 + round_))
    if (numbers * limit).sum().item() > 120 * 10 and round_ % 2:
        numbers = numbers.cumsum(0)  # a product with a number would be the graph of the condition
    return int(numbers.sum().item()) in (120, 680)


def counted(rounds: list[int]) -> tuple[int, bool]:
    """How many graphs the rounds compile after the first, and whether they are right."""
    right = step(rounds[0])
    before = _xla.count("CompileTime")
    results = [step(number) for number in rounds[1:]]
    return _xla.count("CompileTime") - before, right and all(results)


measured, right, words = "none", True, ""
try:
    same, same_right = counted([0] * ROUNDS)
    anew, anew_right = counted(list(range(ROUNDS)))
    measured = "slow" if anew > same else "native"
    right, words = (
        same == 0 and same_right and anew_right,
        f"{anew} graphs in {ROUNDS - 1} rounds, {same} where all are alike",
    )
except RuntimeError as error:
    words = said(error)
report(asked.fact, measured, checked=right, detail=words, **_xla.described())
