"""Whether a model is trained through PyTorch/XLA on the device that is here: steps of gradient descent.

How it checks itself: the same steps on the CPU, without XLA, must come to the same weights.

Proof: run
"""

from _kernel import level_of, options, report

asked = options("sync.torch_xla_training")

import _xla

STEPS = 4

where = _xla.device(asked)
torch = _xla.torch


def trained(place: object) -> list[float]:
    """The weights after some steps."""
    weights = torch.arange(1.0, 5.0).to(place).requires_grad_()
    optimizer = torch.optim.SGD([weights], lr=0.125)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (weights * weights).sum().backward()
        optimizer.step()
        if place == where:
            _xla.mark()
    found: list[float] = weights.detach().cpu().tolist()
    return found


measured, right, words = level_of(lambda: trained(where) == trained("cpu"))
report(asked.fact, measured, checked=right, detail=words, **_xla.described())
