"""Comments that speak to portlint: `portlint: ignore[lanes/warp-is-32 @ cdna3] reason`.

A trailing comment covers its own line; a comment on a line of its own covers the next logical line (a statement, or a
macro with its continuation lines). `file-ignore[...]` covers the file. A blanket `ignore` without rules is refused, and
a directive that suppresses nothing is reported: both would hide what nobody looked at.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from portlint.config import Selector
from portlint.finding import Finding, Problem

if TYPE_CHECKING:
    from portlint.source import Source
    from portlint.source.text import Lines

_DIRECTIVE = re.compile(r"portlint:\s*(?P<verb>file-ignore|ignore)\b(?P<rest>[^\n]*)")
_SELECTORS = re.compile(r"^\s*\[(?P<selectors>[^\]]*)\]")


class Directive(msgspec.Struct, frozen=True):
    """One suppression comment."""

    line: int
    first: int
    """first line that it covers"""
    last: int
    selectors: tuple[Selector, ...]
    text: str

    def covers(self, finding: Finding) -> bool:
        """Whether a finding is suppressed by it."""
        on_line = self.first <= finding.end_line and finding.line <= self.last
        return on_line and any(selector.matches(finding.rule, finding.target) for selector in self.selectors)


def read(source: Source, lines: Lines) -> tuple[list[Directive], list[Problem]]:
    """The directives in the comments of a file or of a kernel inside a string, and those that cannot be obeyed."""
    if b"portlint:" not in source.text:
        return [], []
    directives: list[Directive] = []
    problems: list[Problem] = []
    for start, end in source.comments():
        for match in _DIRECTIVE.finditer(source.text[start:end].decode()):
            within = len(source.text[start:end].decode()[: match.start()].encode())
            line, _ = lines.position(source.offset + start + within)
            selectors = _selectors(match["rest"])
            if selectors is None:
                message = f"'{match['verb']}' names no rule: write '{match['verb']}[pack/name] reason'"
                problems.append(Problem(source.path, line, "directive", message))
                continue
            first, last = (
                (1, len(lines)) if match["verb"] == "file-ignore" else _covered(source, lines, start, end, line)
            )
            directives.append(Directive(line, first, last, selectors, match[0].split("]")[0] + "]"))
    return directives, problems


def apply(
    findings: list[Finding], directives: list[Directive], path: str, targets: frozenset[str], rules: frozenset[str]
) -> tuple[list[Finding], int, list[Problem]]:
    """The findings that stay, how many were suppressed, and the directives that suppressed none.

    A directive is only called unused if every rule and target that it names was part of this run.
    """
    used: set[int] = set()
    kept: list[Finding] = []
    for finding in findings:
        hits = [index for index, directive in enumerate(directives) if directive.covers(finding)]
        used.update(hits)
        if not hits:
            kept.append(finding)
    unused = [
        Problem(path, directive.line, "directive", f"'{directive.text}' suppresses nothing: remove it")
        for index, directive in enumerate(directives)
        if index not in used and all(_was_run(selector, rules, targets) for selector in directive.selectors)
    ]
    return kept, len(findings) - len(kept), unused


def _was_run(selector: Selector, rules: frozenset[str], targets: frozenset[str]) -> bool:
    """Whether a selector names only rules that ran, and a target that was judged."""
    named = f"{selector.pack}/{selector.name}" in rules if selector.name else True
    return named and (selector.target in targets if selector.target else True)


def _selectors(rest: str) -> tuple[Selector, ...] | None:
    match = _SELECTORS.match(rest)
    if match is None:
        return None
    parts = [part.strip() for part in match["selectors"].split(",") if part.strip()]
    return tuple(Selector.parse(part) for part in parts) or None


def _covered(source: Source, lines: Lines, start: int, end: int, line: int) -> tuple[int, int]:
    """The lines that an `ignore` covers."""
    before = lines.text[lines.starts[line - 1] : source.offset + start]
    if before.strip():
        return line, line
    following = lines.position(source.offset + end)[0] + 1
    while following < len(lines) and not lines.line(following).strip():
        following += 1
    return following, source.logical_end(following, lines)
