"""Reports as text: one module per output format, each with `render(report, page) -> str`.

A format knows the value types of `portlint.finding` and nothing else of the project; it is imported when it is asked
for, so that a concise report never pays for the libraries of another one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from portlint.finding import Report

_MODULES = {
    "full": "portlint.report.full",
    "concise": "portlint.report.concise",
    "json": "portlint.report.json",
    "sarif": "portlint.report.sarif",
    "github": "portlint.report.github",
    "gitlab": "portlint.report.gitlab",
    "junit": "portlint.report.junit",
    "markdown": "portlint.report.markdown",
    "json-lines": "portlint.report.json_lines",
    "grouped": "portlint.report.grouped",
}

KINDS = tuple(_MODULES)
"""the output formats by name, the default first"""


class Page(msgspec.Struct, frozen=True):
    """What a report is written on."""

    color: bool
    """whether the reader understands ANSI colours"""
    width: int
    """columns of the terminal; prose is wrapped to it and code is cut to it"""
    version: str
    """the version of portlint that signs the report"""


def render(report: Report, kind: str, *, color: bool, width: int, version: str) -> str:
    """Write the report in the format `kind`, one of KINDS. The text ends with a line break unless it is empty.

    Only line breaks and, with `color`, ANSI colour sequences control the terminal: what came from the linted files is
    escaped. The text holds no lone surrogates, so that it can be encoded as UTF-8.
    """
    text: str = import_module(_MODULES[kind]).render(report, Page(color, width, version))
    return text
