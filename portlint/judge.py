"""Hit x target -> finding. The only place where an assumption and a fact meet."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from portlint.condition import UNKNOWN, Guard, is_live, names
from portlint.finding import Edit, Finding, Verdict
from portlint.regex import regex
from portlint.rule import AnyOf, Assumed, AtLeast, AtMost, Divides, Has, Hit, Rule, unfold
from portlint.source import nearby, spelling
from portlint.source.text import Lines
from portlint.tables import cuda_name, torch_operators
from portlint.target import Fact, Level, Target, vocabulary

if TYPE_CHECKING:
    from portlint.source import Source

_LEVEL_VERDICTS = {
    Level.VARIANT: Verdict.BREAKS,
    Level.SLOW: Verdict.DEGRADES,
    Level.EMULATED: Verdict.DEGRADES,
    Level.NARROWED: Verdict.CORRUPTS,
    Level.FALLBACK: Verdict.DEGRADES,
    Level.NONE: Verdict.BREAKS,
}
EXCERPT_LINES = 3
EXCERPT_WIDTH = 400
QUOTE_WIDTH = 60
"""code points of code that a message quotes"""


class Judge:
    """Judges the hits of one file, so that fingerprints of equal lines are told apart."""

    def __init__(self, source: Source, lines: Lines) -> None:
        self.source = source
        self.lines = lines
        self._seen: Counter[tuple[str, str]] = Counter()
        self.translated: Counter[str] = Counter()
        """target -> uses of CUDA names that HIPIFY translates for it"""

    def judge(self, rule: Rule, hit: Hit, targets: tuple[Target, ...]) -> list[Finding]:
        """The findings of one hit, one at most per target."""
        guards = hit.guards or ()
        assumes = rule.assumes if hit.assumes is None else hit.assumes
        if any(map(_is_too_long, assumes.values())):
            return []
        verdicts = {target: self._verdict(rule, hit, assumes, guards, target) for target in targets}
        if not any(verdicts.values()):
            return []
        code, setting = _digest(rule.name, spelling.spelling(hit.node), spelling.part(hit.node)), self._setting(hit)
        return [
            self._finding(rule, hit, assumes, target, *verdict, self._fingerprint(code, target), setting)
            for target, verdict in verdicts.items()
            if verdict is not None
        ]

    def _verdict(
        self, rule: Rule, hit: Hit, assumes: Mapping[str, Assumed], guards: tuple[Guard, ...], target: Target
    ) -> tuple[Verdict, str] | None:
        """What happens and the fact that says so; None where nothing does."""
        if not speaks(target, hit, assumes):
            return None
        live = lives(guards, target, hit.node.source.language)
        if live is False:
            return None
        unknown: str = ""
        for name, assumed in assumes.items():
            fact = target.fact(name)
            if fact is None:
                unknown = unknown or name
                continue
            if fact.value == Level.VARIANT and not admits_plain_build(guards, target):
                continue
            if not holds(name, assumed, fact):
                verdict = self._grade(rule, hit, name, assumed, fact)
                return None if verdict == Verdict.DEGRADES and self._is_of_tests else (verdict, name)
            if vocabulary()[name].kind == "toolkit" and isinstance(assumed, Has):
                self.translated[target.name] += _is_translated(assumed.item, fact)
        return (Verdict.UNKNOWN, unknown) if unknown else None

    @cached_property
    def _is_of_tests(self) -> bool:
        """Whether the file holds tests in Python: that one of them is slow, or falls back, is no fault."""
        return self.source.language == "python" and nearby.is_of_tests(self.source.place)

    def _grade(self, rule: Rule, hit: Hit, name: str, assumed: Assumed, fact: Fact) -> Verdict:
        if vocabulary()[name].kind == "operators" and isinstance(assumed, Has):
            happens = torch_operators()[assumed.item].happens_in(fact.value)
            return Verdict.DEGRADES if happens == "host" else Verdict.BREAKS
        if vocabulary()[name].kind == "level" and hit.otherwise is None:
            return _LEVEL_VERDICTS[Level(fact.value)]
        return Verdict(hit.otherwise or rule.otherwise)

    def _finding(
        self,
        rule: Rule,
        hit: Hit,
        assumes: Mapping[str, Assumed],
        target: Target,
        verdict: Verdict,
        name: str,
        fingerprint: str,
        setting: str,
    ) -> Finding:
        start, end = _place(hit)
        line, column = self.lines.position(start)
        end_line, end_column = self.lines.position(end)
        stated = target.state(name)
        return Finding(
            rule=rule.name,
            target=target.name,
            verdict=verdict,
            path=self.source.path,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            message=rule.message.format(
                **{
                    "text": quote(self.lines.text[start:end].decode(errors="replace")),
                    "target": target.title,
                    "fact": stated.text,
                    "assumed": _shown(assumes[name]),
                    "instead": _instead(name, assumes[name], target.fact(name)),
                    **hit.words,
                }
            ),
            assumes={key: unfold(value) for key, value in assumes.items()},
            fact=stated,
            remedy=_replacement(name, assumes[name], target.fact(name)) or remedy(rule, target),
            kernel=vocabulary()[name].kernel or None,
            fingerprint=fingerprint,
            setting=setting,
            edits=self._edits(hit),
            safe=hit.safe,
            excerpt=self.lines.excerpt(line, min(end_line, line + EXCERPT_LINES - 1), EXCERPT_WIDTH),
        )

    def _edits(self, hit: Hit) -> tuple[Edit, ...]:
        """The edits of a hit, placed in the file; none where one of them has no exact place there."""
        if any(_SPECIAL & {*edit.text} for edit in hit.edits) and next(hit.node.ancestors("interpolation"), None):
            return ()
        placed = [self._placed(hit.node.source, edit) for edit in hit.edits]
        return tuple(sorted(one for one in placed if one is not None)) if None not in placed else ()

    def _placed(self, source: Source, edit: Edit) -> Edit | None:
        start, end = source.offset + edit.start, source.offset + edit.end
        if source is not self.source and not _is_literal(source, edit, self.lines.text):
            return None
        (line, column), (end_line, end_column) = self.lines.position(start), self.lines.position(end)
        text = _LINE_END.sub(self.lines.end, edit.text)
        return Edit(start, end, text, line, column, end_line, end_column)

    def _fingerprint(self, code: str, target: Target) -> str:
        """What a finding is recognised by in a later version of the code: `CODE:N`, the Nth of equal code in the file.

        CODE stands for the rule, the tokens of the code that is pointed at, and the function or the operator that this
        code is an argument of. So it is stable where

        - lines are moved, within the file or to another one, and where the file is renamed;
        - other code is edited, be it on the same line: a second argument, the other operand, the name that is assigned;
        - the code is laid out anew: white space, line breaks, comments, quotes, trailing commas;
        - other targets are judged in the same run: each is counted by itself.

        N tells equal code apart, and alone depends on what stands before it in the file. Who compares versions compares
        CODE by CODE with its number of occurrences, and `Finding.setting` says which of them are the same.
        """
        self._seen[code, target.name] += 1
        return f"{code}:{self._seen[code, target.name]}"

    def _setting(self, hit: Hit) -> str:
        return _digest(spelling.statement(hit.node), size=4)


def _digest(*parts: str, size: int = 8) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=size).hexdigest()


_LINE_END = regex(r"\r\n|\r|\n")
_SPECIAL = frozenset("\\\n'\"{}%$")
"""what a string, or what is replaced in one, may take for something else than text"""


def _is_literal(source: Source, edit: Edit, file: bytes) -> bool:
    """Whether what an edit touches in a kernel inside a string stands in the file just so, and so would its text."""
    start, end = (edit.start - 1, edit.end + 1) if edit.start == edit.end else (edit.start, edit.end)
    own = source.text[start:end]
    return start >= 0 and own == file[source.offset + start : source.offset + end] and not _SPECIAL & {*edit.text}


def _place(hit: Hit) -> tuple[int, int]:
    """The bytes of the file that a hit points at."""
    offset = hit.node.source.offset
    return offset + hit.node.start, offset + hit.node.end


def is_moot(rule: Rule, target: Target) -> bool:
    """Whether no hit of a rule can be a finding for a target, since all that the rule assumes is known to hold there.

    A rule without assumptions of its own leaves them to its hits, and is never moot.
    """
    facts = {name: target.fact(name) for name in rule.assumes}
    return bool(facts) and all(
        fact is not None and fact.value != Level.VARIANT and holds(name, rule.assumes[name], fact)
        for name, fact in facts.items()
    )


def speaks(target: Target, hit: Hit, assumes: Mapping[str, Assumed]) -> bool:
    """Whether code in the hit's language can be meant for this target at all.

    What the language itself needs (`isa.cuda_cxx`) is judged everywhere; the rest of a file that cannot be compiled
    there is not listed line by line.
    """
    language = hit.language or hit.node.source.language
    return language in target.profile.languages or any(name in LANGUAGE_FACTS for name in assumes)


LANGUAGE_FACTS = frozenset(("isa.cuda_cxx", "library.triton"))


def lives(guards: tuple[Guard, ...], target: Target, language: str) -> bool | None:
    """Whether code under these guards can run on the target: True, False, or None for unknown."""
    if language != "cuda":
        live = is_live(guards, target.queries())
        return None if live is UNKNOWN else bool(live)
    environments = [environment for _, environment in target.passes()] or [target.queries()]
    outcomes = [is_live(guards, environment) for environment in environments]
    if any(outcome is True for outcome in outcomes):
        return True
    return None if any(outcome is UNKNOWN for outcome in outcomes) else False


def admits_plain_build(guards: tuple[Guard, ...], target: Target) -> bool:
    """Whether the code's own guard lets in a build for the plain architecture, where a `variant` feature is missing.

    Code without any test of the architecture says nothing about how it is built: it gets the benefit of the doubt.
    """
    asking = [guard for guard in guards if _ARCHITECTURE in names(guard.condition)]
    return bool(asking) and any(
        is_live(asking, environment) is True and is_live(guards, environment) is not False
        for one, environment in target.passes()
        if not one.variant and _ARCHITECTURE in one.defined
    )


_ARCHITECTURE = "__CUDA_ARCH__"


def holds(name: str, assumed: Assumed, fact: Fact) -> bool:
    """Whether an assumption about the fact of that name is true."""
    if vocabulary()[name].kind == "toolkit" and isinstance(assumed, Has):
        row = cuda_name(assumed.item)
        return row is None or row.in_toolkit(fact.value)
    if vocabulary()[name].kind == "operators" and isinstance(assumed, Has):
        return not torch_operators()[assumed.item].happens_in(fact.value)
    if isinstance(assumed, AtMost):
        return bool(assumed.needed <= fact.value)
    if isinstance(assumed, AtLeast):
        return bool(assumed.given >= fact.value)
    if isinstance(assumed, Has):
        return assumed.item in fact.value
    if isinstance(assumed, AnyOf):
        return any(item in fact.value for item in assumed.items)
    if isinstance(assumed, Divides):
        return bool(assumed.size % fact.value == 0)
    if isinstance(fact.value, list | tuple):
        return list(fact.value) == list(assumed) if isinstance(assumed, list | tuple) else assumed in fact.value
    return bool(fact.value == assumed)


def _is_too_long(assumed: Assumed) -> bool:
    """Whether a number has more than 64 bits: no machine has so much of anything, and no report could hold it."""
    number = unfold(assumed)
    if isinstance(number, dict):
        (number,) = number.values()
    return isinstance(number, int) and not -(1 << 63) <= number < 1 << 64


def _is_translated(item: str, fact: Fact) -> bool:
    row = cuda_name(item)
    return row is not None and row.is_translated(fact.value)


def _instead(name: str, assumed: Assumed, fact: Fact | None) -> str:
    """What happens in place of what is not there, as the end of a sentence.

    Of a toolkit that lacks a CUDA name: what it has instead. Of a library that lacks a kernel: what a call comes to.
    """
    if not isinstance(assumed, Has) or fact is None:
        return ""
    if vocabulary()[name].kind == "operators":
        return torch_operators()[assumed.item].consequence_in(fact.value)
    row = cuda_name(assumed.item) if vocabulary()[name].kind == "toolkit" else None
    return row.instead_in(fact.value) if row is not None else ""


def _replacement(name: str, assumed: Assumed, fact: Fact | None) -> str:
    """The remedy for an operator without a kernel where others do the same; "" for all else."""
    if vocabulary()[name].kind != "operators" or not isinstance(assumed, Has) or fact is None:
        return ""
    instead = torch_operators()[assumed.item].instead_in(fact.value)
    return f"Use {instead}." if instead else ""


def remedy(rule: Rule, target: Target) -> str:
    """What to do on this target: the remedy of its nearest family."""
    for key in (target.name, *target.profile.families):
        if key in rule.remedy:
            return rule.remedy[key]
    return rule.remedy["*"]


def _shown(assumed: Assumed) -> object:
    value: object = assumed
    if isinstance(assumed, AtMost):
        value = assumed.needed
    elif isinstance(assumed, AtLeast):
        value = assumed.given
    elif isinstance(assumed, Has):
        value = assumed.item
    elif isinstance(assumed, AnyOf):
        value = ", ".join(assumed.items)
    elif isinstance(assumed, Divides):
        value = assumed.size
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else value


def quote(text: str) -> str:
    """Code as a message quotes it: on one line, and not too long."""
    line = " ".join(text.split())
    return line if len(line) <= QUOTE_WIDTH else line[: QUOTE_WIDTH - 1] + "…"
