"""What holds for any text at all: a scan never raises, and every finding lies inside its file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from harness import PANEL, fixtures
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portlint.detect import RuleSet, detect
from portlint.judge import Judge
from portlint.rules import discover
from portlint.source import Source
from portlint.source.decode import line_starts
from portlint.source.text import Lines
from portlint.target import load

RULES = RuleSet(discover().values())
TARGETS = tuple(load(name) for name in PANEL)
TEXTS = {
    "python": [one.path for one in fixtures() if one.path.suffix == ".py"],
    "cuda": [one.path for one in fixtures() if one.path.suffix in (".cu", ".cuh", ".hip", ".h", ".cpp")],
    "cmake": [one.path for one in fixtures() if one.path.name == "CMakeLists.txt" or one.path.suffix == ".cmake"],
    "requirements": [one.path for one in fixtures() if one.path.suffix == ".txt"],
    "dockerfile": [one.path for one in fixtures() if one.path.suffix == ".Dockerfile"],
    "yaml": [one.path for one in fixtures() if one.path.suffix == ".yml"],
    "bash": [one.path for one in fixtures() if one.path.suffix == ".sh"],
    "toml": [one.path for one in fixtures() if one.path.suffix == ".toml"],
}

NAMES = {"yaml": "compose.yml"}
"""where the name says what a text is for"""


def examine(text: bytes, language: str) -> None:
    source, lines = Source(NAMES.get(language, "x"), text, language), Lines(text, line_starts(text))
    judge = Judge(source, lines)
    for rule, hit in detect(source, RULES)[0]:
        for finding in judge.judge(rule, hit, TARGETS):
            assert 1 <= finding.line <= finding.end_line <= len(lines)
            assert 1 <= finding.column <= len(lines.line(finding.line)) + 1
            assert finding.column < finding.end_column or finding.line < finding.end_line


@pytest.mark.parametrize("language", TEXTS)
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_mutilated_code(language: str, data: st.DataObject) -> None:
    """Code with pieces cut out, doubled and swapped, as it looks while it is being edited."""
    path: Path = data.draw(st.sampled_from(TEXTS[language]))
    text = path.read_bytes()
    shuffle = random.Random(data.draw(st.integers(0, 1 << 30)))
    for _ in range(data.draw(st.integers(1, 4))):
        start, end = sorted((shuffle.randint(0, len(text)), shuffle.randint(0, len(text))))
        text = shuffle.choice(
            [text[:start] + text[end:], text[:end] + text[start:], text[start:end] + text[:start], text[: start + 1]]
        )
    examine(text, language)


@pytest.mark.parametrize("language", TEXTS)
@given(text=st.text(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_text(language: str, text: str) -> None:
    examine(text.encode(errors="replace"), language)
