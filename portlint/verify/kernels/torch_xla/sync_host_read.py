"""Whether a read of a value on the host, in a loop over steps, runs and waits for a graph of its own.

How it checks itself: without reads the loop must bring nothing to the host; the sums must be those of Python.

Proof: run
"""

from _kernel import options, report

asked = options("sync.host_read")

import _xla

ROUNDS = 6

where = _xla.device(asked)
torch = _xla.torch


def counted(reads: bool) -> tuple[int, float]:
    """How many transfers and executions the rounds take, and the sum."""
    total = torch.zeros(8).to(where)
    _xla.mark()
    before = _xla.count("TransferFromDeviceTime")
    for _ in range(ROUNDS):
        total = total + 1
        if reads:
            total[0].item()
        _xla.mark()
    return _xla.count("TransferFromDeviceTime") - before, float(total.sum().item())


quiet, quiet_sum = counted(False)
reading, reading_sum = counted(True)
report(
    asked.fact,
    "slow" if reading >= ROUNDS else "native",
    checked=quiet == 0 and quiet_sum == reading_sum == 8 * ROUNDS,
    detail=f"{reading} transfers in {ROUNDS} rounds, {quiet} without reads",
    **_xla.described(),
)
