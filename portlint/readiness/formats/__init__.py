"""The readiness report in its formats: one module each, with `render(readiness) -> str | bytes`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portlint.readiness.assess import Readiness

KINDS = ("html", "markdown", "json", "csv", "xlsx")
"""the formats by name; `xlsx` is bytes and needs the extra of that name"""


def render(readiness: Readiness, kind: str) -> bytes:
    """Write the report in the format `kind`, one of KINDS."""
    written: str | bytes = import_module(f"portlint.readiness.formats.{kind}").render(readiness)
    return written if isinstance(written, bytes) else written.encode()
