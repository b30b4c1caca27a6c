"""The baseline: findings that were there when portlint came, so that only what is added is reported.

An entry is used once for each time that it was written. It belongs to a finding by the rule, the target and the code
(`Judge._fingerprint`): in its own file first, whatever has changed around it; then, in the same statement, in another
file, if its own was checked and has no use for it, or is gone; and of a file that is gone, whatever has changed.
An entry that is left over is stale, and is named: it would let a new finding of the same kind pass.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from portlint.files import read_json, replace
from portlint.finding import Finding, Problem, Report
from portlint.mistake import Mistake
from portlint.source.discover import is_below, reported_path

if TYPE_CHECKING:
    from portlint.config import Config
    from portlint.run import Request

VERSION = 1
FILE = "portlint-baseline.json"
"""what `portlint check` reads if it is in the working directory, or beside the configuration"""
SURE = frozenset(("directive", "expect", "evidence", "refuted"))
"""kinds of problems that leave a file analysed as a whole"""


class BaselineError(Mistake):
    """A baseline that cannot be read or written."""


class Entry(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """Findings that are known, and alike."""

    path: str
    """relative to the folder of the baseline, with forward slashes"""
    rule: str
    target: str
    fingerprint: str
    """`Finding.code`"""
    setting: str = ""
    """`Finding.setting`"""
    count: int = 1


class BaselineFile(msgspec.Struct, frozen=True):
    """All entries, sorted."""

    version: int
    entries: tuple[Entry, ...]


class Matched(msgspec.Struct, frozen=True):
    """Findings and entries, brought together."""

    known: tuple[Finding, ...]
    """findings that the baseline has"""
    new: tuple[Finding, ...]
    stale: tuple[Entry, ...]
    """entries whose findings are gone"""
    unasked: tuple[Entry, ...]
    """entries of which this run says nothing: of other files, rules or targets"""


def place(config: Config, named: Path | None = None) -> Path:
    """Where the baseline is, whether or not it is there: as named, as configured, or under its usual name."""
    if named is not None:
        return named
    root = Path(config.root) if config.root else Path()
    if config.baseline:
        return root / config.baseline
    return Path(FILE) if Path(FILE).is_file() else Path(os.path.relpath(root / FILE))


def read(file: Path) -> tuple[Entry, ...]:
    """The entries, with paths as reports show them. Raises BaselineError where there is no well-formed baseline."""
    hint = " 'portlint baseline write' makes one."
    content = read_json(file, BaselineFile, "baseline", error=BaselineError, version=VERSION, hint=hint)
    folder = _folder(file)
    return tuple(
        msgspec.structs.replace(one, path=reported_path(os.path.normpath(os.path.join(folder, one.path))))
        for one in content.entries
    )


def write(file: Path, entries: Iterable[Entry]) -> None:
    """Write a baseline, whole or not at all, with one line per entry. Raises BaselineError where that is impossible."""
    folder = _folder(file)
    lines = [
        msgspec.json.encode(one).decode()
        for one in sorted(msgspec.structs.replace(one, path=_relative(one.path, folder)) for one in entries)
    ]
    text = f'{{"version": {VERSION}, "entries": [\n' + ",\n".join(lines) + "\n" * bool(lines) + "]}\n"
    try:
        replace(file, text.encode())
    except OSError as error:
        raise BaselineError(f"cannot write the baseline {file}: {error.strerror}") from error


def entries(findings: Iterable[Finding]) -> list[Entry]:
    """The entries of findings."""
    counts = Counter((one.path, one.rule, one.target, one.code, one.setting) for one in findings)
    return [Entry(*key, count=count) for key, count in sorted(counts.items())]


def match(findings: Sequence[Finding], known: Iterable[Entry], request: Request, report: Report) -> Matched:
    """Bring the findings of a run and a baseline together. `report` is what the run brought, for what it looked at."""
    left: Counter[Entry] = Counter()
    for entry in known:
        left[msgspec.structs.replace(entry, count=1)] += entry.count
    unsure = {problem.path for problem in report.problems if problem.kind not in SURE}
    checked = report.census.keys() - unsure
    gone = {path for path in {entry.path for entry in left} - report.census.keys() if not os.path.lexists(path)}
    unmatched = list(findings)
    for key, of_file, free in _PASSES:
        usable = checked | gone if free == "idle" else gone
        pools: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
        for entry in sorted(left, reverse=True):
            if of_file or entry.path in usable:
                pools[key(entry.path, entry.target, entry.fingerprint, entry.setting)] += [entry] * min(
                    left[entry], len(unmatched)
                )
        rest = []
        for finding in unmatched:
            if pool := pools.get(key(finding.path, finding.target, finding.code, finding.setting)):
                left[pool.pop()] -= 1
            else:
                rest.append(finding)
        unmatched = rest
        left = +left
    new = {id(one) for one in unmatched}
    below = [reported_path(os.path.abspath(path)) for path in request.paths]
    stale: list[Entry] = []
    unasked: list[Entry] = []
    for entry, count in sorted(left.items()):
        looked_at = entry.path in checked or (entry.path in gone and any(is_below(entry.path, one) for one in below))
        is_stale = looked_at and request.asks(entry.rule, entry.target, entry.path)
        (stale if is_stale else unasked).append(msgspec.structs.replace(entry, count=count))
    return Matched(tuple(one for one in findings if id(one) not in new), tuple(unmatched), tuple(stale), tuple(unasked))


_Key = Callable[[str, str, str, str], tuple[str, ...]]
_PASSES: tuple[tuple[_Key, bool, str], ...] = (
    (lambda path, target, code, setting: (path, target, code, setting), True, ""),
    (lambda path, target, code, _: (path, target, code), True, ""),
    (lambda _, target, code, setting: (target, code, setting), False, "idle"),
    (lambda _, target, code, __: (target, code), False, "gone"),
)
"""what a finding and an entry have to share; whether that includes the file; else, of which files entries are free"""


def apply(report: Report, matched: Matched, file: Path) -> Report:
    """The report without the findings that the baseline has; what is stale becomes a problem."""
    return msgspec.structs.replace(
        report,
        findings=matched.new,
        problems=tuple(sorted((*report.problems, *stale_problems(matched.stale, file)))),
        summary=msgspec.structs.replace(report.summary, baselined=len(matched.known)),
    )


def stale_problems(stale: Iterable[Entry], file: Path) -> list[Problem]:
    """A problem for each file, rule and target of which a baseline has too much."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for one in stale:
        counts[one.path, one.rule, one.target] += one.count
    return [
        Problem(
            str(file),
            0,
            "baseline",
            f"{path}: {count} of '{rule}' for {target} no longer found; 'portlint baseline prune' drops what is gone",
        )
        for (path, rule, target), count in sorted(counts.items())
    ]


def _folder(file: Path) -> str:
    return os.path.dirname(os.path.realpath(file))


def _relative(path: str, folder: str) -> str:
    inside = os.path.relpath(os.path.abspath(path), folder)
    outside = inside == os.pardir or inside.startswith(os.pardir + os.sep)
    return (os.path.abspath(path) if outside else inside).replace(os.sep, "/")
