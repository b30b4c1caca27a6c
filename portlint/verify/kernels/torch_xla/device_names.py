"""By which names PyTorch knows an XLA device and the build that is here.

How it checks itself: a tensor that is made on the device must say that it is there.

Proof: run
"""

from _kernel import options, report

asked = options("device.type", "device.cuda", "device.cuda_version", "device.hip_module", "device.nccl")

import _xla

where = _xla.device(asked)
torch = _xla.torch
levels = {
    "device.cuda": torch.cuda.is_available(),
    "device.cuda_version": torch.version.cuda is not None and where.type == "cuda",
    "device.hip_module": hasattr(torch, "hip"),
    "device.nccl": torch.cuda.is_available() and torch.distributed.is_nccl_available(),
}
there = torch.ones(2).to(where)
measured = there.device.type if asked.fact == "device.type" else "native" if levels[asked.fact] else "none"
right = there.device.type == where.type and there.sum().item() == 2
report(asked.fact, measured, checked=right, **_xla.described())
