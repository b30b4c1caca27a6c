"""Whether a tensor on an XLA device has the storage and the strides that views share.

How it checks itself: the same views on the CPU must have them.

Proof: run
"""

from _kernel import level_of, options, report

asked = options("shape.storage")

import _xla

where = _xla.device(asked)
torch = _xla.torch


def shares(place: object) -> bool:
    """Whether a transposed view has other strides, and the same storage."""
    whole = torch.arange(6.0).reshape(2, 3).to(place)
    view = whole.t()
    same = whole.untyped_storage().data_ptr() == view.untyped_storage().data_ptr() != 0
    return bool(view.stride() == (1, 3) and not view.is_contiguous() and same)


level, has, words = level_of(lambda: shares(where))
report(
    asked.fact,
    "native" if level == "native" and has else "none",
    checked=shares("cpu"),
    detail=words,
    **_xla.described(),
)
