"""The largest rank of a tensor with which a device makes, copies or selects elements.

How it checks itself: the elements must come back from the device as they were.

Proof: run
"""

from _kernel import largest, options, report, said

asked = options("shape.rank", "shape.copy_rank", "shape.masked_select_rank")

from _device import described, device, torch

RANKS = range(1, 25)

where = device(asked)
words = ""


def works(rank: int) -> bool:
    """Whether a tensor of that rank comes back as it was."""
    global words  # noqa: PLW0603  (the last refusal is what the report says)
    whole = torch.arange(2.0).reshape((1,) * (rank - 1) + (2,))
    try:
        there = whole.to(where)
        if asked.fact == "shape.copy_rank":
            there = torch.empty_like(there.transpose(0, -1)).copy_(there.transpose(0, -1)).transpose(0, -1)
        elif asked.fact == "shape.masked_select_rank":
            return bool(torch.masked_select(there, there > 0).cpu().tolist() == [1.0])
        return bool((there + 1).cpu().flatten().tolist() == [1.0, 2.0])
    except (RuntimeError, TypeError) as error:
        words = said(error)
        return False


measured = largest(RANKS, works)
report(asked.fact, measured, checked=measured > 0, detail=words, **described(where))
