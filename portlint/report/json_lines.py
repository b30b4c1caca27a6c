"""One finding per line, each an object as in the JSON report; for tools that read a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portlint.report.escape import strict_json
from portlint.report.json import described

if TYPE_CHECKING:
    from portlint.finding import Report
    from portlint.report import Page


def render(report: Report, _page: Page) -> str:
    """Write the findings alone: what else a run has to say is in the other formats."""
    return "".join(strict_json(described(finding), one_line=True) for finding in report.findings)
