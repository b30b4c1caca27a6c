"""Targets of installed packages, what finding them costs, and that nothing of a linted tree is loaded as one."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from portlint import plugins, rules, target
from portlint.cli import main

ROOT = Path(__file__).parent.parent
MASKS = "__global__ void f(float* x) { x[0] = __shfl_xor_sync(0xffffffff, x[1], 16); }\n"
RAISING = "raise SystemExit('the code of the tree ran')\n"


def forget() -> None:
    """Look for packages anew."""
    for cached in (plugins._are_named, plugins._texts, target.installed, target.aliases, target._named, rules.discover):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in, where what is installed is seen anew."""
    monkeypatch.chdir(tmp_path)
    forget()
    yield tmp_path
    forget()


@pytest.fixture
def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Install a package with a profile that says what that of cdna3 says."""

    def installed(name: str, *, profile: str = "", package: str = "acme", group: str = "portlint.targets") -> None:
        site = folder / "site"
        module = site.joinpath(*package.split("."))
        module.mkdir(parents=True, exist_ok=True)
        (site / package.partition(".")[0] / "__init__.py").write_text(RAISING)
        text = (ROOT / "portlint/targets/cdna3.toml").read_text()
        module.joinpath(f"{name}.toml").write_text(text.replace('name = "cdna3"', f'name = "{profile or name}"', 1))
        metadata = site / f"{package}-1.dist-info"
        metadata.mkdir(exist_ok=True)
        (metadata / "METADATA").write_text(f"Name: {package}\nVersion: 1\n")
        (metadata / "entry_points.txt").write_text(f"[{group}]\nmachines = {package}\n")
        monkeypatch.syspath_prepend(site)
        forget()

    return installed


def portlint(command: str) -> Result:
    return CliRunner().invoke(main, shlex.split(command))


def test_a_package_brings_targets(install: Callable[..., None]) -> None:
    install("acme-1")
    Path("a.cu").write_text(MASKS)
    result = portlint("check a.cu --target acme-1 --target cdna3 --output-format json")
    assert result.exit_code == 1, result.output
    assert {one["target"] for one in json.loads(result.stdout)["findings"]} == {"acme-1", "cdna3"}
    assert portlint("check a.cu --target acme-1 --ignore 'lanes @ acme-1'").exit_code == 0
    assert portlint("target acme-1").stdout.startswith("acme-1: ")
    (line,) = [line for line in portlint("target").stdout.splitlines() if line.startswith("acme-1")]
    assert line.endswith("from the package acme")
    listed = {one["name"]: one["package"] for one in json.loads(portlint("target --output-format json").stdout)}
    assert (listed["acme-1"], listed["cdna3"]) == ("acme", "portlint")
    assert "Did you mean 'acme-1'?" in portlint("target acme-2").stderr


def test_no_code_of_the_package_runs(install: Callable[..., None]) -> None:
    install("acme-1", package="acme.machines")
    assert portlint("target acme-1").exit_code == 0


@pytest.mark.parametrize("name", ["cdna3", "gfx942"])
def test_a_name_that_is_taken_is_an_error(install: Callable[..., None], name: str) -> None:
    install(name)
    for command in ("target", "check . --target cdna3"):
        result = portlint(command)
        assert result.exit_code == 2
        assert f"there is a target '{name}' already, in portlint" in result.stderr


def test_two_packages_with_the_same_name_are_an_error(install: Callable[..., None]) -> None:
    install("acme-1")
    install("acme-1", package="other")
    assert "there is a target 'acme-1' already, in the package '" in portlint("target").stderr


def test_a_profile_is_named_as_its_file_is(install: Callable[..., None]) -> None:
    install("acme-1", profile="acme-2")
    assert "its name is 'acme-2'; in a package a profile is named as its file is" in portlint("target acme-1").stderr


def test_a_package_that_is_not_there_is_an_error(install: Callable[..., None], folder: Path) -> None:
    install("acme-1")
    (folder / "site/acme-1.dist-info/entry_points.txt").write_text("[portlint.targets]\nmachines = acme.gone\n")
    result = portlint("target")
    assert result.exit_code == 2
    assert "names 'acme.gone': there is no such package" in result.stderr


def test_a_broken_profile_is_an_error(install: Callable[..., None], folder: Path) -> None:
    install("acme-1")
    (folder / "site/acme/acme-1.toml").write_text("name = 1\n")
    result = portlint("target acme-1")
    assert result.exit_code == 2
    assert "acme-1.toml" in result.stderr


def ran(*arguments: str, path: Path) -> subprocess.CompletedProcess[str]:
    """A run of `python` in the working directory."""
    environment = {**os.environ, "PYTHONPATH": str(path)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)


def test_a_start_does_without_importlib_metadata() -> None:
    code = "import sys, portlint.rules as r, portlint.target as t; r.discover(); t.load('cdna3'); print(*sys.modules)"
    result = ran("-c", code, path=ROOT)
    assert "portlint.rules" in result.stdout, result.stderr
    assert "importlib.metadata" not in result.stdout.split()


@pytest.mark.parametrize("group", ["portlint.rules", "portlint.targets"])
def test_what_looks_installed_in_the_linted_tree_is_not_loaded(install: Callable[..., None], group: str) -> None:
    install("cdna3", group=group)
    Path("site/click.py").write_text(RAISING)
    os.chdir("site")
    result = ran("-m", "portlint", "check", ".", "--target", "hopper", path=ROOT)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    assert "the code of the tree ran" not in result.stdout


@pytest.mark.parametrize("key", ["rules", "rule-folders", "plugins"])
def test_a_configuration_loads_no_rules(key: str) -> None:
    Path("lint/lanes").mkdir(parents=True)
    Path("lint/lanes/mine.py").write_text(RAISING)
    Path("portlint.toml").write_text(f'target = ["hopper"]\n{key} = ["lint"]\n')
    result = portlint("check .")
    assert result.exit_code == 2
    assert f"'{key}'" in result.stderr
    assert "A configuration runs no code" in result.stderr


def test_a_configuration_can_name_a_profile_which_is_data() -> None:
    text = (ROOT / "portlint/targets/cdna3.toml").read_text()
    Path("acme.toml").write_text(text.replace('name = "cdna3"', 'name = "acme"', 1))
    Path("a.cu").write_text(MASKS)
    Path("portlint.toml").write_text('target = ["acme.toml"]\n')
    assert portlint("check .").exit_code == 1
