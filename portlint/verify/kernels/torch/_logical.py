"""Runs PyTorch code as if it were on a device that is not here: with real numbers, on the CPU.

Every tensor has a logical device, kept beside it. What would make a tensor on the device makes it on the CPU and says
that it is there; what mixes devices fails as the device would; what reads a value on the host is noted.

It does not see tensors that autograd makes in C++, nor masks that are Boolean.
"""

import traceback
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from _device import INSTALL, need, torch

overrides = need("torch.overrides", INSTALL)
pytree = need("torch.utils._pytree", INSTALL)

TYPES = ("cuda", "mps", "xpu", "hpu", "xla")
"""types of devices that may be pretended"""
READS = frozenset("item tolist numpy __bool__ __int__ __float__ __index__ is_nonzero".split())
"""methods that need a value on the host"""
DATA_DEPENDENT = frozenset("nonzero masked_select unique argwhere".split())
MIXES = frozenset("copy_ __setitem__ __getitem__ __set__ is_set_to _has_compatible_shallow_copy_type".split())
"""functions that take tensors on several devices"""
MOVES = frozenset(("to", "cpu", *TYPES))


class Mismatch(RuntimeError):
    """Tensors on several devices in one operation."""


class Event(NamedTuple):
    """Something that a device does not do for nothing."""

    kind: str
    """host read | data-dependent shape"""
    function: str
    place: str
    """file, line and text"""


class LogicalDevice(overrides.TorchFunctionMode):
    """While it is entered, code for one type of device runs on the CPU."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.events: list[Event] = []
        self._places: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def __torch_function__(self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        keywords = dict(kwargs or {})
        name = getattr(function, "__name__", str(function))
        owner = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if owner is not None and function in _QUESTIONS:
            return _QUESTIONS[function](self.device_of(owner))
        if function == torch.Tensor.data.__set__:
            self._placed(owner, self.device_of(args[1]))
            return function(*args)
        if owner is not None and name in MOVES:
            return self._moved(name, args, keywords)
        wanted = keywords.get("device")
        if wanted is not None:
            wanted = torch.device(wanted)
            keywords["device"] = "cpu"
        tensors = [one for one in pytree.tree_leaves((args, keywords)) if isinstance(one, torch.Tensor)]
        devices = {self.device_of(one).type for one in tensors if one.dim() > 0}
        if len(devices) > 1 and name not in MIXES:
            raise Mismatch(f"{name}: tensors on {', '.join(sorted(devices))}, at {_place()}")
        self._note(name, tensors)
        return self._placed(function(*args, **keywords), wanted or self._common(tensors))

    def device_of(self, tensor: Any) -> Any:
        """The logical device of a tensor."""
        known = self._places.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else torch.device("cpu")

    def _common(self, tensors: Sequence[Any]) -> Any:
        devices = [self.device_of(one) for one in tensors]
        return next((one for one in devices if one.type != "cpu"), torch.device("cpu"))

    def _placed(self, result: Any, device: Any) -> Any:
        for one in pytree.tree_leaves(result):
            if isinstance(one, torch.Tensor):
                key = id(one)
                self._places[key] = (weakref.ref(one, self._forgetting(key)), device)
        return result

    def _forgetting(self, key: int) -> Callable[[Any], Any]:
        return lambda _: self._places.pop(key, None)

    def _note(self, name: str, tensors: Sequence[Any]) -> None:
        if not tensors or self.device_of(tensors[0]).type == "cpu":
            return
        if name == "numpy":
            raise Mismatch(f"numpy() of a tensor on {self.kind}, at {_place()}")
        if name in READS:
            self.events.append(Event("host read", name, _place()))
        elif name in DATA_DEPENDENT:
            self.events.append(Event("data-dependent shape", name, _place()))

    def _moved(self, name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """`.to()` and its kin: a copy, unless the tensor is where it should be."""
        source = self.device_of(args[0])
        if name != "to":
            wanted = torch.device(name)
        else:
            given = [one for one in (*args[1:], keywords.get("device")) if one is not None]
            wanted = next((found for one in given if (found := self._named(one)) is not None), source)
        plain = ["cpu" if self._named(one) is not None else one for one in args[1:]] if name == "to" else []
        rest = {key: "cpu" if key == "device" else value for key, value in keywords.items()}
        moved = torch.Tensor.to(args[0], *plain, **rest) if plain or rest else args[0]
        if source.type != wanted.type:
            if wanted.type == "cpu":
                self.events.append(Event("host read", name, _place()))
            moved = moved.clone() if moved is args[0] else moved
        return self._placed(moved, wanted)

    def _named(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.device_of(value)
        return torch.device(value) if isinstance(value, str | torch.device) else None


_PYTORCH = torch.__path__[0]
"""where its files are"""


def _is(kind: str) -> Callable[[Any], bool]:
    return lambda device: device.type == kind


_QUESTIONS: Mapping[Any, Callable[[Any], Any]] = {
    torch.Tensor.device.__get__: lambda device: device,
    **{getattr(torch.Tensor, f"is_{kind}").__get__: _is(kind) for kind in ("cpu", "cuda", "mps", "xpu", "xla")},
}


def _place() -> str:
    """Where the code is that called PyTorch."""
    for frame in reversed(traceback.extract_stack()):
        if not frame.filename.startswith(_PYTORCH) and not frame.filename.endswith("_logical.py"):
            return f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.line}"
    return "?"
