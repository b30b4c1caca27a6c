"""Whether a back end compiles anew where shapes change, depend on data, or where a branch depends on a value.

Eager back ends compile nothing: they only have to be right. Gaudi's counts its graphs.

How it checks itself: each step's result is compared with what Python's own arithmetic gives.

Proof: run
"""

from _kernel import need, options, report, said

asked = options("shape.dynamic", "shape.data_dependent", "shape.value_branches")

from _device import described, device, torch

ROUNDS = 6

where = device(asked)


def compilations() -> int:
    """How many graphs the back end has compiled so far."""
    if where.type != "hpu":
        return 0
    metrics = need("habana_frameworks.torch.hpu.metrics", "Intel's Gaudi software")
    return int(dict(metrics.metric_global("graph_compilation").stats())["TotalNumber"])


def step(round_: int) -> bool:
    """One step, and whether its result is right."""
    if asked.fact == "shape.dynamic":
        return bool((torch.ones(8 + round_, device=where) * 2).sum().cpu().item() == 2 * (8 + round_))
    numbers = torch.arange(16, device=where)
    if asked.fact == "shape.data_dependent":
        most = torch.masked_select(numbers, numbers < 8 + round_)
        return int(most.sum().cpu().item()) == sum(range(8 + round_)) and torch.nonzero(most).shape[0] == 7 + round_
    if (numbers * round_).sum() > 300:
        numbers = numbers * 2
    return int(numbers.sum().cpu().item()) == (240 if 120 * round_ > 300 else 120)


measured, right, words = "none", True, ""
try:
    right = step(0)
    before = compilations()
    results = [step(number) for number in range(1, ROUNDS)]
    right = right and all(results)
    anew = compilations() - before
    measured, words = ("slow" if anew > 1 else "native"), f"{anew} graphs in {ROUNDS - 1} rounds"
except (RuntimeError, NotImplementedError) as error:
    words = said(error)
report(asked.fact, measured, checked=right, detail=words, **described(where))
