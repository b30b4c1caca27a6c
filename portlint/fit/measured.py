"""Requests that somebody measured: latency, goodput and cost.

A file of requests is CSV with a heading; its columns, in any order, others ignored:

| column | unit | |
|---|---|---|
| `start_s` | seconds | when the request was sent, by any clock that all rows share |
| `first_token_s` | seconds | when its first token came back; may be empty where `ok` is not |
| `end_s` | seconds | when its last token came back, or when it failed; may be empty where `ok` is not |
| `output_tokens` | tokens | how many came back, the first included; may be empty where `ok` is not |
| `ok` | `true` or `false`, `1` or `0`, `yes` or `no` | whether the answer was complete and right |

A row that cannot be read is counted and named with its line, and takes no part in any figure.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from portlint.mistake import Mistake

COLUMNS = ("start_s", "first_token_s", "end_s", "output_tokens", "ok")
"""the columns that a file of requests must have"""

_TRUE = ("true", "1", "yes")
_FALSE = ("false", "0", "no")


class MeasurementError(Mistake):
    """A file of requests that cannot be used; the message says why."""


class Request(msgspec.Struct, frozen=True):
    """One answered request. Times are seconds on the clock of its file."""

    start_s: float
    first_token_s: float
    end_s: float
    output_tokens: int

    @property
    def ttft_s(self) -> float:
        """Time to first token, in seconds."""
        return self.first_token_s - self.start_s

    @property
    def tpot_s(self) -> float | None:
        """Time per output token after the first, in seconds; None where there is only one token.

        (end - first token) / (tokens - 1): https://awslabs.github.io/llmeter/user_guide/metrics
        """
        return (self.end_s - self.first_token_s) / (self.output_tokens - 1) if self.output_tokens > 1 else None


class Malformed(msgspec.Struct, frozen=True):
    """A row that could not be read."""

    line: int
    message: str


class Measurements(msgspec.Struct, frozen=True):
    """What a file of requests says."""

    path: str
    answered: tuple[Request, ...]
    """requests with a complete and right answer"""
    failed: int
    """requests without one; they pass no limit"""
    window_s: float
    """seconds from the first start to the last end, failed requests included"""
    malformed: tuple[Malformed, ...] = ()

    @property
    def requests(self) -> int:
        """How many requests there were, malformed rows not counted."""
        return len(self.answered) + self.failed


def read(path: Path) -> Measurements:
    """The requests in a CSV file. Raises MeasurementError where it is no such file, or holds no request."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise MeasurementError(f"cannot read the measurements in {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise MeasurementError(f"{path} is not UTF-8 text, so not a CSV file of requests.") from error
    return parse(text, str(path))


def parse(text: str, path: str = "-") -> Measurements:
    """The requests in the text of a CSV file; `path` names it in messages. Raises MeasurementError as `read` does."""
    rows = csv.DictReader(text.splitlines(), skipinitialspace=True)
    rows.fieldnames = [name.strip() for name in rows.fieldnames or ()]
    missing = [name for name in COLUMNS if name not in rows.fieldnames]
    if missing:
        raise MeasurementError(
            f"{path}: there is no column {', '.join(map(repr, missing))}. The heading must name {', '.join(COLUMNS)};"
            " times are seconds."
        )
    answered: list[Request] = []
    malformed: list[Malformed] = []
    seen: list[float] = []
    failed = 0
    try:
        for row in rows:
            try:
                request, moments = _row(row)
            except ValueError as error:
                malformed.append(Malformed(rows.line_num, str(error)))
                continue
            seen += moments
            if request is None:
                failed += 1
            else:
                answered.append(request)
    except csv.Error as error:
        raise MeasurementError(f"{path}:{rows.line_num}: {error}") from error
    if not answered and not failed:
        first = f" The first fault is in line {malformed[0].line}: {malformed[0].message}." if malformed else ""
        raise MeasurementError(f"{path}: there is no request in it.{first}")
    return Measurements(path, tuple(answered), failed, max(seen) - min(seen), tuple(malformed))


def _row(row: dict[str, str]) -> tuple[Request | None, list[float]]:
    """The request of a row, None where it failed, and the moments that it spans; ValueError says what is wrong."""
    if None in row:  # csv's key for what has no column
        raise ValueError("there are more cells than columns")
    word = (row["ok"] or "").strip().lower()
    if word not in _TRUE + _FALSE:
        raise ValueError(f"ok is {row['ok']!r}, neither true nor false")
    start = _seconds(row, "start_s")
    if word in _FALSE:
        end = _seconds(row, "end_s") if (row["end_s"] or "").strip() else start
        return None, [start, end]
    first, end = _seconds(row, "first_token_s"), _seconds(row, "end_s")
    if not start <= first <= end:
        raise ValueError("the times are not in the order start, first token, end")
    tokens = (row["output_tokens"] or "").strip()
    if not (tokens.isascii() and tokens.isdigit()) or int(tokens) < 1:
        raise ValueError(f"output_tokens is {row['output_tokens']!r}, not a count of at least 1")
    return Request(start, first, end, int(tokens)), [start, end]


def _seconds(row: dict[str, str], column: str) -> float:
    try:
        value = float(row[column])
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{column} is {row[column]!r}, not a number of seconds")
    return value


def percentile(values: Iterable[float], percent: float) -> float:
    """The nearest-rank percentile: the smallest value that `percent` of 100 of all values do not exceed.

    Its rank is ceil(percent / 100 x n), counted from 1. `values` must not be empty.
    """
    ordered = sorted(values)
    return ordered[max(1, math.ceil(percent * len(ordered) / 100)) - 1]


class Limits(msgspec.Struct, frozen=True):
    """What a request must keep to, in seconds."""

    ttft_s: float
    tpot_s: float

    def passes_ttft(self, request: Request) -> bool:
        """Whether the first token came in time."""
        return request.ttft_s <= self.ttft_s

    def passes_tpot(self, request: Request) -> bool:
        """Whether the other tokens came in time; a request of one token has none that could be late."""
        return request.tpot_s is None or request.tpot_s <= self.tpot_s

    def passes(self, request: Request) -> bool:
        """Whether it keeps both limits."""
        return self.passes_ttft(request) and self.passes_tpot(request)


class Latency(msgspec.Struct, frozen=True):
    """Latency against limits. Percentiles are over answered requests, rates (0 to 1) over all, failed ones included."""

    limits: Limits
    p95_ttft_s: float | None
    """None where no request was answered"""
    p95_tpot_s: float | None
    """None where no answer has two tokens"""
    ttft_pass_rate: float
    tpot_pass_rate: float
    joint_pass_rate: float
    """of requests that keep both limits at once"""

    @property
    def within(self) -> bool:
        """Whether both p95 are within their limits; false where no request was answered."""
        return (
            self.p95_ttft_s is not None
            and self.p95_ttft_s <= self.limits.ttft_s
            and (self.p95_tpot_s is None or self.p95_tpot_s <= self.limits.tpot_s)
        )


def latency(measurements: Measurements, limits: Limits) -> Latency:
    """The p95 of TTFT and TPOT, and how many requests keep the limits: singly, and both at once."""
    answered, every = measurements.answered, measurements.requests
    tpots = [request.tpot_s for request in answered if request.tpot_s is not None]
    return Latency(
        limits,
        percentile((request.ttft_s for request in answered), 95) if answered else None,
        percentile(tpots, 95) if tpots else None,
        sum(map(limits.passes_ttft, answered)) / every,
        sum(map(limits.passes_tpot, answered)) / every,
        sum(map(limits.passes, answered)) / every,
    )


class Goodput(msgspec.Struct, frozen=True):
    """Tokens per second, of all answers and of those that count."""

    tokens_per_s: float
    """of every answered request"""
    eligible_tokens_per_s: float
    """of requests that keep both limits: the goodput"""
    window_s: float


def goodput(measurements: Measurements, limits: Limits, window_s: float | None = None) -> Goodput:
    """Output tokens per second over the window: the file's own, from first start to last end, unless one is given.

    Raises MeasurementError where the window is empty.
    """
    window = measurements.window_s if window_s is None else window_s
    if not window > 0:
        raise MeasurementError(f"{measurements.path}: all requests start and end at one moment, so there is no rate.")
    tokens = sum(request.output_tokens for request in measurements.answered)
    eligible = sum(request.output_tokens for request in measurements.answered if limits.passes(request))
    return Goodput(tokens / window, eligible / window, window)


def cost_per_million_tokens(
    price_per_device_hour: float, tokens_per_s: float, *, devices: int = 1, busy: float = 1.0
) -> float:
    """What a million tokens cost, in the price's currency, on `devices` devices that work the share `busy` of the time.

    price x devices / (tokens/s x busy x 3600 s) x 1,000,000; infinite where there are no tokens.
    """
    useful_per_hour = tokens_per_s * busy * 3600
    return price_per_device_hour * devices * 1e6 / useful_per_hour if useful_per_hour else math.inf


class State(StrEnum):
    """How a gate of a port stands."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_MEASURED = "not measured"


class Judged(msgspec.Struct, frozen=True):
    """Gates 3 and 4 of a port, latency and goodput, by measured requests."""

    latency_gate: State
    goodput_gate: State
    latency: Latency | None = None
    goodput: Goodput | None = None
    """only where the latency gate is passed"""
    cost_per_million: float | None = None
    """per million eligible tokens, in the price's currency; None without a price"""
    reasons: tuple[str, ...] = ()
    """why a gate is failed or not measured, one sentence each"""


def judge(
    measurements: Measurements | None,
    limits: Limits | None,
    *,
    joint_rate: float = 0.0,
    least_tokens_per_s: float = 0.0,
    price_per_device_hour: float | None = None,
    most_per_million: float | None = None,
    devices: int = 1,
    busy: float = 1.0,
) -> Judged:
    """Judge latency and then, only if that is passed, goodput and cost. Nothing is guessed for what was not measured.

    `joint_rate` is the least share (0 to 1) of requests that must keep both limits, `least_tokens_per_s` the least
    goodput, `most_per_million` the highest cost of a million eligible tokens.
    """
    if measurements is None or limits is None:
        what = "there are no measured requests" if measurements is None else "there are no limits to hold them against"
        return Judged(State.NOT_MEASURED, State.NOT_MEASURED, reasons=(f"{what}.",))
    found = latency(measurements, limits)
    late = tuple(_late(found, joint_rate))
    if late:
        return Judged(
            State.FAILED, State.NOT_MEASURED, found, reasons=(*late, "goodput counts only where latency is passed.")
        )
    try:
        rate = goodput(measurements, limits)
    except MeasurementError as error:
        return Judged(State.PASSED, State.NOT_MEASURED, found, reasons=(str(error),))
    cost = (
        None
        if price_per_device_hour is None
        else cost_per_million_tokens(price_per_device_hour, rate.eligible_tokens_per_s, devices=devices, busy=busy)
    )
    short: list[str] = []
    if rate.eligible_tokens_per_s < least_tokens_per_s:
        short.append(f"goodput is {rate.eligible_tokens_per_s:,.1f} tokens/s, below {least_tokens_per_s:,.1f}.")
    if cost is not None and most_per_million is not None and cost > most_per_million:
        short.append(f"a million tokens cost {cost:,.2f}, above {most_per_million:,.2f}.")
    if most_per_million is not None and cost is None and not short:
        return Judged(State.PASSED, State.NOT_MEASURED, found, rate, reasons=("there is no price.",))
    return Judged(State.PASSED, State.FAILED if short else State.PASSED, found, rate, cost, tuple(short))


def _late(found: Latency, joint_rate: float) -> Sequence[str]:
    """Why the latency gate is failed; nothing where it is passed."""
    if found.p95_ttft_s is None:
        return ["no request was answered."]
    reasons = []
    if found.p95_ttft_s > found.limits.ttft_s:
        reasons.append(f"p95 TTFT is {_ms(found.p95_ttft_s)}, above {_ms(found.limits.ttft_s)}.")
    if found.p95_tpot_s is not None and found.p95_tpot_s > found.limits.tpot_s:
        reasons.append(f"p95 TPOT is {_ms(found.p95_tpot_s)}, above {_ms(found.limits.tpot_s)}.")
    if found.joint_pass_rate < joint_rate:
        reasons.append(f"{found.joint_pass_rate:.1%} of requests keep both limits, below {joint_rate:.1%}.")
    return reasons


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms"
