"""What every rule promises. A failure names the rule and what it lacks."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from harness import (
    FIXTURES,
    PANEL,
    Fixture,
    compare,
    counted,
    fixed,
    fixtures,
    measure,
    name,
    rules,
    scan,
    shown_fixes,
)

from portlint.examples import IS_FIXED
from portlint.fix import is_wanted
from portlint.rule import Rule
from portlint.target import load, shipped, vocabulary

HEADINGS = ["Exceptions", "Fix safety", "References"]
LONGEST_PART = 1024
"""GitHub's limit for a rule's texts, in characters"""
LONGEST_EXAMPLE = 20
"""lines that people read before they look away"""

SUFFIXES = {"python": {".py", ".pyi", ".ipynb"}, "cuda": {".cu", ".cuh", ".hip", ".h", ".hpp", ".cpp", ".cc", ".inl"}}


def language_of(fixture: Fixture) -> str:
    for language, suffixes in SUFFIXES.items():
        if fixture.path.suffix in suffixes:
            return language
    return "cmake" if fixture.path.suffix == ".cmake" or fixture.path.name == "CMakeLists.txt" else "recipe"


def of(name: str) -> list[Fixture]:
    return [fixture for fixture in fixtures() if fixture.rule == name]


@pytest.mark.parametrize("fixture", fixtures(), ids=name)
def test_a_fixture_is_flagged_where_it_says_and_nowhere_else(fixture: Fixture) -> None:
    found = scan(fixture.path, rules().values())
    assert not compare(fixture, found)


@pytest.mark.parametrize("name", rules())
class TestRule:
    def test_documentation(self, name: str) -> None:
        doc = rules()[name].doc.strip()
        summary, _, rest = doc.partition("\n\n")
        assert summary.endswith(".")
        assert len(summary.splitlines()) == 1
        assert rest, "say why it matters"
        headings = re.findall(r"^## (.+)$", rest, re.MULTILINE)
        assert headings == [heading for heading in HEADINGS if heading in headings]
        assert all(len(part) <= LONGEST_PART for part in re.split(r"^## .+$", doc, flags=re.MULTILINE))

    def test_message_and_remedies(self, name: str) -> None:
        rule = rules()[name]
        assert re.search(r"'\{\w+\}|\{text\}|\{built\}", rule.message)
        assert "{target}" in rule.message
        assert "{fact}" in rule.message
        assert rule.message.endswith(".")
        assert "*" in rule.remedy
        families = {family for target in map(load, shipped()) for family in target.profile.families}
        assert set(rule.remedy) <= families | set(shipped()) | {"*"}
        assert all(text.endswith(".") for text in rule.remedy.values())

    def test_assumed_facts_exist(self, name: str) -> None:
        assert set(rules()[name].assumes) <= set(vocabulary())

    def test_each_language_has_a_firing_and_a_silent_fixture(self, name: str) -> None:
        own = of(name)
        for language in {detector.language for detector in rules()[name].detectors}:
            here = [fixture for fixture in own if language_of(fixture) == language]
            fires = [fixture for fixture in here if any(one.rule == name for one in fixture.expectations)]
            silent = [fixture for fixture in here if fixture not in fires]
            assert fires, f"no {language} fixture in which it fires"
            assert silent, f"no {language} fixture in which it is silent"
            assert all(fixture.path.name.startswith("silent_") for fixture in silent)
            assert not any(fixture.path.name.startswith("silent_") for fixture in fires)

    def test_it_has_an_example_before_and_after(self, name: str) -> None:
        named = [(fixture.path.name.partition(".")[0], fixture.path) for fixture in of(name)]
        (before,) = (path for stem, path in named if stem == "before")
        (after,) = (path for stem, path in named if stem == "silent_after")
        assert {finding.rule for finding in scan(before, rules().values(), shipped())} == {name}
        assert len(before.read_text(encoding="utf-8").splitlines()) <= LONGEST_EXAMPLE
        assert not scan(after, rules().values(), shipped())

    def test_it_fires_for_one_target_and_not_for_another(self, name: str) -> None:
        for fixture in of(name):
            found = {finding.target for finding in scan(fixture.path, [rules()[name]])}
            if found and found != set(PANEL):
                return
        pytest.fail("no fixture tells two targets apart")

    def test_hits_assume_only_what_the_rule_is_about(self, name: str) -> None:
        assumed = set(rules()[name].assumes)
        found = [finding for fixture in of(name) for finding in scan(fixture.path, [rules()[name]])]
        assert all(set(finding.assumes) <= assumed for finding in found if assumed)

    def test_fixes_are_shown(self, name: str) -> None:
        wanted: dict[str, str] = {}
        for fixture in of(name):
            wanted |= shown_fixes(fixture.path, [rules()[name]])
        folder = FIXTURES / name.replace("-", "_")
        there = {path.name: path.read_text("utf-8") for path in folder.iterdir() if IS_FIXED.search(path.name)}
        assert there.keys() == wanted.keys(), "write them with tools/make_fixed.py, and read them"
        assert there == wanted

    def test_fixes_mend(self, name: str) -> None:
        every = list(rules().values())
        for path in (one.path for one in of(name)):
            before = measure(path, [rules()[name]], path.read_bytes())
            for unsafe in (False, True):
                done = [one for one in counted(before) if is_wanted(one, unsafe=unsafe)]
                if not done:
                    continue
                after = fixed(path, [rules()[name]], unsafe=unsafe)
                result = measure(path, [rules()[name]], after)
                assert result.broken <= before.broken
                assert len(counted(result)) <= len(counted(before)) - len(done)
                assert fixed(path, [rules()[name]], unsafe=unsafe, content=after) == after
                # what is mended may show the next belief behind it, but no more of them than before
                others = Counter(one.target for one in counted(measure(path, every, after)))
                assert others <= Counter(one.target for one in scan(path, every))

    def test_what_is_fixed_is_documented(self, name: str) -> None:
        fixable = any(one.fixable for fixture in of(name) for one in scan(fixture.path, [rules()[name]]))
        assert fixable == ("## Fix safety" in rules()[name].doc)

    def test_every_detector_fires(self, name: str) -> None:
        for detector in rules()[name].detectors:
            alone = Rule(
                assumes=rules()[name].assumes,
                message=rules()[name].message,
                remedy=rules()[name].remedy,
                otherwise=rules()[name].otherwise,
            )
            alone.name = name
            alone.detectors = [detector]
            assert any(scan(fixture.path, [alone]) for fixture in of(name)), f"{detector.detect.__name__} never fires"


def test_every_fixture_folder_belongs_to_a_rule() -> None:
    folders = {fixture.rule for fixture in fixtures()}
    assert folders <= set(rules())


def is_own(path: Path) -> bool:
    """Whether a file is written by hand, and says something."""
    return path.is_file() and path.stat().st_size > 0 and not IS_FIXED.search(path.name)


def test_no_two_fixtures_are_equal() -> None:
    texts = Counter(path.read_bytes() for path in FIXTURES.rglob("*") if is_own(path))
    assert not [text[:80] for text, count in texts.items() if count > 1]
