"""Findings -> edits -> files: what fixes make of a tree, and how that gets to the disk.

Files are scanned again as drafts until no fix is left, so one fix may make room for another. Nothing is written before
all of that is done.
"""

from __future__ import annotations

import codecs
import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from portlint.files import replace
from portlint.finding import Edit, FileResult, Finding, Problem, Report, Verdict
from portlint.scan import digest
from portlint.source.decode import NotText, decode

if TYPE_CHECKING:
    from portlint.changed import Changed
    from portlint.run import Progress, Request
    from portlint.source.discover import Found

MOST_ROUNDS = 10
"""how often a file is scanned again; a fix that is never done would go on for ever"""


class Unfit(Exception):
    """A file that fixes leave alone; the message says why."""


class Change(msgspec.Struct, frozen=True):
    """What fixes make of one file."""

    path: str
    file: str
    """where it is on the disk"""
    before: bytes
    after: bytes
    rounds: tuple[tuple[Finding, ...], ...] = ()
    """whose fixes were made, scan by scan: the edits of each round are of the text that the one before left"""

    @property
    def fixes(self) -> int:
        """How many places were mended."""
        return sum(len({one.order[:-1] for one in made}) for made in self.rounds)


class Outcome(msgspec.Struct, frozen=True):
    """What the fixes of a request come to. Nothing of it has been written."""

    changes: tuple[Change, ...]
    problems: tuple[Problem, ...]
    """files that were left alone, and why"""
    report: Report
    """of the files as they are on the disk"""


class _Draft:
    """A file while it is mended."""

    def __init__(self, found: Found, before: bytes, broken: int, changed: Changed | None) -> None:
        self.found = found
        self.before = before
        self.broken = broken
        """places of the file that did not parse from the start"""
        self.changed = changed
        """the lines that are mended; None for all"""
        self.after = before
        self.rounds: list[tuple[Finding, ...]] = []
        self.seen = {digest(before)}

    def mend(self, findings: Iterable[Finding]) -> None:
        """Make the fixes of these findings. Raises Unfit."""
        chosen = choose(findings)
        edits = edits_of(chosen)
        after = rewrite(self.after, self.found.kind, edits)
        if digest(after) in self.seen:
            raise Unfit("its fixes undo each other")
        self.after = after
        self.changed = self.changed.edited(self.found.path, edits) if self.changed is not None else None
        self.rounds.append(chosen)
        self.seen.add(digest(after))


def fix(request: Request, *, unsafe: bool, progress: Progress | None = None) -> Outcome:
    """What fixes make of the files that a request names; `unsafe` says whether that takes in fixes that are not safe.

    Raises MissingPath for a path that is not there.
    """
    import time

    from portlint import engine, run

    started = time.monotonic()
    tasks, missing = run.tasks_of(request)
    jobs = request.jobs or run.cores()

    def scan(these: Sequence[Found], contents: Mapping[str, bytes], progress: Progress | None) -> list[FileResult]:
        scanner = run.scanner(request, contents, measures=True)
        return engine.run(these, scanner, jobs=max(1, min(jobs, len(these))), limits=scanner.limits, progress=progress)

    results = scan(tasks, {}, progress)
    rules = run.scanner(request).rules.rules
    report = run.report_of(request, results, missing, rules, time.monotonic() - started)
    stdin = {request.stdin[0]: request.stdin[1]} if request.stdin is not None else {}
    changes, problems = mended(
        tasks,
        results,
        lambda these, contents: scan(these, contents, None),
        lambda file: stdin[file] if file in stdin else _bytes_of(file),
        unsafe=unsafe,
        changed=request.changed,
    )
    return Outcome(changes, problems, report)


def mended(
    files: Iterable[Found],
    results: Iterable[FileResult],
    scan: Callable[[Sequence[Found], Mapping[str, bytes]], Iterable[FileResult]],
    read: Callable[[str], bytes],
    *,
    unsafe: bool,
    changed: Changed | None = None,
) -> tuple[tuple[Change, ...], tuple[Problem, ...]]:
    """What fixes make of files, and which they leave alone and why, given the results of a scan that measures.

    `scan` does so again with drafts in place of what files hold, and `read` gives what a file holds. `changed` says on
    which lines findings are mended, where not on all.
    """
    by_path = {found.path: found for found in files}
    drafts: dict[str, _Draft] = {}
    problems: list[Problem] = []
    for rounds in range(MOST_ROUNDS + 1):
        latest: list[_Draft] = []
        for result in results:
            draft = drafts.get(result.path)
            lines = draft.changed if draft is not None else changed
            wanted = [
                one for one in result.findings if is_wanted(one, unsafe=unsafe) and (lines is None or lines.has(one))
            ]
            try:
                if draft is not None and (not result.analysed or result.broken > draft.broken):
                    raise Unfit("with its fixes it would no longer parse")
                if not wanted:
                    continue
                if rounds == MOST_ROUNDS:
                    raise Unfit(f"it has fixes left after {MOST_ROUNDS} rounds")
                if draft is None:
                    found = by_path[result.path]
                    draft = _Draft(found, _read(found.file, result.digest, read), result.broken, changed)
                draft.mend(wanted)
                drafts[result.path] = draft
                latest.append(draft)
            except Unfit as reason:
                drafts.pop(result.path, None)
                problems.append(Problem(result.path, 0, "fix", f"left alone: {reason}"))
        if not latest:
            break
        results = scan([draft.found for draft in latest], {one.found.file: one.after for one in latest})
    changes = (
        Change(path, one.found.file, one.before, one.after, tuple(one.rounds)) for path, one in sorted(drafts.items())
    )
    return tuple(changes), tuple(sorted(problems))


def is_wanted(finding: Finding, *, unsafe: bool) -> bool:
    """Whether a finding has a fix to be made; where it is not known that something is wrong, nothing is changed."""
    return finding.fixable and (finding.safe or unsafe) and finding.verdict is not Verdict.UNKNOWN


def choose(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings whose fixes are made at once.

    The same fix for several targets is one. Of two that touch the same bytes in different ways, or put in the same text
    for different ends, the first is made; the other has its turn when the file is scanned again.
    """
    chosen: list[Finding] = []
    made: dict[Edit, None] = {}
    for finding in sorted(findings, key=lambda one: one.order):
        new = [edit for edit in finding.edits if edit not in made]
        has_other_end = bool(new) and any(one.start == one.end for one in finding.edits if one in made)
        if not has_other_end and not any(_meet(one, other) for one in new for other in made):
            chosen.append(finding)
            made.update(dict.fromkeys(new))
    return tuple(chosen)


def edits_of(findings: Iterable[Finding]) -> list[Edit]:
    """The edits of findings that were chosen together, in order."""
    return sorted({edit for finding in findings for edit in finding.edits})


def _meet(one: Edit, other: Edit) -> bool:
    """Whether two different edits touch the same bytes, or put something in at the same place."""
    return max(one.start, other.start) < min(one.end, other.end) or (
        one.start == other.start or (one.start == one.end and other.start < one.start < other.end)
    )


def rewrite(data: bytes, kind: str, edits: Sequence[Edit]) -> bytes:
    """The bytes of a file with edits made. Encoding, byte order mark and all other bytes stay. Raises Unfit."""
    if kind == "notebook":
        mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        text, encoding = data.removeprefix(mark), "utf_8"
    else:
        try:
            decoded = decode(data, kind)
        except NotText as reason:
            raise Unfit(str(reason)) from None
        text, encoding = decoded.text, decoded.encoding
        mark = data[: 3 if encoding == "utf_8" else 2] if decoded.bom else b""
    parts: list[bytes] = []
    at = 0
    for edit in edits:
        parts += [text[at : edit.start], edit.text.encode()]
        at = edit.end
    parts.append(text[at:])
    if encoding == "utf_8":
        return mark + b"".join(parts)
    if mark + text.decode().encode(encoding) != data:
        raise Unfit(f"its bytes are not those that {encoding} gives for its text")
    try:
        return mark + b"".join(parts).decode().encode(encoding)
    except UnicodeEncodeError:
        raise Unfit(f"a fix has a character that {encoding} lacks") from None


def _read(file: str, seen: str, read: Callable[[str], bytes]) -> bytes:
    """The bytes that were scanned. Raises Unfit where the file has others by now."""
    try:
        data = read(file)
    except OSError as error:
        raise Unfit(f"it cannot be read: {error.strerror or error}") from None
    if digest(data) != seen:
        raise Unfit("it has changed since it was scanned")
    return data


def _bytes_of(file: str) -> bytes:
    with open(file, "rb") as opened:
        return opened.read()


def write(change: Change) -> None:
    """Put a change on the disk in one step: the file has its old bytes or its new ones. Raises Unfit."""
    place = os.path.realpath(change.file)
    try:
        if _bytes_of(place) != change.before:
            raise Unfit("it has changed since it was scanned")
        if not os.access(place, os.W_OK):
            raise Unfit("it may not be written")
        if (names := os.stat(place).st_nlink) > 1:
            raise Unfit(f"it is one file under {names} names (hard links), and would become another under this one")
        replace(place, change.after)
    except OSError as error:
        raise Unfit(f"it cannot be written: {error.strerror or error}") from None


def unified(change: Change) -> bytes:
    """A change as a unified diff that `patch` and `git apply` take; of UTF-16, as the diff of its text in UTF-8."""
    before, after = (_lines(_shown(data)) for data in (change.before, change.after))
    old, new = (_quoted(f"{side}/{change.path}") for side in "ab")
    diff = difflib.diff_bytes(difflib.unified_diff, before, after, old, new)
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in diff)


def _quoted(name: str) -> bytes:
    """A file name as the header of a diff has it: quoted, as git does, where it would end the line or the name."""
    quoted = re.sub(r'[\x00-\x1f\x7f"\\]', lambda match: f"\\{ord(match[0]):03o}", name)
    return (name if quoted == name else f'"{quoted}"').encode(errors="surrogateescape")


def _shown(data: bytes) -> bytes:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16").encode()
    return data


def _lines(data: bytes) -> list[bytes]:
    r"""The lines of a file as `patch` counts them: only `\n` ends one."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]] + (
        [data.rpartition(b"\n")[2]] if data[-1:] != b"\n" else []
    )
