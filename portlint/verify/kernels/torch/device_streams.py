"""Whether a device of PyTorch has streams, and tensors that can be tied to one.

How it checks itself: a sum that is computed in a second stream must be right.

Proof: run
"""

from _kernel import level_of, options, report

asked = options("device.streams", "device.record_stream")

from _device import described, device, synchronize, torch

where = device(asked)


def summed() -> bool:
    """Whether a second stream computes."""
    stream = torch.Stream(device=where)
    numbers = torch.ones(64, device=where)
    synchronize(where)
    with stream:
        total = numbers.sum()
    if asked.fact == "device.record_stream":
        numbers.record_stream(stream)
    stream.synchronize()
    return bool(total.cpu().item() == 64)


measured, right, words = level_of(summed)
report(asked.fact, measured, checked=right, detail=words, **described(where))
