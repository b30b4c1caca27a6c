"""What PyTorch says and offers besides tensors on a device that is pretended: probes, streams, autocast."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import types
from collections.abc import Mapping
from typing import Any

from portlint.verify.execute.child.events import Events

torch: Any = importlib.import_module("torch")

_NOTHING = frozenset(
    "synchronize empty_cache set_device manual_seed manual_seed_all seed seed_all init _lazy_init ipc_collect"
    " reset_peak_memory_stats reset_max_memory_allocated reset_accumulated_memory_stats set_per_process_memory_fraction"
    " set_sync_debug_mode set_rng_state set_rng_state_all set_stream set_device_index mark_step".split()
)
_ZERO = frozenset(
    "current_device current_device_index memory_allocated max_memory_allocated memory_reserved max_memory_reserved"
    " current_allocated_memory driver_allocated_memory recommended_max_memory initial_seed".split()
)
_CONTEXTS = frozenset("device stream device_index".split())


class _Stream:
    """A stream or an event: all work is done when it is asked for."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        del args, kwargs

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def record(self, *_: object) -> _Stream:
        return self

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def elapsed_time(self, _: object) -> float:
        return 0.0

    def _nothing(self, *_: object) -> None:
        return None

    synchronize = wait = wait_stream = wait_event = record_event = _nothing


def install(facts: Mapping[str, Any], events: Events) -> None:
    """Let PyTorch answer for the device of the target."""
    kind, queries = facts["kind"], facts["queries"]
    _versions(queries)
    for name in ("cuda", "mps", "xpu", "hpu"):
        here = name == kind
        module = getattr(torch, name, None)
        if module is None and here:
            module = sys.modules[f"torch.{name}"] = types.ModuleType(f"torch.{name}")
            setattr(torch, name, module)
        if module is None:
            continue
        _answer(module, "is_available", here)
        if here:
            _module(module, facts)
        elif hasattr(module, "device_count"):
            _answer(module, "device_count", 0)
    for name in ("is_available", "is_built"):
        _answer(torch.backends.mps, name, kind == "mps")
    torch.Stream = torch.Event = _Stream
    _accelerator(kind)
    _whole_program(kind, events)


def _answer(module: Any, name: str, value: Any) -> None:
    """Let a function give a value; PyTorch's own modules look at what it wraps."""
    before = getattr(module, name, None)

    def answer(*_: object, **__: object) -> Any:
        return value

    setattr(module, name, functools.wraps(before)(answer) if callable(before) else answer)


def _versions(queries: Mapping[str, Any]) -> None:
    for name in ("cuda", "hip", "xpu"):
        if f"torch.version.{name}" in queries:
            setattr(torch.version, name, queries[f"torch.version.{name}"])


def _module(module: Any, facts: Mapping[str, Any]) -> None:
    """The functions of `torch.cuda`, `torch.mps` and their kin."""
    for name in _NOTHING:
        if hasattr(module, name) or facts["kind"] == "hpu":
            _answer(module, name, None)
    for name in _ZERO:
        if hasattr(module, name) or facts["kind"] == "hpu":
            _answer(module, name, 0)
    for name in ("Stream", "Event"):
        setattr(module, name, _Stream)
    for name in _CONTEXTS:
        setattr(module, name, _Stream)
    major, minor = facts["queries"].get("device.capability") or (0, 0)
    properties = types.SimpleNamespace(
        name=facts["title"],
        major=major,
        minor=minor,
        gcnArchName=facts["queries"].get("gcn_arch"),
        warp_size=facts["queries"].get("warp_size"),
    )  # what portlint knows no value of is left out: to ask for it is an error
    _answer(module, "device_count", 1)
    _answer(module, "is_initialized", True)
    _answer(module, "is_current_stream_capturing", False)
    _answer(module, "current_stream", _Stream())
    _answer(module, "default_stream", _Stream())
    _answer(module, "get_device_name", facts["title"])
    _answer(module, "get_device_properties", properties)
    _answer(module, "get_device_capability", (major, minor))
    _answer(module, "is_bf16_supported", facts["levels"].get("dtype.bfloat16") == "native")
    module.get_rng_state = lambda *_, **__: torch.get_rng_state()
    module.get_rng_state_all = lambda *_, **__: [torch.get_rng_state()]


def _accelerator(kind: str) -> None:
    module = getattr(torch, "accelerator", None)
    if module is None:
        return
    _answer(module, "is_available", True)
    _answer(module, "device_count", 1)
    _answer(module, "current_accelerator", torch.device(kind))
    _answer(module, "current_stream", _Stream())
    for name in (*_NOTHING, *_ZERO):
        if hasattr(module, name):
            _answer(module, name, 0 if name in _ZERO else None)


def _whole_program(kind: str, events: Events) -> None:
    """What stands beside tensors: automatic types, generators, files, pinned memory, compilers."""
    _autocast(kind)
    _generator()
    loaded = torch.load

    def load(*args: Any, **kwargs: Any) -> Any:
        place = kwargs.pop("map_location", args[1] if len(args) > 1 else None)
        content = loaded(*args[:1], map_location="cpu", **kwargs)
        named = isinstance(place, str | torch.device)
        return _to(content, place) if named else content

    def compiled(model: Any = None, **_: Any) -> Any:
        events.note("eager", "torch.compile is left out: this ran in eager mode")
        return (lambda one: one) if model is None else model

    torch.load = load
    torch.compile = compiled
    torch.nn.Module.compile = lambda self, *_, **__: compiled(self) and None
    torch.Tensor.pin_memory = lambda self, *_, **__: self
    if kind in ("cuda", "xpu"):
        torch.Tensor.record_stream = lambda *_, **__: None
    if kind == "hpu":
        torch.Tensor.hpu = lambda self, *_, **__: self.to("hpu")
        torch.nn.Module.hpu = lambda self, *_, **__: self.to("hpu")


def _to(content: Any, place: Any) -> Any:
    pytree: Any = importlib.import_module("torch.utils._pytree")
    return pytree.tree_map_only(torch.Tensor, lambda one: one.to(place), content)


def _autocast(kind: str) -> None:
    plain = torch.amp.autocast_mode.autocast.__init__
    usual = torch.float16 if kind in ("cuda", "mps") else torch.bfloat16

    def entered(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        here = str(device_type).partition(":")[0] == kind
        plain(self, "cpu" if here else device_type, usual if here and dtype is None else dtype, *args, **kwargs)

    torch.amp.autocast_mode.autocast.__init__ = entered
    for name in ("is_autocast_enabled", "get_autocast_dtype"):
        if hasattr(torch, name):
            setattr(torch, name, _of_cpu(getattr(torch, name), kind))
    for module in (torch.amp, torch.amp.autocast_mode):
        _answer(module, "is_autocast_available", True)


def _of_cpu(function: Any, kind: str) -> Any:
    """A function that answers for the CPU when it is asked for the device; without a type, for CUDA."""

    @functools.wraps(function)
    def answer(device_type: str = "cuda") -> Any:
        return function("cpu" if device_type == kind else device_type)

    return answer


def _generator() -> None:
    plain = torch.Generator.__new__

    class Generator(torch.Generator):
        """A generator of random numbers, which are the CPU's."""

        def __new__(cls, device: Any = "cpu") -> Any:
            del device
            return plain(cls, "cpu")

    with contextlib.suppress(TypeError):
        Generator()
        torch.Generator = Generator
