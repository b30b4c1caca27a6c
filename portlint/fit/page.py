"""The answers of `portlint fit` as a page: one file without scripts, and nothing in it is loaded from elsewhere."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from portlint.fit import figures, phrases
from portlint.fit.assess import Answer
from portlint.fit.report import Report
from portlint.report.escape import printable

if TYPE_CHECKING:
    from jinja2 import Environment

PARTS = {
    "weights": "weights",
    "state": "weights, gradients, optimizer",
    "cache": "KV cache",
    "overhead": "overhead",
    "left": "left",
}


def render(report: Report, version: str) -> str:
    """Write the page; `version` is that of portlint, which signs it."""
    groups = [(key, list(group)) for key, group in groupby(report.answers, key=lambda one: one.product.target)]
    return (
        _environment()
        .get_template("fit.html")
        .render(
            report=report,
            groups=groups,
            sources=report.sources(),
            assumptions=list(phrases.assumptions(report.model, report.load)),
            verdicts={True: "fits", False: "fails", None: "unknown"},
            figures=figures,
            phrases=phrases,
            parts=PARTS,
            version=version,
            bar=_bar,
        )
    )


def _bar(answer: Answer, report: Report) -> figures.Bar | None:
    return figures.ledger_bar(answer, report.load.training)


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("portlint.fit"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value,
    )
    found.tests["link"] = lambda url: url.startswith(("https://", "http://"))
    return found
