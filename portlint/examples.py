"""The example of a rule: code that holds the belief, the same code mended, and the targets on which the first fires.

Both are fixtures of the rule, `before.*` and `silent_after.*`, so that tests hold what people are shown.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from portlint.detect import RuleSet
from portlint.finding import Finding, Verdict
from portlint.regex import regex
from portlint.rule import Rule
from portlint.rules import FIXTURES
from portlint.scan import Scan
from portlint.source.discover import Found
from portlint.source.language import by_name
from portlint.source.prescan import Limits
from portlint.target import load, shipped

_ALONE = regex(r"^[ \t]*(?://|#)[ \t]*(?:\b(?:expect|gap)\[[^\]\n]*\][ \t]*)+\n", re.MULTILINE)
_ANNOTATIONS = regex(r"(?<![ \t])[ \t]*(?:(?://|#)[ \t]*)?(?:\b(?:expect|gap)\[[^\]\n]*\][ \t]*)+$", re.MULTILINE)
_CARETS = regex(r"^[ \t]*(?://|#)[ \t]*\^+[ \t]*\n", re.MULTILINE)


IS_FIXED = regex(r"^[^.]+\.(?:unsafe_)?fixed\.")
"""the name of a fixture that shows what fixes make of another"""


class MissingExample(Exception):
    """A rule without one of its two fixtures; the message says which."""


class Snippet(msgspec.Struct, frozen=True):
    """One file of an example."""

    file: str
    """the fixture's name; its ending says the language"""
    text: str
    """the code without the annotations that tests read"""


class Example(msgspec.Struct, frozen=True):
    """What people are shown of a rule."""

    before: Snippet
    after: Snippet


@cache
def example(rule: Rule) -> Example:
    """The example of a rule.

    Raises MissingExample where the rule's fixtures lack it.
    """
    return Example(_snippet(rule, "before"), _snippet(rule, "silent_after"))


@cache
def findings(rule: Rule) -> tuple[Finding, ...]:
    """What the rule finds in its own example, for every target that portlint ships: the worst finding of each."""
    before = example(rule).before
    content = before.text.encode()
    scan = Scan(RuleSet([rule]), tuple(map(load, shipped())), Limits(), contents={before.file: content})
    found = Found(path=before.file, file=before.file, size=len(content), kind=by_name(before.file) or "")
    worst: dict[str, Finding] = {}
    for finding in scan(found, frozenset(), lambda _: None).findings:
        known = worst.setdefault(finding.target, finding)
        if finding.verdict.rank < known.verdict.rank:
            worst[finding.target] = finding
    return tuple(worst[target] for target in shipped() if target in worst)


def fires_on(rule: Rule) -> dict[str, Verdict]:
    """The targets on which the rule's example fires, with what happens there."""
    return {finding.target: finding.verdict for finding in findings(rule)}


def strip(text: str) -> str:
    """A fixture's text without `expect[...]`, `gap[...]`, carets, and the comment markers that held them."""
    return _ANNOTATIONS.sub("", _ALONE.sub("", _CARETS.sub("", text)))


def _snippet(rule: Rule, stem: str) -> Snippet:
    folder = fixtures(rule)
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name.startswith(f"{stem}.") and not IS_FIXED.search(entry.name):
            return Snippet(entry.name, strip(entry.read_text(encoding="utf-8")))
    raise MissingExample(f"the rule '{rule.name}' has no fixture '{stem}.*' in {folder}.")


def fixtures(rule: Rule) -> Traversable:
    """The folder with the fixtures of a rule, which need not be there."""
    home = _fixtures() if rule.home is None else rule.home / FIXTURES
    return home.joinpath(*rule.name.replace("-", "_").split("/"))


def _fixtures() -> Traversable:
    """Portlint's own fixtures: a part of the package in a wheel, the folder beside it in a checkout."""
    installed = files("portlint") / "fixtures"
    return installed if installed.is_dir() else Path(__file__).parent.parent / "fixtures"
