"""Whether a read of a value on the host waits for the device: work is queued, and then one value is read.

Where the host itself computes, the work is done when the call returns, and the read costs nothing.

How it checks itself: the value must be that of the exact product.

Proof: run
"""

import time

from _kernel import options, refuse, report

asked = options("sync.host_read")

from _device import described, device, synchronize, torch

SIDE, ROUNDS = 1024, 50

where = device(asked)
if asked.level == "simulate":
    refuse("the host computes here itself: ask for --level run, or give a program to portlint verify --execute")
matrix = torch.full((SIDE, SIDE), 1 / SIDE).to(where)
step = matrix @ matrix
synchronize(where)
start = time.perf_counter()
for _ in range(ROUNDS):
    step = step @ matrix
queued = time.perf_counter()
value = step[0, 0].item()
waited = time.perf_counter() - queued
share = waited / (time.perf_counter() - start)
report(
    asked.fact,
    "slow" if share > 0.2 else "native",
    checked=value == 1 / SIDE,
    detail=f"the read took {share:.0%} of the time",
    **described(where),
)
