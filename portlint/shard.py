"""One run on several machines: its files split into shards, and the reports of the shards put together again."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from portlint.finding import (
    Census,
    Cite,
    Edit,
    Evidence,
    Finding,
    Problem,
    Report,
    RuleText,
    Shard,
    StatedFact,
    Summary,
    Verdict,
    sums,
)
from portlint.mistake import Mistake
from portlint.regex import regex

if TYPE_CHECKING:
    from portlint.run import Request
    from portlint.source.discover import Found

_SHARD = regex(r"([0-9]{1,5})/([0-9]{1,5})")


MOST_NAMED = 10
"""shards that a message names where they are missing"""


class ShardError(Mistake):
    """A shard that cannot be, or reports that do not make up a run."""


# ---- splitting ------------------------------------------------------------------------------------------------------


def parse(text: str) -> tuple[int, int]:
    """The number of a shard and the count of all of them in `I/N`. Raises ShardError."""
    match = _SHARD.fullmatch(text)
    index, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= index <= count:
        raise ShardError(f"'{text}' is no shard: write I/N, from 1/N to N/N")
    return index, count


def part(files: Iterable[Found], index: int, count: int) -> list[Found]:
    """The files of one of `count` shards, by path. Each file is in one shard, and the shards are of about one size."""
    shards: list[list[Found]] = [[] for _ in range(count)]
    sizes = [0] * count
    for file in sorted(files, key=lambda one: (-one.size, one.path)):
        smallest = sizes.index(min(sizes))
        shards[smallest].append(file)
        sizes[smallest] += file.size + 1  # so that empty files are spread as well
    return sorted(shards[index - 1], key=lambda one: one.path)


def identity(request: Request, files: Iterable[Found], version: str) -> str:
    """What the shards of one run share: a hash of the files, the targets and the options."""
    options = msgspec.structs.replace(request.config, file="")
    asked = [request.select, request.ignore, request.exclude, request.force_exclude, options]
    targets = [(target.name, target.title) for target in request.targets]
    run = [version, targets, asked, [(file.path, file.size) for file in files]]
    return hashlib.blake2b(msgspec.json.encode(run), digest_size=8).hexdigest()


# ---- merging --------------------------------------------------------------------------------------------------------


class _Fact(msgspec.Struct, frozen=True):
    value: Any
    cite: Cite | None
    note: str = ""


class _Finding(msgspec.Struct, frozen=True):
    """A finding as the JSON report has it."""

    rule: str
    target: str
    verdict: Verdict
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    assumes: dict[str, Any]
    fact: _Fact
    remedy: str
    kernel: str | None
    fingerprint: str
    evidence: tuple[Evidence, ...]
    cell: int | None = None
    cell_line: int | None = None


class _Detail(msgspec.Struct, frozen=True):
    """What the report of a shard adds to a finding."""

    fact: str
    text: str
    seen: str
    excerpt: tuple[str, ...]
    edits: tuple[Edit, ...]
    line_hash: str
    safe: bool = False
    setting: str = ""


class _Shard(Shard, frozen=True):
    titles: dict[str, str]
    rules: dict[str, RuleText]
    details: tuple[_Detail, ...]
    unchecked: dict[str, frozenset[str]]
    census: Mapping[str, Census] = {}


class _Tool(msgspec.Struct, frozen=True):
    name: str
    version: str


class _File(msgspec.Struct, frozen=True):
    """The JSON report of a shard, or of a whole run, which says nothing of shards."""

    version: int
    tool: _Tool
    targets: tuple[str, ...]
    findings: tuple[_Finding, ...]
    problems: tuple[Problem, ...]
    summary: Summary
    shard: _Shard | None = None


def merged(paths: Sequence[Path], version: str) -> tuple[Report, tuple[str, ...]]:
    """The report of a run from the JSON reports of all its shards, and the paths that the run was given.

    Raises ShardError where a file cannot be read, is of another run or version, is there twice, or is missing.
    """
    files: dict[int, tuple[Path, _File, _Shard]] = {}
    first: _Shard | None = None
    for path in paths:
        file, shard = _read(path, version)
        first = first or shard
        if (shard.run, shard.count) != (first.run, first.count):
            raise ShardError(f"{path} is of another run than {paths[0]}: other files, targets, options or shards")
        if shard.index in files:
            raise ShardError(f"shard {shard.index}/{shard.count} is given twice: {files[shard.index][0]} and {path}")
        files[shard.index] = path, file, shard
    if first is None:
        raise ShardError("there is no report to merge")
    if lacking := first.count - len(files):
        raise ShardError(_are_missing(lacking, first.count, files.keys()))
    return joined([_report(file, shard) for _, file, shard in files.values()]), first.paths


def joined(parts: Sequence[Report]) -> Report:
    """The report of a run from those of its shards, in any order."""
    return Report(
        targets=parts[0].targets,
        findings=tuple(sorted((finding for part in parts for finding in part.findings), key=lambda one: one.order)),
        problems=tuple(sorted(problem for part in parts for problem in part.problems)),
        summary=_summary([part.summary for part in parts]),
        rules=parts[0].rules,
        titles=parts[0].titles,
        census=dict(sorted(item for part in parts for item in part.census.items())),
        unchecked={path: targets for part in parts for path, targets in part.unchecked.items()},
    )


def _report(file: _File, shard: _Shard) -> Report:
    return Report(
        targets=file.targets,
        findings=tuple(_finding(*pair) for pair in zip(file.findings, shard.details, strict=True)),
        problems=file.problems,
        summary=file.summary,
        rules=shard.rules,
        titles=shard.titles,
        census=shard.census,
        unchecked=shard.unchecked,
    )


def _are_missing(lacking: int, count: int, there: Collection[int]) -> str:
    absent = (f"{index}/{count}" for index in range(1, count + 1) if index not in there)
    shown = ", ".join(islice(absent, MOST_NAMED))
    if lacking == 1:
        return f"shard {shown} is missing"
    return f"{lacking} shards are missing: {shown}" + (", and more" if lacking > MOST_NAMED else "")


def _read(path: Path, version: str) -> tuple[_File, _Shard]:
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise ShardError(f"cannot read {path}: {error.strerror}") from error
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ShardError(f"{path} is no JSON report of portlint check: {error}") from error
    if file.version != 1 or file.tool.version != version:
        raise ShardError(f"{path} was written by portlint {file.tool.version}, and this is {version}")
    shard = file.shard
    if shard is None:
        raise ShardError(f"{path} is the report of a whole run; 'check --shard I/N' writes those that can be merged")
    named = {finding.target for finding in file.findings}, {finding.rule for finding in file.findings}
    is_explained = named[0] <= {*file.targets} <= shard.titles.keys() and named[1] <= shard.rules.keys()
    if len(shard.details) != len(file.findings) or not 1 <= shard.index <= shard.count or not is_explained:
        raise ShardError(f"{path} is damaged: its parts do not fit together")
    return file, shard


def _finding(finding: _Finding, detail: _Detail) -> Finding:
    cite = finding.fact.cite and msgspec.structs.replace(finding.fact.cite, seen=detail.seen)
    values = {name: getattr(finding, name) for name in finding.__struct_fields__}
    values["fact"] = StatedFact(detail.fact, finding.fact.value, detail.text, cite, finding.fact.note)
    return Finding(
        **values,
        excerpt=detail.excerpt,
        edits=detail.edits,
        line_hash=detail.line_hash,
        safe=detail.safe,
        setting=detail.setting,
    )


def _summary(parts: Sequence[Summary]) -> Summary:
    return Summary(
        files=sum(one.files for one in parts),
        lines=sum(one.lines for one in parts),
        skipped=sum(one.skipped for one in parts),
        suppressed=sum(one.suppressed for one in parts),
        baselined=sum(one.baselined for one in parts),
        translated=sums(one.translated for one in parts),
        unchecked=sums(one.unchecked for one in parts),
        seconds=sum(one.seconds for one in parts),
    )
