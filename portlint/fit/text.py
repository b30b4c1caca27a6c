"""The answers of `portlint fit` for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from textwrap import wrap

from portlint.fit import phrases
from portlint.fit.assess import Answer
from portlint.fit.report import Report
from portlint.report.escape import printable
from portlint.report.full import Line, colored

_LABEL = 10
"""columns of a label"""
_NARROWEST = 60
_STYLES = {True: "bold green", False: "bold red", None: "yellow"}


def render(report: Report, *, color: bool, width: int) -> str:
    """Write the model, what is to be said of each product, the choices, the assumptions and the sources."""
    lines = list(_lines(report, max(width, _NARROWEST)))
    return colored(lines) if color else "".join("".join(text for _, text in line) + "\n" for line in lines)


def _lines(report: Report, width: int) -> Iterator[Line]:
    model, load = report.model, report.load
    yield from _row("model", phrases.model_line(model, load), width)
    yield from _row("load", phrases.load_line(load), width)
    yield from _row("needs", phrases.need_line(model, load), width)
    for target, group in groupby(report.answers, key=lambda answer: answer.product.target):
        answers = list(group)
        yield []
        yield [("bold", printable(f"{target}: {answers[0].product.title}"))]
        for answer in answers:
            yield from _product(answer, report, width)
    if len(report.answers) > 1:
        yield []
        yield from _choices(report, width)
    yield from _listed("Assumptions", phrases.assumptions(model, load), width)
    yield from _listed("Sources", (f"{cite.title}, {cite.url}" for cite in report.sources()), width, numbered=True)


def _product(answer: Answer, report: Report, width: int) -> Iterator[Line]:
    product = answer.product
    numbers = "".join(f"[{index}]" for index in report.numbers(answer))
    yield [("bold", f"  {printable(product.name)}"), ("", f"  {phrases.figures(product, answer)} {numbers}")]
    label, style = printable(phrases.fits_label(answer)), _STYLES[answer.fits]
    memory = phrases.memory_line(answer, report.load)
    yield from _prose([(style, f"    {label}")], f": {memory}" if memory else "", width)
    if answer.decode is not None:
        yield from _row("decode", phrases.decode_line(answer, report.load), width, indent=4)
        yield from _row("prefill", phrases.prefill_line(answer, report.load), width, indent=4)
    if report.load.training and answer.fits:
        yield from _row("training", phrases.training_line(answer), width, indent=4)
    for remark in phrases.remarks(answer):
        yield from _row("note", remark, width, indent=4)


def _choices(report: Report, width: int) -> Iterator[Line]:
    if not report.choices:
        yield [("bold red", "No product is known to fit.")]
    for choice in report.choices:
        yield from _prose([("bold", phrases.PURPOSES[choice.purpose])], f": {phrases.choice_line(choice)}", width)


def _listed(heading: str, items: Iterator[str], width: int, *, numbered: bool = False) -> Iterator[Line]:
    yield []
    yield [("bold", heading)]
    for index, item in enumerate(items, 1):
        mark = f"  [{index}] " if numbered else "  - "
        yield from (
            [("", line)]
            for line in wrap(
                printable(item),
                width,
                initial_indent=mark,
                subsequent_indent=" " * len(mark),
                break_long_words=False,
                break_on_hyphens=False,
            )
        )


def _row(label: str, text: str, width: int, *, indent: int = 0) -> Iterator[Line]:
    return _prose([("bold", f"{' ' * indent}{label:{_LABEL}}")], text, width, hang=indent + _LABEL)


def _prose(head: Line, text: str, width: int, *, hang: int = 6) -> Iterator[Line]:
    """A styled beginning and text behind it, wrapped; further lines hang."""
    start = "".join(part for _, part in head)
    first, *rest = wrap(
        start + printable(text),
        width,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    ) or [""]
    yield [*head, ("", first[len(start) :])]
    yield from ([("", line)] for line in rest)
