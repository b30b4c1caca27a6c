"""Which layouts a device of PyTorch can allocate a tensor in.

How it checks itself: a tensor that is allocated must have the shape that was asked for.

Proof: run
"""

from _kernel import level_of, options, report

asked = options("memory.layouts")

from _device import described, device, torch

where = device(asked)


def allocated(layout: object) -> bool:
    """Whether an allocation in that layout has the right shape."""
    return tuple(torch.empty((4, 4), layout=layout, device=where).shape) == (4, 4)


answers = {
    name: level_of(lambda name=name: allocated(getattr(torch, name)))
    for name in ("strided", "sparse_coo", "sparse_csr")
}
taken = [name for name, (level, _, _) in answers.items() if level == "native"]
report(
    asked.fact,
    "strided only" if taken == ["strided"] else ", ".join(taken),
    checked=all(right for _, right, _ in answers.values()),
    detail="; ".join(words for _, _, words in answers.values() if words),
    **described(where),
)
