"""Today, for what depends on it."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime


def today() -> date:
    """The date. SOURCE_DATE_EPOCH (seconds) stands in for it, so that a report can be made again."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(epoch), UTC).date() if epoch.isdigit() else date.today()
