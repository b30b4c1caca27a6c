"""One file, all hops: path -> Source -> hits -> findings. This is what a worker runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING

import msgspec

from portlint import day, directive
from portlint.config import Selector
from portlint.detect import RuleSet, detect, merged, under
from portlint.files import read_regular
from portlint.finding import Edit, FileResult, Finding, Problem
from portlint.judge import Judge
from portlint.regex import regex
from portlint.rule import Hit, Rule
from portlint.source import Source, embedded, nearby
from portlint.source.census import census
from portlint.source.decode import NotText, decode, line_starts
from portlint.source.grammar import broken_places
from portlint.source.language import by_content
from portlint.source.prescan import Limits, refuse, refuse_size
from portlint.source.text import Lines
from portlint.target import Target

if TYPE_CHECKING:
    from datetime import date

    from portlint.source.decode import Decoded
    from portlint.source.discover import Found
    from portlint.source.embedded import Embedded
    from portlint.source.notebook import Notebook

Phase = Callable[[str], None]

_OPENED = regex(rb'([ \t]*)"(?:[^"\\\n]|\\.)*')
"""a line of JSON up to a place in the first string on it"""


class Examined(msgspec.Struct, frozen=True):
    """The result of a file, with what it was made from where the file was analysed."""

    result: FileResult
    source: Source | None = None
    lines: Lines | None = None
    data: bytes = b""
    decoded: Decoded | None = None
    """None for a notebook"""
    applied: directive.Applied | None = None


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
        is_for: Callable[[str, str], bool] = lambda *_: True,
        contents: Mapping[str, bytes] = {},
        measures: bool = False,
        today: date | None = None,
        require_reason: bool = False,
        names: directive.Names | None = None,
    ) -> None:
        self.rules = rules
        self.targets = targets
        self.limits = limits
        self.select = select
        self.ignore = ignore
        self.ignores_of = ignores_of
        """path -> the selectors that the configuration ignores there"""
        self.is_for = is_for
        """path, target -> whether the configuration has the file checked for the target"""
        self.contents = contents
        """file -> its bytes, instead of those on the disk: standard input, and drafts of fixes"""
        self.measures = measures
        """whether results say what was scanned and how much of it does not parse, for those who change files"""
        self.terms = directive.Terms(
            frozenset(rule.name for rule in rules.rules),
            frozenset(target.name for target in targets),
            today or day.today(),
            not select,
            require_reason,
            names,
        )

    def __call__(self, found: Found, without: frozenset[str], phase: Phase) -> FileResult:
        """The findings and problems of one file. `without` names rules to leave out, `phase` is told what runs."""
        examined = self.examine(found, without, phase)
        if examined.source is not None:
            examined.source.close()
        return examined.result

    def examine(self, found: Found, without: frozenset[str], phase: Phase, edited: bytes | None = None) -> Examined:
        """The findings and problems of one file, and what they rest on. `edited` stands in for what the file holds."""
        unchecked = frozenset(one.name for one in self.targets if not self.is_for(found.path, one.name))
        if unchecked:
            examined = self._without(unchecked)._examine(found, without, phase, edited)
            return msgspec.structs.replace(examined, result=_unchecked(examined.result, unchecked, self.targets))
        return self._examine(found, without, phase, edited)

    def _without(self, unchecked: frozenset[str]) -> Scan:
        """The same for fewer targets."""
        narrowed = copy(self)
        narrowed.targets = tuple(one for one in self.targets if one.name not in unchecked)
        narrowed.terms = msgspec.structs.replace(self.terms, targets=self.terms.targets - unchecked)
        return narrowed

    def _examine(self, found: Found, without: frozenset[str], phase: Phase, edited: bytes | None) -> Examined:
        phase("read")
        nearby.begin(found.file)
        content = edited or self.contents.get(found.file)
        if content is None and (reason := refuse_size(found.size, found.kind, self.limits)):
            return Examined(_given_up(found.path, "skipped", reason))
        try:
            data = content if content is not None else read_regular(found.file, self.limits.most_bytes(found.kind) + 1)
        except OSError as error:
            return Examined(_given_up(found.path, "read", f"cannot be read: {error.strerror or error}"))
        if content is None and (reason := refuse_size(len(data), found.kind, self.limits)):
            return Examined(_given_up(found.path, "skipped", f"it grew while it was read: {reason}"))
        try:
            examined = self._scan(found, data, without, phase)
        except NotText as reason:
            return Examined(_given_up(found.path, "read", str(reason)))
        if not self.measures:
            return examined
        return msgspec.structs.replace(examined, result=msgspec.structs.replace(examined.result, digest=digest(data)))

    def _scan(self, found: Found, data: bytes, without: frozenset[str], phase: Phase) -> Examined:
        kind = found.kind
        notebook: Notebook | None = None
        decoded: Decoded | None = None
        if kind == "notebook":
            from portlint.source.notebook import read

            notebook = read(data)
            text, kind = notebook.text, "python"
        else:
            decoded = decode(data, kind)
            text = decoded.text
        language = by_content(kind, text)
        if language is not None and (reason := refuse(text, language, self.limits)):
            return Examined(_given_up(found.path, "skipped", reason))
        starts = line_starts(text)
        counted = census(text, language, len(starts))
        if language is None or not self.targets:
            return Examined(FileResult(found.path, lines=len(starts), census=counted, rests_on="file"))
        commands = notebook.commands if notebook is not None else b""
        if not commands.strip() or not self.rules.may_fire(commands, "bash"):
            commands = b""
        has_kernels = language == "python" and embedded.may_hold(text) and self.rules.may_fire(text, "cuda")
        may_say = has_kernels or commands or self.rules.may_fire(text, language) or b"portlint:" in text
        is_draft = self.measures and found.file in self.contents  # it has to parse, even if nothing is found any more
        if not may_say and not is_draft:
            return Examined(FileResult(found.path, lines=len(starts), census=counted, rests_on="file"))
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
        sources = [source, *(one.source for one in kernels)]
        applied, refused = self._directed(sources, lines, findings)
        kept = [finding for finding in applied.kept if self._wanted(finding)]
        more = [*refused, *applied.problems]
        if notebook is not None:
            problems += [_unread(found.path, cell) for cell in notebook.unread_cells]
            in_file = Lines(notebook.file, line_starts(notebook.file))
            kept = [_in_notebook(finding, notebook, in_file) for finding in kept]
            more = [msgspec.structs.replace(one, line=notebook.place(one.line).line) for one in more]
        result = FileResult(
            found.path,
            _hashed(tuple(sorted(kept, key=lambda finding: finding.order)), data),
            tuple(sorted([*problems, *more])),
            len(lines),
            sum(map(self._wanted, applied.suppressed)),
            dict(judge.translated),
            counted,
            broken=broken_places(source.tree) if self.measures else 0,
            rests_on="" if directive.may_expire(text) else nearby.rests_on(),
        )
        for one in kernels:
            one.source.close()
        return Examined(result, source, lines, data, decoded, applied)

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
        self, sources: list[Source], lines: Lines, findings: list[Finding]
    ) -> tuple[directive.Applied, list[Problem]]:
        """What the directives of a file do, given its own source and the kernels in its strings; and broken ones."""
        directives: dict[directive.Directive, None] = {}
        refused: dict[Problem, None] = {}
        for source in sources:  # a text that two kernels share is read twice, and counts once
            own, unread = directive.read(source, lines, self.terms.names)
            directives.update(dict.fromkeys(own))
            refused.update(dict.fromkeys(unread))
        return directive.apply(findings, list(directives), sources[0].path, self.terms), list(refused)


def _order(owned: tuple[Rule, Hit]) -> tuple[int, int, str]:
    rule, hit = owned
    start = hit.node.source.offset + hit.node.start
    return start, start + hit.node.end - hit.node.start, rule.name


def digest(data: bytes) -> str:
    """What tells the bytes of a file from those of any other."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _unchecked(result: FileResult, unchecked: frozenset[str], targets: Sequence[Target]) -> FileResult:
    """The result of a file that is not checked for some targets; where none is left, it has no problems either."""
    if len(unchecked) < len(targets):
        return msgspec.structs.replace(result, unchecked=unchecked)
    return FileResult(result.path, census=result.census, unchecked=unchecked)


def _given_up(path: str, kind: str, message: str) -> FileResult:
    return FileResult(path, problems=(Problem(path, 0, kind, message),), analysed=False)


def _unread(path: str, cell: int) -> Problem:
    return Problem(path, 0, "parse", f"cell {cell} is left out: it opens a bracket or a quote that never closes")


def _hashed(findings: Sequence[Finding], data: bytes) -> tuple[Finding, ...]:
    """The findings with the hashes of their lines in the file as it is stored."""
    if not findings:
        return ()
    from portlint.source.line_hash import line_hashes

    hashes = line_hashes(data, (finding.line for finding in findings))
    return tuple(msgspec.structs.replace(finding, line_hash=hashes.get(finding.line, "")) for finding in findings)


def _edits_in_notebook(edits: tuple[Edit, ...], notebook: Notebook, lines: Lines) -> tuple[Edit, ...]:
    """The edits in the JSON of a notebook; none where one of them is not inside one string."""
    placed: list[Edit] = []
    for edit in edits:
        span = notebook.span(edit.start, edit.end)
        if span is None:
            return ()
        encoded = (msgspec.json.encode(line)[1:-1].decode() for line in edit.text.split("\n"))
        text = f"\\n{_next_string(lines, span[0])}".join(encoded)
        placed.append(Edit(*span, text, *lines.position(span[0]), *lines.position(span[1])))
    return tuple(placed)


def _next_string(lines: Lines, offset: int) -> str:
    """What ends a string and begins the next in the JSON of a notebook, where each line of a cell is one on its own."""
    first = lines.starts[lines.position(offset)[0] - 1]
    opened = _OPENED.fullmatch(lines.text, first, offset)
    end = lines.text.find(b"\n", offset)
    line_end = "\r\n" if lines.text[end - 1 : end] == b"\r" else "\n"
    return f'",{line_end}{opened[1].decode()}"' if opened else ""


def _in_notebook(finding: Finding, notebook: Notebook, lines: Lines) -> Finding:
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
        edits=_edits_in_notebook(finding.edits, notebook, lines),
    )
