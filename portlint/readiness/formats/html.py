"""The report as one HTML file: no network, no framework, readable without its script, printable, light and dark."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from portlint.examples import MissingExample, example
from portlint.finding import Verdict
from portlint.readiness import effort
from portlint.readiness.effort import Effort
from portlint.readiness.formats.burndown import burndown
from portlint.readiness.standing import Tier
from portlint.readiness.wording import hours, many
from portlint.report.escape import printable
from portlint.rules import discover

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from portlint.examples import Example
    from portlint.finding import Finding
    from portlint.readiness.assess import Readiness

MAX_CODE = 140
"""characters that are shown of a line of code"""
HEAVIEST = 5
"""files and beliefs that are named where to start"""
FACTS = 6
"""facts of one belief and target that are shown at once; the rest is folded"""


def render(readiness: Readiness) -> str:
    """The page."""
    return page(
        "report.html",
        ("tables.js", "report.js"),
        readiness=readiness,
        report=readiness.report,
        shown_facts=FACTS,
        rows=list(zip(*(one.files for one in readiness.standings), strict=True)),
        unverified=sum(not one.evidence for one in readiness.report.findings),
        chart=burndown(readiness.progress) if readiness.progress else None,
    )


def page(template: str, scripts: Sequence[str], **values: object) -> str:
    """A page from a template and scripts of `templates/`, with what all of them know."""
    script, style = "\n".join(map(_text, scripts)), _text("report.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template(template)
        .render(
            script=script,
            script_digest=digest,
            style=style,
            verdicts=list(Verdict),
            tiers=list(Tier),
            efforts=[one for one in Effort if one is not Effort.NONE],
            how=effort.HOW,
            heaviest=HEAVIEST,
            **values,
        )
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_text),
        finalize=_shown,
    )
    environment.filters.update(
        code=_code,
        prose=_prose,
        slug=_slug,
        shown_example=_example,
        hours=hours,
        link=_link,
        many=many,
    )
    return environment


def _text(name: str) -> str:
    return (files("portlint.readiness") / "templates" / name).read_text(encoding="utf-8")


def _shown(value: Any) -> Any:
    """Every text that a template writes goes through here: what came from a linted tree shows no control characters."""
    return printable(value, keep="\n\t") if type(value) is str else value


def _code(finding: Finding) -> tuple[str, str, str]:
    """The line of a finding, cut: before the place, the place, and after it."""
    if not finding.excerpt:
        return "", "", ""
    line = finding.excerpt[0]
    start = finding.column - 1
    end = finding.end_column - 1 if finding.end_line == finding.line else len(line)
    indent = len(line) - len(line.lstrip())
    first = max(indent, start - MAX_CODE // 2) if end > MAX_CODE + indent else min(indent, start)
    last = first + MAX_CODE
    head = "…" * (first > indent) + line[first:start]
    return head, line[start : min(end, last)], line[min(end, last) : last].rstrip() + "…" * (last < len(line))


def _prose(text: str) -> Markup:
    """Escaped text, where what stands in backticks is code."""
    from markupsafe import Markup, escape

    pieces = printable(text).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if number % 2 and number < len(pieces) - 1 else escape(piece)
        for number, piece in enumerate(pieces)
    )


def _slug(rule: str) -> str:
    return rule.replace("/", "-")


@cache
def _example(rule: str) -> Example | None:
    found = discover().get(rule)
    try:
        return example(found) if found else None
    except MissingExample:  # a rule of the user's own
        return None


def _link(url: str) -> str:
    """The address, if a page may link to it; profiles of users can hold any text."""
    return url if urlsplit(url).scheme in ("http", "https") else ""
