"""The README keeps its word: its commands run, and what it links to is there."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from portlint.cli import main
from portlint.target import shipped

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks() -> list[list[list[str]]]:
    """The README's console blocks, each as its commands in order, as words; `a && b` is two commands."""
    found: list[list[list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL):
        found.append([])
        for line in block.splitlines():
            assert line.startswith("$ "), f"not a command: {line!r}"
            found[-1] += [shlex.split(command) for command in line.removeprefix("$ ").split(" && ")]
    return found


def commands() -> list[list[str]]:
    return [words for block in blocks() for words in block]


def arguments_of(program: str) -> list[list[str]]:
    return [words[1:] for words in commands() if words[0] == program]


def test_the_two_commands_everybody_needs_are_there() -> None:
    assert commands()[:4] == [
        ["pip", "install", "."],
        ["portlint", "check", "fixtures/demo", "--target", "cdna3"],
        ["pip", "install", ".[test]"],
        ["pytest"],
    ]


def test_every_command_is_one_that_this_test_knows() -> None:
    assert {words[0] for words in commands()} == {"portlint", "pip", "pytest"}


@pytest.mark.parametrize("block", [block for block in blocks() if ["portlint"] in [one[:1] for one in block]], ids=str)
def test_portlint_commands_run_and_say_something(
    block: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "fixtures" / "demo", tmp_path / "fixtures" / "demo")
    monkeypatch.chdir(tmp_path)
    for program, *arguments in block:
        if program != "portlint":
            continue
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code in (0, 1), result.output
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        writes = [word for word in arguments if ":" in word]
        assert result.stdout.strip() or (writes and all(Path(one.partition(":")[2]).exists() for one in writes))


def test_the_demo_has_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert CliRunner().invoke(main, ["check", "fixtures/demo", "--target", "cdna3"]).exit_code == 1


def test_pip_commands_install_extras_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for arguments in arguments_of("pip"):
        verb, requirement = arguments
        match = re.fullmatch(r"\.(?:\[([\w,]+)\])?", requirement)
        assert verb == "install"
        assert match, f"not this project: {requirement}"
        extras = set(filter(None, (match[1] or "").split(",")))
        assert extras <= project["optional-dependencies"].keys()


def test_ci_runs_the_same_install_and_test_commands() -> None:
    steps = re.findall(r"^step (.+)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert ["pytest"] in map(shlex.split, steps)
    assert any(re.fullmatch(r"pip install --quiet '\.\[test(,\w+)*\]'", step) for step in steps)


def test_the_targets_table_lists_every_target() -> None:
    table = README.partition("### Targets")[2].partition("###")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert sorted(re.findall(r"`([^`]+)`", "\n".join(rows))) == list(shipped())


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)", README))))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()
