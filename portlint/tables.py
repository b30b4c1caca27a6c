"""The packaged tables: facts too many for a profile, one row per name.

`targets/tables/cuda_names.tsv` says of every name of the CUDA toolkit what HIP calls it, and which toolkit dropped it.
A profile names the toolkit that builds for its machine ("HIP 7.0", "CUDA 12.8"); the table answers for that toolkit.

`targets/tables/torch_operators.tsv` says which operators of PyTorch have no kernel where, and what happens then. A
profile names the library that has the kernels of its machine, and its column ("Gaudi bridge 1.19.0 (hpu)").

`targets/tables/triton_names.tsv` says which names of Triton belong to one vendor's back end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec

from portlint.regex import regex

_TABLES = Path(__file__).parent / "targets" / "tables"


class CudaName(msgspec.Struct, frozen=True):
    """One row: a name of the CUDA toolkit, or the beginning of names if it ends in `*`."""

    name: str
    hip: str
    """what HIP calls it; "" where HIP has no such thing"""
    nearest: str
    """what comes nearest where HIP has no such thing, for people; "" where nothing does"""
    removed: str
    """the CUDA toolkit that dropped it, such as "12.0"; "" where it is still there"""
    torch: str
    """what PyTorch's own hipify puts there, where HIPIFY has nothing and HIP has that"""
    since: str
    """the ROCm release that brought it, such as "7.0"; "" where all that are in use have it"""
    feature: str
    """the fact about hardware that a rule of its own judges the name by, such as "isa.tma"; mostly """ ""

    def is_translated(self, toolkit: str) -> bool:
        """Whether HIPIFY translates the name for a toolkit of AMD's."""
        return toolkit.startswith("HIP") and bool(self.hip)

    def in_toolkit(self, toolkit: str) -> bool:
        """Whether a toolkit, "HIP 7.0" or "CUDA 12.8", has the name."""
        vendor, _, version = toolkit.partition(" ")
        if vendor == "HIP":
            return bool(self.hip)
        return not self.removed or _version(self.removed) > _version(version)

    def instead_in(self, toolkit: str) -> str:
        """What to use with a toolkit that lacks the name, as the end of a sentence; "" where nothing comes near."""
        if toolkit.startswith("HIP"):
            return f"; nearest is {self.nearest}" if self.nearest else ""
        return f" since CUDA {self.removed}"


class TorchOperator(msgspec.Struct, frozen=True):
    """One row: a function of PyTorch that some device has no kernel for."""

    name: str
    """as it is called below `torch`; in parentheses the argument without which it has one"""
    also: tuple[str, ...]
    """other spellings, likewise; one that begins with a dot is a method of tensors"""
    needs: str
    """the aten operator that has no kernel"""
    levels: Mapping[str, str]
    """what happens instead, "error" or "host", by library; "" where it has a kernel, or where nothing is known"""
    instead: str
    """what does the same with other operators, for people; "" where nothing does"""

    @property
    def spellings(self) -> tuple[str, ...]:
        """Its names in Python: `torch.linalg.eig`, `.mode`."""
        return tuple(one if one.startswith(".") else f"torch.{one}" for one in (self.name, *self.also))

    def happens_in(self, library: str) -> str:
        """What a call comes to in a library, "PyTorch 2.14.1 (mps)": "error", "host", or "" where it has a kernel."""
        return self.levels.get(_column(library), "")

    def consequence_in(self, library: str) -> str:
        """What a call comes to, as the end of a sentence."""
        happens = self.happens_in(library)
        if happens == "host":
            return "each call copies its inputs to the CPU and the result back"
        return _ERRORS[_column(library)] if happens else ""

    def instead_in(self, library: str) -> str:
        """What to write for a library that lacks the kernel; "" where nothing that has kernels there does the same."""
        rows = (torch_operators().get(f"torch.{name}") for name in _TORCH_NAME.findall(self.instead))
        return "" if any(row is not None and row.happens_in(library) for row in rows) else self.instead


def _column(library: str) -> str:
    return library.rpartition("(")[2].rstrip(")")


_ERRORS = {
    "mps": "it raises NotImplementedError, unless PYTORCH_ENABLE_MPS_FALLBACK=1 sends it to the CPU",
    "neuron": "the compiler refuses it",
}
_TORCH_NAME = regex(r"\btorch\.((?:linalg\.)?\w+)")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _rows(table: str) -> Iterator[list[str]]:
    """The rows of a table, its column names first."""
    text = (_TABLES / f"{table}.tsv").read_text(encoding="utf-8")
    return (line.split("\t") for line in text.splitlines() if not line.startswith("#"))


@cache
def torch_operators() -> Mapping[str, TorchOperator]:
    """Every row of the table of operators, by each of its spellings: `torch.linalg.eig`, `.mode`."""
    columns, *rows = _rows("torch_operators")
    operators = (
        TorchOperator(name, tuple(also.split()), needs, dict(zip(columns[3:-1], levels, strict=True)), instead)
        for name, also, needs, *levels, instead in rows
    )
    return {spelling: operator for operator in operators for spelling in operator.spellings}


@cache
def cuda_names() -> Mapping[str, CudaName]:
    """Every row of the table of CUDA names, by name."""
    _, *rows = _rows("cuda_names")
    return {row[0]: CudaName(*row) for row in rows}


def is_cuda_name(name: str) -> bool:
    """Whether a name is one of the CUDA toolkit's."""
    return cuda_name(name) is not None


@cache
def cuda_name(name: str) -> CudaName | None:
    """The row of a name, or that of the longest beginning of it that has one; None for a name that is not CUDA's."""
    row = cuda_names().get(name)
    return row or next((family for beginning, family in _families() if name.startswith(beginning)), None)


@cache
def _families() -> tuple[tuple[str, CudaName], ...]:
    """The rows that stand for many names, the longest beginnings first."""
    rows = ((name[:-1], row) for name, row in cuda_names().items() if name.endswith("*"))
    return tuple(sorted(rows, key=lambda pair: -len(pair[0])))


class TritonName(msgspec.Struct, frozen=True):
    """One row: a name of a Triton module that is for one vendor's back end."""

    name: str
    vendor: str
    """nvidia | amd"""
    alone: str
    """"yes" where the other vendor has nothing by that name"""


@cache
def triton_names() -> Mapping[str, TritonName]:
    """Every row of the table, by qualified name."""
    text = (_TABLES / "triton_names.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    next(rows)  # the header
    return {row[0]: TritonName(*row) for row in rows}


@cache
def triton_vendor(module: str) -> str:
    """The vendor whose back end a module of Triton is for, "NVIDIA" or "AMD"; "" for one that is for all."""
    row = next((row for name, row in triton_names().items() if name.startswith(f"{module}.")), None)
    return {"nvidia": "NVIDIA", "amd": "AMD"}[row.vendor] if row is not None and _is_of_vendor(module) else ""


def _is_of_vendor(module: str) -> bool:
    return any(part in ("cuda", "hip", "nvidia", "amd") for part in module.split("."))


def triton_functions(module: str) -> tuple[str, ...]:
    """The names of a module of one vendor's that the other's counterpart lacks."""
    own = (row for name, row in triton_names().items() if name.rpartition(".")[0] == module)
    return tuple(row.name.rpartition(".")[2] for row in own if row.alone == "yes")
