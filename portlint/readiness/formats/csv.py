"""The findings as CSV, one row each."""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING

from portlint.readiness.formats.table import FINDINGS, findings
from portlint.report.escape import printable

if TYPE_CHECKING:
    from portlint.readiness.assess import Readiness


def render(readiness: Readiness) -> str:
    """Write a heading and a row for each finding."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FINDINGS)
    writer.writerows([harmless(cell) for cell in row] for row in findings(readiness))
    return out.getvalue()


def harmless(value: object) -> str:
    """A text that a spreadsheet does not take for a formula (OWASP, "CSV Injection")."""
    text = printable(str(value))
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
