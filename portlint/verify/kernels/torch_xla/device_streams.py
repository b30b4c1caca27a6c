"""Whether an XLA device of PyTorch has streams.

How it checks itself: a sum that is computed in a second stream must be right.

Proof: run
"""

from _kernel import level_of, options, report

asked = options("device.streams")

import _xla

where = _xla.device(asked)
torch = _xla.torch


def summed() -> bool:
    """Whether a second stream computes."""
    with torch.Stream(device=where) as stream:
        total = torch.ones(64, device=where).sum()
    stream.synchronize()
    return bool(total.item() == 64)


measured, right, words = level_of(summed)
report(asked.fact, measured, checked=right, detail=words, **_xla.described())
