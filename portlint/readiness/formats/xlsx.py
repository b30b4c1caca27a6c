"""The report as a workbook: targets, files and findings, a sheet each."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from portlint.readiness.formats import table
from portlint.report.escape import printable

if TYPE_CHECKING:
    from portlint.readiness.assess import Readiness

MAX_ROWS = 1_048_575
"""below the heading; "Excel specifications and limits" on support.microsoft.com"""


def render(readiness: Readiness) -> bytes:
    """Write the workbook. Raises ModuleNotFoundError where XlsxWriter is not installed."""
    import xlsxwriter

    out = BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    bold = book.add_format({"bold": True})
    for name, heading, rows in (
        ("Targets", table.TARGETS, table.targets(readiness)),
        ("Files", table.FILES, table.files(readiness)),
        ("Findings", table.FINDINGS, table.findings(readiness)),
    ):
        sheet = book.add_worksheet(name)
        sheet.write_row(0, 0, heading, bold)
        sheet.freeze_panes(1, 0)
        last = 0
        for last, row in enumerate(rows, 1):
            if last > MAX_ROWS:
                break
            sheet.write_row(last, 0, [printable(cell) if isinstance(cell, str) else cell for cell in row])
        sheet.autofilter(0, 0, max(last, 1), len(heading) - 1)
        sheet.set_column(0, len(heading) - 1, 18)
    book.close()
    return out.getvalue()
