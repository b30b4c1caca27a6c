"""Suppression comments: what they cover, when they end, what they have to say, and what `expect` asserts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import portlint
from portlint.cli import main

LINE = 'x = torch.zeros(3, device="cuda")'
TEXT = f"import torch\n\n{LINE}\n"
FINDING = "device/is-cuda"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(TODAY))


TODAY = 1_801_310_400
"""2027-01-30 in seconds"""


def check(text: str, *more: str, name: str = "a.py", target: str = "mps") -> tuple[int, list[str], list[str]]:
    """The exit status, the rules that are reported, and the problems as `kind: message`."""
    Path(name).write_text(text)
    outcome = CliRunner().invoke(main, ["check", name, "-t", target, "--output-format", "json", *more])
    report = json.loads(outcome.stdout)
    problems = [f"{one['kind']}: {one['message']}" for one in report["problems"]]
    return outcome.exit_code, [one["rule"] for one in report["findings"]], problems


def trailing(comment: str) -> str:
    return TEXT.replace(LINE, f"{LINE}  # portlint: {comment}")


class TestUntil:
    def test_until_that_day_it_suppresses(self) -> None:
        assert check(trailing(f"ignore[{FINDING} until 2027-01-30] the port is under way")) == (0, [], [])

    def test_after_that_day_it_does_not_and_says_so(self) -> None:
        status, found, (problem,) = check(trailing(f"ignore[{FINDING} @ mps until 2027-01-29] soon"))
        assert (status, found) == (1, [FINDING])
        assert "has ended: since 2027-01-29 it suppresses nothing" in problem

    def test_each_selector_has_a_day_of_its_own(self) -> None:
        assert check(trailing(f"ignore[lanes until 2020-01-01, {FINDING}] x"))[:2] == (0, [])
        assert check(trailing(f"ignore[{FINDING} until 2020-01-01, device] x"))[:2] == (0, [])

    def test_one_that_has_ended_and_covers_nothing_is_unused(self) -> None:
        _, _, (problem,) = check(f"import torch  # portlint: ignore[{FINDING} until 2020-01-01] x\n")
        assert "suppresses nothing: remove it" in problem

    @pytest.mark.parametrize("inside", ["until soon", "lanes until 2027-13-01", "lanes until", "/", "a/b/c", " , "])
    def test_what_cannot_be_read_suppresses_nothing(self, inside: str) -> None:
        status, found, (problem,) = check(trailing(f"ignore[{inside}] x"))
        assert (status, found) == (1, [FINDING])
        assert problem.startswith("directive: ")


class TestNames:
    @pytest.mark.parametrize("target", ["mps", "metal", "apple-silicon"])
    def test_a_target_has_all_its_names(self, target: str) -> None:
        assert check(trailing(f"ignore[{FINDING} @ {target}] x")) == (0, [], [])
        assert check(trailing(f"expect[device @ {target} until 2027-02-01]")) == (0, [], [])

    def test_another_target_is_not_meant(self) -> None:
        assert check(trailing(f"ignore[{FINDING} @ gfx942] x")) == (1, [FINDING], [])

    def test_one_that_is_not_needed_is_told_as_it_is_written(self) -> None:
        _, _, (problem,) = check(f"import torch  # portlint: ignore[{FINDING} @ metal] x\n")
        assert "ignore[device/is-cuda @ metal]' suppresses nothing: remove it" in problem

    @pytest.mark.parametrize(
        ("inside", "said"),
        [
            ("device/is-cuda @ mpz", "there is no target 'mpz'. Did you mean 'mps'?"),
            ("device/is-cude", "there is no rule 'device/is-cude'. Did you mean 'device/is-cuda'?"),
            ("devices", "there is no pack 'devices'. Did you mean 'device'?"),
        ],
    )
    @pytest.mark.parametrize("verb", ["ignore", "expect", "file-ignore"])
    def test_an_unknown_name_is_told(self, verb: str, inside: str, said: str) -> None:
        assert check(trailing(f"{verb}[{inside}] x")) == (1, [FINDING], [f"directive: '{verb}': {said}"])
        assert check(trailing(f"{verb}[{inside}] x"), "--select", "device")[2] == [f"directive: '{verb}': {said}"]

    def test_the_others_beside_it_hold(self) -> None:
        status, found, (problem,) = check(trailing(f"ignore[{FINDING} @ mpz, {FINDING} @ mps] x"))
        assert (status, found) == (0, [])
        assert "there is no target 'mpz'" in problem

    def test_a_target_that_the_configuration_lists_is_known(self) -> None:
        profile = (Path(portlint.__file__).parent / "targets" / "mps.toml").read_text()
        Path("own.toml").write_text(profile.replace('name = "mps"', 'name = "own"', 1))
        Path("portlint.toml").write_text('target = ["own.toml"]\n')
        assert check(trailing(f"ignore[{FINDING} @ own] x")) == (1, [FINDING], [])
        Path("own.toml").write_text("name =")
        assert "there is no target 'own'" in check(trailing(f"ignore[{FINDING} @ own] x"))[2][0]


class TestReason:
    @pytest.fixture(autouse=True)
    def configuration(self) -> None:
        Path("portlint.toml").write_text("require-reason = true\n")

    @pytest.mark.parametrize("reason", ["", " ", " -", " # "])
    def test_without_one_nothing_is_suppressed(self, reason: str) -> None:
        status, found, (problem,) = check(trailing(f"ignore[{FINDING}]{reason}"))
        assert (status, found) == (1, [FINDING])
        assert "gives no reason" in problem

    def test_with_one_it_is(self) -> None:
        assert check(trailing(f"ignore[{FINDING}] CI has one")) == (0, [], [])

    def test_the_end_of_a_comment_is_none(self) -> None:
        text = "/* portlint: file-ignore[lanes] */ __device__ float f(float x) { return __shfl_xor_sync(~0u, x, 1); }\n"
        assert "gives no reason" in check(text, name="a.cu", target="cdna3")[2][0]

    def test_an_expectation_needs_none(self) -> None:
        assert check(trailing(f"expect[{FINDING}]")) == (0, [], [])


class TestExpect:
    def test_what_is_expected_is_suppressed(self) -> None:
        assert check(trailing(f"expect[{FINDING}] a fixture")) == (0, [], [])

    def test_what_is_not_found_is_an_error(self) -> None:
        status, _, problems = check(f"import torch  # portlint: expect[{FINDING}]\n")
        assert (status, problems) == (1, [f"expect: 'portlint: expect[{FINDING}]': nothing is found here"])
        assert check(f"import torch  # portlint: expect[{FINDING}]\n", "--exit-zero")[0] == 0

    def test_each_rule_has_to_be_found(self) -> None:
        status, found, problems = check(trailing(f"expect[{FINDING}, device/nccl-exists]"))
        assert (status, found) == (1, [])
        assert problems == ["expect: 'portlint: expect[device/nccl-exists]': nothing is found here"]

    @pytest.mark.parametrize("more", [("--select", "lanes"), ("--ignore", "device")])
    def test_what_did_not_run_is_not_missed(self, more: tuple[str, ...]) -> None:
        for inside in (FINDING, f"{FINDING} @ gaudi3", f"{FINDING} @ mps"):
            assert check(f"import torch  # portlint: expect[{inside}]\n", *more) == (0, [], [])

    def test_in_sarif_it_is_an_error(self) -> None:
        Path("a.py").write_text(f"import torch  # portlint: expect[{FINDING}]\n")
        outcome = CliRunner().invoke(main, ["check", "a.py", "-t", "mps", "--output-format", "sarif"])
        (notice,) = json.loads(outcome.stdout)["runs"][0]["invocations"][0]["toolExecutionNotifications"]
        assert notice["level"] == "error"


class TestCoverage:
    def test_two_on_one_line(self) -> None:
        text = trailing("ignore[lanes] x  # portlint: ignore[device] y")
        assert check(text)[:2] == (0, [])

    def test_two_above_one_another(self) -> None:
        text = TEXT.replace(LINE, f"# portlint: ignore[device] x\n# portlint: ignore[lanes] y\n\n# word\n{LINE}")
        status, found, problems = check(text)
        assert (status, found) == (0, [])
        assert len(problems) == 1  # that of the other pack

    def test_in_a_notebook(self) -> None:
        cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
        cells = [
            {**cell, "source": ["import torch\n", "\n", "n = 3\n"]},
            {**cell, "source": [f"{LINE}  # portlint: ignore[device] a laptop\n", f"{LINE}\n"]},
        ]
        text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
        assert check(text, name="a.ipynb") == (1, [FINDING], [])

    def test_one_for_what_the_configuration_ignores_is_used(self) -> None:
        Path("portlint.toml").write_text(f"ignore = ['{FINDING} @ mps']\n")
        assert check(trailing(f"ignore[{FINDING}] x")) == (0, [], [])

    def test_a_pack_of_which_only_a_rule_ran_is_not_called_unused(self) -> None:
        text = trailing("ignore[device] x")
        assert check(text, "--select", "device/nccl-exists") == (0, [], [])
