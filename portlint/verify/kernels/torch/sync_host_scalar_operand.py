"""Whether a scalar tensor on the CPU may be an operand beside a tensor on the device, in eager mode and compiled.

How it checks itself: the sums must be those of Python.

Proof: run
"""

from _kernel import level_of, options, refuse, report

asked = options("sync.host_scalar_operand")

from _device import described, device, torch

where = device(asked)


def added(scalar: object) -> bool:
    """Whether a sum with a scalar on the CPU is right."""
    return bool((torch.ones(8, device=where) + scalar).cpu().tolist() == [3.0] * 8)


def masked() -> bool:
    """Whether masked_fill takes a scalar on the CPU inside of a compiled function."""
    backend = "hpu_backend" if where.type == "hpu" else "aot_eager"
    fill = torch.compile(lambda x, y: x.masked_fill(x > 0, y), backend=backend)
    return bool(fill(torch.ones(8, device=where), torch.tensor(3.0)).cpu().tolist() == [3.0] * 8)


if asked.level == "simulate":
    refuse("the host has no device to mix with: ask for --level run, or give a program to portlint verify --execute")
eager, compiled = level_of(lambda: added(torch.tensor(2.0))), level_of(masked)
report(
    asked.fact,
    "native" if eager[0] == compiled[0] == "native" else "none",
    checked=eager[1] and compiled[1],
    detail=f"{eager[2]} {compiled[2]}".strip(),
    **described(where),
)
