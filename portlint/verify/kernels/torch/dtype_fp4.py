"""Whether a device of PyTorch takes fp4 (e2m1, two in a byte) and multiplies matrices of it with scales.

How it checks itself: every element and every scale is one, so each element of the product is the inner dimension.

Proof: run
"""

from _kernel import options, report, said

asked = options("dtype.fp4", "dtype.mxfp4", "dtype.nvfp4")

from _device import described, device, torch

SIDE = 128
ONES = 0x22
"""two elements of value one in e2m1"""

where = device(asked)
measured, right, detail = "none", True, ""
try:
    packed = torch.full((SIDE, SIDE // 2), ONES, dtype=torch.uint8, device=where).view(torch.float4_e2m1fn_x2)
    scale, per = (torch.float8_e4m3fn, 16) if asked.fact == "dtype.nvfp4" else (torch.float8_e8m0fnu, 32)
    scales = torch.ones(SIDE * SIDE // per, device=where).to(scale)
    product = torch._scaled_mm(packed, packed.t(), scale_a=scales, scale_b=scales, out_dtype=torch.bfloat16)
    measured = "native"
    right = bool((product.cpu() == SIDE).all())
except Exception as error:  # a refusal may be any exception
    detail = said(error)
report(asked.fact, measured, checked=right, detail=detail, **described(where))
