"""What torch.cuda.get_device_capability() answers.

How it checks itself: the properties of the device must say the same.

Proof: run
"""

from _kernel import options, refuse, report

asked = options("isa.capability")

from _device import described, device, torch

where = device(asked)
if where.type != "cuda":
    refuse("only devices of type 'cuda' have a capability")
properties = torch.cuda.get_device_properties(where)
measured = list(torch.cuda.get_device_capability(where))
report(asked.fact, measured, checked=measured == [properties.major, properties.minor], **described(where))
