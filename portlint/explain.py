"""All that there is to say about a rule, taken from its docstring, its code and its example.

The command line prints it, and `tools/make_docs.py` writes it as a page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from portlint.examples import Snippet, example, findings
from portlint.finding import StatedFact, Verdict
from portlint.rule import Rule, unfold
from portlint.run import describe
from portlint.target import load

LANGUAGES = {
    "cuda": "CUDA and HIP C++",
    "python": "Python",
    "cmake": "CMake",
    "recipe": "requirements, container files, manifests, workflows and shell scripts",
}
"""grammar -> the name for people"""


class Outcome(msgspec.Struct, frozen=True):
    """What becomes of the example on one target, and why."""

    target: str
    title: str
    verdict: Verdict
    fact: StatedFact


class Choice(msgspec.Struct, frozen=True):
    """An option of a rule."""

    name: str
    kind: str
    """the type of its values, for people"""
    default: Any
    about: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as people get to see it. Texts that a rule does not have are empty."""

    name: str
    summary: str
    why: str
    languages: tuple[str, ...]
    """keys of LANGUAGES"""
    assumes: Mapping[str, Any]
    """fact -> assumed value; empty where each place in the code brings its own"""
    before: Snippet
    after: Snippet
    remedy: Mapping[str, str]
    """by target or target family, "*" for all others"""
    fires_on: tuple[Outcome, ...]
    """observed: every shipped target for which `before` has a finding"""
    options: tuple[Choice, ...]
    exceptions: str
    fix_safety: str
    references: tuple[str, ...]


def explain(rule: Rule) -> Explanation:
    """Gather everything about a rule.

    Raises MissingExample where its fixtures lack the example.
    """
    shown = example(rule)
    why, sections = _sections(describe(rule).description)
    return Explanation(
        name=rule.name,
        summary=describe(rule).summary,
        why=why,
        languages=languages(rule),
        assumes={name: unfold(assumed) for name, assumed in rule.assumes.items()},
        before=shown.before,
        after=shown.after,
        remedy=rule.remedy,
        fires_on=tuple(
            Outcome(finding.target, load(finding.target).title, finding.verdict, finding.fact)
            for finding in findings(rule)
        ),
        options=tuple(Choice(one.name, one.kind, one.default, one.about) for one in rule.options.values()),
        exceptions=sections.get("Exceptions", ""),
        fix_safety=sections.get("Fix safety", ""),
        references=tuple(sections.get("References", "").split()),
    )


def languages(rule: Rule) -> tuple[str, ...]:
    """The languages that a rule's detectors read, as keys of LANGUAGES."""
    return tuple(sorted({detector.language for detector in rule.detectors}))


def _sections(description: str) -> tuple[str, dict[str, str]]:
    """The text before the first heading, and the text below each heading."""
    text, *rest = (part.strip() for part in re.split(r"^## (.+)$", description, flags=re.MULTILINE))
    return text, dict(zip(rest[::2], rest[1::2], strict=True))
