"""Whether a device of PyTorch computes in an element type, or in a narrower one, or refuses it.

How it checks itself: a number has a part that only that type keeps. The device takes the number apart again, in each
place of a vector and in its sum; Python's own arithmetic says what must be left.

Proof: run
"""

from _kernel import options, report, said
from _types import FACTS, TYPES, level

asked = options(*FACTS)

from _device import described, device, torch

where = device(asked)
name = asked.fact.rpartition(".")[2]
one = TYPES[name]
count = 1 if name == "int8" else 64
measured, right, detail = "none", True, ""
try:
    dtype = getattr(torch, name)
    numbers = (
        torch.tensor([one.whole] * count).to(dtype)
        if "complex" not in name
        else torch.tensor([one.whole] * count, dtype=dtype)
    )
    if name in ("int64", "float64"):
        numbers = torch.tensor([one.whole] * count, dtype=dtype)
    left = numbers.to(where) - torch.tensor([one.large] * count, dtype=dtype).to(where)
    kept = left.cpu().tolist()
    measured = level(kept[0], one.small)
    right = kept == kept[:1] * count and (measured != "native" or left.sum().cpu().item() == one.small * count)
except (RuntimeError, TypeError, NotImplementedError) as error:
    detail = said(error)
report(asked.fact, measured, checked=right, detail=detail, **described(where))
