"""What the profiles say of each product: memory, bandwidth and dense peaks, with their sources. Nothing is made up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from portlint.finding import Cite
from portlint.fit.dtypes import Dtype
from portlint.target import ProfileError

if TYPE_CHECKING:
    from portlint.target import Target

GB = 1e9
GIB = float(2**30)
TERA = 1e12


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A product as a profile writes it."""

    cite: str | tuple[str, ...]
    devices: int = 1
    """into which programs see it divided; the figures are those of all together"""
    memory_gb: float | None = None
    memory_gib: float | None = None
    bandwidth_tb_s: float | None = None
    dense_tflops: dict[str, float] = {}
    note: str = ""

    @property
    def figures(self) -> tuple[float, ...]:
        """Every figure that is stated."""
        stated = (self.memory_gb, self.memory_gib, self.bandwidth_tb_s, *self.dense_tflops.values())
        return tuple(figure for figure in stated if figure is not None)


class Product(msgspec.Struct, frozen=True):
    """One product of a target; None is what the profile does not say. Figures are those of one device.

    A product is one device, as programs count them, unless `devices` says otherwise: the two dies of an MI250X are two.
    """

    name: str
    target: str
    title: str
    """of the target"""
    memory_bytes: float | None
    memory_text: str
    """of the whole product, as the source writes it: "80 GB", "192 GiB" """
    bandwidth_bytes_s: float | None
    peaks_flop_s: Mapping[str, float]
    """dense peaks by dtype"""
    cites: tuple[Cite, ...]
    note: str = ""
    interconnect: str = ""
    """what the profile says of links between devices, with its source"""
    devices: int = 1

    def peak(self, dtype: Dtype) -> tuple[str, float] | None:
        """The dense peak at which numbers of this dtype are multiplied, with its key; None where none is stated."""
        return next(((key, self.peaks_flop_s[key]) for key in dtype.peaks if key in self.peaks_flop_s), None)


def products(target: Target) -> tuple[Product, ...]:
    """The products of a target, in the profile's order. Raises ProfileError for one that is not well formed."""
    return tuple(_product(target, name, fields) for name, fields in target.profile.products.items())


def _product(target: Target, name: str, fields: object) -> Product:
    place = f"{target.path}: products.'{name}'"
    try:
        entry = msgspec.convert(fields, _Entry)
    except msgspec.ValidationError as error:
        raise ProfileError(f"{place}: {error}") from error
    keys = (entry.cite,) if isinstance(entry.cite, str) else entry.cite
    missing = [key for key in keys if key not in target.profile.cites]
    if missing or not keys:
        raise ProfileError(f"{place} cites {', '.join(missing) or 'nothing'}, which [cites] does not have.")
    if any(not 0 < figure < float("inf") for figure in entry.figures):
        raise ProfileError(f"{place}: a figure is not positive; leave out what is not known.")
    memory, text = _memory(entry)
    if entry.devices < 1:
        raise ProfileError(f"{place}: a product is at least one device.")
    interconnect = target.fact("system.interconnect")
    return Product(
        name,
        target.name,
        target.title,
        None if memory is None else memory / entry.devices,
        text,
        None if entry.bandwidth_tb_s is None else entry.bandwidth_tb_s * TERA / entry.devices,
        {key: value * TERA / entry.devices for key, value in entry.dense_tflops.items()},
        tuple(target.profile.cites[key] for key in keys),
        entry.note,
        "" if interconnect is None else f"{interconnect.value} ({_sources(target.cites(interconnect))})",
        entry.devices,
    )


def _sources(cites: tuple[Cite, ...]) -> str:
    return "; ".join(f"{cite.title}, {cite.url}" for cite in cites)


def _memory(entry: _Entry) -> tuple[float | None, str]:
    if entry.memory_gb is not None:
        return entry.memory_gb * GB, f"{entry.memory_gb:g} GB"
    if entry.memory_gib is not None:
        return entry.memory_gib * GIB, f"{entry.memory_gib:g} GiB"
    return None, "not known"
