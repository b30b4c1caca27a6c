"""The figures of the page as coordinates: a roofline on logarithmic axes, and a ledger as a bar.

Coordinates are those of an SVG of the given width and height: x to the right, y downwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from portlint.fit import phrases
from portlint.fit.assess import Answer, Phase
from portlint.fit.products import TERA
from portlint.fit.roofline import ceiling_flop_s

WIDTH, HEIGHT = 460, 270
"""of a roofline"""
LEFT, RIGHT, TOP, BOTTOM = 52, WIDTH - 12, 24, HEIGHT - 42
"""where its axes are; the labels are outside"""
_LETTER = 6.6
"""about the width of a letter of a label"""
BAR_WIDTH, BAR_HEIGHT = 460, 26


class Tick(msgspec.Struct, frozen=True):
    """A line of the grid with its label."""

    at: float
    label: str


class Label(msgspec.Struct, frozen=True):
    """A text in a figure."""

    x: float
    y: float
    text: str
    anchor: str = "start"
    """SVG's text-anchor"""


class Point(msgspec.Struct, frozen=True):
    """A phase on the roofline."""

    name: str
    x: float
    y: float
    label: Label


class Roofline(msgspec.Struct, frozen=True):
    """The roof of a product and the phases below it."""

    description: str
    roof: str
    """the path of the roof, as SVG writes it"""
    ridge_x: float
    ridge_y: float
    ridge_label: Label
    peak_label: Label
    across: tuple[Tick, ...]
    """intensity, FLOP per byte"""
    up: tuple[Tick, ...]
    """rate, TFLOP/s"""
    points: tuple[Point, ...]


class _Axis(msgspec.Struct, frozen=True):
    """A logarithmic axis."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The coordinate of a value."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> Iterator[Tick]:
        """The powers of ten on it."""
        for power in range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1):
            yield Tick(self.at(10.0**power), f"{10**power:,}" if power >= 0 else f"{10.0**power:g}")


def roofline(answer: Answer) -> Roofline | None:
    """The roofline of a product; None where its peak, its bandwidth or the phases are not known."""
    bandwidth, ridge = answer.product.bandwidth_bytes_s, answer.ridge
    if answer.peak is None or bandwidth is None or ridge is None or answer.decode is None or answer.prefill is None:
        return None
    name, peak = answer.peak
    phases = {"decode": answer.decode, "prefill": answer.prefill}
    rates = {one: phase.work.flop / (phase.floor_s or math.inf) for one, phase in phases.items()}
    intensities = [ridge, *(phase.work.intensity for phase in phases.values())]
    first, last = min(intensities) / 4, max(intensities) * 4
    across = _Axis(first, last, LEFT, RIGHT)
    lowest = min(*rates.values(), ceiling_flop_s(first, peak, bandwidth)) / 1.5
    up = _Axis(lowest / TERA, peak * 2 / TERA, BOTTOM, TOP)
    x, y = across.at(ridge), up.at(peak / TERA)
    start = up.at(ceiling_flop_s(first, peak, bandwidth) / TERA)
    return Roofline(
        f"{answer.product.name}: decode at {phrases.number(phases['decode'].work.intensity)} and prefill at"
        f" {phrases.number(phases['prefill'].work.intensity)} FLOP per byte; the ridge is at {phrases.number(ridge)}.",
        f"M{across.at(first)} {start} L{x} {y} L{across.at(last)} {y}",
        x,
        y,
        _beside(x, BOTTOM - 8, f"ridge {phrases.number(ridge)}"),
        Label(RIGHT, y - 7, f"{peak / TERA:,.5g} TFLOP/s {name}", "end"),
        tuple(across.ticks()),
        tuple(up.ticks()),
        tuple(_points(phases, rates, across, up)),
    )


def _beside(x: float, y: float, text: str) -> Label:
    """A label to the right of a line, or to its left where it would leave the figure."""
    fits = x + 6 + len(text) * _LETTER < RIGHT
    return Label(x + (6 if fits else -6), y, text, "start" if fits else "end")


def _points(phases: dict[str, Phase], rates: dict[str, float], across: _Axis, up: _Axis) -> Iterator[Point]:
    """The phases, each label below and to the right of its point, or to the left where another is in the way."""
    taken: list[Label] = []
    for name, phase in phases.items():
        x, y = across.at(phase.work.intensity), up.at(rates[name] / TERA)
        text = f"{name} {phrases.number(phase.work.intensity)}"
        label = _beside(x + 4, y + 20, text)
        while any(abs(label.y - one.y) < 14 and abs(label.x - one.x) < len(text) * _LETTER * 2 for one in taken):
            label = msgspec.structs.replace(label, y=label.y + 16)
        taken.append(label)
        yield Point(name, x, y, label)


class Part(msgspec.Struct, frozen=True):
    """A part of a bar."""

    name: str
    x: float
    width: float
    text: str


class Bar(msgspec.Struct, frozen=True):
    """The ledger of a device as a bar as long as its memory, or as its need where that is more."""

    description: str
    parts: tuple[Part, ...]
    capacity_x: float
    """where the memory ends"""
    over: bool


def ledger_bar(answer: Answer, training: bool) -> Bar | None:
    """The bar of each of the devices; None where the memory is not known."""
    books = answer.books
    if books is None:
        return None
    scale = BAR_WIDTH / max(books.device, books.total)
    sizes = {
        "state" if training else "weights": books.weights,
        "cache": books.kv_cache,
        "overhead": books.overhead,
        "left": max(books.left, 0.0),
    }
    parts, x = [], 0.0
    for name, size in sizes.items():
        if size > 0:
            parts.append(Part(name, round(x, 1), round(size * scale, 1), phrases.gigabytes(size)))
            x += size * scale
    return Bar(
        f"{answer.product.name}: {phrases.gigabytes(books.total)} of {phrases.gigabytes(books.device)}.",
        tuple(parts),
        round(books.device * scale, 1),
        not books.fits,
    )
