"""The byte gate is only a short cut: with it and without it a scan finds the same."""

from __future__ import annotations

from functools import cache

import pytest
from harness import Fixture, fixtures, name

from portlint.detect import RuleSet, detect, gate
from portlint.rule import Detector, Hit, Hits, Node, Rule
from portlint.rules import discover
from portlint.source import Source
from portlint.source.decode import decode
from portlint.source.language import by_content, by_name


def nothing(node: Node) -> Hits:
    yield Hit(node)


@cache
def each_alone() -> list[tuple[Detector, RuleSet]]:
    """Every detector as the only one of a set of rules; made once, since each compiles its query."""
    made = []
    for detector in (one for rule in discover().values() for one in rule.detectors):
        alone = Rule(assumes={}, message="", remedy={"*": ""})
        alone.detectors = [detector]
        made.append((detector, RuleSet([alone])))
    return made


@pytest.mark.parametrize("fixture", [one for one in fixtures() if one.expectations], ids=name)
def test_it_lets_in_every_file_in_which_a_detector_finds_something(fixture: Fixture) -> None:
    kind = by_name(fixture.path.name) or ""
    if kind == "notebook":
        return
    text = decode(fixture.path.read_bytes(), kind).text
    language = by_content(kind, text) or ""
    for detector, rules in each_alone():
        if detect(Source(fixture.path.name, text, language), rules)[0]:
            assert rules.may_fire(text, language), detector.detect.__name__


@cache
def all_compiled() -> RuleSet:
    rules = RuleSet(discover().values())
    rules.compile(("cmake", "cuda", "python"))
    return rules


@pytest.mark.parametrize("fixture", [one for one in fixtures() if one.expectations][::7], ids=name)
def test_a_query_for_one_file_finds_what_that_for_all_finds(fixture: Fixture) -> None:
    kind = by_name(fixture.path.name) or ""
    if kind == "notebook":
        return
    text = decode(fixture.path.read_bytes(), kind).text
    language = by_content(kind, text) or ""
    places = [
        [
            (rule.name, hit.node.start, hit.node.end)
            for rule, hit in detect(Source(fixture.path.name, text, language), rules)[0]
        ]
        for rules in (RuleSet(discover().values()), all_compiled())
    ]
    assert places[0] == places[1]


@pytest.mark.parametrize(
    ("detector", "clauses"),
    [
        (
            Detector("python", nothing, names=frozenset({"torch.load", "torch.jit.load"}), kind="call"),
            {"load", "torch"},
        ),
        (Detector("python", nothing, names=frozenset({".item"}), kind="call"), {"item"}),
        (Detector("cuda", nothing, names=frozenset({"__shfl"}), kind="call"), {"__shfl"}),
        (Detector("cuda", nothing, '((identifier) @x (#any-of? @x "a" "b"))'), {"a b"}),
        (Detector("cuda", nothing, '((identifier) @x (#match? @x "arch=|sm_"))'), {"arch= sm_"}),
        (Detector("cuda", nothing, '((identifier) @x (#match? @x "^sm_"))'), set()),
        (Detector("cuda", nothing, '((identifier) @x (#eq? @x "a")) ((comment) @x)'), {"a"}),
        (Detector("python", nothing, "(if_statement) @x", mentions=("jax", "torch")), {"jax torch"}),
    ],
)
def test_its_words_are_read_off_names_and_predicates(detector: Detector, clauses: set[str]) -> None:
    found = [clause.words | clause.parts for clause in gate(detector)]
    assert {" ".join(sorted(word.decode() for word in words)) for words in found} == clauses
