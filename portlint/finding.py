"""The values that leave the analysis: findings, problems and the report that holds them.

Nothing here reads files or knows a rule; emitters import this module and nothing else of the project.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """What happens on the target, worst first."""

    BREAKS = "breaks"
    """does not build, start or run"""
    CORRUPTS = "corrupts"
    """runs and gives wrong numbers"""
    DEGRADES = "degrades"
    """right, but slow, bigger or less exact"""
    UNKNOWN = "unknown"
    """the profile lacks the fact"""

    @property
    def rank(self) -> int:
        """0 for the verdict to look at first. Wrong numbers outrank a failed build: nobody notices them."""
        return _RANKS[self]


_RANKS = {Verdict.CORRUPTS: 0, Verdict.BREAKS: 1, Verdict.DEGRADES: 2, Verdict.UNKNOWN: 3}


class Cite(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """Where a fact was read."""

    title: str
    url: str
    seen: str = ""
    """the day it was read, ISO 8601"""


class StatedFact(msgspec.Struct, frozen=True):
    """The fact of a target that contradicts an assumption, as it is shown to people."""

    name: str
    value: object
    text: str
    """a phrase such as "64 lanes per wavefront" """
    cite: Cite | None = None
    note: str = ""


class Edit(msgspec.Struct, frozen=True, order=True):
    """Replace the bytes [start, end) of the UTF-8 text of a file; of a notebook, of its JSON."""

    start: int
    end: int
    text: str
    line: int = 0
    """where that is for people, counted as in a finding; 0 until the edit has been placed in its file"""
    column: int = 0
    end_line: int = 0
    end_column: int = 0


class Evidence(msgspec.Struct, frozen=True):
    """What a compiler, a simulator or a device said about a finding."""

    level: str
    outcome: str
    tool: str
    version: str
    target: str
    device: str | None
    command: str
    date: str
    detail: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A hit judged for one target. Lines and columns start at 1, columns count code points, ends are exclusive."""

    rule: str
    target: str
    verdict: Verdict
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    assumes: Mapping[str, object]
    fact: StatedFact
    remedy: str
    kernel: str | None
    fingerprint: str
    """`CODE:N`, by which it is recognised in a later version of the code: see `Judge._fingerprint`"""
    setting: str = ""
    """stands for the statement around it, by which findings with equal CODE are told apart"""
    edits: tuple[Edit, ...] = ()
    """what mends it: all of them, or none"""
    safe: bool = False
    """whether the edits change nothing on the platform that the code was written for"""
    evidence: tuple[Evidence, ...] = ()
    excerpt: tuple[str, ...] = ()
    """the source lines from `line` to `end_line`, cut to a printable width"""
    line_hash: str = ""
    """what GitHub's upload step computes of the line in the file, where it has been computed"""
    cell: int | None = None
    """for a notebook: the cell, counted from 1 among all cells"""
    cell_line: int | None = None

    @property
    def code(self) -> str:
        """The part of the fingerprint that does not depend on what stands before it in the file."""
        return self.fingerprint.partition(":")[0]

    @property
    def fixable(self) -> bool:
        """Whether the finding carries an edit that mends it."""
        return bool(self.edits)

    @property
    def fix(self) -> str | None:
        """What kind of fix it carries: "safe", "unsafe" or none."""
        return ("safe" if self.safe else "unsafe") if self.edits else None

    @property
    def order(self) -> tuple[str, int, int, int, int, str, str]:
        """The total order in which findings are reported."""
        return self.path, self.line, self.column, self.end_line, self.end_column, self.rule, self.target


class Problem(msgspec.Struct, frozen=True, order=True):
    """Something that kept part of the input from being analysed, or a directive that does nothing."""

    path: str
    line: int
    kind: str
    """parse | read | rule | timeout | skipped | directive | expect | baseline | evidence | refuted"""
    message: str


class Programming(StrEnum):
    """How near to the machine a file is written, the most portable first."""

    PLAIN = "plain"
    """nothing of an accelerator"""
    GRAPH = "graph"
    """operators of a framework: PyTorch, JAX, TensorFlow"""
    TILE = "tile"
    """kernels over tiles: Triton, Pallas, NKI"""
    SIMT = "simt"
    """kernels over threads, and what surrounds them: CUDA and HIP C++, kernels in strings, Numba"""


class Census(msgspec.Struct, frozen=True):
    """What a file is made of."""

    programming: Programming = Programming.PLAIN
    kernels_in: frozenset[str] = frozenset()
    """what its kernels are written in: cuda, triton, pallas, nki"""
    kernels: int = 0
    """how many it defines"""
    lines: int = 0


class RuleText(msgspec.Struct, frozen=True):
    """What an emitter may show about a rule."""

    name: str
    summary: str
    description: str
    remedy: str


class Summary(msgspec.Struct, frozen=True):
    """The counts of one run."""

    files: int = 0
    """files analysed"""
    lines: int = 0
    skipped: int = 0
    """files found and not analysed, each with a problem that says why"""
    suppressed: int = 0
    baselined: int = 0
    translated: Mapping[str, int] = {}
    """target -> uses of CUDA names that need no hand, since HIPIFY translates them for it"""
    unchecked: Mapping[str, int] = {}
    """target -> those of the files that are checked for others only, as the configuration says"""
    seconds: float = 0.0


def sums(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of several counts by name, without what is zero."""
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return {key: count for key, count in sorted(total.items()) if count}


class Shard(msgspec.Struct, frozen=True):
    """Which part of a run a report is of."""

    index: int
    """from 1 to `count`"""
    count: int
    run: str
    """a hash that the shards of one run share"""
    paths: tuple[str, ...]
    """the files and folders that the run was given"""


class Report(msgspec.Struct, frozen=True):
    """All that one run of `portlint check` has to say, in the order in which it is printed."""

    targets: tuple[str, ...]
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    summary: Summary
    rules: Mapping[str, RuleText]
    """every rule that ran, by name"""
    titles: Mapping[str, str]
    """target name -> title for people"""
    census: Mapping[str, Census] = {}
    """every file that was analysed, by path"""
    unchecked: Mapping[str, frozenset[str]] = {}
    """path -> the targets for which the configuration has the file not checked; only files that have some"""
    shard: Shard | None = None
    """None for a whole run"""

    def asks(self, rule: str, target: str, path: str) -> bool:
        """Whether a finding of this rule for this target would be known, had the file one."""
        return rule in self.rules and target in self.targets and target not in self.unchecked.get(path, ())


class FileResult(msgspec.Struct, frozen=True):
    """What the scan of one file brought; it travels from a worker to the main process."""

    path: str
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    lines: int = 0
    suppressed: int = 0
    translated: Mapping[str, int] = {}
    census: Census | None = None
    """None where it was not analysed"""
    unchecked: frozenset[str] = frozenset()
    """the targets for which the configuration has it not checked"""
    analysed: bool = True
    """False for a file that was found but could not be analysed; a problem says why"""
    content: bytes | None = None
    """what the file is to hold, where it was to be edited"""
    digest: str = ""
    """of the bytes that were scanned, where a scan measures: edits hold for these alone"""
    broken: int = 0
    """places that do not parse, where a scan measures"""
    rests_on: str = ""
    """what the result can be told from again: the "file" alone, the "tree" around it as well; "" where from no file"""
