"""All answers to one question, as the formats receive them."""

from __future__ import annotations

import msgspec

from portlint.finding import Cite
from portlint.fit.architecture import Model
from portlint.fit.assess import Answer, Choice, Load


class Report(msgspec.Struct, frozen=True):
    """What `portlint fit` found."""

    model: Model
    load: Load
    targets: tuple[str, ...]
    answers: tuple[Answer, ...]
    """in the order of targets and of their profiles"""
    choices: tuple[Choice, ...]

    def sources(self) -> list[Cite]:
        """Every source of a figure, each once, in the order in which products cite them."""
        return list(dict.fromkeys(cite for answer in self.answers for cite in answer.product.cites))

    def numbers(self, answer: Answer) -> list[int]:
        """The places of an answer's sources among all, counted from 1."""
        sources = self.sources()
        return sorted(sources.index(cite) + 1 for cite in answer.product.cites)

    @property
    def fits(self) -> bool:
        """Whether each target has a product that is known to fit."""
        fitting = {answer.product.target for answer in self.answers if answer.fits}
        return fitting >= set(self.targets)
