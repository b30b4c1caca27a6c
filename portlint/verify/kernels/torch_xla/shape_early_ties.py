"""Whether weights that are tied before a model is moved to an XLA device are still one afterwards.

How it checks itself: tied after the move they must be one; and the model must still give what Python says.

Proof: run
"""

from _kernel import options, report

asked = options("shape.early_ties")

import _xla

where = _xla.device(asked)
torch = _xla.torch


class Pair(torch.nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False)

    def tie(self) -> None:
        """Give both layers the weight of the first."""
        self.second.weight = self.first.weight


early, late = Pair(), Pair()
early.tie()
early, late = early.to(where), late.to(where)
late.tie()
is_one = early.first.weight is early.second.weight
with torch.no_grad():
    early.first.weight.fill_(0.5)
out = late.second(torch.ones(4).to(where)).detach().cpu()
report(
    asked.fact,
    "native" if is_one else "slow",
    checked=late.first.weight is late.second.weight and out.shape == (4,),
    **_xla.described(),
)
