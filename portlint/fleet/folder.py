"""The folder of a run over a fleet: what was found of each repository, and how it is read again.

    fleet.json              what there is of each repository, and the sums
    findings.parquet        a row for each finding
    repositories.parquet    a row for each repository
    reports/NAME.json       what `portlint check --output-format json` writes in that checkout
    shards/NAME.json        the same with all that `portlint merge` and `portlint report --fleet` need beside it
    targets/NAME.toml       profiles of the user's that it was judged by

It appears in one step when everything is in it. Nothing in it tells when, where or how fast it was made, but for the
`seconds` in the reports.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

import msgspec

from portlint import __version__
from portlint.files import read_json
from portlint.finding import Report, Shard, Verdict
from portlint.mistake import Mistake
from portlint.report import render
from portlint.report.escape import strict_json
from portlint.shard import merged

SUMMARY = "fleet.json"
REPORTS, SHARDS, TARGETS = "reports", "shards", "targets"
_LONGEST_NAME = 150
"""bytes of a file's name before the end; file systems take some 255"""


class FleetError(Mistake):
    """A folder that is no run over a fleet, or that cannot be written."""


class State(StrEnum):
    """How far a repository was checked."""

    CHECKED = "checked"
    INCOMPLETE = "incomplete"
    """without some of its slices"""
    FAILED = "failed"
    """not at all"""


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says of one repository."""

    name: str
    place: str
    """the folder or the URL, as the list has it"""
    ref: str = ""
    commit: str = ""
    """what was checked out, "" where git does not say"""
    state: State
    error: str = ""
    """why it is incomplete or failed"""
    file: str = ""
    """its file below `reports` and `shards`, "" if it failed"""
    slices: int = 1
    status: int = 0
    """the exit status of `portlint check`; 2 unless it was checked"""
    files: int = 0
    lines: int = 0
    skipped: int = 0
    suppressed: int = 0
    baselined: int = 0
    problems: int = 0
    verdicts: Mapping[str, Mapping[Verdict, int]] = {}
    """target -> findings by verdict"""

    @property
    def findings(self) -> int:
        """All of them, for all targets."""
        return sum(sum(counts.values()) for counts in self.verdicts.values())


class _Tool(msgspec.Struct, frozen=True):
    name: str = "portlint"
    version: str = __version__


class Fleet(msgspec.Struct, frozen=True):
    """A whole run."""

    targets: tuple[str, ...]
    titles: Mapping[str, str]
    repositories: tuple[Repository, ...]
    """sorted by name"""
    tool: _Tool = _Tool()
    version: int = 1

    @property
    def status(self) -> int:
        """The exit status: 2 if a repository was not checked as a whole, else the worst of theirs."""
        return max((one.status for one in self.repositories), default=0)


# ---- writing --------------------------------------------------------------------------------------------------------


@contextmanager
def appearing(place: Path) -> Iterator[Path]:
    """A folder to fill, which takes its place when the block ends, and is gone if it raises. Raises FleetError.

    An earlier run may be in that place; anything else is left alone.
    """
    if place.is_symlink() or (place.exists() and not _may_go(place)):
        raise FleetError(f"{place} is there already, and is no run of 'portlint fleet': name another folder")
    part = place.absolute().parent / f".{place.name}.{os.getpid()}.part"
    old = part.with_suffix(".old")
    try:
        for name in ("", REPORTS, SHARDS):
            (part / name).mkdir(parents=True)
        yield part
        if place.exists():
            place.rename(old)
        part.rename(place)
    except OSError as error:
        raise FleetError(f"cannot write {place}: {error.strerror}") from error
    finally:
        if old.exists() and not place.exists():
            old.rename(place)
        for left in (part, old):
            shutil.rmtree(left, ignore_errors=True)


def _may_go(place: Path) -> bool:
    return place.is_dir() and ((place / SUMMARY).is_file() or not any(place.iterdir()))


def file_of(name: str) -> str:
    """The name of the file of a repository: no two names share one, and none leaves its folder."""
    safe = quote(name, safe="")
    safe = "%2E" + safe[1:] if safe.startswith(".") else safe
    if len(safe) > _LONGEST_NAME:
        safe = f"{safe[:_LONGEST_NAME]}~{hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}"
    return f"{safe}.json"


def write_report(folder: Path, file: str, report: Report) -> None:
    """Write what was found of one repository."""
    whole = msgspec.structs.replace(report, shard=None)
    shard = msgspec.structs.replace(report, shard=Shard(1, 1, file.removesuffix(".json"), (".",)))
    for name, one in ((REPORTS, whole), (SHARDS, shard)):
        text = render(one, "json", color=False, width=100, version=__version__)
        (folder / name / file).write_text(text, encoding="utf-8")


def write_profiles(folder: Path, profiles: Mapping[str, bytes]) -> None:
    """Write profiles of the user's, by the names of their targets."""
    if profiles:
        (folder / TARGETS).mkdir()
    for name, content in profiles.items():
        (folder / TARGETS / f"{quote(name, safe='')}.toml").write_bytes(content)


def write_summary(folder: Path, fleet: Fleet) -> None:
    """Write what there is of each repository, and the sums."""
    described = {**msgspec.to_builtins(fleet), "summary": sums(fleet)}
    order = ("version", "tool", "targets", "titles", "repositories", "summary")
    text = strict_json({key: described[key] for key in order})
    (folder / SUMMARY).write_text(text, encoding="utf-8")


def sums(fleet: Fleet) -> dict[str, int]:
    """The counts of a run."""
    own = fleet.repositories
    return {
        "repositories": len(own),
        **{state.value: sum(one.state is state for one in own) for state in State},
        "files": sum(one.files for one in own),
        "lines": sum(one.lines for one in own),
        "findings": sum(one.findings for one in own),
        "problems": sum(one.problems for one in own),
    }


# ---- reading --------------------------------------------------------------------------------------------------------


def read(folder: Path) -> Fleet:
    """The run in a folder. Raises FleetError where there is none."""
    return read_json(folder / SUMMARY, Fleet, "summary of 'portlint fleet'", error=FleetError)


def report_of(folder: Path, repository: Repository) -> Report:
    """What was found of a repository, which did not fail. Raises ShardError where that cannot be read."""
    return merged([folder / SHARDS / Path(repository.file).name], __version__)[0]


def named(fleet: Fleet, name: str) -> Repository:
    """The repository of this name. Raises FleetError where there is none, or where nothing is known of it."""
    from difflib import get_close_matches

    found = {one.name: one for one in fleet.repositories}
    if name not in found:
        near = get_close_matches(name, found, n=1)
        raise FleetError(
            f"there is no repository '{name}' in the run." + (f" Did you mean '{near[0]}'?" if near else "")
        )
    if found[name].state is State.FAILED:
        raise FleetError(f"'{name}' was not checked: {found[name].error}")
    return found[name]


def profiles(folder: Path, targets: Sequence[str]) -> dict[str, str]:
    """For each target of a run what `--target` takes: its name, or the profile of the user's that the run kept."""
    kept = {name: folder / TARGETS / f"{quote(name, safe='')}.toml" for name in targets}
    return {name: str(file) if file.is_file() else name for name, file in kept.items()}
