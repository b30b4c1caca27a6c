"""The gates of a port, in their order: correctness, fit, latency, goodput and cost. What was not measured says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from portlint.files import read_json
from portlint.finding import Finding, Problem, Verdict
from portlint.fit.measured import Judged, Limits, Measurements, State, judge
from portlint.mistake import Mistake
from portlint.readiness.wording import many


class Gate(msgspec.Struct, frozen=True):
    """One gate for one target."""

    name: str
    question: str
    state: State
    why: str


NO_FIT = "no model was named: give the answer of `portlint fit --output-format json` with `--fit fit.json`"
NO_REQUESTS = "no requests were measured: give them with `--measurements requests.csv`"
NO_LIMITS = "there are no limits to hold the requests against: give `--ttft-ms` and `--tpot-ms`"


class FitError(Mistake):
    """An answer of `portlint fit` that cannot be read."""


class Fitted(msgspec.Struct, frozen=True):
    """What `portlint fit` says of one product, as far as the gate asks."""

    target: str
    product: str
    fits: bool | None
    devices: int | None = None


class Fit(msgspec.Struct, frozen=True):
    """The JSON of `portlint fit`."""

    version: int
    answers: tuple[Fitted, ...]


def read_fit(path: Path) -> Fit:
    """An answer of `portlint fit --output-format json`. Raises FitError where it cannot be read."""
    return read_json(path, Fit, "answer of 'portlint fit --output-format json'", error=FitError)


def fit(answer: Fit | None, target: str) -> Gate:
    """The second gate, for one target: whether one of its products holds the model."""
    question = "Do weights, cache and overhead fit the device?"
    if answer is None:
        return Gate("fit", question, State.NOT_MEASURED, NO_FIT)
    own = [one for one in answer.answers if one.target == target]
    fitting = [one for one in own if one.fits and one.devices]
    if fitting:
        words = ", ".join(f"{many(one.devices or 1, 'device')} of {one.product}" for one in fitting)
        return Gate("fit", question, State.PASSED, f"the model fits {words}")
    if own and all(one.fits is False for one in own):
        return Gate("fit", question, State.FAILED, f"the model fits none of {', '.join(one.product for one in own)}")
    why = "the memory of its products is not known" if own else "`portlint fit` was not asked about this target"
    return Gate("fit", question, State.NOT_MEASURED, why)


def measured(
    requests: Measurements | None, limits: Limits | None, price: float | None, devices: int
) -> tuple[Gate, Gate]:
    """The third and the fourth gate: latency, then goodput and cost. `price` is that of one device for an hour."""
    judged = judge(requests, limits, price_per_device_hour=price, devices=devices)
    said = " ".join(judged.reasons)
    if requests is None or limits is None:
        said = NO_REQUESTS if requests is None else NO_LIMITS
    left_out = _left_out(requests)
    return (
        Gate(
            "latency",
            "Are the first token and the next ones in time?",
            judged.latency_gate,
            _latency(judged, said) + left_out,
        ),
        Gate("goodput and cost", "How many useful tokens, at what price?", judged.goodput_gate, _goodput(judged, said)),
    )


def _latency(judged: Judged, said: str) -> str:
    found = judged.latency
    if found is None or found.p95_ttft_s is None:
        return said
    tpot = "" if found.p95_tpot_s is None else f", p95 TPOT {found.p95_tpot_s * 1e3:,.1f} ms"
    joint = f"{found.joint_pass_rate:.1%} of requests keep both limits"
    return f"p95 TTFT {found.p95_ttft_s * 1e3:,.1f} ms{tpot}; {joint}" + (
        f": {said}" if judged.latency_gate == State.FAILED else ""
    )


def _goodput(judged: Judged, said: str) -> str:
    if judged.goodput is None:
        return said
    cost = "" if judged.cost_per_million is None else f", {judged.cost_per_million:,.2f} for a million of them"
    return f"{judged.goodput.eligible_tokens_per_s:,.1f} eligible tokens/s{cost}"


def _left_out(requests: Measurements | None) -> str:
    if requests is None or not requests.malformed:
        return ""
    lines = ", ".join(f"line {one.line} ({one.message})" for one in requests.malformed[:3])
    return f"; {many(len(requests.malformed), 'row')} could not be read: {lines}"


_NOT_READ = frozenset(("read", "parse", "timeout", "rule", "skipped"))
"""kinds of problem that left something out"""


def correctness(
    findings: Sequence[Finding], problems: Sequence[Problem], rewritten: int, unchecked: int, total: int
) -> Gate:
    """The first gate: whether the code means the same there, as far as reading it tells.

    `unchecked` of a `total` of files are those that the configuration has not checked for the target.
    """
    stops = [one for one in findings if one.verdict in (Verdict.CORRUPTS, Verdict.BREAKS)]
    left_out = sum(problem.kind in _NOT_READ for problem in problems)
    if stops or rewritten:
        confirmed = sum(any(one.outcome == "confirmed" for one in finding.evidence) for finding in stops)
        proof = f"{confirmed:,} confirmed by a compiler, a simulator or a device" if confirmed else "none verified"
        files = f"; {many(rewritten, 'file')} to be rewritten" if rewritten else ""
        return _correctness(State.FAILED, f"{many(len(stops), 'finding')} that break or corrupt, {proof}{files}")
    if unchecked == total > 0:
        return _correctness(State.NOT_MEASURED, "none of the files is checked for it")
    if left_out:
        return _correctness(State.NOT_MEASURED, f"no finding, but {many(left_out, 'part')} of it could not be analysed")
    aside = f"; {many(unchecked, 'file')} not checked for it" if unchecked else ""
    return _correctness(State.PASSED, f"by static analysis alone: nothing ran on the device{aside}")


def _correctness(state: State, why: str) -> Gate:
    return Gate("correctness", "Does the code mean the same there?", state, why)
