"""One file, all hops: path -> Source -> hits -> findings. This is what a worker runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from portlint import directive
from portlint.config import Selector
from portlint.detect import RuleSet, detect, merged, under
from portlint.finding import FileResult, Finding, Problem
from portlint.judge import Judge
from portlint.rule import Hit, Rule
from portlint.source import Source, embedded
from portlint.source.census import census
from portlint.source.decode import NotText, decode, line_starts
from portlint.source.language import by_content
from portlint.source.prescan import Limits, refuse, refuse_size
from portlint.source.text import Lines
from portlint.target import Target

if TYPE_CHECKING:
    from portlint.directive import Directive
    from portlint.source.discover import Found
    from portlint.source.embedded import Embedded
    from portlint.source.notebook import Notebook

Phase = Callable[[str], None]


class Scan:
    """The rules, targets and limits of one run; called with one file after the other."""

    def __init__(
        self,
        rules: RuleSet,
        targets: tuple[Target, ...],
        limits: Limits,
        *,
        select: Sequence[Selector] = (),
        ignore: Sequence[Selector] = (),
        ignores_of: Callable[[str], Sequence[Selector]] = lambda _: (),
        content: bytes | None = None,
    ) -> None:
        self.rules = rules
        self.targets = targets
        self.limits = limits
        self.select = select
        self.ignore = ignore
        self.ignores_of = ignores_of
        """path -> the selectors that the configuration ignores there"""
        self.content = content
        """the text of the one file that comes from standard input"""

    def __call__(self, found: Found, without: frozenset[str], phase: Phase) -> FileResult:
        """The findings and problems of one file. `without` names rules to leave out, `phase` is told what runs."""
        phase("read")
        if self.content is None and (reason := refuse_size(found.size, found.kind, self.limits)):
            return _given_up(found.path, "skipped", reason)
        try:
            data = self.content if self.content is not None else _read(found.file)
        except OSError as error:
            return _given_up(found.path, "read", f"cannot be read: {error.strerror or error}")
        try:
            return self._scan(found, data, without, phase)
        except NotText as reason:
            return _given_up(found.path, "read", str(reason))

    def _scan(self, found: Found, data: bytes, without: frozenset[str], phase: Phase) -> FileResult:
        kind = found.kind
        notebook: Notebook | None = None
        if kind == "notebook":
            from portlint.source.notebook import read

            notebook = read(data)
            text, kind = notebook.text, "python"
        else:
            text = decode(data, kind).text
        language = by_content(kind, text)
        starts = line_starts(text)
        counted = census(text, language, len(starts))
        if language is None:
            return FileResult(found.path, lines=len(starts), census=counted)
        if reason := refuse(text, language, self.limits):
            return _given_up(found.path, "skipped", reason)
        commands = notebook.commands if notebook is not None else b""
        if not commands.strip() or not self.rules.may_fire(commands, "bash"):
            commands = b""
        has_kernels = language == "python" and embedded.may_hold(text) and self.rules.may_fire(text, "cuda")
        if not has_kernels and not commands and not self.rules.may_fire(text, language) and b"portlint:" not in text:
            return FileResult(found.path, lines=len(starts), census=counted)
        phase("parse")
        source, lines = (
            Source(found.path, text, language, found.file),
            Lines(notebook.shown if notebook else text, starts),
        )
        judge = Judge(source, lines)
        kernels, problems = self._kernels(source, lines) if has_kernels else ([], [])
        if commands:
            kernels.append(embedded.Embedded(Source(found.path, commands, "bash", found.file), ()))
        findings, more = self._findings(source, kernels, judge, without, phase)
        problems += more
        if notebook is not None:
            problems += [_unread(found.path, cell) for cell in notebook.unread_cells]
            findings = [_in_notebook(finding, notebook) for finding in findings]
        sources = [source, *(one.source for one in kernels)]
        result = self._directed(sources, lines, findings, problems)
        hashed = _hashed(result.findings, data) if result.findings else ()
        return msgspec.structs.replace(result, findings=hashed, translated=dict(judge.translated), census=counted)

    def _kernels(self, source: Source, lines: Lines) -> tuple[list[Embedded], list[Problem]]:
        """The kernels inside the strings of a Python file that are fit to be analysed, and why the others are not."""
        found, cut_off = embedded.kernels(source)
        fit: list[Embedded] = []
        problems: list[Problem] = []
        for one in found:
            if (reason := refuse(one.source.text, "cuda", self.limits)) is None:
                fit.append(one)
            else:
                line, _ = lines.position(one.source.offset)
                problems.append(Problem(source.path, line, "parse", f"the kernel in this string is left out: {reason}"))
        if cut_off:
            problems.append(Problem(source.path, 0, "parse", "too many kernels in strings: some are left out"))
        return fit, problems

    def _findings(
        self, source: Source, kernels: list[Embedded], judge: Judge, without: frozenset[str], phase: Phase
    ) -> tuple[list[Finding], list[Problem]]:
        hits, exceeded = detect(source, self.rules, without, phase)
        for kernel in kernels:
            phase("parse")
            inner, cut_off = detect(kernel.source, self.rules, without, phase)
            hits += under(kernel.guards, inner)
            exceeded = exceeded or cut_off
        unique: dict[tuple[object, ...], Finding] = {}
        for rule, hit in sorted(merged(hits) if kernels else hits, key=_order):
            phase(rule.name)
            for finding in judge.judge(rule, hit, self.targets):
                if self._wanted(finding):
                    unique.setdefault(finding.order, finding)
        problems = []
        if exceeded:
            problems.append(Problem(source.path, 0, "parse", "too many syntax matches: some findings may be missing"))
        return list(unique.values()), problems

    def _wanted(self, finding: Finding) -> bool:
        selected = not self.select or any(one.matches(finding.rule, finding.target) for one in self.select)
        ignored = [*self.ignore, *self.ignores_of(finding.path)]
        return selected and not any(one.matches(finding.rule, finding.target) for one in ignored)

    def _directed(
        self, sources: list[Source], lines: Lines, findings: list[Finding], problems: list[Problem]
    ) -> FileResult:
        """The result of a file, given as its own source and the kernels in its strings."""
        path = sources[0].path
        directives: dict[Directive, None] = {}
        refused: dict[Problem, None] = {}
        for source in sources:  # a text that two kernels share is read twice, and counts once
            own, unread = directive.read(source, lines)
            directives.update(dict.fromkeys(own))
            refused.update(dict.fromkeys(unread))
        targets = frozenset(target.name for target in self.targets)
        rules = frozenset(rule.name for rule in self.rules.rules)
        kept, suppressed, unused = directive.apply(findings, list(directives), path, targets, rules)
        return FileResult(
            path,
            tuple(sorted(kept, key=lambda finding: finding.order)),
            tuple(sorted([*problems, *refused, *unused])),
            len(lines),
            suppressed,
        )


def _order(owned: tuple[Rule, Hit]) -> tuple[int, int, str]:
    rule, hit = owned
    start = hit.node.source.offset + hit.node.start
    return start, start + hit.node.end - hit.node.start, rule.name


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _given_up(path: str, kind: str, message: str) -> FileResult:
    return FileResult(path, problems=(Problem(path, 0, kind, message),), analysed=False)


def _unread(path: str, cell: int) -> Problem:
    return Problem(path, 0, "parse", f"cell {cell} is left out: it opens a bracket or a quote that never closes")


def _hashed(findings: Sequence[Finding], data: bytes) -> tuple[Finding, ...]:
    """The findings with the hashes of their lines in the file as it is stored."""
    from portlint.source.line_hash import line_hashes

    hashes = line_hashes(data, (finding.line for finding in findings))
    return tuple(msgspec.structs.replace(finding, line_hash=hashes.get(finding.line, "")) for finding in findings)


def _in_notebook(finding: Finding, notebook: Notebook) -> Finding:
    """The finding with its lines in the .ipynb file, and the cell where a person would look."""
    first, last = notebook.place(finding.line), notebook.place(finding.end_line)
    return msgspec.structs.replace(
        finding,
        line=first.line,
        column=finding.column + first.column_shift,
        end_line=last.line,
        end_column=finding.end_column + last.column_shift,
        cell=first.cell,
        cell_line=first.cell_line,
    )
