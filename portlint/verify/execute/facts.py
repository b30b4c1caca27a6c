"""What the process of the user's file is told of the target, as JSON."""

from __future__ import annotations

from typing import Any

from portlint.tables import torch_operators
from portlint.target import Target

_TORCH_TYPES = {
    "fp8_e4m3fn": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
    "fp8_e4m3fnuz": "float8_e4m3fnuz",
    "fp8_e5m2fnuz": "float8_e5m2fnuz",
    **{name: name for name in "float64 float32 float16 bfloat16 complex64 complex128".split()},
}
"""the last word of a fact -> PyTorch's name of the type. int64 is left out: where it is narrowed, every index is one"""
_LEVELS = ("shape.data_dependent", "dtype.bfloat16")


def told(target: Target) -> dict[str, Any]:
    """The facts of a target that a run can meet."""
    kind = str(target.profile.queries.get("device.type") or "cpu")
    return {
        "name": target.name,
        "title": target.title,
        "kind": "" if kind == "cpu" else kind,
        "queries": {name: None if value == "none" else value for name, value in target.profile.queries.items()},
        "levels": {name: fact.value for name in _LEVELS if (fact := target.fact(name))},
        "dtypes": _dtypes(target, kind),
        "operators": _operators(target),
        "triton": "triton" in target.profile.languages,
        "jax_kinds": list(kinds.value) if (kinds := target.fact("device.jax_kinds")) else [],
    }


def _dtypes(target: Target, kind: str) -> dict[str, tuple[str, str]]:
    """The types that the device lacks, or has otherwise: PyTorch's name -> (level, fact).

    PyTorch for CUDA and ROCm holds tensors of every type; what a profile of these says is of the hardware.
    """
    found = {}
    for word, name in _TORCH_TYPES.items():
        fact = target.fact(f"dtype.{word}")
        if fact is not None and fact.value != "native" and kind != "cuda":
            found[name] = (str(fact.value), f"dtype.{word}")
    return found


def _operators(target: Target) -> dict[str, tuple[str, str]]:
    """The operators without a kernel: the aten operator -> ("error" or "host", what a call comes to)."""
    fact = target.fact("api.operators")
    found = {}
    for row in torch_operators().values() if fact else ():
        assert fact is not None
        happens = row.happens_in(fact.value)
        if happens:
            instead = row.instead_in(fact.value)
            words = f"{row.consequence_in(fact.value)}" + (f"; instead: {instead}" if instead else "")
            for name in row.needs.replace("aten::", "").split(" or "):
                found[name] = (happens, f"aten::{name} has no kernel on {target.title}: {words}")
    return found
