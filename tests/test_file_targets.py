"""`per-file-targets`: files that are for some targets only, and what every report says of the others."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from portlint.cli import main

MASKS = "__global__ void f(float* x) { x[0] = __shfl_xor_sync(0xffffffff, x[1], 16); }\n"
ON_CUDA = 'import torch\n\nmodel = torch.nn.Linear(4, 4).to("cuda")\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with kernels for AMD, and Python for Apple's GPUs."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("csrc/sum.cu", MASKS), ("csrc/hip/sum.cu", MASKS), ("app/run.py", ON_CUDA)):
        Path(name).parent.mkdir(exist_ok=True, parents=True)
        Path(name).write_text(text)
    return tmp_path


def portlint(command: str) -> Result:
    return CliRunner().invoke(main, shlex.split(command))


def configured(tables: str, target: str = '["cdna3", "hopper", "mps"]') -> None:
    Path("portlint.toml").write_text(f"target = {target}\n{tables}")


def checked(command: str = "check .") -> dict[str, Any]:
    result = portlint(f"{command} --output-format json")
    assert result.exit_code in (0, 1), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def where(report: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["path"], one["target"]) for one in report["findings"]}


def standing(target: str, command: str = "report .") -> dict[str, Any]:
    (found,) = [one for one in checked(command)["readiness"] if one["target"] == target]
    return dict(found)


# ---- what is checked ------------------------------------------------------------------------------------------------


def test_a_file_is_checked_for_the_targets_of_its_pattern_only() -> None:
    configured("")
    assert {("csrc/sum.cu", "cdna3"), ("app/run.py", "mps")} <= where(checked())
    assert ("csrc/sum.cu", "mps") in where(checked())
    configured('per-file-targets = {"csrc/**" = ["cdna3", "hopper"], "app/" = ["mps"]}')
    found = where(checked())
    assert {("csrc/sum.cu", "cdna3"), ("app/run.py", "mps")} <= found
    assert {target for path, target in found if path.startswith("csrc")} <= {"cdna3", "hopper"}


def test_each_pattern_that_matches_narrows_in_any_order() -> None:
    tables = ['"csrc/**" = ["cdna3", "hopper"]', '"csrc/hip/**" = ["hopper", "mps"]']
    for one in (tables, tables[::-1]):
        configured(f"per-file-targets = {{{', '.join(one)}}}")
        found = where(checked())
        assert ("csrc/sum.cu", "cdna3") in found
        assert not {target for path, target in found if path == "csrc/hip/sum.cu"} - {"hopper"}


def test_the_command_line_says_for_which_targets_the_run_is() -> None:
    configured('per-file-targets = {"app/**" = ["mps"]}')
    assert where(checked("check . -t cdna3")) == {("csrc/sum.cu", "cdna3"), ("csrc/hip/sum.cu", "cdna3")}
    assert checked("check . -t cdna3")["summary"]["files"] == 2
    configured('per-file-targets = {"app/**" = ["hopper"]}')
    assert ("app/run.py", "mps") in where(checked("check . -t mps --isolated"))
    assert ("app/run.py", "mps") not in where(checked("check . -t mps"))


def test_an_empty_list_leaves_the_file_out() -> None:
    configured('per-file-targets = {"csrc/**" = []}')
    Path("csrc/broken.py").write_text("x = (" + "(" * 300)
    report = checked()
    assert {path for path, _ in where(report)} == {"app/run.py"}
    assert report["problems"] == []
    assert (report["summary"]["files"], report["summary"]["skipped"]) == (1, 0)


def test_files_that_are_all_for_others_are_not_passed_over_in_silence() -> None:
    configured('per-file-targets = {"*" = ["cdna3"]}')
    result = portlint("check . -t mps")
    assert result.exit_code == 0
    assert "no files to check: all of them are for other targets" in result.stderr


def test_editors_are_told_the_same(folder: Path) -> None:
    pytest.importorskip("pygls")
    from portlint.analyst import Question, analyse

    configured('per-file-targets = {"csrc/**" = ["gfx942"]}')
    answer = analyse(Question(str(folder), str(folder / "csrc/sum.cu"), MASKS, ()))
    assert {one.target for one in answer.findings} == {"cdna3"}
    configured('per-file-targets = {"csrc/**" = ["rdna4"]}')
    assert "'rdna4' is none of the targets" in analyse(Question(str(folder), "a.cu", MASKS, ())).mistake


def test_other_names_of_a_target_are_names() -> None:
    configured('per-file-targets = {"csrc/**" = ["gfx942"], "app/**" = []}')
    assert where(checked()) == {("csrc/sum.cu", "cdna3"), ("csrc/hip/sum.cu", "cdna3")}
    configured('per-file-ignores = {"csrc/**" = ["lanes @ gfx942"]}\nper-file-targets = {"app/**" = []}', '["cdna3"]')
    assert where(checked()) == set()
    configured('ignore = ["lanes @ gfx942"]\nper-file-targets = {"app/**" = []}', target='["cdna3"]')
    assert where(checked()) == set()


def test_a_profile_of_your_own_is_named_or_given_by_its_path() -> None:
    shipped = (Path(main.callback.__code__.co_filename).parent.parent / "targets/cdna3.toml").read_text()
    Path("acme.toml").write_text(shipped.replace('name = "cdna3"', 'name = "acme"', 1))
    for name in ("acme", "acme.toml"):
        configured(f'per-file-targets = {{"csrc/hip/**" = ["{name}"]}}', target='["cdna3", "acme.toml"]')
        found = where(checked())
        assert {target for path, target in found if path == "csrc/hip/sum.cu"} == {"acme"}
        assert {target for path, target in found if path == "csrc/sum.cu"} == {"acme", "cdna3"}
        assert ("csrc/hip/sum.cu", "cdna3") not in where(checked("check . -t cdna3"))


def test_paths_of_profiles_are_relative_to_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = (Path(main.callback.__code__.co_filename).parent.parent / "targets/cdna3.toml").read_text()
    Path("acme.toml").write_text(shipped.replace('name = "cdna3"', 'name = "acme"', 1))
    configured("", target='["acme.toml"]')
    monkeypatch.chdir("csrc")
    assert where(checked()) == {("sum.cu", "acme"), ("hip/sum.cu", "acme")}


def test_a_suppression_for_a_target_that_is_not_checked_there_is_not_called_unused() -> None:
    Path("csrc/sum.cu").write_text("// portlint: file-ignore[lanes @ mps]\n" + MASKS)
    configured('per-file-targets = {"csrc/**" = ["cdna3"]}')
    assert checked()["problems"] == []


# ---- mistakes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ('per-file-targets = {"csrc/**" = ["cnda3"]}', ("csrc/**", "no target 'cnda3'", "Did you mean 'cdna3'?")),
        ('per-file-targets = {"csrc/**" = ["rdna4"]}', ("csrc/**", "'rdna4' is none of the targets in 'target'")),
        ('per-file-targets = {"csrc/**" = "cdna3"}', ("'per-file-targets' must be a table of lists of targets",)),
        ('per-file-targets = {"[z-a]" = []}', ("'[z-a]' is not a pattern",)),
        ('per-file-ignores = {"csrc/**" = ["lanes/warp-is-23"]}', ("csrc/**", "Did you mean 'lanes/warp-is-32'?")),
        ('per-file-ignores = {"csrc/**" = ["lanes @ cnda3"]}', ("csrc/**", "Did you mean 'cdna3'?")),
    ],
)
@pytest.mark.parametrize("command", ["check .", "report .", "baseline show ."])
def test_a_name_that_does_not_exist_is_an_error(tables: str, words: tuple[str, ...], command: str) -> None:
    configured(tables)
    result = portlint(command)
    assert result.exit_code == 2
    assert "portlint.toml" in result.stderr
    assert all(word in result.stderr for word in words), result.stderr


def test_without_targets_in_the_file_any_target_may_be_named() -> None:
    Path("portlint.toml").write_text('per-file-targets = {"csrc/**" = ["rdna4"]}\n')
    assert where(checked("check . -t cdna3")) <= {("app/run.py", "cdna3")}


# ---- what is said ---------------------------------------------------------------------------------------------------


def test_files_are_listed_with_what_they_are_for() -> None:
    configured(
        'per-file-targets = {"csrc/**" = ["cdna3"], "csrc/hip/" = [], "old/**" = ["mps"]}\n'
        'per-file-ignores = {"*.ipynb" = ["device"]}'
    )
    result = portlint("check --show-files")
    assert result.stdout.splitlines() == ["app/run.py", "csrc/sum.cu  # cdna3"]
    assert "'per-file-targets': no file that is checked matches 'old/**'" in result.stderr
    assert "'per-file-ignores': no file that is checked matches '*.ipynb'" in result.stderr
    assert len(result.stderr.splitlines()) == 2
    assert 'per-file-targets = {"csrc/**" = ["cdna3"]' in portlint("check --show-settings").stdout


def test_counts_are_of_what_was_checked_for_the_target() -> None:
    configured('per-file-targets = {"csrc/**" = ["cdna3"], "app/**" = ["mps"]}', target='["cdna3", "mps"]')
    assert checked()["summary"]["unchecked"] == {"cdna3": 1, "mps": 2}
    Path("app/run.py").write_text("x = 1\n")
    shown = portlint("check .").stdout
    assert "No findings for mps in 1 file; 2 files not checked for it." in shown
    assert "in 2 of 2 files for cdna3; 1 file not checked for it" in shown
    assert "2 not for `mps`" in portlint("check . --output-format markdown").stdout
    assert 'name="1 file"' in portlint("check . --output-format junit").stdout
    configured("")
    assert "unchecked" not in checked()["summary"]


def test_shards_add_up_to_the_whole_run() -> None:
    configured('per-file-targets = {"csrc/**" = ["cdna3"], "app/**" = ["mps"]}', target='["cdna3", "mps"]')
    for index in (1, 2):
        portlint(f"check . --shard {index}/2 --output-format json:{index}.json")
    merged, whole = json.loads(portlint("merge 1.json 2.json --output-format json").stdout), checked()
    merged["summary"]["seconds"] = whole["summary"]["seconds"] = 0
    assert merged == whole


def test_a_baseline_keeps_what_is_known_for_targets_that_are_not_asked() -> None:
    configured("")
    portlint("baseline write .")
    assert checked()["summary"]["baselined"] > 4
    configured('per-file-targets = {"csrc/**" = ["cdna3"], "app/**" = ["mps"]}')
    assert checked()["findings"] == checked()["problems"] == []
    portlint("baseline prune .")
    configured("")
    assert checked()["findings"] == []


class TestReadiness:
    def test_what_is_not_checked_is_not_clean(self) -> None:
        configured('per-file-targets = {"csrc/**" = ["cdna3"]}')
        Path("app/run.py").write_text("import torch\n\nx = torch.ones(3)\n")
        found = standing("hopper")
        assert found["tiers"]["unchecked"] == {"files": 2, "lines": 4}
        assert "; 2 files (4 lines) not checked for it." in found["sentence"]
        assert found["gates"][0]["state"] == "passed"
        assert found["gates"][0]["why"].endswith("2 files not checked for it")
        assert {one["path"] for one in found["files"] if one["tier"] == "unchecked"} == {
            "csrc/sum.cu",
            "csrc/hip/sum.cu",
        }
        assert standing("cdna3")["tiers"]["unchecked"]["files"] == 0

    def test_a_target_for_which_nothing_is_checked_is_not_judged(self) -> None:
        configured('per-file-targets = {"*" = ["cdna3"]}')
        found = standing("hopper")
        assert found["sentence"].startswith("Nothing is known: none of this code is checked for")
        assert found["gates"][0]["state"] == "not measured"

    def test_kernels_that_are_for_others_cost_nothing(self) -> None:
        configured("")
        assert standing("mps")["effort"]["rewrite"] == 1
        configured('per-file-targets = {"csrc/**" = ["cdna3"]}')
        assert standing("mps")["effort"]["rewrite"] == 0

    def test_what_is_no_longer_checked_is_not_gone(self) -> None:
        configured("")
        portlint("report . --output-format json:old.json")
        configured('per-file-targets = {"csrc/**" = ["hopper", "mps"]}')
        assert checked("report . --since old.json")["progress"]["gone"] == []

    @pytest.mark.parametrize("kind", ["html", "markdown"])
    def test_pages_say_so(self, kind: str) -> None:
        configured('per-file-targets = {"csrc/**" = ["cdna3"]}')
        assert "not checked for it" in portlint(f"report . --output-format {kind}").stdout
