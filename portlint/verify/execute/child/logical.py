"""A device of PyTorch that is not here: code for it runs on the CPU, with real numbers.

Where a tensor is, is kept beside its storage, which views, parameters and gradients share. One mode sees the functions
that the user's code calls, and sends what they make for the device to the CPU; the other sees the operators below them,
those of backward passes included, and what they do that the device does not, or not for nothing.

Modes are of one thread; each that the user's code starts gets its own.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from portlint.verify.execute.child.events import Events
from portlint.verify.execute.child.operators import Operators

torch: Any = importlib.import_module("torch")
overrides: Any = importlib.import_module("torch.overrides")
pytree: Any = importlib.import_module("torch.utils._pytree")
constructors: Any = importlib.import_module("torch.utils._device")
dispatch: Any = importlib.import_module("torch.utils._python_dispatch")
reductions: Any = importlib.import_module("torch.multiprocessing.reductions")

CPU = torch.device("cpu")
_MOVES = ("to", "cpu", "cuda", "xpu", "hpu")
"""methods that name a device, or are named for one"""
_COPIES = frozenset(("__deepcopy__",))
"""methods that copy a storage without an operator"""
_PRINTS = frozenset("__repr__ __str__ __format__".split())
_TYPES = ("cpu", "cuda", "mps", "xpu", "xla", "hpu")
_PRUNE = 4096


class Places:
    """Which storages are on the device; what is not among them is on the CPU."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any]] = {}
        self._limit = _PRUNE

    def of(self, tensor: Any) -> Any:
        """The device of a tensor."""
        key = _storage(tensor)
        if key is None:
            return tensor.device
        return self._known[key][1] if key in self._known else CPU

    def put(self, tensor: Any, device: Any) -> None:
        """Say where a tensor is."""
        key = _storage(tensor)
        if key is None:
            return
        if device.type == "cpu":
            self._known.pop(key, None)
            return
        # a weak reference keeps the address of the storage from being used again
        self._known[key] = (reductions.StorageWeakRef(tensor.untyped_storage()), device)
        if len(self._known) > self._limit:
            self._known = {key: one for key, one in self._known.items() if not one[0].expired()}
            self._limit = 2 * len(self._known) + _PRUNE


def _storage(tensor: Any) -> int | None:
    """What identifies the storage of a tensor on the CPU; None for others, and for what has none or hides it."""
    hides = type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    if hides or tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        return None
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return None


class _Call(NamedTuple):
    """A function that the user's code has called."""

    name: str
    wanted: Any
    """the device that it was given, or None"""
    common: Any
    """that of its arguments"""


class LogicalDevice:
    """While it is entered, code for one type of device runs on the CPU."""

    def __init__(self, kind: str, title: str, operators: Operators, events: Events) -> None:
        self.kind = kind
        self.title = title
        self.places = Places()
        self.operators = operators
        self.events = events
        self._local = threading.local()
        self._stack = ExitStack()

    @property
    def calls(self) -> list[_Call]:
        """The functions that this thread is in."""
        if not hasattr(self._local, "calls"):
            self._local.calls = []
        calls: list[_Call] = self._local.calls
        return calls

    def __enter__(self) -> LogicalDevice:
        torch._C._group_tensors_by_device_and_dtype = self.grouped
        plain = threading.Thread.run

        def run(thread: threading.Thread) -> None:
            with _Functions(self), Watch(self):
                plain(thread)

        threading.Thread.run = run  # type: ignore[method-assign, assignment]
        self._stack.enter_context(_Functions(self))
        self._stack.enter_context(Watch(self))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def grouped(self, lists: Sequence[Sequence[Any]], _with_indices: bool = False) -> Any:
        """Tensors by device and type, as PyTorch's optimizers ask for them."""
        found: dict[Any, Any] = {}
        for number, first in enumerate(lists[0]):
            group, indices = found.setdefault((self.places.of(first), first.dtype), ([[] for _ in lists], []))
            for part, whole in zip(group, lists, strict=True):
                part.extend(whole[number : number + 1])
            indices.append(number)
        return found

    def asked(self, operator: Any, _kwargs: Any, wanted: Any) -> Any:
        """The device that an operator was given before its function was sent to the CPU."""
        takes = any(one.name == "device" for one in operator._schema.arguments)
        return wanted if takes else None

    def named(self, given: Any) -> Any:
        """The device that a value names; an error, as the target's software has it, for one that is not there."""
        if isinstance(given, torch.Tensor):
            return self.places.of(given)
        device = torch.device(self.kind, given) if isinstance(given, int) else torch.device(given)
        if device.type in ("cpu", "meta"):
            return device
        if device.type != self.kind:
            words = f"'{device.type}' is no device of {self.title}; its type is '{self.kind}'"
            error = AssertionError("Torch not compiled with CUDA enabled") if device.type == "cuda" else None
            self.events.refuse("device", words, error or RuntimeError(words), f"device.{device.type}", "device.type")
        return torch.device(device.type, device.index or 0)

    def common(self, tensors: Sequence[Any]) -> Any:
        """The device of what is made from tensors."""
        return next((one for one in map(self.places.of, tensors) if one.type != "cpu"), CPU)

    def mixed(self, tensors: Sequence[Any]) -> set[Any]:
        """The devices of operands, where they are several. One number on the CPU goes with any device."""
        found = {(self.places.of(one), one.dim() == 0) for one in tensors if _storage(one) is not None}
        devices = {device for device, is_number in found if device.type != "cpu" or not is_number}
        return devices if len(devices) > 1 else set()


def tensors_of(*values: Any) -> list[Any]:
    """The tensors in a structure of values."""
    return [one for one in pytree.tree_leaves(values) if isinstance(one, torch.Tensor)]


class _Functions(overrides.TorchFunctionMode):
    """Sends to the CPU what is asked for the device, and notes that it is there."""

    def __init__(self, device: LogicalDevice) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        keywords = dict(kwargs or {})
        owner = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if owner is not None and function in _QUESTIONS:
            return _QUESTIONS[function](self.device.places.of(owner))
        name = getattr(function, "__name__", str(function))
        if owner is not None and name in _MOVES:
            given, rest = _taken(name, args, keywords)
            if given is not None:
                return self._to(owner, self.device.named(given), rest)
        given = _given(function, name, args, keywords)
        wanted = None if given is None else self.device.named(given)
        if wanted is not None:
            keywords["device"] = "meta" if wanted.type == "meta" else "cpu"
        elif owner is not None and name in _COPIES:
            wanted = self.device.places.of(owner)
        if owner is not None:
            self.device.operators.called(name, owner, self.device)
        tensors = tensors_of(args, keywords)
        with self._calling(name, wanted, tensors):
            result = function(*args, **keywords)
            return result if wanted is None or wanted.type == "meta" else self._placed(result, wanted, tensors)

    @contextmanager
    def _calling(self, name: str, wanted: Any, tensors: Sequence[Any]) -> Iterator[None]:
        self.device.calls.append(_Call(name, wanted, self.device.common(tensors)))
        try:
            yield
        finally:
            self.device.calls.pop()

    def _to(self, tensor: Any, wanted: Any, keywords: dict[str, Any]) -> Any:
        """`.to()` and its kin: types are converted on the CPU, as the device may lack one of them."""
        source = self.device.places.of(tensor)
        keywords["device"] = "meta" if wanted.type == "meta" else "cpu"
        with self._calling("to", wanted, [tensor]):
            if source != wanted and wanted.type == "cpu":
                if not keywords.get("non_blocking"):
                    self.device.operators.read("a copy to the CPU")
                tensor = _Move.apply(tensor, self.device, source, wanted)
            moved = torch.Tensor.to(tensor, **keywords)
            if source != wanted and wanted.type not in ("cpu", "meta"):
                moved = _Move.apply(moved, self.device, source, wanted)
            self.device.operators.made(moved, self.device)
            return moved

    def _placed(self, result: Any, wanted: Any, tensors: Sequence[Any]) -> Any:
        """A result where it was asked for: a copy, if it would share the storage of something elsewhere."""
        places = self.device.places
        shared = {_storage(one) for one in tensors}

        def placed(one: Any) -> Any:
            if places.of(one) != wanted and _storage(one) in shared:
                one = _Move.apply(one, self.device, places.of(one), wanted)
            places.put(one, wanted)
            self.device.operators.made(one, self.device)
            return one

        return pytree.tree_map_only(torch.Tensor, placed, result)


class _Move(torch.autograd.Function):
    """A copy to another device; its gradient goes the way back."""

    @staticmethod
    def forward(context: Any, tensor: Any, device: LogicalDevice, source: Any, wanted: Any) -> Any:
        context.way = device, source
        moved = tensor.clone()
        device.places.put(moved, wanted)
        return moved

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        device, source = context.way
        moved = gradient.clone()
        device.places.put(moved, source)
        return moved, None, None, None


def _taken(name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The device that a move names, None where it names none, and its other arguments by their names."""
    rest = dict(keywords)
    if name != "to":
        index = rest.pop("device", args[1] if len(args) > 1 else None)
        rest.update(zip(("non_blocking",), args[2:], strict=False))
        return f"{name}:{index}" if isinstance(index, int) else name if index is None or name == "cpu" else index, rest
    given = args[1] if len(args) > 1 else rest.pop("other", rest.get("device"))
    if isinstance(given, torch.dtype):
        rest.update(zip(("dtype", "non_blocking", "copy"), args[1:], strict=False))
        return rest.get("device"), rest
    if isinstance(given, torch.Tensor):
        rest.update(zip(("non_blocking", "copy"), args[2:], strict=False), dtype=given.dtype)
    else:
        rest.update(zip(("dtype", "non_blocking", "copy"), args[2:], strict=False))
    return given, rest


def _given(function: Any, name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The device that is asked for, or None."""
    given = keywords.get("device")
    if given is None and name.startswith("new_") and args:
        return args[0]
    if given is None and function in constructors._device_constructors():
        return _default()
    return given


def _default() -> Any:
    """The device that `with torch.device(...)` or `torch.set_default_device` has set."""
    stack = overrides._get_current_function_mode_stack()
    return next((one.device for one in reversed(stack) if isinstance(one, constructors.DeviceContext)), None)


class Watch(dispatch.TorchDispatchMode):
    """Sees the operators that a function comes to."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # it would import the compiler, which nothing here needs

    def __init__(self, device: LogicalDevice) -> None:
        super().__init__()
        self.device = device

    def __torch_dispatch__(self, operator: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():
            return self._dispatched(operator, args, kwargs or {})

    def _dispatched(self, operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        device, call = self.device, self.device.calls[-1] if self.device.calls else _Call("", None, CPU)
        if call.name in _PRINTS:
            return operator(*args, **kwargs)
        tensors = tensors_of(args, kwargs)
        where = device.common(tensors) if tensors else CPU
        if where.type != "cpu":
            device.operators.before(operator, args, kwargs, call.name, device)
        result = _computed(operator, args, kwargs)
        asked = device.asked(operator, kwargs, call.wanted)
        goes = asked or (where if tensors else call.common)
        if asked is not None and asked.type == "cpu" and where.type != "cpu":
            device.operators.brought(operator, kwargs)
        if goes.type in ("cpu", "meta"):
            return result
        known = {_storage(one) for one in tensors}
        for one in tensors_of(result):
            if one.device.type == "cpu" and _storage(one) not in known and (tensors or one.dim()):
                device.places.put(one, goes)
                if tensors:
                    device.operators.made(one, device)
        return result


def _computed(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What an operator gives; in float32 where the CPU has no kernel for a type that the device may have one for."""
    try:
        return operator(*args, **kwargs)
    except (NotImplementedError, RuntimeError) as error:
        tensors = tensors_of(args, kwargs)
        if "not implemented for '" not in str(error) or operator._schema.is_mutable or not tensors:
            raise
        wide, named = pytree.tree_map_only(torch.Tensor, lambda one: one.float(), (tuple(args), dict(kwargs)))
        result = operator(*wide, **named)
    kind = tensors[0].dtype
    return pytree.tree_map_only(torch.Tensor, lambda one: one.to(kind) if one.dtype == torch.float32 else one, result)


def _is(kind: str) -> Callable[[Any], bool]:
    return lambda device: device.type == kind


_QUESTIONS: Mapping[Any, Callable[[Any], Any]] = {
    torch.Tensor.device.__get__: lambda device: device,
    torch.Tensor.get_device: lambda device: -1 if device.type == "cpu" else device.index,
    **{
        getattr(torch.Tensor, f"is_{kind}").__get__: _is(kind) for kind in _TYPES if hasattr(torch.Tensor, f"is_{kind}")
    },
}
