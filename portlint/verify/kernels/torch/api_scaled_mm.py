"""Whether torch._scaled_mm multiplies fp8 matrices on a device, in the OCP format or in the FNUZ one.

How it checks itself: the elements are small whole numbers, so that the product is exact; the host multiplies them too.

Proof: run
"""

from _kernel import level_of, options, report

asked = options("api.scaled_mm")

from _device import described, device, torch

SIDE = 64
FORMATS = ("float8_e4m3fn", "float8_e4m3fnuz")

where = device(asked)
whole = torch.arange(SIDE * SIDE).reshape(SIDE, SIDE).remainder(5) - 2.0
exact = whole @ whole.t()


def multiplied(name: str) -> bool:
    """Whether a product in that format is right."""
    left = whole.to(where).to(getattr(torch, name))
    one = torch.ones((), device=where)
    made = torch._scaled_mm(left, left.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    return bool((made.cpu().float() == exact.to(torch.bfloat16).float()).all())


answers = {name: level_of(lambda name=name: multiplied(name)) for name in FORMATS}
native = [name for name, (level, _, _) in answers.items() if level == "native"]
report(
    asked.fact,
    "native" if native else "none",
    checked=all(right for _, right, _ in answers.values()),
    detail="; ".join(f"{name}: {words or level}" for name, (level, _, words) in answers.items()),
    **described(where),
)
