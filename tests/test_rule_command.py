"""`portlint rule` lists the rules, and explains one with its own example, in a checkout and installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from portlint.cli import main
from portlint.examples import MissingExample, example, fires_on, strip
from portlint.finding import Verdict
from portlint.rule import Rule
from portlint.rules import discover
from portlint.target import shipped

ROOT = Path(__file__).resolve().parent.parent
RULES = discover()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["rule", *arguments])


def test_the_list_has_every_rule_with_its_summary() -> None:
    result = run()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == sorted(RULES)
    assert "Code is written as if a warp always has 32 lanes." in result.stdout


def test_the_list_as_json() -> None:
    listed = json.loads(run("--output-format", "json").stdout)
    assert [one["name"] for one in listed] == sorted(RULES)
    assert all(set(one) == {"name", "summary", "languages"} for one in listed)
    assert next(one for one in listed if one["name"] == "isa/inline-ptx")["languages"] == ["cuda", "python"]


@pytest.mark.parametrize("name", RULES)
def test_a_page_shows_all_that_there_is_to_say(name: str) -> None:
    result = run(name)
    assert result.exit_code == 0
    words = " ".join(result.stdout.split())
    rule = RULES[name]
    assert result.stdout.startswith(f"{name}\n")
    for text in (*rule.remedy.values(), example(rule).before.text, example(rule).after.text):
        assert " ".join(text.split()) in words
    for target, verdict in fires_on(rule).items():
        assert f"{target}: {verdict}; " in result.stdout
    for url in rule.doc.partition("## References")[2].split():
        assert url in result.stdout
    assert "expect[" not in result.stdout
    assert "gap[" not in result.stdout


def test_a_page_in_order() -> None:
    headings = ("Languages: CUDA and HIP C++, Python", "Before", "After", "Remedy", "The example fires on")
    page = run("lanes/warp-is-32").stdout
    places = [page.index(f"\n{heading}\n") for heading in (*headings, "Exceptions", "References")]
    assert places == sorted(places)


def test_a_page_cites_the_fact_that_the_example_contradicts() -> None:
    page = run("lanes/warp-is-32").stdout
    assert "cdna3: corrupts; AMD CDNA3 (gfx942) has 64 lanes per wavefront\n" in page
    assert "https://llvm.org/docs/AMDGPUUsage.html" in page


def test_a_page_as_json() -> None:
    page = json.loads(run("lanes/warp-is-32", "--output-format", "json").stdout)
    assert list(page) == [
        "name", "summary", "why", "languages", "assumes", "before", "after", "remedy", "fires_on", "options",
        "exceptions", "fix_safety", "references",
    ]  # fmt: skip
    assert page["before"]["file"] == "before.cu"
    assert "threadIdx.x % 32" in page["before"]["text"]
    assert "threadIdx.x % warpSize" in page["after"]["text"]
    assert page["assumes"] == {"lanes.width": 32}
    assert [(one["target"], one["verdict"]) for one in page["fires_on"]] == [
        ("cdna2", "corrupts"),
        ("cdna3", "corrupts"),
        ("cdna4", "corrupts"),
    ]
    fact = page["fires_on"][0]["fact"]
    assert (fact["name"], fact["value"], fact["text"]) == ("lanes.width", 64, "64 lanes per wavefront")
    assert set(fact["cite"]) == {"title", "url", "seen"}


@pytest.mark.parametrize(
    ("typed", "meant"), [("lanes/warp-is-3", "lanes/warp-is-32"), ("device/cuda", "device/is-cuda")]
)
def test_a_wrong_name_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    result = run(typed)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"there is no rule '{typed}'. Did you mean '{meant}'?" in result.stderr


def test_a_rule_without_an_example_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unfinished = Rule(assumes={}, message="", remedy={"*": "Wait."})
    unfinished.name = "lanes/is-unfinished"
    with pytest.raises(MissingExample, match="has no fixture 'before"):
        example(unfinished)
    monkeypatch.setattr("portlint.rules.discover", lambda: {unfinished.name: unfinished})
    result = run(unfinished.name)
    assert result.exit_code == 2
    assert "lanes/is-unfinished" in result.stderr


def test_where_an_example_fires_is_observed() -> None:
    fires = fires_on(RULES["dtype/float64"])
    assert fires["mps"] is Verdict.BREAKS
    assert fires["gaudi3"] is Verdict.CORRUPTS
    assert fires["tpu-v6e"] is Verdict.DEGRADES
    assert "hopper" not in fires
    assert list(fires) == [target for target in shipped() if target in fires]


def test_of_several_findings_for_a_target_the_worst_counts() -> None:
    fires = fires_on(RULES["lanes/mask-is-32-bit"])
    assert (fires["cdna3"], fires["rdna3"]) == (Verdict.CORRUPTS, Verdict.BREAKS)


@pytest.mark.parametrize(
    ("fixture", "shown"),
    [
        ("int a = 32;  // expect[lanes/warp-is-32 @ cdna3 cdna4]\n", "int a = 32;\n"),
        ("a = 1  # expect[device/is-cuda] expect[dtype/float64 @ mps]\nb = 2\n", "a = 1\nb = 2\n"),
        ("f(a);  // gap[isa/async-copy @ cdna3]\n", "f(a);\n"),
        ("f(a);  // the first one  expect[isa/async-copy]\n", "f(a);  // the first one\n"),
        ("x.cuda()  # expect[device/is-cuda]\n#  ^^^^^^\ny\n", "x.cuda()\ny\n"),
        ("// a comment\nx[expect[0]] = 1;  // why\n", "// a comment\nx[expect[0]] = 1;  // why\n"),
    ],
)
def test_annotations_are_not_shown(fixture: str, shown: str) -> None:
    assert strip(fixture) == shown


def test_an_installed_package_has_the_examples(tmp_path: Path) -> None:
    """The layout of the wheel, which holds the fixtures as portlint/fixtures."""
    shutil.copytree(ROOT / "portlint", tmp_path / "portlint", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "fixtures", tmp_path / "portlint" / "fixtures")
    command = [sys.executable, "-m", "portlint", "rule", "lanes/warp-is-32"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == run("lanes/warp-is-32").stdout
    wheel = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[tool.hatch.build.targets.wheel.force-include]\nfixtures = "portlint/fixtures"\n' in wheel
