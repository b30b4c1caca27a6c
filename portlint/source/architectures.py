"""What a build's list of architectures can run on.

Three spellings are read: nvcc's `-gencode arch=compute_90,code=sm_90`, CMake's `CMAKE_CUDA_ARCHITECTURES`
(`80 90a-real 120-virtual`) and PyTorch's `TORCH_CUDA_ARCH_LIST` ("8.0;9.0a;12.0+PTX").

Compatibility is CUDA's: a cubin for sm_XY runs on the same major version from that minor version on; PTX for compute_XY
is compiled by the driver for any later part; `a` variants run on exactly that part, `f` variants on its family.
https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html#gpu-feature-list
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from portlint.condition import Expression, Literal, Name, Op
from portlint.regex import regex

PARTS = (70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)
"""compute capabilities of shipped parts that current CUDA compiles for"""

EVERYTHING = frozenset(("all", "all-major", "native"))

_PLACE_OF_ONE_PART = regex(r"(?:^|[/\\_])sm_?\d{2,3}[af]?(?![0-9])")
_GENCODE = regex(r"arch=compute_(?P<arch>\d+[af]?),\s*code=\\?[\"'\[]*(?P<code>[\w, ]+)")
_CMAKE = regex(r"^(?P<number>\d{2,3})(?P<suffix>[af]?)(?P<kind>-real|-virtual)?$")
_TORCH = regex(r"^(?P<major>\d{1,2})\.(?P<minor>\d)(?P<suffix>[af]?)(?P<ptx>\+PTX)?$")


def is_place_of_one_part(path: str) -> bool:
    """Whether a file, or a folder around it, is named for one part of NVIDIA's: `sm100/gemm.py`."""
    return _PLACE_OF_ONE_PART.search(path) is not None


class Built(msgspec.Struct, frozen=True):
    """One architecture of a build: machine code (`ptx` False) or PTX, for a compute capability and a suffix."""

    number: int
    suffix: str
    ptx: bool

    def runs_on(self, part: int) -> bool:
        """Whether a part of that compute capability can run it."""
        if self.suffix == "a":
            return part == self.number
        same_family = part // 10 == self.number // 10 and part >= self.number
        return same_family if not self.ptx or self.suffix == "f" else part >= self.number


def from_gencode(text: str) -> frozenset[Built]:
    """The architectures in nvcc flags; `code=` names what is kept of each."""
    built: set[Built] = set()
    for match in _GENCODE.finditer(text):
        for code in re.findall(r"(sm|compute|lto)_(\d+)([af]?)", match["code"]):
            kind, number, suffix = code
            built.add(Built(int(number), suffix, kind == "compute"))
    return frozenset(built)


def from_cmake(items: Iterable[str]) -> frozenset[Built] | None:
    """The architectures of a CMake list; None if it has an item that is not a plain architecture."""
    built: set[Built] = set()
    for item in items:
        match = _CMAKE.match(item)
        if match is None:
            return None
        if match["kind"] != "-virtual":
            built.add(Built(int(match["number"]), match["suffix"], ptx=False))
        if match["kind"] != "-real":
            built.add(Built(int(match["number"]), match["suffix"], ptx=True))
    return frozenset(built)


def from_torch(text: str) -> frozenset[Built] | None:
    """The architectures of TORCH_CUDA_ARCH_LIST; None if it has a named one ("Hopper") or anything else."""
    built: set[Built] = set()
    for item in re.split(r"[;\s]+", text.strip()):
        match = _TORCH.match(item)
        if match is None:
            return None
        number = int(match["major"]) * 10 + int(match["minor"])
        built.add(Built(number, match["suffix"], ptx=False))
        if match["ptx"]:
            built.add(Built(number, match["suffix"], ptx=True))
    return frozenset(built)


def from_gfx(text: str) -> frozenset[str] | None:
    """The parts of AMD's in a list ("gfx90a;gfx942:xnack-"); None if it has a generic target, or anything else."""
    items = [item.partition(":")[0] for item in re.split(r"[;,\s]+", text.strip())]
    return frozenset(items) if all(re.fullmatch(r"gfx[0-9a-f]{3,4}", item) for item in items) else None


def from_pattern(text: str) -> frozenset[Built] | None:
    """The architectures that a regular expression lists, `90a|100f`; a number by itself stands for its PTX as well."""
    built: set[Built] = set()
    for item in text.split("|"):
        match = re.fullmatch(r"(\d{2,3})([af]?)", item)
        if match is None:
            return None
        built.add(Built(int(match[1]), match[2], ptx=not match[2]))
    return frozenset(built)


def runs_on_device(built: Iterable[Built]) -> Expression:
    """That the device can run one of these; other vendors' builds know none of them, and are not held to them."""
    kept = tuple(built)
    able = tuple(divmod(part, 10) for part in PARTS if any(one.runs_on(part) for one in kept))
    return Op("or", (Name("is_rocm"), Op("in", (Name("device.capability"), Literal(able)))))


def covered(built: Iterable[Built]) -> tuple[str, ...]:
    """The parts that a build runs on, as `sm_90`."""
    kept = tuple(built)
    return tuple(f"sm_{part}" for part in PARTS if any(one.runs_on(part) for one in kept))


def shown(built: Iterable[Built]) -> str:
    """A build's architectures as nvcc names them: "sm_80, sm_90, compute_90"."""
    ordered = sorted(built, key=lambda one: (one.ptx, one.number, one.suffix))
    return ", ".join(f"{'compute' if one.ptx else 'sm'}_{one.number}{one.suffix}" for one in ordered)
