"""Whether a loop that marks no step becomes one graph that grows with its rounds, and is compiled for each length.

How it checks itself: the same loop with marks must not compile for each length; sums must be those of Python.

Proof: run
"""

import os

from _kernel import need, options, refuse, report

asked = options("sync.unmarked_loop")
os.environ.setdefault("PT_HPU_LAZY_MODE", "1")

from _device import described, device, torch

LENGTHS = (3, 4, 5, 6)

where = device(asked)
if where.type != "hpu":
    refuse("of PyTorch's own devices only Gaudi's gathers operations into graphs")
core = need("habana_frameworks.torch.core", "Intel's Gaudi software")
metrics = need("habana_frameworks.torch.hpu.metrics", "Intel's Gaudi software")


def compilations() -> int:
    """How many graphs the back end has compiled so far."""
    return int(dict(metrics.metric_global("graph_compilation").stats())["TotalNumber"])


def counted(marks: bool) -> tuple[int, bool]:
    """How many graphs the loops compile after the first, and whether their sums are right."""
    right, first = True, 0
    for length in LENGTHS:
        total = torch.zeros(8, device=where)
        for _ in range(length):
            total = total + 1
            if marks:
                core.mark_step()
        right = right and total.cpu().tolist() == [float(length)] * 8
        first = first or compilations()
    return compilations() - first, right


marked, marked_right = counted(True)
unmarked, unmarked_right = counted(False)
report(
    asked.fact,
    "slow" if unmarked > marked else "native",
    checked=marked_right and unmarked_right,
    detail=f"{unmarked} graphs without marks, {marked} with them",
    **described(where),
)
