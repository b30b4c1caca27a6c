"""From findings to questions and back: a kernel is asked once, and its answer joins all findings that rest on it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from portlint.finding import Evidence, Finding, Verdict
from portlint.rule import fold
from portlint.target import Target, vocabulary
from portlint.verify import levels
from portlint.verify.evidence import Entry
from portlint.verify.kernel import Kernel, Parameters, of_fact, parameters
from portlint.verify.levels import Outcome, Reply


class Question(msgspec.Struct, frozen=True):
    """What one kernel is asked for one target, and the findings that wait for the answer."""

    kernel: Kernel
    target: Target
    asked: Parameters
    assumed: Any
    """the assumption as JSON has it"""
    findings: tuple[Finding, ...]

    @property
    def id(self) -> str:
        """A name that is the same in every run."""
        text = "\0".join((self.kernel.route, self.kernel.name, self.target.name, *msgspec.structs.astuple(self.asked)))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class Unasked(msgspec.Struct, frozen=True):
    """Findings that no kernel can say anything of, and why."""

    fact: str
    target: str
    reason: str
    findings: tuple[Finding, ...]


def questions(findings: Iterable[Finding], targets: Sequence[Target]) -> tuple[list[Question], list[Unasked]]:
    """What to ask for these findings, and what cannot be asked. Findings of unknown facts have nothing to prove."""
    by_name = {target.name: target for target in targets}
    groups: dict[tuple[str, Parameters], list[Finding]] = {}
    for finding in findings:
        if finding.verdict is not Verdict.UNKNOWN:
            asked = parameters(finding.fact.name, finding.assumes[finding.fact.name])
            groups.setdefault((finding.target, asked), []).append(finding)
    found: list[Question] = []
    unasked: list[Unasked] = []
    for (name, asked), group in sorted(groups.items(), key=lambda item: item[0]):
        kernels = of_fact(asked.fact, by_name[name])
        assumed = group[0].assumes[asked.fact]
        found += (Question(kernel, by_name[name], asked, assumed, tuple(group)) for kernel in kernels)
        if not kernels:
            term = vocabulary()[asked.fact]
            reason = term.unmeasured or f"no kernel measures it on {by_name[name].title}"
            unasked.append(Unasked(asked.fact, name, reason, tuple(group)))
    return found, unasked


def climb(
    asked: Sequence[Question], wanted: Sequence[str], progress: Callable[[int, int], None] | None = None
) -> Iterator[tuple[Question, Reply]]:
    """The replies of each question at each of the levels wanted, the weakest level first."""
    for number, question in enumerate(asked, 1):
        for level in wanted:
            if level == "simulate" and question.kernel.route == "cuda":
                continue  # what simulates C++ is given the code of the finding (`proving`)
            yield (
                question,
                levels.answer(question.kernel, question.asked, fold(question.assumed), question.target, level),
            )
        if progress:
            progress(number, len(asked))


def entries(question: Question, reply: Reply) -> Iterator[Entry]:
    """The entries of an answer for the evidence file; none for what did not run."""
    if reply.outcome is not Outcome.NOT_RUN:
        yield from entries_of(question, reply.evidence(question.target))


def entries_of(question: Question, evidence: Evidence) -> Iterator[Entry]:
    """One entry for each finding that waits for an answer."""
    return (entry(finding, evidence, question.kernel) for finding in question.findings)


def entry(finding: Finding, evidence: Evidence, kernel: Kernel | None = None) -> Entry:
    """The entry of a finding; without a kernel, its own code was asked."""
    return Entry(
        fingerprint=finding.fingerprint,
        setting=finding.setting,
        rule=finding.rule,
        path=finding.path,
        target=finding.target,
        fact=finding.fact.name,
        stated=finding.fact.value,
        assumes=finding.assumes,
        kernel=kernel.name if kernel else "",
        kernel_digest=kernel.digest if kernel else "",
        evidence=evidence,
    ).sealed()
