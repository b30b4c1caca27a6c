"""The project's own fixtures, read as `portlint.annotated` reads those of anybody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from portlint.annotated import PANEL, Expectation, Fixture, compare, read, scan
from portlint.detect import RuleSet
from portlint.examples import IS_FIXED, strip
from portlint.finding import FileResult, Finding, Problem, Verdict
from portlint.fix import Change, mended
from portlint.rule import Rule
from portlint.rules import discover
from portlint.scan import Scan
from portlint.source.discover import Found
from portlint.source.language import by_name
from portlint.source.prescan import Limits
from portlint.target import Target, load

__all__ = [
    "FIXTURES",
    "PANEL",
    "ROOT",
    "Expectation",
    "Fixture",
    "compare",
    "fixtures",
    "name",
    "read",
    "rules",
    "scan",
]

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"


def name(fixture: Fixture) -> str:
    """Its path below `fixtures/`."""
    return fixture.path.relative_to(FIXTURES).as_posix()


@cache
def fixtures() -> tuple[Fixture, ...]:
    """Every rule fixture; `fixtures/demo` is a project, not a fixture of a rule."""
    paths = [path for path in sorted(FIXTURES.glob("*/*/*")) if path.is_file() and not IS_FIXED.search(path.name)]
    return tuple(read(path) for path in paths if FIXTURES / "demo" not in path.parents)


def counted(result: FileResult) -> list[Finding]:
    """The findings that count; nothing of the file may have been left out."""
    assert not [problem for problem in result.problems if problem.kind != "directive"], result.problems
    return [finding for finding in result.findings if finding.verdict is not Verdict.UNKNOWN]


def measure(path: Path, rules: Iterable[Rule], content: bytes, targets: Iterable[str] = PANEL) -> FileResult:
    """The scan of a file as if it had this content."""
    rule_set = _rule_set(tuple(rules))
    one = Scan(rule_set, _machines(tuple(targets)), Limits(), contents={str(path): content}, measures=True)
    return one(_found(path, content), frozenset(), lambda _: None)


def change_of(
    path: Path, rules: Iterable[Rule], content: bytes, *, unsafe: bool, targets: Iterable[str] = PANEL
) -> tuple[Change | None, tuple[Problem, ...]]:
    """What the fixes of these rules make of a file that has this content, and why they leave it alone."""
    rule_set, machines = _rule_set(tuple(rules)), _machines(tuple(targets))

    def scan(files: Iterable[Found], contents: Mapping[str, bytes]) -> list[FileResult]:
        one = Scan(rule_set, machines, Limits(), contents=contents, measures=True)
        return [one(file, frozenset(), lambda _: None) for file in files]

    file = _found(path, content)
    first = scan([file], {file.file: content})
    changes, problems = mended([file], first, scan, lambda _: content, unsafe=unsafe)
    return next(iter(changes), None), problems


def fixed(path: Path, rules: Sequence[Rule], *, unsafe: bool, content: bytes | None = None) -> bytes:
    """What the fixes of these rules make of a file; there is nothing that they leave alone."""
    text = path.read_bytes() if content is None else content
    change, problems = change_of(path, rules, text, unsafe=unsafe)
    assert not problems
    return text if change is None else change.after


def _found(path: Path, content: bytes) -> Found:
    return Found(path=path.name, file=str(path), size=len(content), kind=by_name(path.name) or "")


@lru_cache(maxsize=8)
def _rule_set(rules: tuple[Rule, ...]) -> RuleSet:
    """Rules with their queries, which take half a second to compile."""
    return RuleSet(rules)


@cache
def _machines(names: tuple[str, ...]) -> tuple[Target, ...]:
    return tuple(load(name) for name in names)


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


def rules() -> dict[str, Rule]:
    """Every rule, by name."""
    return dict(discover())
