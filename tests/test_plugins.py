"""Rules of others: folders that the caller names, installed packages, and what it takes to write one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from portlint import rules
from portlint.cli import main

SUM = "__device__ float warp_sum_32(float v);\n__global__ void f(float* x) { x[0] = warp_sum_32(x[1]); }\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in; what was loaded in it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rules, "_folders", [])
    yield tmp_path
    rules.discover.cache_clear()


def portlint(command: str) -> Result:
    return CliRunner().invoke(main, shlex.split(command))


def found(command: str) -> set[str]:
    result = portlint(f"{command} --output-format json")
    assert result.exit_code in (0, 1), result.output
    return {one["rule"] for one in json.loads(result.stdout)["findings"]}


def test_a_new_rule_passes_its_test_and_fires() -> None:
    result = portlint("rule lanes/warp-sum-is-32 --new lint")
    assert result.exit_code == 0, result.output
    command = result.stdout.splitlines()[-1].partition("Try it: portlint ")[2]
    held = portlint(command)
    assert held.exit_code == 0, held.output
    assert "2 fixtures, all as annotated" in held.stdout
    Path("a.cu").write_text(SUM)
    assert "lanes/warp-sum-is-32" in found("--rules lint check a.cu --target cdna3")
    assert "lanes/warp-sum-is-32" not in found("--rules lint check a.cu --target hopper")
    explained = portlint("--rules lint rule lanes/warp-sum-is-32")
    assert "Warp sum is 32." in explained.stdout


def test_a_rule_that_its_fixtures_contradict_fails_its_test() -> None:
    portlint("rule lanes/warp-sum-is-32 --new lint")
    fixture = Path("lint/fixtures/lanes/warp_sum_is_32/silent_after.cu")
    fixture.write_text(fixture.read_text().replace("warp_sum(", "warp_sum_32("))
    held = portlint("--rules lint rule lanes/warp-sum-is-32 --test")
    assert held.exit_code == 1
    assert "silent_after.cu: line 4: unexpected lanes/warp-sum-is-32" in held.stdout


def test_the_rules_of_portlint_can_be_held_as_well() -> None:
    assert "all as annotated" in portlint("rule lanes/warp-is-32 --test").stdout


def test_nothing_in_the_tree_makes_its_rules_run() -> None:
    portlint("rule lanes/warp-sum-is-32 --new .")
    Path("lanes/warp_sum_is_32.py").write_text("raise SystemExit('the code of the tree ran')\n")
    Path("portlint.toml").write_text('target = ["cdna3"]\nrules = ["."]\n')
    result = portlint("check .")
    assert result.exit_code == 2
    assert "A configuration runs no code" in result.stderr
    assert "'portlint --rules DIR'" in result.stderr
    Path("portlint.toml").write_text('target = ["cdna3"]\n')
    assert "the code of the tree ran" not in portlint("check .").output


def test_installed_packages_bring_rules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    portlint("rule lanes/warp-sum-is-32 --new acme_rules")
    for place in ("acme_rules", "acme_rules/lanes"):
        Path(place, "__init__.py").write_text("")
    Path("acme-1.dist-info").mkdir()
    Path("acme-1.dist-info/METADATA").write_text("Name: acme\nVersion: 1\n")
    Path("acme-1.dist-info/entry_points.txt").write_text("[portlint.rules]\nacme = acme_rules\n")
    monkeypatch.syspath_prepend(folder)
    rules.discover.cache_clear()
    Path("a.cu").write_text(SUM)
    assert "lanes/warp-sum-is-32" in found("check a.cu --target cdna3")
    assert "all as annotated" in portlint("rule lanes/warp-sum-is-32 --test").stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import", "SyntaxError"),
        ("raise ValueError('no')", "ValueError: no"),
        ("x = 1", "it holds no Rule named 'rule'"),
        (None, "there is a rule 'lanes/warp-is-32' already"),
    ],
)
def test_a_rule_that_cannot_be_loaded_is_an_error_for_people(text: str | None, words: str) -> None:
    Path("lint/lanes").mkdir(parents=True)
    if text is None:
        portlint("rule lanes/warp-is-32 --new lint")
    else:
        Path("lint/lanes/mine.py").write_text(text)
    result = portlint("--rules lint rule")
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize(
    "command", ["rule Lanes/x --new lint", "rule nothing --new lint", "rule --test", "--rules nowhere rule"]
)
def test_mistakes(command: str) -> None:
    result: Any = portlint(command)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")


def test_a_file_that_is_there_is_not_overwritten() -> None:
    portlint("rule lanes/mine --new lint")
    Path("lint/lanes/mine.py").write_text("# mine\n")
    assert portlint("rule lanes/mine --new lint").exit_code == 2
    assert Path("lint/lanes/mine.py").read_text() == "# mine\n"
