"""The configuration file: which one holds, what it may say, and how its mistakes are explained."""

from pathlib import Path

import pytest

from portlint.config import Config, ConfigError, Selector, check_selectors, load
from portlint.finding import Verdict
from portlint.source.discover import DEFAULT_EXCLUDE


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    return tmp_path


def refused(folder: Path, text: str, name: str = "portlint.toml") -> str:
    (folder / name).write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(folder)
    assert str(folder / name) in str(caught.value)
    return str(caught.value)


# ---- which file -----------------------------------------------------------------------------------------------------


def test_without_a_file_the_defaults_hold(project: Path) -> None:
    config = load(project)
    assert config == Config()
    assert (config.target, config.fail_on, config.excluded, config.root) == (
        (),
        Verdict.DEGRADES,
        DEFAULT_EXCLUDE,
        None,
    )


def test_every_key_is_read(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        """
        [tool.portlint]
        target = ["cdna3", "gfx942"]
        select = ["lanes", "api/uses-nvml @ cdna3"]
        ignore = ["build"]
        exclude = ["old/"]
        extend-exclude = ["gen/**"]
        per-file-ignores = {"tests/**" = ["lanes"]}
        fail-on = "breaks"
        """
    )
    config = load(project / "src")
    assert config.target == ("cdna3", "gfx942")
    assert config.select == ("lanes", "api/uses-nvml @ cdna3")
    assert config.ignore == ("build",)
    assert config.excluded == ("old/", "gen/**")
    assert config.per_file_ignores == {"tests/**": ("lanes",)}
    assert config.fail_on is Verdict.BREAKS
    assert config.root == str(project)


def test_the_nearest_file_holds_alone(project: Path) -> None:
    (project / "portlint.toml").write_text('target = ["rdna4"]\nignore = ["build"]')
    (project / "src" / "pyproject.toml").write_text('[tool.portlint]\ntarget = ["hopper"]')
    config = load(project / "src")
    assert (config.target, config.ignore) == (("hopper",), ())
    assert load(project).target == ("rdna4",)


def test_a_pyproject_without_our_table_does_not_count(project: Path) -> None:
    (project / "portlint.toml").write_text('target = ["rdna4"]')
    (project / "src" / "pyproject.toml").write_text('[project]\ndependencies = ["portlint"]\n[tool.ruff]\n')
    assert load(project / "src").target == ("rdna4",)
    (project / "src" / "pyproject.toml").write_text("this is not TOML [")
    assert load(project / "src").target == ("rdna4",)


def test_own_files_come_before_pyproject(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.portlint]\ntarget = ["c"]')
    (project / "portlint.toml").write_text('target = ["b"]')
    assert load(project).target == ("b",)
    (project / ".portlint.toml").write_text('target = ["a"]')
    assert load(project).target == ("a",)


# ---- mistakes -------------------------------------------------------------------------------------------------------


def test_an_unknown_key_is_refused_with_the_nearest(project: Path) -> None:
    message = refused(project, "[tool.portlint]\nper-file-ignore = {}", "pyproject.toml")
    assert "'per-file-ignore'" in message
    assert "Did you mean 'per-file-ignores'?" in message


@pytest.mark.parametrize("key", ["file", "extend_exclude", "fail_on"])
def test_keys_are_written_with_hyphens_and_internal_fields_are_no_keys(project: Path, key: str) -> None:
    assert f"no key '{key}'" in refused(project, f'{key} = "x"')


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ('target = "cdna3"', "'target'", "a list of strings"),
        ("select = [1]", "'select'", "a list of strings"),
        ('fail-on = "error"', "'fail-on'", '"degrades"'),
        ('per-file-ignores = ["a"]', "'per-file-ignores'", "a table"),
        ('per-file-ignores = {"a" = "lanes"}', "'per-file-ignores'", "a table of lists"),
        ('select = ["lanes/"]', "'select'", "'lanes/' is no selector"),
        ('ignore = ["a/b/c"]', "'ignore'", "pack/name @ target"),
        ('exclude = ["!"]', "'exclude'", "'!' is not a pattern"),
        ('extend-exclude = ["a*a*a*a*a*b"]', "'extend-exclude'", "wildcards"),
        ('per-file-ignores = {"[z-a]" = []}', "'per-file-ignores'", "'[z-a]' is not a pattern"),
        ('per-file-ignores = {"tests/**" = ["@"]}', "'per-file-ignores.\"tests/**\"'", "'@' is no selector"),
    ],
)
def test_a_wrong_value_is_refused_and_says_what_belongs_there(
    project: Path, text: str, key: str, expected: str
) -> None:
    message = refused(project, text)
    assert key in message
    assert expected in message


@pytest.mark.parametrize(
    "text",
    [
        "target = [",
        "target = " + "[" * 100_000,
        "a" + ".a" * 50_000 + " = 1",
        "a = " + "1" * 5_000,
        "# " + "x" * 300_000,
    ],
    ids=["broken", "deep", "dotted", "digits", "large"],
)
def test_toml_that_cannot_be_read_is_refused(project: Path, text: str) -> None:
    refused(project, text)


def test_what_is_not_utf_8_and_what_is_no_table_is_refused(project: Path) -> None:
    (project / "portlint.toml").write_bytes(b'target = ["\xe9"]')
    with pytest.raises(ConfigError, match="UTF-8"):
        load(project)
    (project / "portlint.toml").unlink()
    assert "must be a table" in refused(project, "[tool]\nportlint = 1", "pyproject.toml")


# ---- selectors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "rule", "target", "matches"),
    [
        ("lanes", "lanes/warp-is-32", "cdna3", True),
        ("lanes", "lanes-more/warp-is-32", "cdna3", False),
        ("lanes/warp-is-32", "lanes/warp-is-32", "rdna4", True),
        ("lanes/warp-is-32", "lanes/warp-is-3", "rdna4", False),
        ("lanes/warp-is-32 @ cdna3", "lanes/warp-is-32", "cdna3", True),
        ("lanes/warp-is-32@cdna3", "lanes/warp-is-32", "cdna4", False),
        ("lanes @ tpu-v5e", "lanes/x", "tpu-v5e", True),
    ],
)
def test_selectors_match(selector: str, rule: str, target: str, matches: bool) -> None:
    assert Selector.parse(selector).matches(rule, target) is matches


@pytest.mark.parametrize("text", ["", " ", "/x", "lanes/", "lanes/*", "lanes @", "@ cdna3", "a/b/c", "a b"])
def test_other_shapes_are_no_selectors(text: str) -> None:
    with pytest.raises(ConfigError, match="is no selector"):
        Selector.parse(text)


def test_a_selector_is_written_as_it_is_read() -> None:
    for text in ("lanes", "lanes/warp-is-32", "lanes/warp-is-32 @ cdna3", "lanes @ cdna3"):
        assert str(Selector.parse(text)) == text


@pytest.mark.parametrize(
    ("selector", "suggested"),
    [
        ("lane", "Did you mean 'lanes'?"),
        ("lanes/warp-is-23", "Did you mean 'lanes/warp-is-32'?"),
        ("lanes @ cnda3", "Did you mean 'cdna3'?"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(selector: str, suggested: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_selectors([Selector.parse(selector)], ["lanes/warp-is-32", "api/x"], ["cdna3", "hopper"], "--select")
    assert str(caught.value).startswith("--select: ")
    assert suggested in str(caught.value)


def test_known_names_pass() -> None:
    selectors = [Selector.parse(text) for text in ("lanes", "lanes/warp-is-32 @ cdna3", "api @ hopper")]
    check_selectors(selectors, ["lanes/warp-is-32", "api/x"], ["cdna3", "hopper"])


def test_per_file_ignores_are_relative_to_the_configuration(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "portlint.toml").write_text(
        'per-file-ignores = {"/tests/**" = ["lanes"], "*.cu" = ["api", "isa/x @ cdna3"]}'
    )
    monkeypatch.chdir(project / "src")
    config = load(project / "src")
    assert config.file_ignores("a.cu") == (Selector("api"), Selector("isa", "x", "cdna3"))
    assert config.file_ignores("a.py") == config.file_ignores("tests/a.py") == ()
    assert config.file_ignores(str(project / "tests" / "a.py")) == (Selector("lanes"),)
