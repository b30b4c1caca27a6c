"""Which simulation a file gets: it follows from the target, and from what the file imports."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from portlint.verify.execute.child.events import Events, is_users, place_of
from portlint.verify.execute.child.imports import After, Missing

_PACKAGES = {"torch": "torch", "jax": "jax", "torch_xla": "torch==2.9.0 torch_xla==2.9.0", "numpy": "numpy"}
"""package -> what pip calls it"""


SIMULATED = "simulated"
"""the kind of the event that says what ran under a device that is pretended"""


class Parts:
    """The simulations, each of which begins when its framework has been imported."""

    def __init__(self, facts: Mapping[str, Any], events: Events) -> None:
        self.facts = facts
        self.events = events
        self._backend = facts["queries"].get("jax.default_backend")
        self.has_xla = self._backend == "tpu" and importlib.util.find_spec("torch_xla") is not None
        self._interprets = False
        self._stack = ExitStack()
        if self.has_xla:
            self._log = _lazily()
        os.environ["JAX_PLATFORMS"] = "cpu"
        if facts["triton"]:
            os.environ["TRITON_INTERPRET"] = "1"  # there is no driver for its kernels here

    def install(self) -> None:
        """Begin each simulation as soon as its package has been imported."""
        torch = {"torch_xla": self._torch_xla} if self.has_xla else {"torch": self._torch}
        calls = {**torch, "jax": self._jax, "jax.experimental.pallas": self._pallas}
        After({name: partial(self._begin, name, call) for name, call in calls.items()}).install()
        package = {"hpu": "habana_frameworks", "xla": "torch_xla"}.get(self.facts["kind"])
        if package:
            Missing(package, partial(self._stand_in, package)).install()

    def _begin(self, package: str, call: Callable[[], None]) -> None:
        try:
            call()
        except (AttributeError, ImportError) as error:  # a release that is too old or too new
            words = (
                f"portlint cannot simulate {package} {importlib.metadata.version(package.partition('.')[0])}: {error}"
            )
            self.events.note("limit", words, at=("", 0))

    def _stand_in(self, package: str) -> None:
        importlib.import_module("torch")
        from portlint.verify.execute.child import standins

        standins.install(self.facts["kind"], self._backend)
        words = f"{package} is not installed for {sys.executable}: portlint stands in for a part of it"
        self.events.note("stand-in", words)

    def close(self) -> None:
        """Count what is only known at the end."""
        self._stack.close()

    def ended(self, error: BaseException) -> None:
        """The file has ended with an exception: a known fault, a package that is not there, or one of its own."""
        if self.events.is_refusal(error):
            return
        name = error.name.partition(".")[0] if isinstance(error, ModuleNotFoundError) and error.name else ""
        if name:
            package = _PACKAGES.get(name, "")
            install = f"install it with: {sys.executable} -m pip install {package}"
            words = f"{name} is not installed for {sys.executable}" + (f"; {install}" if package else "")
            self.events.note("missing", words, at=place_of(error))
            return
        if "Out-of-bounds" in str(error) and self._interprets:
            return  # the interpreter of Pallas has said where
        trace = error.__traceback__
        while trace is not None and not is_users(trace.tb_frame.f_code.co_filename):
            trace = trace.tb_next  # what starts the file is no business of its author
        traceback.print_exception(error.with_traceback(trace or error.__traceback__))
        words = next(iter(f"{type(error).__name__}: {error}".splitlines()))
        self.events.note("error", words, at=place_of(error))

    def _torch(self) -> None:
        if not self.facts["kind"]:
            return
        from portlint.verify.execute.child import probes
        from portlint.verify.execute.child.logical import LogicalDevice
        from portlint.verify.execute.child.operators import Operators

        probes.install(self.facts, self.events)
        operators = Operators(self.facts, self.events)
        self._stack.enter_context(LogicalDevice(self.facts["kind"], self.facts["title"], operators, self.events))
        self._simulated("torch")

    def _simulated(self, package: str) -> None:
        self.events.note(SIMULATED, f"{package} {importlib.metadata.version(package)}", at=("", 0))

    def _jax(self) -> None:
        if self._backend is None:
            return
        from portlint.verify.execute.child.compilations import Compilations

        Compilations(self.events)
        sys.modules["jax"].default_backend = lambda: self._backend  # type: ignore[attr-defined]
        self._simulated("jax")

    def _pallas(self) -> None:
        if self._backend != "tpu":
            return
        from portlint.verify.execute.child.pallas import Kernels

        self._interprets = True
        self._stack.callback(Kernels(self.facts, self.events).close)

    def _torch_xla(self) -> None:
        from portlint.verify.execute.child.lazy import LazyDevice
        from portlint.verify.execute.child.operators import Operators

        operators = Operators(self.facts, self.events)
        self._stack.enter_context(LazyDevice(self.facts["title"], operators, self.events, self._log))
        self._simulated("torch_xla")


def _lazily() -> Path:
    """Have PyTorch/XLA run on the CPU, and write down what it compiles; it has to know before it is imported."""
    handle, name = tempfile.mkstemp(prefix="portlint-xla-")
    os.close(handle)
    os.environ.update(PJRT_DEVICE="CPU", PT_XLA_DEBUG_LEVEL="2", PT_XLA_DEBUG_FILE=name)
    return Path(name)
