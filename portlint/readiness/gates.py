"""The gates of a port, in their order: correctness, fit, latency, goodput and cost. What was not measured says so."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from portlint.finding import Finding, Problem, Verdict
from portlint.readiness.wording import many


class State(StrEnum):
    """What became of a gate."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_MEASURED = "not measured"


class Gate(msgspec.Struct, frozen=True):
    """One gate for one target."""

    name: str
    question: str
    state: State
    why: str


FIT = Gate(
    "fit",
    "Do weights, cache and overhead fit the device?",
    State.NOT_MEASURED,
    "No model was named: give its configuration with `--model config.json`.",
)
LATENCY = Gate(
    "latency",
    "Are the first token and the next ones in time?",
    State.NOT_MEASURED,
    "No requests were measured: give them with `--measurements requests.csv`.",
)
COST = Gate(
    "goodput and cost",
    "How many useful tokens, at what price?",
    State.NOT_MEASURED,
    "No requests were measured: give them with `--measurements requests.csv`.",
)
_NOT_READ = frozenset(("read", "parse", "timeout", "rule", "skipped"))
"""kinds of problem that left something out"""


def correctness(findings: Sequence[Finding], problems: Sequence[Problem], rewritten: int) -> Gate:
    """The first gate: whether the code means the same there, as far as reading it tells."""
    stops = [one for one in findings if one.verdict in (Verdict.CORRUPTS, Verdict.BREAKS)]
    left_out = sum(problem.kind in _NOT_READ for problem in problems)
    if stops or rewritten:
        confirmed = sum(any(one.outcome == "confirmed" for one in finding.evidence) for finding in stops)
        proof = f"{confirmed:,} confirmed by a compiler, a simulator or a device" if confirmed else "none verified"
        files = f"; {many(rewritten, 'file')} to be rewritten" if rewritten else ""
        return _correctness(State.FAILED, f"{many(len(stops), 'finding')} that break or corrupt, {proof}{files}")
    if left_out:
        return _correctness(State.NOT_MEASURED, f"no finding, but {many(left_out, 'part')} of it could not be analysed")
    return _correctness(State.PASSED, "by static analysis alone: nothing ran on the device")


def _correctness(state: State, why: str) -> Gate:
    return Gate("correctness", "Does the code mean the same there?", state, why)
