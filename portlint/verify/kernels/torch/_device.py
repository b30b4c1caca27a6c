"""The device of PyTorch that a kernel runs on: the one that was asked for, or none."""

import argparse
import importlib
from typing import Any

from _kernel import need, refuse

INSTALL = "pip install torch"
TYPES = {"sm_": "cuda", "gfx": "cuda", "gaudi": "hpu", "mps": "mps", "xpu": "xpu", "cpu": "cpu"}
"""how a target's name begins -> the type of its device"""

torch = need("torch", INSTALL)


def device(asked: argparse.Namespace) -> Any:
    """The device that the options name: the CPU to simulate, or what is here. Refuses where it is not here."""
    if asked.level == "compile":
        refuse("PyTorch compiles nothing for a device that is not here: ask for --level simulate or run")
    if asked.level == "simulate":
        return torch.device("cpu")
    if not asked.architecture:
        return torch.accelerator.current_accelerator() or torch.device("cpu")
    kind = next((kind for start, kind in TYPES.items() if asked.architecture.startswith(start)), "")
    if kind == "hpu":
        need("habana_frameworks.torch.core", "Intel's Gaudi software, which brings its own PyTorch")
    if not kind or not _is_here(kind, asked.architecture):
        refuse(f"no device '{asked.architecture}' for PyTorch here")
    return torch.device(kind)


def _is_here(kind: str, name: str) -> bool:
    if kind == "cpu":
        return True
    module = importlib.import_module("torch.backends.mps") if kind == "mps" else getattr(torch, kind, None)
    if module is None or not module.is_available():
        return False
    if kind == "hpu":
        return name.removeprefix("gaudi") in module.get_device_name()
    if kind != "cuda":
        return True
    if name.startswith("gfx"):
        return str(getattr(module.get_device_properties(), "gcnArchName", "")).startswith(name)
    return torch.version.cuda is not None and "sm_{}{}".format(*module.get_device_capability()) == name.rstrip("af")


def described(where: Any) -> dict[str, str]:
    """The environment that a report names."""
    module: Any = getattr(torch, where.type, None)
    name = module.get_device_name() if hasattr(module, "get_device_name") else where.type
    return {"torch": torch.__version__, "device": str(name)}


def synchronize(where: Any) -> None:
    """Wait for all work on a device."""
    module: Any = getattr(torch, where.type, None)
    if where.type != "cpu" and hasattr(module, "synchronize"):
        module.synchronize()
