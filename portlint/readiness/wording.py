"""Numbers as people read them."""

from __future__ import annotations


def hours(value: float) -> str:
    """A time in hours."""
    if value >= 10 or value == int(value):
        return f"{round(value):,} h"
    return f"{value:.2g} h" if value >= 1 else f"{round(value * 60)} min"


def many(count: int, noun: str, plural: str = "") -> str:
    """A number and its noun, which takes an s unless its plural is given."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or f'{noun}s'}"


def days(value: float) -> str:
    """A time in hours, in the unit that a plan has it in: hours, days of eight, or months of 21 days."""
    if value < 12:
        return many(max(1, round(value)), "hour")
    whole = round(value / 8)
    return many(whole, "day") if whole < 60 else many(round(whole / 21), "month")
