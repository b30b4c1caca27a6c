"""Comments that speak to portlint: `portlint: ignore[lanes/warp-is-32 @ cdna3 until 2027-01-31] reason`.

A trailing comment covers its own line; a comment on a line of its own covers the next logical line (a statement, or a
macro with its continuation lines). `file-ignore[...]` covers the file. `expect[...]` suppresses as `ignore[...]` does,
and finding nothing there is an error. A blanket `ignore` without rules is refused, a directive that suppresses nothing
is reported, and so is one whose day has passed: all would hide what nobody looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING

import msgspec

from portlint.config import ConfigError, Selector, check_selectors
from portlint.finding import Finding, Problem
from portlint.regex import regex

if TYPE_CHECKING:
    from portlint.source import Source
    from portlint.source.text import Lines

_DIRECTIVE = regex(r"portlint:\s*(?P<verb>file-ignore|ignore|expect)\b(?P<rest>(?:(?!portlint:)[^\n])*)")
_SELECTORS = regex(r"\s*\[(?P<selectors>[^\]]*)\](?P<reason>.*)", re.DOTALL)
_UNTIL = regex(r"(?P<selector>.*\S)\s+until\s+(?P<day>\S+)", re.DOTALL)
_BLANK = regex(rb"\s*+")
_WIDE = 100
"""lines; what covers more is asked for every finding"""
_NO_REASON = " \t\r*/#-:."
"""what may stand behind the bracket without saying anything"""


class Item(msgspec.Struct, frozen=True):
    """One selector of a directive."""

    selector: Selector
    written: str
    until: date | None = None
    """the last day on which it holds"""

    def __str__(self) -> str:
        return self.written


class Directive(msgspec.Struct, frozen=True):
    """One suppression comment."""

    line: int
    first: int
    """first line that it covers"""
    last: int
    verb: str
    """ignore | file-ignore | expect"""
    items: tuple[Item, ...]
    has_reason: bool
    span: tuple[int, int]
    """the bytes of the file from its first word to the end of the reason"""
    comment: tuple[int, int]
    """the bytes of the file that are the comment around it"""

    @property
    def text(self) -> str:
        """As it is written, without the reason."""
        return f"portlint: {self.verb}[{', '.join(map(str, self.items))}]"

    def covers(self, finding: Finding) -> bool:
        """Whether a finding is on its lines."""
        return self.first <= finding.end_line and finding.line <= self.last


class Names(msgspec.Struct, frozen=True):
    """What a directive may speak of, be it part of the run or not."""

    rules: frozenset[str]
    targets: Mapping[str, str]
    """every name and alias -> the name of the profile"""

    def resolved(self, selector: Selector) -> Selector:
        """The selector with the name of its target in place of an alias. Raises ConfigError for an unknown name."""
        check_selectors((selector,), self.rules, self.targets)
        return msgspec.structs.replace(selector, target=self.targets.get(selector.target, ""))


class Terms(msgspec.Struct, frozen=True):
    """What the run is, for which directives are judged."""

    rules: frozenset[str]
    """those that ran"""
    targets: frozenset[str]
    today: date
    is_whole: bool = True
    """whether the rules were not narrowed down: only then is a whole pack known to have run"""
    requires_reason: bool = False
    names: Names | None = None
    """None where only the names of the run are known, and others may well exist"""

    def ran(self, selector: Selector) -> bool:
        """Whether a selector names only rules that ran, and a target that was judged."""
        named = f"{selector.pack}/{selector.name}" in self.rules if selector.name else self.is_whole
        return named and (selector.target in self.targets if selector.target else True)


class Applied(msgspec.Struct, frozen=True):
    """What became of the findings of a file."""

    kept: list[Finding]
    suppressed: list[Finding]
    unused: list[Directive]
    problems: list[Problem]


def read(source: Source, lines: Lines, names: Names | None = None) -> tuple[list[Directive], list[Problem]]:
    """The directives in the comments of a file or of a kernel inside a string, and what of them cannot be obeyed."""
    if b"portlint:" not in source.text:
        return [], []
    directives: list[Directive] = []
    problems: list[Problem] = []
    comments = source.comments()
    code_after = _code_after(source.text, comments)
    for start, end in comments:
        text = source.text[start:end].decode()
        for match in _DIRECTIVE.finditer(text):
            first = source.offset + start + len(text[: match.start()].encode())
            line, _ = lines.position(first)
            try:
                items, reason = _parsed(match)
            except ConfigError as error:
                problems.append(Problem(source.path, line, "directive", str(error)))
                continue
            if names is not None:
                items, unknown = _resolved(items, names)
                problems += [Problem(source.path, line, "directive", f"'{match['verb']}': {why}") for why in unknown]
                if not items:
                    continue
            covered = (1, len(lines))
            if match["verb"] != "file-ignore":
                covered = _covered(source, lines, start, end, line, code_after[end])
            directives.append(
                Directive(
                    line,
                    *covered,
                    match["verb"],
                    items,
                    bool(reason.strip(_NO_REASON)),
                    (first, first + len(match[0].encode())),
                    (source.offset + start, source.offset + end),
                )
            )
    return directives, problems


def may_expire(text: bytes) -> bool:
    """Whether a file may hold a directive that ends on a day."""
    return b"portlint:" in text and b"until" in text


def apply(findings: Iterable[Finding], directives: list[Directive], path: str, terms: Terms) -> Applied:
    """Tell the findings that stay from those that are suppressed, and say what is wrong with the directives.

    A directive is only called unused if every rule and target that it names was part of this run.
    """
    applied = Applied([], [], [], [])
    found: set[tuple[int, Item]] = set()
    past: dict[tuple[int, Item], None] = {}
    near = _by_line(directives)
    for finding in findings:
        is_suppressed = False
        lines = (0, *range(finding.line, finding.end_line + 1))
        for number in sorted({one for line in lines for one in near.get(line, ())}):
            directive = directives[number]
            for item in directive.items if directive.covers(finding) else ():
                if not item.selector.matches(finding.rule, finding.target):
                    continue
                found.add((number, item))
                if item.until is not None and terms.today > item.until:
                    past[number, item] = None
                elif directive.has_reason or directive.verb == "expect" or not terms.requires_reason:
                    is_suppressed = True
        (applied.suppressed if is_suppressed else applied.kept).append(finding)
    for number, item in past:
        directive = directives[number]
        message = f"'{directive.text}' has ended: since {item.until} it suppresses nothing"
        applied.problems.append(Problem(path, directive.line, "directive", message))
    for number, directive in enumerate(directives):
        if directive.verb == "expect":
            applied.problems.extend(
                Problem(path, directive.line, "expect", f"'portlint: expect[{item}]': nothing is found here")
                for item in directive.items
                if (number, item) not in found and terms.ran(item.selector)
            )
            continue
        if terms.requires_reason and not directive.has_reason:
            message = f"'{directive.text}' gives no reason, so it suppresses nothing: write why behind the bracket"
            applied.problems.append(Problem(path, directive.line, "directive", message))
        if not any((number, item) in found for item in directive.items) and all(
            terms.ran(item.selector) for item in directive.items
        ):
            message = f"'{directive.text}' suppresses nothing: remove it"
            applied.problems.append(Problem(path, directive.line, "directive", message))
            applied.unused.append(directive)
    return applied


def _by_line(directives: list[Directive]) -> dict[int, list[int]]:
    """Line -> the numbers of the directives that cover it; under 0 those that cover very many lines."""
    found: dict[int, list[int]] = {}
    for number, directive in enumerate(directives):
        is_wide = directive.last - directive.first > _WIDE
        for line in (0,) if is_wide else range(directive.first, directive.last + 1):
            found.setdefault(line, []).append(number)
    return found


def _parsed(match: re.Match[str]) -> tuple[tuple[Item, ...], str]:
    """The selectors and the reason of a directive. Raises ConfigError where there are none, or bad ones."""
    verb = match["verb"]
    inside = _SELECTORS.match(match["rest"])
    parts = [part.strip() for part in inside["selectors"].split(",") if part.strip()] if inside else []
    if inside is None or not parts:
        raise ConfigError(f"'{verb}' names no rule: write '{verb}[pack/name] reason'")
    items: list[Item] = []
    for part in parts:
        until = _UNTIL.fullmatch(part)
        try:
            day = date.fromisoformat(until["day"]) if until else None
        except ValueError:
            raise ConfigError(f"'{part}' of '{verb}' ends on no day: write 'until 2027-01-31'") from None
        items.append(Item(Selector.parse(until["selector"] if until else part), " ".join(part.split()), day))
    return tuple(items), inside["reason"]


def _resolved(items: tuple[Item, ...], names: Names) -> tuple[tuple[Item, ...], list[str]]:
    """The items whose names exist, each target under its own, and what is wrong with the others."""
    known: list[Item] = []
    unknown: list[str] = []
    for item in items:
        try:
            known.append(Item(names.resolved(item.selector), item.written, item.until))
        except ConfigError as error:
            unknown.append(str(error))
    return tuple(known), unknown


def _covered(source: Source, lines: Lines, start: int, end: int, line: int, code: int) -> tuple[int, int]:
    """The lines that an `ignore` covers, given where the code goes on behind its comment."""
    before = lines.text[lines.starts[line - 1] : source.offset + start]
    if before.strip():
        return line, line
    following = lines.position(source.offset + code)[0]
    if following == lines.position(source.offset + end)[0]:
        following = min(following + 1, len(lines))
    return following, source.logical_end(following, lines)


def _code_after(text: bytes, comments: list[tuple[int, int]]) -> dict[int, int]:
    """The end of each comment -> where the code goes on behind it: after white space and further comments."""
    ends = dict(comments)
    found: dict[int, int] = {}
    for _, end in reversed(comments):
        blank = _BLANK.match(text, end)
        at = blank.end() if blank else end
        found[end] = found.get(ends.get(at, -1), at)
    return found
