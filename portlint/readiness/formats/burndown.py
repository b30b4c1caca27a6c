"""The numbers of findings over time, as points of a chart."""

from __future__ import annotations

import msgspec

from portlint.finding import Verdict
from portlint.readiness.history import Progress

WIDTH, HEIGHT = 640, 160
"""of the drawing, in its own units"""
_LEFT, _BOTTOM = 44, 24


class Line(msgspec.Struct, frozen=True):
    """One target."""

    target: str
    points: str
    """as SVG has them: "x,y x,y" """
    last: tuple[float, float]
    count: int


class Chart(msgspec.Struct, frozen=True):
    """All targets, on common axes."""

    lines: tuple[Line, ...]
    days: tuple[tuple[float, str], ...]
    """where a day stands, and its name"""
    top: int
    """the number at the upper end"""
    width: int = WIDTH
    height: int = HEIGHT


def burndown(progress: Progress) -> Chart:
    """Findings that break or corrupt, at each point that is known."""
    history = progress.history
    targets = list(history[-1].counts)
    counts = {
        target: [
            sum(point.counts.get(target, {}).get(verdict, 0) for verdict in (Verdict.BREAKS, Verdict.CORRUPTS))
            for point in history
        ]
        for target in targets
    }
    top = max(1, *(max(own) for own in counts.values()))
    step = (WIDTH - _LEFT - 120) / max(1, len(history) - 1)
    places = [_LEFT + step * number for number in range(len(history))]
    lines = []
    for target, own in counts.items():
        points = [(x, _height(many, top)) for x, many in zip(places, own, strict=True)]
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        lines.append(Line(target, text, points[-1], own[-1]))
    days = tuple((x, point.date or "before") for x, point in zip(places, history, strict=True))
    return Chart(tuple(lines), days, top)


def _height(many: int, top: int) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _BOTTOM - 12) * many / top
