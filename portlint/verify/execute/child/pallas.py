"""Pallas kernels for TPU on the CPU: lowered for the target, and interpreted with a watch on races and memory."""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from portlint.verify.execute.child.events import Events, Place, place, place_of

jax: Any = importlib.import_module("jax")
numpy: Any = importlib.import_module("numpy")

_LINE = re.compile(r"(\S+\.py):(\d+)")

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class _Failures(logging.Filter):
    """Takes from JAX's log where the interpreter failed, as the exception that comes out does not know it."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether JAX's own log gets the record."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, IndexError) or not str(error).startswith("Out-of-bounds"):
            return True
        places = [place_of(one) for one in (error, error.__cause__, error.__context__) if one is not None]
        at = next((one for one in places if one[1]), ("", 0))
        self._events.note("bounds", str(error), "tile.slice_past_end", at=at, fault=True)
        return False


class Kernels:
    """Stands in for `pl.pallas_call`."""

    def __init__(self, facts: Mapping[str, Any], events: Events) -> None:
        self.title = facts["title"]
        self.kind = facts["jax_kinds"][0]
        self.events = events
        self.suspects: list[tuple[Callable[..., Any], Sequence[Any], Sequence[Any], Place]] = []
        self._lowered: set[Any] = set()
        pallas: Any = importlib.import_module("jax.experimental.pallas")
        self.tpu: Any = importlib.import_module("jax.experimental.pallas.tpu")
        races: Any = importlib.import_module("jax._src.pallas.mosaic.interpret.race_detection_state")
        races.print = self._race  # it only says where a race is in what it prints
        logging.getLogger("jax._src.callback").addFilter(_Failures(events))
        self._plain = pallas.pallas_call
        pallas.pallas_call = self._call

    def _call(self, kernel: Any, *args: Any, interpret: Any = False, **kwargs: Any) -> Any:
        """`pl.pallas_call`: what it gives is lowered, and then interpreted."""
        if interpret:
            return self._plain(kernel, *args, interpret=interpret, **kwargs)
        made_at = place()

        def made(how: Any) -> Any:
            return self._plain(kernel, *args, interpret=how, **kwargs)

        def called(*arrays: Any) -> Any:
            self._lower(made(False), arrays, _ADDRESS.sub("", f"{args} {kwargs}"), made_at)
            result = made(self._interpreter("nan"))(*arrays)
            floats = [one for one in jax.tree.leaves(result) if jax.numpy.issubdtype(one.dtype, jax.numpy.inexact)]
            if floats:
                jax.debug.callback(lambda given, got: self._check(made, given, got, made_at), arrays, floats)
            return result

        return called

    def _interpreter(self, memory: str) -> Any:
        return self.tpu.InterpretParams(detect_races=True, uninitialized_memory=memory)

    def _lower(self, call: Any, arrays: Sequence[Any], options: str, at: Place) -> None:
        """Take a call to the program that the compiler of the target is given; what is refused is a fault."""
        shapes = jax.tree.map(
            lambda one: jax.ShapeDtypeStruct(jax.numpy.shape(one), jax.numpy.result_type(one)), arrays
        )
        key = at, options, str(shapes)
        if key in self._lowered:
            return
        self._lowered.add(key)
        chip = jax.sharding.AbstractDevice(device_kind=self.kind, num_cores=1, platform="tpu")
        mesh = jax.sharding.AbstractMesh((1,), ("x",), abstract_device=chip)
        try:
            with jax.sharding.use_abstract_mesh(mesh):
                jax.jit(call).trace(*shapes).lower(lowering_platforms=("tpu",))
        except Exception as error:  # a refusal may be any exception
            words = " ".join(f"{error}".split())[:300]
            self.events.note(
                "lowering", f"refused for {self.title}: {type(error).__name__}: {words}", at=at, fault=True
            )

    def _check(self, made: Callable[[Any], Any], given: Sequence[Any], got: Sequence[Any], at: Place) -> None:
        if any(numpy.isnan(numpy.asarray(one, dtype=numpy.float32)).any() for one in got):
            self.suspects.append((made, given, got, at))

    def _race(self, text: str) -> None:
        lines = [(path, int(line)) for path, line in _LINE.findall(text)]
        other = f" with line {lines[1][1]}" if len(lines) > 1 else ""
        what = "write" if "\n  write of" in text[:40] else "read"
        words = f"a race: this {what} of a buffer has no order{other}"
        self.events.note("race", words, at=lines[0] if lines else ("", 0), fault=True)

    def close(self) -> None:
        """Run again what gave NaN, with memory of zeros: where that gives numbers, nobody had written them."""
        jax.effects_barrier()
        for made, given, got, at in self.suspects:
            again = jax.tree.leaves(made(self._interpreter("zero"))(*given))
            floats = [one for one in again if jax.numpy.issubdtype(one.dtype, jax.numpy.inexact)]
            pairs = zip(got, floats, strict=True)
            if any((numpy.isnan(one) & ~numpy.isnan(other)).any() for one, other in pairs):
                words = (
                    "the result has values that nothing has written, or that come from memory read before it is written"
                )
                self.events.note("uninitialised", words, at=at, fault=True)
