"""The tables of a run over a fleet, as Parquet: what the columns mean is written in them, and in docs/fleet.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from portlint import __version__
from portlint.finding import Finding
from portlint.fleet.folder import Fleet, Repository, State, report_of

FINDINGS = (
    ("repository", "string", "name of the repository"),
    ("commit", "string", "commit that was checked out; empty where git does not say"),
    ("path", "string", "file, relative to the repository"),
    ("line", "int32", "first line, from 1"),
    ("column", "int32", "first column, from 1, in code points"),
    ("end_line", "int32", "last line"),
    ("end_column", "int32", "column behind the end"),
    ("cell", "int32", "cell of a notebook, from 1; null elsewhere"),
    ("pack", "string", "pack of the rule"),
    ("rule", "string", "rule, as pack/name"),
    ("target", "string", "target that it was judged for"),
    ("verdict", "string", "corrupts, breaks, degrades or unknown"),
    ("message", "string", "what is assumed, and what is true on the target"),
    ("fact", "string", "name of the fact that contradicts it"),
    ("remedy", "string", "what to do there"),
    ("effort", "string", "class of effort: none, minutes, hours or rewrite"),
    ("fix", "string", "safe or unsafe, where portlint can mend it; null elsewhere"),
    ("fingerprint", "string", "by which it is recognised in later versions of the code"),
)
"""name, type and meaning of each column"""

REPOSITORIES = (
    ("repository", "string", "name, unique in the run"),
    ("place", "string", "folder or URL, as the list has it"),
    ("ref", "string", "branch, tag or commit that was asked for"),
    ("commit", "string", "commit that was checked out; empty where git does not say"),
    ("state", "string", "checked, incomplete or failed"),
    ("error", "string", "why it is incomplete or failed"),
    ("files", "int64", "files analysed"),
    ("lines", "int64", "lines of them"),
    ("skipped", "int64", "files found and not analysed"),
    ("suppressed", "int64", "findings suppressed by comments"),
    ("baselined", "int64", "findings that its baseline has"),
    ("findings", "int64", "findings for all targets"),
    ("problems", "int64", "remarks of what was left out; its report has them"),
    ("slices", "int32", "parts in which it was checked"),
    ("report", "string", "file below reports/ and shards/"),
    ("portlint", "string", "version of portlint"),
)
_ROWS = 100_000
"""in one group of rows; memory holds no more at a time"""


def write(folder: Path, fleet: Fleet) -> None:
    """Write both tables: findings by repository and place, repositories by name."""
    _write(folder / "findings.parquet", FINDINGS, _findings(folder, fleet), fleet)
    _write(folder / "repositories.parquet", REPOSITORIES, map(_repository, fleet.repositories), fleet)


def _write(
    file: Path, columns: tuple[tuple[str, str, str], ...], rows: Iterable[tuple[object, ...]], fleet: Fleet
) -> None:
    fields = [
        pyarrow.field(name, pyarrow.type_for_alias(kind), metadata={"description": meaning})
        for name, kind, meaning in columns
    ]
    about = {"portlint": __version__, "targets": ",".join(fleet.targets), "version": str(fleet.version)}
    schema = pyarrow.schema(fields, metadata=about)
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        left = iter(rows)
        while group := list(islice(left, _ROWS)):
            arrays: list[Any] = [
                pyarrow.array(values, type=field.type)
                for values, field in zip(zip(*group, strict=True), schema, strict=True)
            ]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))


def _findings(folder: Path, fleet: Fleet) -> Iterator[tuple[object, ...]]:
    for repository in fleet.repositories:
        if repository.state is not State.FAILED:
            for finding in report_of(folder, repository).findings:
                yield _finding(repository, finding)


def _finding(repository: Repository, finding: Finding) -> tuple[object, ...]:
    from portlint.readiness.effort import of_finding

    return (
        repository.name,
        repository.commit,
        finding.path,
        finding.line,
        finding.column,
        finding.end_line,
        finding.end_column,
        finding.cell,
        finding.rule.partition("/")[0],
        finding.rule,
        finding.target,
        str(finding.verdict),
        finding.message,
        finding.fact.name,
        finding.remedy,
        str(of_finding(finding)),
        finding.fix,
        finding.fingerprint,
    )


def _repository(one: Repository) -> tuple[object, ...]:
    return (
        one.name,
        one.place,
        one.ref,
        one.commit,
        str(one.state),
        one.error,
        one.files,
        one.lines,
        one.skipped,
        one.suppressed,
        one.baselined,
        one.findings,
        one.problems,
        one.slices,
        one.file,
        __version__,
    )
