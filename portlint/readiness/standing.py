"""Where a tree stands for one target: what its files are there, what stops it, what the port costs, and the gates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from portlint.condition import PLATFORM_WORDS, words_of
from portlint.finding import Census, Finding, Programming, Report, Verdict
from portlint.readiness import effort
from portlint.readiness.effort import Work
from portlint.readiness.gates import Gate, correctness
from portlint.readiness.wording import days, many
from portlint.target import Target


class Tier(StrEnum):
    """Where a file stands on the spectrum of portability for one target, the most portable first."""

    PLAIN = "plain"
    GRAPH = "graph"
    TILE = "tile"
    SIMT = "simt"
    BOUND = "bound"
    ELSEWHERE = "elsewhere"
    UNCHECKED = "unchecked"

    @property
    def label(self) -> str:
        """The name for people."""
        return _TITLES[self]

    @property
    def meaning(self) -> str:
        """A sentence about it."""
        return _MEANINGS[self]


_TITLES = {
    Tier.PLAIN: "no accelerator code",
    Tier.GRAPH: "framework code",
    Tier.TILE: "Triton, Pallas, NKI",
    Tier.SIMT: "CUDA/HIP C++ that translates",
    Tier.BOUND: "has to be rewritten",
    Tier.ELSEWHERE: "for another machine",
    Tier.UNCHECKED: "not checked for it",
}
_MEANINGS = {
    Tier.PLAIN: "no framework, no kernel; builds, scripts, tools.",
    Tier.GRAPH: "operators of PyTorch, JAX or another framework, which brings its own kernels for each machine.",
    Tier.TILE: "kernels over tiles, in a language that the target compiles; they want new configurations.",
    Tier.SIMT: "kernels over threads, or their hosts, which compile for the target, if need be through HIPIFY.",
    Tier.BOUND: "kernels in a language that the target does not take, or that use what it has no counterpart for.",
    Tier.ELSEWHERE: "kernels for a machine that is neither the target nor the one that most of the kernels are for.",
    Tier.UNCHECKED: "what the configuration says is for other targets only; nothing is known of it on this one.",
}


class FileStanding(msgspec.Struct, frozen=True):
    """One file for one target."""

    path: str
    lines: int
    tier: Tier
    kernels: int
    work: Work
    needed: Work
    """the part of it without which the code does not run right"""
    findings: int
    worst: Verdict | None


class Step(msgspec.Struct, frozen=True):
    """One step of a port, and what this tree has for it."""

    title: str
    advice: str
    findings: int
    work: Work
    packs: tuple[str, ...] = ()


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One target."""

    target: str
    title: str
    verdicts: Mapping[Verdict, int]
    files: tuple[FileStanding, ...]
    """by path"""
    work: Work
    needed: Work
    """the part of it without which the code does not run right; the rest makes it fast"""
    gates: tuple[Gate, ...]
    steps: tuple[Step, ...]
    smi: str
    profiler: str

    @property
    def tiers(self) -> dict[Tier, tuple[int, int]]:
        """Files and lines in each tier."""
        found = dict.fromkeys(Tier, (0, 0))
        for file in self.files:
            files, lines = found[file.tier]
            found[file.tier] = files + 1, lines + file.lines
        return found

    @property
    def heaviest(self) -> list[FileStanding]:
        """The files that cost something, the dearest first."""
        return sorted((file for file in self.files if file.work.total), key=lambda one: (-one.work.total, one.path))

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        stops = self.verdicts.get(Verdict.CORRUPTS, 0) + self.verdicts.get(Verdict.BREAKS, 0)
        tiers = self.tiers
        rewritten, lines = tiers[Tier.BOUND]
        if len(self.files) == tiers[Tier.UNCHECKED][0] > 0:
            return f"Nothing is known: none of this code is checked for {self.title}."
        if not stops and not rewritten:
            slow = self.verdicts.get(Verdict.DEGRADES, 0)
            more = f"; {many(slow, 'place')} would be slow or less exact there" if slow else ""
            more += _aside(*tiers[Tier.UNCHECKED])
            return f"Nothing that portlint looks for stops this code on {self.title}{more}."
        parts = []
        if self.verdicts.get(Verdict.CORRUPTS):
            parts.append(f"{many(self.verdicts[Verdict.CORRUPTS], 'place')} would give wrong numbers")
        if self.verdicts.get(Verdict.BREAKS):
            parts.append(f"{many(self.verdicts[Verdict.BREAKS], 'place')} would not build, start or run")
        if rewritten:
            parts.append(f"{many(rewritten, 'file')} ({lines:,} lines) would have to be rewritten")
        later = self.work.total - self.needed.total
        more = f", and {days(later)} for what would be slow or less exact" if later >= 1 else ""
        needed = f"about {days(self.needed.total)} of work{more}{_aside(*tiers[Tier.UNCHECKED])}"
        return f"Not ready for {self.title}: {_joined(parts)}; {needed}."


def _aside(files: int, lines: int) -> str:
    """What a sentence says of the files that are not checked for a target."""
    return f"; {many(files, 'file')} ({lines:,} lines) not checked for it" if files else ""


_STEPS = (
    (
        "Run the high-level model first",
        "Get the framework code to run on {title}, with the reference operators, before any kernel.",
        ("device", "build", "system"),
    ),
    (
        "Freeze the shapes",
        "Pad, bucket and hoist reads of device values until a step compiles once. {graphs}",
        ("shape", "sync"),
    ),
    ("Swap the kernel libraries", "Take what the vendor has in place of NVIDIA's libraries. {analogs}", ("library",)),
    (
        "Re-tune, do not re-translate, the hot kernels",
        "Tile sizes, stages, warps and shared memory belong to the machine they were found on.",
        ("launch", "tile", "memory"),
    ),
    (
        "Audit for NVIDIA-only assumptions",
        "Lanes, instructions, names and number formats that compile and mean something else.",
        ("lanes", "isa", "api", "dtype", "numerics"),
    ),
)


def standing(report: Report, target: Target, gates: Sequence[Gate] = ()) -> Standing:
    """Judge a tree for one target. `gates` are those after the first, which the findings alone decide."""
    findings = [one for one in report.findings if one.target == target.name]
    by_path: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_path[finding.path].append(finding)
    home = _home(report.census)
    files = tuple(
        _unchecked(path, census)
        if target.name in report.unchecked.get(path, ())
        else _file(path, census, by_path[path], target, home)
        for path, census in sorted(report.census.items())
    )
    unchecked = sum(file.tier is Tier.UNCHECKED for file in files)
    rewritten = {file.path for file in files if file.tier is Tier.BOUND}
    return Standing(
        target=target.name,
        title=target.title,
        verdicts=Counter(finding.verdict for finding in findings),
        files=files,
        work=_sum(file.work for file in files),
        needed=_sum(file.needed for file in files),
        gates=(correctness(findings, report.problems, len(rewritten), unchecked, len(files)), *gates),
        steps=tuple(_steps(findings, target)),
        smi=target.profile.tools.get("smi", ""),
        profiler=target.profile.tools.get("profiler", ""),
    )


def is_served(census: Census, target: Target) -> bool:
    """Whether the target takes the languages that the kernels of a file are written in."""
    return census.kernels_in <= target.profile.languages


_STOPS = frozenset((Verdict.CORRUPTS, Verdict.BREAKS))
_MACHINES = {"cuda": "gpu", "triton": "gpu", "pallas": "tpu", "nki": "neuron"}
"""the language of kernels -> the machine that they are for in the first place"""
_OTHERS = PLATFORM_WORDS - {"cuda", "nvidia", "gpu"}


def _home(census: Mapping[str, Census]) -> str:
    """The machine that most kernels of the tree are for; "" if it has none."""
    kernels: Counter[str] = Counter()
    for one in census.values():
        for language in one.kernels_in:
            kernels[_MACHINES[language]] += one.kernels
    return max(sorted(kernels), key=lambda machine: kernels[machine], default="")


def _is_for_another(path: str, census: Census, target: Target, home: str) -> bool:
    """Whether kernels that the target does not take are the tree's own for a third machine, and need no port.

    Their language says so, or a folder or a name in their path (`csrc/rocm/attention.cu`).
    """
    named = {word for part in path.split("/") for word in words_of(part.rpartition(".")[0] or part)} & _OTHERS
    return not {_MACHINES[language] for language in census.kernels_in} <= {home} or bool(
        named and not named & target.profile.platforms
    )


def _unchecked(path: str, census: Census) -> FileStanding:
    """A file of which nothing is known on the target."""
    return FileStanding(path, census.lines, Tier.UNCHECKED, census.kernels, Work(), Work(), 0, None)


def _file(path: str, census: Census, findings: Sequence[Finding], target: Target, home: str) -> FileStanding:
    if not is_served(census, target) and _is_for_another(path, census, target, home):
        work, needed, tier = Work(), Work(), Tier.ELSEWHERE
    elif is_served(census, target):
        needed = effort.of_findings(one for one in findings if one.verdict in _STOPS)
        work = needed + effort.of_findings(one for one in findings if one.verdict not in _STOPS)
        is_bound = census.programming in (Programming.TILE, Programming.SIMT) and bool(work.rewrite)
        tier = Tier.BOUND if is_bound else Tier(census.programming.value)
    else:
        work = needed = effort.of_kernels(census.kernels)
        tier = Tier.BOUND
    worst = min((finding.verdict for finding in findings), key=lambda one: one.rank, default=None)
    return FileStanding(path, census.lines, tier, census.kernels, work, needed, len(findings), worst)


def _sum(parts: Iterable[Work]) -> Work:
    total = Work()
    for part in parts:
        total += part
    return total


def _steps(findings: Sequence[Finding], target: Target) -> Iterable[Step]:
    analogs = "; ".join(f"{name}: {value}" for name, value in sorted(target.profile.analogs.items()))
    compiles = "A new shape is a new compilation there." if "cuda" not in target.profile.languages else ""
    for title, advice, packs in _STEPS:
        own = [finding for finding in findings if finding.rule.partition("/")[0] in packs]
        text = advice.format(title=target.title, analogs=analogs, graphs=compiles).strip()
        yield Step(title, text, len(own), effort.of_findings(own), packs)
    tools = [f"{name}: {target.profile.tools[name]}" for name in ("smi", "profiler") if target.profile.tools.get(name)]
    yield Step("Learn its tools", "; ".join(tools) or "The profile names none.", 0, Work())


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
