"""By which names PyTorch knows the device and the build that are here.

How it checks itself: a tensor that is made on the device must say that it is there.

Proof: run
"""

from _kernel import need, options, report

asked = options(
    "device.type",
    "device.cuda",
    "device.cuda_version",
    "device.hip_module",
    "device.nccl",
    "device.backends",
)

from _device import INSTALL, described, device, torch

where = device(asked)
distributed = need("torch.distributed", INSTALL)
is_built = distributed.is_available()
backends = {
    "nccl": is_built and distributed.is_nccl_available() and torch.cuda.is_available(),
    "gloo": is_built and distributed.is_gloo_available(),
}
levels = {
    "device.cuda": torch.cuda.is_available(),
    "device.cuda_version": torch.version.cuda is not None and where.type == "cuda",
    "device.hip_module": hasattr(torch, "hip"),
    "device.nccl": backends["nccl"],
}
there = torch.ones(2).to(where)
measured: object = there.device.type
if asked.fact in levels:
    measured = "native" if levels[asked.fact] else "none"
elif asked.fact == "device.backends":
    measured = [name for name, has in backends.items() if has]
right = there.device.type == where.type and there.sum().cpu().item() == 2
report(asked.fact, measured, checked=right, **described(where))
