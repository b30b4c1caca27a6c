"""Reads annotated fixtures and runs rules over them, through the same `Scan` that the command line uses.

In a fixture a comment on a line says what must be found there:

    expect[lanes/warp-is-32 @ cdna3 cdna4]   found for exactly these of the PANEL's targets
    expect[lanes/warp-is-32]                 found for at least one of them
    gap[lanes/warp-is-32 @ cdna3]            not found yet although it is true; fails once it is found

On a line of its own it speaks of the line below, for formats in which no comment can follow code.
A comment line of carets below asserts the columns of the finding above it. Every line without an annotation must be
silent for every target of the panel.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec

from portlint.detect import RuleSet
from portlint.examples import IS_FIXED, strip
from portlint.finding import FileResult, Finding, Verdict
from portlint.fix import MOST_ROUNDS, choose, is_wanted, rewrite
from portlint.rule import Rule
from portlint.rules import discover
from portlint.scan import Scan
from portlint.source.discover import Found
from portlint.source.language import by_name
from portlint.source.prescan import Limits
from portlint.target import load

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
PANEL = (
    "hopper", "blackwell", "blackwell-rtx", "cdna3", "cdna4", "rdna3", "rdna4", "tpu-v6e", "trainium2", "gaudi3", "mps",
    "cpu",
)  # fmt: skip

_ANNOTATION = re.compile(r"\b(expect|gap)\[([a-z-]+/[a-z0-9-]+)(?:\s*@\s*([a-z0-9 .-]+))?\]")
_ALONE = re.compile(r"^\s*(?://|#)\s*(?:expect|gap)\[")
_CARETS = re.compile(r"^\s*(?://|#)\s*(?P<carets>\^+)\s*$")


class Expectation(msgspec.Struct, frozen=True):
    """What an annotation says of its line."""

    verb: str
    line: int
    rule: str
    targets: frozenset[str]
    """empty for "at least one" """
    columns: tuple[int, int] | None = None


class Fixture(msgspec.Struct, frozen=True):
    """One fixture file."""

    path: Path
    expectations: tuple[Expectation, ...]

    @property
    def rule(self) -> str:
        """The rule whose folder it is in."""
        return f"{self.path.parent.parent.name}/{self.path.parent.name.replace('_', '-')}"

    @property
    def name(self) -> str:
        """Its path below `fixtures/`."""
        return self.path.relative_to(FIXTURES).as_posix()

    def expected(self, verb: str = "expect") -> dict[tuple[str, int], Expectation]:
        """(rule, line) -> annotation."""
        return {(one.rule, one.line): one for one in self.expectations if one.verb == verb}


@cache
def fixtures() -> tuple[Fixture, ...]:
    """Every rule fixture; `fixtures/demo` is a project, not a fixture of a rule."""
    paths = [path for path in sorted(FIXTURES.glob("*/*/*")) if path.is_file() and not IS_FIXED.search(path.name)]
    return tuple(read(path) for path in paths if FIXTURES / "demo" not in path.parents)


def read(path: Path) -> Fixture:
    """A fixture with its annotations."""
    found: list[Expectation] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, text in enumerate(lines, start=1):
        line = number + 1 if _ALONE.match(text) else number
        for verb, rule, targets in _ANNOTATION.findall(text):
            columns = _carets(lines[line]) if line < len(lines) else None
            found.append(Expectation(verb, line, rule, frozenset(targets.split()), columns))
    return Fixture(path, tuple(found))


def _carets(text: str) -> tuple[int, int] | None:
    match = _CARETS.match(text)
    return (match.start("carets") + 1, match.end("carets") + 1) if match else None


def scan(path: Path, rules: Iterable[Rule], targets: Iterable[str] = PANEL) -> list[Finding]:
    """The findings in a file that count: breaks, corrupts or degrades."""
    return counted(measure(path, rules, path.read_bytes(), targets))


def counted(result: FileResult) -> list[Finding]:
    """The findings that count; nothing of the file may have been left out."""
    assert not [problem for problem in result.problems if problem.kind != "directive"], result.problems
    return [finding for finding in result.findings if finding.verdict is not Verdict.UNKNOWN]


def measure(path: Path, rules: Iterable[Rule], content: bytes, targets: Iterable[str] = PANEL) -> FileResult:
    """The scan of a file as if it had this content."""
    found = Found(path=path.name, file=str(path), size=len(content), kind=by_name(path.name) or "")
    machines = tuple(load(name) for name in targets)
    one = Scan(RuleSet(rules), machines, Limits(), contents={str(path): content}, measures=True)
    return one(found, frozenset(), lambda _: None)


def fixed(path: Path, rules: Sequence[Rule], *, unsafe: bool, content: bytes | None = None) -> bytes:
    """What the fixes of these rules make of a file."""
    text = path.read_bytes() if content is None else content
    for _ in range(MOST_ROUNDS):
        findings = counted(measure(path, rules, text))
        edits, _ = choose(one for one in findings if is_wanted(one, unsafe=unsafe))
        if not edits:
            return text
        text = rewrite(text, by_name(path.name) or "", edits)
    raise AssertionError(f"{path} has fixes left after {MOST_ROUNDS} rounds")


def fixed_name(name: str, *, unsafe: bool) -> str:
    """The fixture that shows what `--fix` makes of another, with `--unsafe-fixes` or without."""
    stem, dot, ending = name.partition(".")
    return f"{stem}.{'unsafe_fixed' if unsafe else 'fixed'}{dot}{ending}"


def shown_fixes(path: Path, rules: Sequence[Rule]) -> dict[str, str]:
    """The fixtures that belong beside another one: name -> text. Annotations are left out, they are of the original."""
    shown: dict[str, str] = {}
    before = path.read_bytes()
    for unsafe in (False, True):
        after = fixed(path, rules, unsafe=unsafe)
        if after != before:
            shown[fixed_name(path.name, unsafe=unsafe)] = strip(after.decode())
        before = after
    return shown


def compare(fixture: Fixture, findings: Iterable[Finding]) -> list[str]:
    """What the findings and the annotations of a fixture disagree about, in words."""
    by_place: dict[tuple[str, int], list[Finding]] = defaultdict(list)
    for finding in findings:
        by_place[finding.rule, finding.line].append(finding)
    expected, gaps = fixture.expected(), fixture.expected("gap")
    wrong = []
    for key, annotation in expected.items():
        targets = {finding.target for finding in by_place.get(key, ())}
        if not targets or (annotation.targets and targets != annotation.targets):
            wanted = " ".join(sorted(annotation.targets)) or "some target"
            wrong.append(
                f"line {key[1]}: {key[0]} wanted for {wanted}, found for {' '.join(sorted(targets)) or 'none'}"
            )
        for finding in by_place.get(key, ()):
            if annotation.columns and (finding.column, finding.end_column) != annotation.columns:
                wrong.append(
                    f"line {key[1]}: columns {finding.column}-{finding.end_column}, wanted {annotation.columns}"
                )
    for key, annotation in gaps.items():
        if {finding.target for finding in by_place.get(key, ())} & (annotation.targets or set(PANEL)):
            wrong.append(f"line {key[1]}: the gap {key[0]} is closed: turn it into expect[...]")
    for (rule, line), extra in by_place.items():
        if (rule, line) not in expected and (rule, line) not in gaps:
            wrong.append(f"line {line}: unexpected {rule} for {' '.join(sorted({one.target for one in extra}))}")
    return wrong


def rules() -> dict[str, Rule]:
    """Every rule, by name."""
    return dict(discover())
