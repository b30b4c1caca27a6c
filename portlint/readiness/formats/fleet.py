"""The report over repositories in its formats; a page of it can lead to the pages of the repositories."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from typing import Any
from urllib.parse import quote

import msgspec

from portlint.finding import Verdict
from portlint.readiness import effort
from portlint.readiness.effort import Work
from portlint.readiness.fleet import Overview, Port
from portlint.readiness.formats.csv import harmless
from portlint.readiness.formats.html import page
from portlint.readiness.formats.markdown import counted, plain
from portlint.readiness.wording import hours, many
from portlint.report.escape import strict_json

Pages = Mapping[str, str]
"""name of a repository -> the path of its page, relative to the report"""

COLUMNS = (
    "repository",
    "place",
    "commit",
    "state",
    "files",
    "lines",
    "target",
    *Verdict,
    "hours to run right",
    "hours",
    "rewrites",
    "error",
)


def render(overview: Overview, kind: str, pages: Pages) -> bytes:
    """Write the report in the format `kind`, one of KINDS."""
    return _FORMATS[kind](overview, pages).encode()


def _html(overview: Overview, pages: Pages) -> str:
    links = {name: quote(path) for name, path in pages.items()}
    return page("fleet.html", ("tables.js", "fleet.js"), overview=overview, pages=links)


def _markdown(overview: Overview, pages: Pages) -> str:
    return "\n".join(_lines(overview, pages)) + "\n"


def _lines(overview: Overview, pages: Pages) -> Iterator[str]:
    yield f"# Port readiness of {many(len(overview.entries), 'repository', 'repositories')}"
    yield ""
    yield (
        f"{overview.lines:,} lines in {many(overview.files, 'file')}, read by portlint {overview.version}."
        f" Report of {overview.date}. Nothing of it was executed."
    )
    for total in overview.totals:
        yield f"\n## {plain(total.title)}\n"
        yield (
            f"{total.ready:,} of {many(len(overview.entries), 'repository', 'repositories')} ready, as far as portlint"
            " looks."
            f" Effort {hours(total.work.total)}, of it {hours(total.needed.total)} to run right."
        )
    if overview.entries:
        targets = "".join(f" {plain(one.target)} | effort |" for one in overview.totals)
        yield f"\n| repository | files | lines |{targets}"
        yield f"|---|--:|--:|{'---|--:|' * len(overview.totals)}"
    for entry in overview.entries:
        one = entry.repository
        name = f"[{plain(one.name)}]({quote(pages[one.name])})" if one.name in pages else plain(one.name)
        cells = "".join(f" {counted(port.verdicts)} | {hours(port.work.total)} |" for port in entry.ports)
        yield f"| {name} | {one.files:,} | {one.lines:,} |{cells}"
    yield "\n## What is uncertain\n"
    for one in (*overview.failed, *overview.incomplete):
        yield f"- {plain(one.name)} is {'not checked' if one in overview.failed else one.state}: {plain(one.error)}"
    if not overview.failed and not overview.incomplete:
        yield "Every repository of the list was checked as a whole."
    yield f"\n{effort.HOW}"


def _json(overview: Overview, _: Pages) -> str:
    return strict_json(
        {
            "version": 1,
            "tool": {"name": "portlint", "version": overview.version},
            "date": overview.date,
            "targets": [
                {
                    "target": one.target,
                    "title": one.title,
                    "ready": one.ready,
                    "verdicts": _verdicts(one.verdicts),
                    "effort": _work(one.work, one.needed),
                }
                for one in overview.totals
            ],
            "repositories": [
                {
                    **msgspec.to_builtins(entry.repository),
                    "readiness": [_port(port) for port in entry.ports],
                }
                for entry in overview.entries
            ],
            "failed": msgspec.to_builtins(overview.failed),
        }
    )


def _port(port: Port) -> dict[str, Any]:
    return {
        "target": port.target,
        "sentence": port.sentence,
        "verdicts": _verdicts(port.verdicts),
        "effort": _work(port.work, port.needed),
        "tiers": {tier: {"files": files, "lines": lines} for tier, (files, lines) in port.tiers.items()},
    }


def _verdicts(counts: Mapping[Verdict, int]) -> dict[str, int]:
    return {verdict: counts[verdict] for verdict in Verdict if counts.get(verdict)}


def _work(work: Work, needed: Work) -> dict[str, float]:
    return {
        "minutes": work.minutes,
        "hours": work.hours,
        "rewrite": work.rewrite,
        "total_hours": work.total,
        "needed_hours": needed.total,
    }


def _csv(overview: Overview, _: Pages) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for entry in overview.entries:
        one = entry.repository
        about = (one.name, one.place, one.commit, one.state, one.files, one.lines)
        for port in entry.ports:
            counts = (port.verdicts.get(verdict, 0) for verdict in Verdict)
            work = (port.needed.total, port.work.total, port.work.rewrite)
            writer.writerow(map(harmless, (*about, port.target, *counts, *work, one.error)))
    for one in overview.failed:
        empty = [""] * (len(COLUMNS) - 5)
        writer.writerow(map(harmless, (one.name, one.place, one.commit, one.state, *empty, one.error)))
    return out.getvalue()


_FORMATS: dict[str, Callable[[Overview, Pages], str]] = {
    "html": _html,
    "markdown": _markdown,
    "json": _json,
    "csv": _csv,
}
KINDS = tuple(_FORMATS)
"""the formats by name"""
