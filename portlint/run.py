"""A whole run: paths -> report. The command line, tests and editors all come in here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING

import msgspec

from portlint import __version__
from portlint.detect import FEW_FILES, RuleSet
from portlint.directive import Names
from portlint.finding import FileResult, Problem, Report, RuleText, Shard, Summary, sums
from portlint.judge import is_moot
from portlint.naming import declare
from portlint.rules import configure
from portlint.rules import discover as discover_rules
from portlint.scan import Scan
from portlint.source.prescan import Limits
from portlint.source.recipe import LANGUAGES

if TYPE_CHECKING:
    from portlint.cache import Cache
    from portlint.changed import Changed
    from portlint.config import Config, Selector
    from portlint.rule import Rule
    from portlint.source.discover import Found
    from portlint.target import Target

Progress = Callable[[int, int], None]

_SETS_OF_RULES = 4
READ = frozenset(("python", "notebook", "cuda", "cxx?", "cmake", "", *LANGUAGES))
"""the kinds of file that some rule reads; others are not portlint's business"""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to check, and for which targets."""

    paths: tuple[str, ...]
    targets: tuple[Target, ...]
    config: Config
    select: tuple[Selector, ...] = ()
    ignore: tuple[Selector, ...] = ()
    exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    stdin: tuple[str, bytes] | None = None
    """name and content of the one file that comes from standard input, instead of `paths`"""
    jobs: int | None = None
    """worker processes; None for one per core"""
    shard: tuple[int, int] | None = None
    """which part of the files to check, and of how many; None for all"""
    changed: Changed | None = None
    """only files that differ, if this is given"""

    def asks(self, rule: str, target: str, path: str) -> bool:
        """Whether a finding of this rule for this target would be reported in that file."""
        selected = not self.select or any(one.matches(rule, target) for one in self.select)
        ignored = (*self.ignore, *self.config.file_ignores(path))
        judged = any(one.name == target for one in self.targets) and self.config.is_for(path, target)
        return judged and selected and not any(one.matches(rule, target) for one in ignored)


def run(request: Request, progress: Progress | None = None, cache: Cache | None = None) -> Report:
    """Check everything that a request names; what `cache` knows is not analysed again.

    Raises MissingPath for a path that is not there. Whatever goes wrong inside a file becomes a problem of the report.
    """
    from portlint import engine

    started = time.monotonic()
    tasks, problems = tasks_of(request)
    shard: Shard | None = None
    if request.shard is not None:
        from portlint.shard import identity, part

        index, count = request.shard
        shard = Shard(index, count, identity(request, tasks, __version__), request.paths)
        tasks, problems = part(tasks, index, count), problems if index == 1 else ()
    scan = scanner(request)
    known = cache.known(tasks, request, scan.rules.rules) if cache is not None and request.stdin is None else []
    left = [found for found, result in zip_longest(tasks, known) if result is None]
    jobs = max(1, min(request.jobs or cores(), len(left)))
    if len(left) > FEW_FILES * jobs:
        scan.rules.compile({found.kind for found in left})
    results = engine.run(left, scan, jobs=jobs, limits=scan.limits, progress=progress)
    if cache is not None and left and request.stdin is None:
        cache.keep(left, results)
    results += [result for result in known if result is not None]
    report = report_of(request, results, problems, scan.rules.rules, time.monotonic() - started)
    return msgspec.structs.replace(report, shard=shard)


def prepare(request: Request) -> tuple[Sequence[Found], Scan]:
    """The files that a request names, and what is done with each."""
    return tasks_of(request)[0], scanner(request)


def tasks_of(request: Request) -> tuple[Sequence[Found], Sequence[Problem]]:
    """The files that a request names, and what cannot be found of it."""
    from portlint.source.discover import Found, discover
    from portlint.source.language import by_name

    if request.stdin is not None:
        name, content = request.stdin
        return [Found(path=name, file=name, size=len(content), kind=by_name(name) or "")], ()
    discovery = discover(
        request.paths,
        exclude=(*request.config.excluded, *request.exclude),
        force_exclude=request.force_exclude,
        root=request.config.root,
        only=None if request.changed is None else request.changed.folders(),
    )
    tasks = [found for found in discovery.found if found.kind in READ]
    if request.changed is not None:
        tasks = [found for found in tasks if request.changed.has_file(found.path)]
    return tasks, discovery.problems


def scanner(request: Request, contents: Mapping[str, bytes] = {}, *, measures: bool = False) -> Scan:
    """What a run does with each file. `contents` are read in place of what is on the disk.

    What the configuration says of macros and of options holds from here on, also in workers, until the next call.
    """
    declare(request.config.meanings)
    configure(request.config.rules)
    selected = [rule for name, rule in discover_rules().items() if _is_selected(name, request)]
    return Scan(
        _rule_set(tuple(rule for rule in selected if not all(is_moot(rule, target) for target in request.targets))),
        request.targets,
        Limits(),
        select=request.select,
        ignore=request.ignore,
        ignores_of=request.config.file_ignores,
        is_for=request.config.is_for,
        contents=contents if request.stdin is None else {request.stdin[0]: request.stdin[1], **contents},
        measures=measures,
        require_reason=request.config.require_reason,
        names=names(request),
    )


@lru_cache(maxsize=_SETS_OF_RULES)
def _rule_set(rules: tuple[Rule, ...]) -> RuleSet:
    """The same object for the same rules, so that a process that runs again has the queries at hand."""
    return RuleSet(rules)


def names(request: Request) -> Names:
    """What the suppression comments of a run may speak of: all that there is, not only what the run is for."""
    from portlint.settings import target_names

    return Names(frozenset(discover_rules()), target_names(request.config, request.targets))


def _is_selected(name: str, request: Request) -> bool:
    """Whether any target can get findings of this rule; the finer choice is made for each finding."""
    targets = [target.name for target in request.targets]
    return any(
        (not request.select or any(one.matches(name, target) for one in request.select))
        and not any(one.matches(name, target) for one in request.ignore)
        for target in targets
    )


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def report_of(
    request: Request, results: list[FileResult], problems: Sequence[Problem], rules: Sequence[Rule], seconds: float
) -> Report:
    """The report of a run, from what the scan of each file brought."""
    findings = sorted((finding for result in results for finding in result.findings), key=lambda one: one.order)
    all_problems = sorted([*problems, *(problem for result in results for problem in result.problems)])
    checked = [result for result in results if len(result.unchecked) < len(request.targets)]
    summary = Summary(
        files=sum(result.analysed for result in checked),
        lines=sum(result.lines for result in results),
        skipped=len(problems) + sum(not result.analysed for result in results),
        suppressed=sum(result.suppressed for result in results),
        translated=sums(result.translated for result in results),
        unchecked=sums(dict.fromkeys(result.unchecked, int(result.analysed)) for result in checked),
        seconds=seconds,
    )
    return Report(
        targets=tuple(target.name for target in request.targets),
        findings=tuple(findings),
        problems=tuple(all_problems),
        summary=summary,
        rules={rule.name: describe(rule) for rule in rules},
        titles={target.name: target.title for target in request.targets},
        census={one.path: one.census for one in sorted(results, key=lambda one: one.path) if one.census is not None},
        unchecked={one.path: one.unchecked for one in sorted(results, key=lambda one: one.path) if one.unchecked},
    )


@cache
def describe(rule: Rule) -> RuleText:
    """A rule's documentation as emitters show it."""
    summary, _, description = rule.doc.strip().partition("\n\n")
    return RuleText(rule.name, " ".join(summary.split()), description.strip(), rule.remedy["*"])
