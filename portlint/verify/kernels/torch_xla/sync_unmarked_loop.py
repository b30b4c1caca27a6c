"""Whether a loop that marks no step becomes one graph that grows with its rounds, and is compiled for each length.

How it checks itself: the same loop with marks must not compile for each length; sums must be those of Python.

Proof: run
"""

from _kernel import options, report

asked = options("sync.unmarked_loop")

import _xla

LENGTHS = (3, 4, 5, 6)

where = _xla.device(asked)
torch = _xla.torch


def counted(marks: bool) -> tuple[int, bool]:
    """How many graphs the loops compile after the first, and whether their sums are right."""
    right, first = True, 0
    for length in LENGTHS:
        total = torch.zeros(8).to(where)
        for _ in range(length):
            total = total * 1.5 + 1
            if marks:
                _xla.mark()
        expected = 0.0
        for _ in range(length):
            expected = expected * 1.5 + 1
        right = right and total.cpu().tolist() == [expected] * 8
        first = first or _xla.count("CompileTime")
    return _xla.count("CompileTime") - first, right


marked, marked_right = counted(True)
unmarked, unmarked_right = counted(False)
report(
    asked.fact,
    "slow" if unmarked > marked else "native",
    checked=marked_right and unmarked_right,
    detail=f"{unmarked} graphs without marks, {marked} with them",
    **_xla.described(),
)
