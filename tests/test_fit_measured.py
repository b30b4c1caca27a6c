"""Measured requests: what is read, what is refused, and how latency and goodput are judged."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from portlint.fit.measured import (
    Limits,
    Malformed,
    MeasurementError,
    Measurements,
    State,
    cost_per_million_tokens,
    goodput,
    judge,
    latency,
    parse,
    percentile,
    read,
)

HEADING = "start_s,first_token_s,end_s,output_tokens,ok\n"
LIMITS = Limits(0.5, 0.05)


def requests(*rows: str) -> Measurements:
    return parse(HEADING + "\n".join(rows))


GOOD = "0,0.1,1.09,100,true"
LATE = "0,0.9,1.89,100,true"
SLOW = "0,0.1,10,100,true"
FAILED = "0,,2,,false"


def test_columns_come_in_any_order_and_others_are_ignored() -> None:
    found = parse("ok, end_s ,name,output_tokens,first_token_s,start_s\nYES,3,a,11,2,1\n")
    (request,) = found.answered
    assert (request.ttft_s, request.tpot_s) == (1.0, 0.1)
    assert (found.requests, found.window_s, found.malformed) == (1, 2.0, ())


def test_a_file_with_a_byte_order_mark_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv"
    path.write_text("\ufeff" + HEADING + "\n" + GOOD + "\n\n", encoding="utf-8")
    assert read(path).requests == 1


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("soon,0.1,1,10,true", "start_s is 'soon', not a number of seconds"),
        ("nan,0.1,1,10,true", "start_s is 'nan'"),
        ("0,inf,1,10,true", "first_token_s is 'inf'"),
        ("0,,1,10,true", "first_token_s is ''"),
        ("0,0.1,1,0,true", "output_tokens is '0', not a count of at least 1"),
        ("0,0.1,1,2.5,true", "output_tokens is '2.5'"),
        ("0,0.1,1,-1,true", "output_tokens is '-1'"),
        ("0,0.1,1,10,maybe", "ok is 'maybe', neither true nor false"),
        ("0,0.1,1,10", "ok is None"),
        ("0,0.1,1,10,true,more", "more cells than columns"),
        ("0,2,1,10,true", "not in the order"),
        ("3,2,4,10,true", "not in the order"),
        (",0.1,1,10,false", "start_s is ''"),
    ],
)
def test_a_malformed_row_is_named_with_its_line_and_left_out(row: str, said: str) -> None:
    found = requests(GOOD, row, GOOD)
    assert found.requests == 2
    (malformed,) = found.malformed
    assert isinstance(malformed, Malformed)
    assert malformed.line == 3
    assert said in malformed.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no column 'start_s'"),
        ("start_s,end_s,ok\n", "no column 'first_token_s', 'output_tokens'"),
        (HEADING, "no request in it"),
        (HEADING + "a,b,c,d,true\n", "first fault is in line 2: start_s is 'a'"),
    ],
)
def test_a_file_without_requests_is_refused(text: str, said: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        parse(text, "requests.csv")
    assert said in str(caught.value)
    assert str(caught.value).startswith("requests.csv: ")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="No such file"):
        read(tmp_path / "requests.csv")
    (tmp_path / "requests.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MeasurementError, match="not UTF-8"):
        read(tmp_path / "requests.csv")


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1), (5, 1), (50, 10), (50.1, 11), (95, 19), (95.1, 20), (100, 20)]
)
def test_a_percentile_is_a_value_that_was_measured(percent: float, expected: int) -> None:
    assert percentile(range(1, 21), percent) == expected


def test_a_failed_request_passes_no_limit_and_has_no_latency() -> None:
    found = latency(requests(GOOD, FAILED), LIMITS)
    assert (found.ttft_pass_rate, found.tpot_pass_rate, found.joint_pass_rate) == (0.5, 0.5, 0.5)
    assert found.p95_ttft_s == 0.1
    assert requests(GOOD, FAILED).window_s == 2


def test_one_token_has_no_time_per_token_and_is_not_late_by_it() -> None:
    found = latency(requests("0,0.1,0.1,1,true"), LIMITS)
    assert found.p95_tpot_s is None
    assert found.within
    assert found.joint_pass_rate == 1


def test_limits_are_kept_by_who_reaches_them_exactly() -> None:
    assert latency(requests("0,0.5,0.5,1,true"), LIMITS).within


def test_goodput_counts_the_tokens_of_requests_that_keep_both_limits() -> None:
    found = goodput(requests(GOOD, LATE, SLOW, FAILED), LIMITS)
    assert (found.tokens_per_s, found.eligible_tokens_per_s, found.window_s) == (30, 10, 10)
    assert goodput(requests(GOOD), LIMITS, 50).eligible_tokens_per_s == 2


def test_there_is_no_rate_without_a_window() -> None:
    with pytest.raises(MeasurementError, match="no rate"):
        goodput(requests("1,1,1,1,true"), LIMITS)


def test_the_cost_of_nothing_is_infinite_and_devices_add_up() -> None:
    assert cost_per_million_tokens(4, 0) == math.inf
    assert cost_per_million_tokens(4, 400, devices=2) == 2 * cost_per_million_tokens(4, 400)


def test_what_was_not_measured_is_not_judged() -> None:
    for found in (judge(None, LIMITS), judge(requests(GOOD), None)):
        assert (found.latency_gate, found.goodput_gate) == (State.NOT_MEASURED, State.NOT_MEASURED)
        assert found.reasons


def test_goodput_counts_only_where_latency_is_passed() -> None:
    late = judge(requests(GOOD, LATE), LIMITS)
    assert (late.latency_gate, late.goodput_gate) == (State.FAILED, State.NOT_MEASURED)
    assert late.reasons[0] == "p95 TTFT is 900.0 ms, above 500.0 ms."
    assert late.goodput is None
    slow = judge(requests(GOOD, SLOW), LIMITS)
    assert slow.reasons[0] == "p95 TPOT is 100.0 ms, above 50.0 ms."
    assert judge(requests(FAILED), LIMITS).reasons[0] == "no request was answered."


def test_the_joint_rate_is_a_limit_of_its_own() -> None:
    measured = requests(*[GOOD] * 19, FAILED)
    assert judge(measured, LIMITS, joint_rate=0.95).latency_gate is State.PASSED
    failed = judge(measured, LIMITS, joint_rate=0.96)
    assert failed.reasons[0] == "95.0% of requests keep both limits, below 96.0%."


def test_goodput_and_cost_have_limits() -> None:
    measured = requests(GOOD, "0,0.1,10,201,true")
    passed = judge(measured, LIMITS, least_tokens_per_s=30, price_per_device_hour=4, most_per_million=40)
    assert (passed.latency_gate, passed.goodput_gate) == (State.PASSED, State.PASSED)
    assert passed.cost_per_million == pytest.approx(4 / 30.1 / 3600 * 1e6)
    failed = judge(measured, LIMITS, least_tokens_per_s=31, price_per_device_hour=4, most_per_million=36)
    assert failed.goodput_gate is State.FAILED
    assert failed.reasons == (
        "goodput is 30.1 tokens/s, below 31.0.",
        "a million tokens cost 36.91, above 36.00.",
    )
    unpriced = judge(measured, LIMITS, most_per_million=36)
    assert (unpriced.goodput_gate, unpriced.reasons) == (State.NOT_MEASURED, ("there is no price.",))
    short = judge(measured, LIMITS, least_tokens_per_s=31, most_per_million=36)
    assert short.goodput_gate is State.FAILED


def test_a_single_moment_has_latency_and_no_goodput() -> None:
    found = judge(requests("1,1,1,1,true"), LIMITS)
    assert (found.latency_gate, found.goodput_gate) == (State.PASSED, State.NOT_MEASURED)
