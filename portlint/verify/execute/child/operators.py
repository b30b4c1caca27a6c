"""What operators do on a device that the CPU does otherwise: types and kernels that it lacks, and waits of the host."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from portlint.verify.execute.child.events import Events, is_within

if TYPE_CHECKING:
    from portlint.verify.execute.child.logical import LogicalDevice

torch: Any = importlib.import_module("torch")

_MIXES = frozenset("copy_ _to_copy _foreach_copy_ set_ _pin_memory".split())
"""operators that take tensors on several devices"""
_INDEXED = frozenset("index index_put index_put_ _unsafe_index _index_put_impl_".split())
"""operators that take indices on the CPU as well"""
_READS = frozenset("_local_scalar_dense equal is_nonzero".split())
_DATA_DEPENDENT = frozenset(
    "nonzero masked_select _unique _unique2 unique_dim unique_consecutive repeat_interleave".split()
)
"""operators the shape of whose result depends on values, which the host has to know"""
_WORDS = {
    "__bool__": "its truth",
    "__float__": "float()",
    "__int__": "int()",
    "__index__": "an index",
    "_local_scalar_dense": "item()",
}
_WORDS |= dict.fromkeys(("__getitem__", "__setitem__"), "an index")


def _has_mask(args: Sequence[Any], device: LogicalDevice) -> bool:
    """Whether the operands of an indexing hold a mask, the true values of which have to be counted.

    Where one number of the host's is put to where a mask is true, PyTorch fills, and counts nothing.
    """
    if len(args) > 2 and args[2].numel() == 1 and device.places.of(args[2]).type == "cpu":
        return False
    return any(one is not None and one.dtype in (torch.bool, torch.uint8) for one in args[1])


class Operators:
    """The facts of a target about its operators, and what they come to."""

    def __init__(self, facts: Mapping[str, Any], events: Events) -> None:
        self.facts = facts
        self.events = events
        self.dtypes: Mapping[Any, tuple[str, str]] = {
            getattr(torch, name): (level, fact)
            for name, (level, fact) in facts["dtypes"].items()
            if hasattr(torch, name)
        }

    def called(self, name: str, owner: Any, device: LogicalDevice) -> None:
        """A method of a tensor that reads its values in C++ without an operator."""
        where = device.places.of(owner)
        if where.type == "cpu":
            return
        if name in ("numpy", "__array__"):
            words = (
                f"can't convert {where} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory"
                " first."
            )
            self.events.refuse("host", f"{name}() of a tensor on {where}", TypeError(words))
        if name in ("tolist", "__repr__", "__format__"):
            self.read({"tolist": "tolist()"}.get(name, "its text"))

    def read(self, what: str) -> None:
        """The host waits for the device, but where the copies are those of what interprets Triton's kernels here."""
        if is_within("triton/runtime/interpreter.py"):
            return
        self.events.note("sync", f"{what} waits for the device", "sync.host_read", "shape.value_branches")

    def brought(self, operator: Any, kwargs: Mapping[str, Any]) -> None:
        """The result of an operator with operands on the device is on the CPU."""
        if operator._schema.name == "aten::_to_copy" and not kwargs.get("non_blocking"):
            self.read("a copy to the CPU")

    def before(
        self, operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any], function: str, device: LogicalDevice
    ) -> None:
        """An operator with operands on the device."""
        name = operator._schema.name.removeprefix("aten::")
        self._mixed(name, args, kwargs, function, device)
        self._kernel(name, operator._schema.overload_name)
        if name in _READS:
            self.read(_WORDS.get(function or name, f"{function or name}()"))
        elif name in _DATA_DEPENDENT and kwargs.get("output_size") is None:
            self._depends(f"{function or name}()")
        elif name in _INDEXED and _has_mask(args, device):
            self._depends("a Boolean mask")
        elif name == "copy_" and device.places.of(args[0]).type == "cpu" != device.places.of(args[1]).type:
            self.read("a copy to the CPU")

    def _depends(self, what: str) -> None:
        level = self.facts["levels"].get("shape.data_dependent")
        words = f"the shape of what {what} gives depends on values"
        if level == "none":
            error = RuntimeError(words)
            self.events.refuse(
                "shape", f"{words}; {self.facts['title']} has static shapes", error, "shape.data_dependent"
            )
        self.events.note("sync", f"{words}: the host waits for them", "shape.data_dependent")

    def _mixed(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], function: str, device: LogicalDevice
    ) -> None:
        from portlint.verify.execute.child.logical import tensors_of

        if name in _MIXES or name.startswith("_nested"):
            return
        indices = (
            {id(one) for one in tensors_of(args[1]) if device.places.of(one).type == "cpu"} if name in _INDEXED else ()
        )
        found = device.mixed([one for one in tensors_of(args, kwargs) if id(one) not in indices])
        if found:
            shown = " and ".join(sorted(map(str, found)))
            words = f"Expected all tensors to be on the same device, but found at least two devices, {shown}!"
            self.events.refuse("devices", f"{function or name}: tensors on {shown}", RuntimeError(words))

    def _kernel(self, name: str, overload: str) -> None:
        row = self.facts["operators"].get(f"{name}.{overload}") or self.facts["operators"].get(name)
        if row is None:
            return
        happens, words = row
        if happens == "host":
            self.events.note("fallback", words, "api.operators")
        else:
            error = NotImplementedError(f"The operator 'aten::{name}' is not currently implemented: {words}")
            self.events.refuse("operator", words, error, "api.operators")

    def made(self, tensor: Any, device: LogicalDevice) -> None:
        """A tensor that is on the device now."""
        if tensor.dtype not in self.dtypes or device.places.of(tensor).type == "cpu":
            return
        level, fact = self.dtypes[tensor.dtype]
        name = str(tensor.dtype).removeprefix("torch.")
        if level == "none":
            words = (
                f"Cannot convert a {device.kind.upper()} Tensor to {name}: {self.facts['title']} does not support it"
            )
            self.events.refuse("dtype", f"{name} on {device.kind}", TypeError(words), fact)
        self.events.note("dtype", f"{name} is {level} on {device.kind}", fact)
