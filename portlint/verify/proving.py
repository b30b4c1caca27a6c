"""Findings about lanes, executed: the code around each runs in the lane interpreter at width 32 and at the target's.

The linted tree is parsed and interpreted in worker processes only, under the limits of a scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from portlint import __version__
from portlint.finding import Evidence, FileResult, Finding, Problem, Verdict
from portlint.source.prescan import Limits
from portlint.verify.levels import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from portlint.source import Source
    from portlint.target import Target
    from portlint.verify.simulate import Outcome as Simulated

PACK = "lanes"
_ENDINGS = (".cu", ".cuh", ".hip", ".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh", ".inl", ".inc")
_OUTCOMES = {"proven": Outcome.CONFIRMED, "refuted": Outcome.REFUTED, "undecided": Outcome.UNDECIDED}
_SECONDS = 4.0
"""for one finding"""
_LIMITS = Limits(rule_seconds=20.0, file_seconds=300.0)


class Task(msgspec.Struct, frozen=True):
    """A file, and what is to be proven in it."""

    path: str
    size: int
    findings: tuple[Finding, ...]


def provable(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that executing the code can say something of: lanes, in C++."""
    return [
        one
        for one in findings
        if one.rule.startswith(f"{PACK}/") and one.verdict is not Verdict.UNKNOWN and one.path.endswith(_ENDINGS)
    ]


def prove(wanted: Iterable[Finding], targets: Sequence[Target], jobs: int) -> tuple[list[Finding], list[Problem]]:
    """The provable findings with what their execution said, and what kept some from being executed."""
    from portlint import engine

    by_file: dict[str, list[Finding]] = {}
    for finding in provable(wanted):
        by_file.setdefault(finding.path, []).append(finding)
    tasks = [Task(path, _size(path), tuple(group)) for path, group in by_file.items()]
    if not tasks:
        return [], []
    work = _Work({target.name: target for target in targets})
    results = engine.run(tasks, work, jobs=min(jobs, len(tasks)), limits=_LIMITS)
    findings = [one for result in results for one in result.findings]
    return findings, [one for result in results for one in result.problems]


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


class _Work:
    """What a worker does with a file."""

    def __init__(self, targets: Mapping[str, Target]) -> None:
        self.targets = targets

    def __call__(self, task: Task, without: frozenset[str], phase: Callable[[str], None]) -> FileResult:
        from portlint.source import Source
        from portlint.source.decode import NotText, decode

        phase("read")
        try:
            text = decode(Path(task.path).read_bytes(), "cuda").text
        except (OSError, NotText) as error:
            problem = Problem(task.path, 0, "read", f"cannot be read: {error}")
            return FileResult(task.path, problems=(problem,), analysed=False)
        phase("parse")
        source = Source(task.path, text, "cuda", str(Path(task.path).resolve()))
        found = []
        for finding in task.findings:
            name = f"the simulation of {finding.rule} in line {finding.line}"
            if name in without:
                continue
            phase(name)
            found.append(with_evidence(finding, self._executed(source, finding)))
        return FileResult(task.path, tuple(found))

    def _executed(self, source: Source, finding: Finding) -> Simulated:
        from portlint.verify import simulate

        target = self.targets[finding.target]
        width = target.fact("lanes.width")
        assert width is not None  # every target of the pack states it
        device = next(one for one in target.profile.pass_ if one.name != "host")
        return simulate.prove(
            source,
            finding.line,
            width=int(width.value),
            platform="rocm" if "rocm" in target.profile.platforms else "cuda",
            macros={name: str(value) for name, value in device.defined.items()},
            breaks=finding.verdict is Verdict.BREAKS,
            seconds=_SECONDS,
        )


def with_evidence(finding: Finding, said: Simulated) -> Finding:
    """A finding with what its execution said."""
    evidence = Evidence(
        level="simulate",
        outcome=str(_OUTCOMES[said.verdict]),
        tool="portlint's lane interpreter",
        version=__version__,
        target=finding.target,
        device=None,
        command="",
        date=date.today().isoformat(),
        detail=_shown(said),
    )
    kept = (one for one in finding.evidence if one.level != evidence.level)
    return msgspec.structs.replace(finding, evidence=(*kept, evidence))


def _shown(said: Simulated) -> str:
    """The counterexample, or the reason for the verdict."""
    found = said.counterexample
    where = f"{said.kernel}: " if said.kernel else ""
    if found is None:
        return where + said.reason
    if found.fault:
        return f"{where}{found.launch}: {found.fault}"
    thread = f" of thread {found.thread}" if found.thread is not None else ""
    return f"{where}{found.launch}: {found.where}{thread} is {found.got}, with 32 lanes {found.expected}"
