"""What a device of PyTorch makes of fp8: whether it converts to a type, and the largest number that it keeps.

GPUs are refused: PyTorch converts there in software, whatever the hardware has; the kernel in Triton asks them.

How it checks itself: one and a half must come back from the device as it was, whatever becomes of larger numbers.

Proof: run
"""

from _kernel import options, refuse, report, said

TYPES = {
    "dtype.fp8_e4m3fn": ("float8_e4m3fn", 448.0),
    "dtype.fp8_e5m2": ("float8_e5m2", 57344.0),
    "dtype.fp8_e4m3fnuz": ("float8_e4m3fnuz", 240.0),
    "dtype.fp8_e5m2fnuz": ("float8_e5m2fnuz", 57344.0),
    "dtype.fp8_e4m3": ("float8_e4m3fn", 240.0),
    "numerics.fp8_e4m3_max": ("float8_e4m3fn", 448.0),
}
asked = options(*TYPES)

from _device import described, device, torch

where = device(asked)
if where.type == "cuda":
    refuse("PyTorch converts fp8 in software on GPUs: ask the kernel in Triton")
name, largest = TYPES[asked.fact]
measured: object = "none"
right, detail = True, ""
try:
    numbers = torch.tensor([1.5, 240.0, largest], device=where)
    ordinary, common, most = numbers.to(getattr(torch, name)).to(torch.float32).cpu().tolist()
    right = ordinary == 1.5
    if asked.fact == "numerics.fp8_e4m3_max":
        measured = 448 if most == largest else int(common)
    elif asked.fact == "dtype.fp8_e4m3":
        beyond = torch.tensor([448.0], device=where).to(getattr(torch, name)).to(torch.float32).cpu().item()
        measured = "native" if most == largest and beyond != 448.0 else "none"
    else:
        measured = "native" if most == largest else "narrowed"
except (RuntimeError, TypeError, NotImplementedError) as error:
    detail = said(error)
    measured = 0 if asked.fact == "numerics.fp8_e4m3_max" else "none"
report(asked.fact, measured, checked=right, detail=detail, **described(where))
