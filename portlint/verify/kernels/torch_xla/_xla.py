"""The XLA device of PyTorch/XLA that a kernel runs on, and what the framework counts."""

import argparse
import os
import warnings
from typing import Any

from _kernel import need, refuse

INSTALL = "pip install torch_xla, of the same release as torch"
NEURON = ("trainium", "inferentia")

torch: Any
torch_xla: Any
metrics: Any


def device(asked: argparse.Namespace) -> Any:
    """The XLA device: the CPU to simulate, or what is here. Refuses where that is not here."""
    if asked.level == "compile":
        refuse("PyTorch/XLA compiles what it runs: ask for --level simulate or run")
    if asked.level == "simulate":
        os.environ["PJRT_DEVICE"] = "CPU"
    elif asked.architecture.startswith(NEURON):
        need("torch_neuronx", "the Neuron SDK's repository of packages")
    _load()
    kind = torch_xla.runtime.device_type()
    wanted = "NEURON" if asked.architecture.startswith(NEURON) else "TPU" if asked.architecture else kind
    if asked.level == "run" and kind != wanted:
        refuse(f"no device '{asked.architecture}' for PyTorch/XLA here; there is {kind or 'none'}")
    return torch_xla.device()


def _load() -> None:
    """Import the framework, once it is known where it shall run; it says so in warnings."""
    global torch, torch_xla, metrics  # noqa: PLW0603  (the environment decides first)
    warnings.simplefilter("ignore")
    torch = need("torch", "pip install torch")
    torch_xla = need("torch_xla", INSTALL)
    need("torch_xla.runtime", INSTALL)
    metrics = need("torch_xla.debug.metrics", INSTALL)


def described() -> dict[str, str]:
    """The environment that a report names."""
    return {"torch_xla": torch_xla.__version__, "torch": torch.__version__, "device": torch_xla.runtime.device_type()}


def count(name: str) -> int:
    """How often something was timed so far: CompileTime, ExecuteTime, TransferFromDeviceTime."""
    data = metrics.metric_data(name)
    return int(data[0]) if data else 0


def mark() -> None:
    """End a step: compile what was gathered, run it, and wait for it."""
    torch_xla.sync(wait=True)
