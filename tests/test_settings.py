"""The configuration explained: what is in force, which files are checked, and the schema that editors read."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from portlint.cli import main
from portlint.settings import explained, schema


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def portlint(command: str) -> Result:
    return CliRunner().invoke(main, shlex.split(command))


def test_settings_are_toml_with_where_they_come_from() -> None:
    Path("portlint.toml").write_text('target = ["cdna3"]\nper-file-ignores = {"tests/**" = ["device"]}\n')
    shown = portlint("check --show-settings --select lanes").stdout
    assert "portlint.toml" in shown.splitlines()[0]
    settings = tomllib.loads(shown)
    assert settings["target"] == ["cdna3"]
    assert settings["per-file-ignores"] == {"tests/**": ["device"]}
    assert settings["select"] == ["lanes"]
    origins = {line.split(" = ")[0]: line.rpartition("# ")[2] for line in shown.splitlines()[1:]}
    assert origins["target"] == "configuration"
    assert origins["select"] == "command line"
    assert origins["fail-on"] == "default"


def test_files_are_those_that_would_be_checked() -> None:
    Path("portlint.toml").write_text('target = ["cdna3"]\nextend-exclude = ["old/"]\n')
    Path("old").mkdir()
    for name in ("a.cu", "b.py", "old/c.cu", "notes.txt"):
        Path(name).write_text("")
    assert portlint("check --show-files").stdout.splitlines() == ["a.cu", "b.py"]


def test_the_schema_takes_what_portlint_takes() -> None:
    validator = jsonschema.Draft202012Validator(schema())
    validator.check_schema(schema())
    right = {"target": ["cdna3"], "per-file-ignores": {"tests/**": ["lanes"]}, "fail-on": "breaks"}
    assert validator.is_valid(right)
    for wrong in ({"targets": ["cdna3"]}, {"fail-on": "never"}, {"select": "lanes"}, {"file": "x"}):
        assert not validator.is_valid({**right, **wrong}), wrong


def test_every_key_says_what_it_means() -> None:
    assert set(schema()["properties"]) == set(explained())
    assert all(one["description"] for one in schema()["properties"].values())


def test_the_published_schema_is_the_schema() -> None:
    published = Path(__file__).parent.parent / "docs" / "portlint.schema.json"
    assert json.loads(published.read_text()) == json.loads(json.dumps(schema()))
