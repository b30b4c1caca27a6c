"""Stand-ins for packages that come with a machine, where they are not installed: of each the part that most code uses.

They compile nothing: how many graphs a run would have is not known from them.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

torch: Any = importlib.import_module("torch")
pytree: Any = importlib.import_module("torch.utils._pytree")


class StandIn(types.ModuleType):
    """A module that says what it is when it lacks a name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"portlint's stand-in for {self.__name__} has no '{name}'; install the package itself")


def module(name: str, **names: Any) -> types.ModuleType:
    """A module with some names, and those that it is in."""
    found = sys.modules.get(name)
    if found is None:
        found = sys.modules[name] = StandIn(name)
        found.__path__ = []
        above, _, last = name.rpartition(".")
        if above:
            setattr(module(above), last, found)
    for key, value in names.items():
        setattr(found, key, value)
    return found


def install(kind: str, backend: str | None) -> None:
    """Stand in for what PyTorch needs for a type of device."""
    if kind == "hpu":
        _habana()
    else:
        _torch_xla("TPU" if backend == "tpu" else "NEURON")


def _nothing(*_: object, **__: object) -> None:
    return None


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _habana() -> None:
    module("habana_frameworks.torch.core", mark_step=_nothing, hpu_initialize=_nothing, hpu_set_env=_nothing)
    names = {name: value for name, value in vars(torch.hpu).items() if not name.startswith("__")}
    module("habana_frameworks.torch.hpu", wrap_in_hpu_graph=lambda model, *_, **__: model, **names)
    module("habana_frameworks.torch", hpu=sys.modules["habana_frameworks.torch.hpu"])


class _Loader:
    """What brings batches to the device."""

    def __init__(self, loader: Any, device: Any, **_: object) -> None:
        self._loader, self._device = loader, device

    def __iter__(self) -> Iterator[Any]:
        for batch in self._loader:
            yield pytree.tree_map_only(torch.Tensor, lambda one: one.to(self._device), batch)

    def __len__(self) -> int:
        return len(self._loader)


def _torch_xla(hardware: str) -> None:
    device = _always(torch.device("xla", 0))
    counts = dict.fromkeys("world_size global_device_count addressable_device_count process_count".split(), 1)
    places = dict.fromkeys("global_ordinal local_ordinal process_index".split(), 0)
    module(
        "torch_xla",
        __version__="0",
        device=device,
        sync=_nothing,
        step=nullcontext,
        compile=lambda function=None, **_: (lambda one: one) if function is None else function,
        launch=lambda function, args=(), **_: function(0, *args),
        manual_seed=torch.manual_seed,
    )
    module(
        "torch_xla.core.xla_model",
        xla_device=device,
        mark_step=_nothing,
        wait_device_ops=_nothing,
        rendezvous=_nothing,
        optimizer_step=lambda optimizer, *_, **__: optimizer.step(),
        add_step_closure=lambda closure, args=(), **_: closure(*args),
        all_reduce=lambda _, values, *__, **___: values,
        master_print=print,
        save=torch.save,
        get_ordinal=_always(0),
        xrt_world_size=_always(1),
        is_master_ordinal=_always(True),
    )
    answers: Mapping[str, Any] = {**counts, **places, "device_type": hardware, "use_spmd": None}
    module("torch_xla.runtime", **{name: _always(value) for name, value in answers.items()})
    module("torch_xla.distributed.parallel_loader", MpDeviceLoader=_Loader)
