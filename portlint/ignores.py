"""Suppression comments, written into files and taken out of them.

Only comments are added and removed. Each file that was edited is read once more before it is written: its tokens have
to be the same, and its findings those that were to be left. Where that fails, or where no comment can stand (in a
notebook, or where the code goes on in a string), the file stays as it is, and a problem says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from portlint.files import replace
from portlint.finding import FileResult, Finding, Problem, Report
from portlint.mistake import Mistake
from portlint.regex import regex
from portlint.source.node import Node

if TYPE_CHECKING:
    import tree_sitter

    from portlint.directive import Directive
    from portlint.run import Progress, Request
    from portlint.scan import Examined, Phase, Scan
    from portlint.source import Source
    from portlint.source.discover import Found
    from portlint.source.text import Lines

_LONGEST_LINE = 120
"""where a comment would make a line longer, it stands above it"""
_MARKS = {"cuda": "//"}
"""what starts a comment, where that is not `#`"""
_NO_COMMENT_BEHIND = frozenset(("dockerfile",))
_COMMENTS = frozenset(("comment", "line_comment", "bracket_comment"))
_TEXTS = regex(r"string|heredoc|scalar|quoted|bracket_argument")
"""names of nodes inside which the text is no code, whatever nodes they hold"""
_MOST_ROUNDS = 50
"""directives that are taken out of one comment"""

Edit = tuple[int, int, str]
"""replace the bytes from the first to the second offset of the text"""
Order = tuple[str, int, int, int, int, str, str]


class ReasonError(Mistake):
    """A reason that cannot stand in a comment."""


class Outcome(msgspec.Struct, frozen=True):
    """What became of the files."""

    edited: tuple[str, ...]
    problems: tuple[Problem, ...]
    """for each file that could not be edited, why"""


def add(request: Request, report: Report, reason: str, progress: Progress | None = None) -> Outcome:
    """Write a comment for each finding of a report into its file. Raises ReasonError."""
    if not reason.strip() or not reason.isprintable() or reason.rstrip().endswith("\\") or "portlint:" in reason:
        raise ReasonError(f"'{reason}' is no reason that can stand in a comment: write a few words on one line")
    wanted: dict[str, set[Order]] = defaultdict(set)
    for finding in report.findings:
        wanted[finding.path].add(finding.order)
    return _edited(request, _Adding(wanted, reason.strip()), progress)


def remove_unused(request: Request, report: Report, progress: Progress | None = None) -> Outcome:
    """Take the comments out that suppress nothing, in the files of a report."""
    paths = {problem.path for problem in report.problems if problem.kind == "directive"}
    return _edited(request, _Removing(paths), progress)


def _edited(request: Request, job: _Job, progress: Progress | None) -> Outcome:
    from portlint import engine
    from portlint.run import cores, prepare

    tasks, scan = prepare(request)
    job.scan = scan
    chosen = [found for found in tasks if found.path in job.paths]
    jobs = request.jobs or cores()
    results = engine.run(chosen, job, jobs=max(1, min(jobs, len(chosen))), limits=scan.limits, progress=progress)
    files = {found.path: found.file for found in chosen}
    edited: list[str] = []
    problems = [problem for result in results for problem in result.problems]
    for result in results:
        if result.content is not None:
            try:
                replace(Path(files[result.path]), result.content)
                edited.append(result.path)
            except OSError as error:
                problems.append(Problem(result.path, 0, "directive", f"cannot be written: {error.strerror}"))
    return Outcome(tuple(edited), tuple(sorted(problems)))


# ---- one file -------------------------------------------------------------------------------------------------------


class _Job:
    """What a worker does with one file."""

    scan: Scan
    paths: Iterable[str]

    def __call__(self, found: Found, without: frozenset[str], phase: Phase) -> FileResult:
        examined = self.scan.examine(found, without, phase)
        if examined.source is None or examined.lines is None:
            return FileResult(found.path)
        if examined.decoded is None:
            return self.refused(found.path, "comments are not written into notebooks")
        return self.edit(found, examined, without, phase)

    def edit(self, found: Found, examined: Examined, without: frozenset[str], phase: Phase) -> FileResult:
        """The file as it is to be, or why it stays as it is."""
        raise NotImplementedError

    def refused(self, path: str, reason: str, line: int = 0) -> FileResult:
        """A file that stays as it is."""
        return FileResult(path, problems=(Problem(path, line, "directive", f"not edited: {reason}"),))


class _Adding(_Job):
    def __init__(self, wanted: Mapping[str, set[Order]], reason: str) -> None:
        self.paths = wanted.keys()
        self.wanted = wanted
        self.reason = reason

    def edit(self, found: Found, examined: Examined, without: frozenset[str], phase: Phase) -> FileResult:
        """Comments for the findings that are wanted."""
        source, lines = _known(examined)
        chosen = [one for one in examined.result.findings if one.order in self.wanted[found.path]]
        selectors: dict[int, dict[str, None]] = defaultdict(dict)
        for finding in chosen:
            selectors[finding.line][f"{finding.rule} @ {finding.target}"] = None
        edits: list[Edit] = []
        for line, names in sorted(selectors.items()):
            mark = _MARKS.get(source.language, "#")
            edit = _placed(source, lines, line, f"{mark} portlint: ignore[{', '.join(sorted(names))}] {self.reason}")
            if edit is None:
                return self.refused(found.path, "no comment can stand at this finding", line)
            edits.append(edit)
        if not edits:
            return FileResult(found.path)
        content = _rewritten(examined, edits)
        after = None if content is None else self.scan.examine(found, without, phase, content)
        rest = Counter(map(_name, examined.result.findings))
        rest.subtract(map(_name, chosen))
        if content is None or after is None or not _is_same(examined, after) or +rest != _names(after):
            return self.refused(found.path, "with the comments, the code would not be the same")
        return FileResult(found.path, content=content)


class _Removing(_Job):
    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = paths

    def edit(self, found: Found, examined: Examined, without: frozenset[str], phase: Phase) -> FileResult:
        """The file without the directives that suppress nothing, one of each comment at a time."""
        problems: list[Problem] = []
        content: bytes | None = None
        now = examined
        for _ in range(_MOST_ROUNDS):
            source, lines = _known(now)
            unused = now.applied.unused if now.applied is not None else []
            comments = {(start, end) for start, end in source.comments()}
            mine = {one.comment: one for one in sorted(unused, key=lambda one: one.span) if one.comment in comments}
            problems = [
                Problem(found.path, one.line, "directive", f"not edited: '{one.text}' stands in a string")
                for one in unused
                if one.comment not in comments
            ]
            if not mine:
                break
            edited = _rewritten(now, [_without(lines, one) for one in mine.values()])
            after = None if edited is None else self.scan.examine(found, without, phase, edited)
            if edited is None or after is None or not _is_same(now, after) or _names(now) != _names(after):
                return self.refused(found.path, "without the comments, the code would not be the same")
            content, now = edited, after
        return FileResult(found.path, problems=tuple(problems), content=content)


def _known(examined: Examined) -> tuple[Source, Lines]:
    assert examined.source is not None
    assert examined.lines is not None
    return examined.source, examined.lines


def _name(finding: Finding) -> tuple[str, str, str]:
    return finding.rule, finding.target, finding.fingerprint


def _names(examined: Examined) -> Counter[tuple[str, str, str]]:
    return Counter(map(_name, examined.result.findings))


def _is_same(before: Examined, after: Examined) -> bool:
    """Whether only comments differ, and as much of the file could be analysed."""
    if after.source is None or before.decoded is None or after.decoded is None:
        return False
    spelled = (before.decoded.encoding, before.decoded.bom) == (after.decoded.encoding, after.decoded.bom)
    unread = [[one.message for one in each.result.problems if one.kind != "directive"] for each in (before, after)]
    return spelled and unread[0] == unread[1] and _tokens(before) == _tokens(after)


def _tokens(examined: Examined) -> list[tuple[str, bytes]]:
    """The kind and the text of each token that is no comment; white space between tokens is left out."""
    source, _ = _known(examined)
    return [(leaf.type, source.text[leaf.start_byte : leaf.end_byte]) for leaf in _leaves(source.tree.root_node)]


def _leaves(root: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    cursor = root.walk()
    depth = 0
    while True:
        node = cursor.node
        if node is not None and node.type not in _COMMENTS:
            if cursor.goto_first_child():
                depth += 1
                continue
            if node.end_byte > node.start_byte and not node.type.isspace():
                yield node
        while depth and not cursor.goto_next_sibling():
            cursor.goto_parent()
            depth -= 1
        if not depth:
            return


# ---- places ---------------------------------------------------------------------------------------------------------


def _placed(source: Source, lines: Lines, line: int, comment: str) -> Edit | None:
    """The edit that puts a comment where it covers a line: behind it, or above it or the statement that it is in."""
    text = lines.line(line)
    behind = lines.starts[line - 1] + len(text.encode())
    can_be_behind = _can_be_behind(source, lines, line, behind)
    if can_be_behind and len(text.rstrip()) + 2 + len(comment) <= _LONGEST_LINE:
        return _behind(text, behind, comment)
    for above in _lines_above(source, lines, line):
        if _can_be_above(source, lines, above, line):
            start = lines.starts[above - 1]
            code = lines.line(above)
            indent = code[: len(code) - len(code.lstrip())]
            return start, start, f"{indent}{comment}{_line_end(lines, above)}"
    return _behind(text, behind, comment) if can_be_behind else None


def _behind(text: str, end: int, comment: str) -> Edit:
    blank = len(text.encode()) - len(text.rstrip().encode())
    return end, end, f"{' ' * max(1, 2 - blank)}{comment}"


def _can_be_behind(source: Source, lines: Lines, line: int, end: int) -> bool:
    """Whether a comment can stand behind a line."""
    if source.language in _NO_COMMENT_BEHIND or _continues(lines, line):
        return False
    if source.language == "cuda":
        last = source.tree.root_node.descendant_for_byte_range(max(0, end - 1), end)
        # A macro's text is taken as it stands, with what looks like a comment.
        if _continues(lines, line - 1) or (last is not None and last.type == "preproc_arg"):
            return False
    return not _is_inside(source, end)


def _can_be_above(source: Source, lines: Lines, above: int, line: int) -> bool:
    """Whether a comment can stand on a line of its own above a line, and covers another one below."""
    if _continues(lines, above - 1) or _is_inside(source, lines.starts[above - 1]):
        return False
    if above == 1 and source.text.startswith(b"#!"):
        return False
    return source.logical_end(above, lines) >= line


def _lines_above(source: Source, lines: Lines, line: int) -> Iterator[int]:
    """The line itself, the first that a backslash joins to it, and those on which the code around it starts."""
    yield line
    first = line
    while _continues(lines, first - 1):
        first -= 1
    yield first
    text = lines.line(line)
    offset = lines.starts[line - 1] + len(text.encode()) - len(text.lstrip().encode())
    raw = source.tree.root_node.descendant_for_byte_range(offset, offset)
    node = None if raw is None else Node(source, raw)
    for around in node.ancestors() if node is not None else ():
        if lines.position(around.start)[0] < first:
            first = lines.position(around.start)[0]
            yield first


def _continues(lines: Lines, line: int) -> bool:
    """Whether a backslash joins the next line to this one."""
    return line >= 1 and lines.line(line).rstrip().endswith("\\")


def _line_end(lines: Lines, line: int) -> str:
    """The line end that a line has; of the last line, that of the one before."""
    number = min(line, len(lines) - 1)
    if number < 1:
        return "\n"
    text = lines.text[lines.starts[number - 1] : lines.starts[number]]
    return text[len(text.rstrip(b"\r\n")) :].decode()[-2:]


def _is_inside(source: Source, offset: int) -> bool:
    """Whether an offset lies inside a token, a comment or a text."""
    raw = source.tree.root_node.descendant_for_byte_range(offset, offset)
    while raw is not None:
        is_text = raw.type != "concatenated_string" and _TEXTS.search(raw.type)
        if raw.start_byte < offset < raw.end_byte and (not raw.child_count or is_text):
            return True
        raw = raw.parent
    return False


# ---- taking out -----------------------------------------------------------------------------------------------------

_MARK_BEFORE = regex(rb"[ \t]*(?://|#)?[ \t]*\Z")
_BARE = regex(rb"[\s/*#\[\]]*")


def _without(lines: Lines, directive: Directive) -> Edit:
    """The edit that takes a directive out, and its comment with it where nothing else is in that."""
    text, (start, end) = lines.text, directive.comment
    first, last = directive.span
    closing = next((mark for mark in (b"*/", b"]]") if text[:end].endswith(mark)), b"")
    last = min(last, end - len(closing))
    if not _BARE.fullmatch(text[start:first] + text[last:end]):
        head = text[start:first]
        kept = _MARK_BEFORE.sub(b"", head) if text[start + 2 : first].strip() else head
        tail = text[last:end]
        return start + len(kept), last, " " if closing and tail == closing else ""
    line_start = lines.starts[lines.position(start)[0] - 1]
    line_after = lines.position(end)[0]
    line_end = lines.starts[line_after] if line_after < len(lines) else len(text)
    before, after = text[line_start:start], text[end:line_end]
    if after.strip():
        return start, end, ""
    if before.strip():
        return line_start + len(before.rstrip()), end, ""
    return line_start, line_end, ""


# ---- bytes ----------------------------------------------------------------------------------------------------------


def _rewritten(examined: Examined, edits: list[Edit]) -> bytes | None:
    """The bytes of a file with edits of its text; None where its encoding cannot hold them."""
    decoded = examined.decoded
    assert decoded is not None
    pieces: list[bytes] = []
    done = 0
    for start, end, inserted in sorted(edits):
        pieces += [decoded.text[done:start], inserted.encode()]
        done = end
    text = b"".join([*pieces, decoded.text[done:]])
    try:
        before = _encoded(decoded.text, decoded.encoding)
        after = _encoded(text, decoded.encoding)
    except UnicodeEncodeError:
        return None
    # What is left is the byte order mark; nothing else where a character has two spellings in this encoding.
    return examined.data.removesuffix(before) + after if examined.data.endswith(before) else None


def _encoded(text: bytes, encoding: str) -> bytes:
    return text if encoding == "utf_8" else text.decode().encode(encoding)
