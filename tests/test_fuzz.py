"""A short run of the fuzzers in benchmarks/fuzz, always with the same inputs, and the kinds of text that they found."""

import time
from pathlib import Path
from random import Random

import pytest
from fuzz import generate
from fuzz.families import FAMILIES, Files, check_file
from fuzz.generate import LANGUAGES, MOST_BYTES, derive, grammar
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from portlint.source.prescan import Limits

EXAMPLES = {"cxx": 15, "python": 25, "recipes": 40, "notebooks": 12, "directives": 15}
BYTES = 4_000
"""so that this takes seconds, not minutes"""


def nothing(phase: str) -> None:
    """What is being done makes no difference here."""


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_made_up_does_no_harm(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "MOST_BYTES", BYTES)

    @settings(
        max_examples=EXAMPLES.get(family, 40),
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 1 << 32))
    def check(seed: int) -> None:
        FAMILIES[family].check(FAMILIES[family].make(Random(seed)), nothing)

    check()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_makes_the_same_input(family: str) -> None:
    kind = FAMILIES[family]
    made = [kind.make(Random(seed)) for seed in range(10)]
    assert made == [kind.make(Random(seed)) for seed in range(10)]
    assert len(set(made)) > 5
    assert kind.seeds


@pytest.mark.parametrize("name", LANGUAGES)
def test_programs_end(name: str) -> None:
    texts = [derive(Random(seed), grammar(name)) for seed in range(20)]
    assert len(set(texts)) > 10
    assert not any("<statement>" in text or "<line>" in text for text in texts)


def test_every_name_has_seeds_of_its_kind() -> None:
    for family in FAMILIES.values():
        if isinstance(family, Files):
            assert {Path(family.names[seed[0]]).suffix for seed in family.seeds} <= {
                Path(name).suffix for name in family.names
            }


REPEATED = {
    "a name with a thousand definitions": ("kernel.cu", "constexpr int a = a;\n" * 1_000),
    "a name with thousands of assignments": ("kernel.cu", "void f() {\n" + "x = x >> 5;\n" * 2_000 + "}"),
    "a choice within a choice": ("module.py", "import jax\nx = " + "a if b else " * 1_000 + "c\n"),
}


@pytest.mark.parametrize(("name", "text"), REPEATED.values(), ids=REPEATED)
def test_what_is_repeated_takes_linear_time(name: str, text: str) -> None:
    assert len(text) <= MOST_BYTES
    times: dict[str, float] = {}
    now, at = "start", time.process_time()

    def note(phase: str) -> None:
        nonlocal now, at
        times[now] = max(times.get(now, 0), time.process_time() - at)
        now, at = phase, time.process_time()

    check_file(name, text.encode(), note)
    slow = {phase: seconds for phase, seconds in times.items() if seconds > Limits().rule_seconds}
    assert not slow
