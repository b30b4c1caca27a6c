"""Whether a device of PyTorch multiplies float32 matrices in TF32 once that is allowed.

How it checks itself: the elements have a part that TF32 loses. A product in which it is not allowed must keep that
part; the exact product, of numbers with few bits, is known.

Proof: run
"""

from _kernel import options, report

asked = options("dtype.tf32")

from _device import described, device, torch

SIDE = 128
SMALL = 2.0**-12
"""below the ten bits of a TF32 fraction"""

where = device(asked)


def product(allowed: bool) -> float:
    """One element of a product of matrices of 1 + SMALL and of ones."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    left, right = torch.full((SIDE, SIDE), 1 + SMALL), torch.ones(SIDE, SIDE)
    return float((left.to(where) @ right.to(where))[0, 0].cpu().item())


exact = SIDE * (1 + SMALL)
measured = "native" if product(True) != exact else "none"
report(asked.fact, measured, checked=product(False) == exact, **described(where))
