"""`portlint check` as a user meets it: exit status, streams, formats, configuration, suppressions, isolation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from portlint.cli import main
from portlint.report import KINDS

MASKS = """__global__ void sum(float* x) {
    for (int o = 16; o > 0; o >>= 1) x[0] += __shfl_xor_sync(0xffffffff, x[0], o);
}
"""
CLEAN = "__global__ void copy(float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }\n"
DEVICE = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'

Check = Callable[..., Result]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Run `portlint check` in a temporary folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, ["check", *arguments], input=stdin)

    return run


def report(result: Result) -> dict[str, list[dict[str, object]]]:
    parsed: dict[str, list[dict[str, object]]] = json.loads(result.stdout)
    return parsed


def test_a_package_of_the_tree_is_not_missed(check: Check) -> None:
    for tree in ("user", "own"):
        Path(tree, "tests").mkdir(parents=True)
        Path(tree, "tests", "helpers.py").write_text("import flash_attn\n")
    Path("own/src/flash_attn").mkdir(parents=True)
    Path("own/src/flash_attn/__init__.py").write_text("")
    found = check(".", "--target", "mps", "--output-format", "json")
    assert [finding["path"] for finding in report(found)["findings"]] == ["user/tests/helpers.py"]


def test_a_slow_test_is_no_fault(check: Check) -> None:
    code = "import torch\n\n\ndef kept(x):\n    x = x.cuda()\n    return x[torch.isnan(x)]\n"
    for folder in ("lib", "tests"):
        Path(folder).mkdir()
        Path(folder, "helpers.py").write_text(code)
    found = report(check(".", "--target", "gaudi3", "--output-format", "json"))["findings"]
    slow, broken = ([one["path"] for one in found if one["verdict"] == verdict] for verdict in ("degrades", "breaks"))
    assert (slow, broken) == (["lib/helpers.py"], ["lib/helpers.py", "tests/helpers.py"])


class TestExitStatus:
    def test_0_without_findings(self, check: Check) -> None:
        Path("a.cu").write_text(CLEAN)
        assert check(".", "--target", "cdna3").exit_code == 0

    def test_1_with_findings(self, check: Check) -> None:
        Path("a.cu").write_text(MASKS)
        assert check(".", "--target", "cdna3").exit_code == 1

    def test_0_if_asked(self, check: Check) -> None:
        Path("a.cu").write_text(MASKS)
        assert check(".", "--target", "cdna3", "--exit-zero").exit_code == 0

    def test_0_for_findings_milder_than_fail_on(self, check: Check) -> None:
        Path("a.py").write_text("import torch\nfor x in y:\n    optimizer.step()\n    print(loss.item())\n")
        assert check(".", "--target", "cdna3").exit_code == 1
        assert check(".", "--target", "cdna3", "--fail-on", "breaks").exit_code == 0

    @pytest.mark.parametrize("kind", KINDS)
    def test_no_format_changes_it(self, check: Check, kind: str) -> None:
        Path("a.cu").write_text(MASKS)
        assert check(".", "--target", "cdna3", "--output-format", kind).exit_code == 1

    def test_0_and_a_word_on_stderr_without_files(self, check: Check) -> None:
        result = check(".", "--target", "cdna3")
        assert result.exit_code == 0
        assert "no files" in result.stderr

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ([], "--target"),
            (["--target", "cdna33"], "Did you mean 'cdna3'?"),
            (["nowhere", "--target", "cdna3"], "nowhere"),
            (["--target", "cdna3", "--select", "lane"], "Did you mean 'lanes'?"),
            (["--target", "cdna3", "--select", "lanes/warp-is-23"], "Did you mean 'lanes/warp-is-32'?"),
            (["--target", "cdna3", "--output-format", "xml"], "full, concise, json, sarif"),
            (["--target", "cdna3", "--output-format", "json:no/such/folder/x.json"], "x.json"),
            (["--target", "missing.toml"], "missing.toml"),
            (["-", "--target", "cdna3"], "--stdin-filename"),
        ],
    )
    def test_2_and_a_clear_message_for_a_mistake(self, check: Check, arguments: list[str], words: str) -> None:
        Path("a.cu").write_text(CLEAN)
        result = check(*arguments)
        assert result.exit_code == 2
        assert words in result.stderr
        assert "Traceback" not in result.output
        assert not result.stdout


class TestReport:
    def test_a_finding_says_where_what_and_what_to_do(self, check: Check) -> None:
        Path("src").mkdir()
        Path("src/a.cu").write_text(MASKS)
        found = report(check("src", "--target", "cdna3", "--output-format", "json"))["findings"]
        masks = next(one for one in found if one["rule"] == "lanes/mask-is-32-bit")
        assert masks["path"] == "src/a.cu"
        assert (masks["line"], masks["column"], masks["end_line"], masks["end_column"]) == (2, 62, 2, 72)
        assert masks["verdict"] == "breaks"
        assert masks["assumes"] == {"lanes.mask_bits": 32}
        assert masks["fact"]["value"] == 64  # type: ignore[index]
        assert masks["remedy"]

    def test_columns_count_code_points(self, check: Check) -> None:
        text = (
            'import torch\n\nx = "\N{GREEK SMALL LETTER LAMDA}\N{GRINNING FACE}"; y = torch.zeros(3, device="cuda")\n'
        )
        Path("a.py").write_text(text, encoding="utf-8")
        found = report(check(".", "--target", "mps", "--output-format", "json"))["findings"]
        assert [(one["line"], one["column"]) for one in found] == [(3, 37)]

    def test_several_targets_and_several_outputs_in_one_run(self, check: Check) -> None:
        Path("a.py").write_text(DEVICE)
        result = check(
            ".", "-t", "mps", "-t", "hopper", "--output-format", "concise", "--output-format", "sarif:out.sarif"
        )
        assert "device/is-cuda" in result.stdout
        assert [len(run["results"]) for run in json.loads(Path("out.sarif").read_text())["runs"]] == [1, 0]

    def test_an_alias_is_reported_by_the_targets_name(self, check: Check) -> None:
        Path("a.cu").write_text(MASKS)
        result = check(".", "--target", "gfx942", "--output-format", "json")
        assert report(result)["targets"] == ["cdna3"]

    def test_a_profile_of_the_users_own(self, check: Check) -> None:
        Path("mine.toml").write_text(
            'name = "mine"\ntitle = "My machine"\nfamilies = ["gpu"]\nlanguages = ["cuda"]\n'
            '[facts]\n"lanes.width" = { value = 64, cite = "me" }\n"lanes.mask_bits" = { value = 64, cite = "me" }\n'
            '[cites.me]\ntitle = "Measured"\nurl = "https://example.org"\n'
        )
        Path("a.cu").write_text(MASKS)
        result = check("a.cu", "--target", "./mine.toml", "--select", "lanes")
        assert result.exit_code == 1
        assert "My machine has 64-bit lane masks (Measured, https://example.org)" in " ".join(result.stdout.split())

    def test_a_fact_that_the_profile_lacks_is_a_note_and_no_failure(self, check: Check) -> None:
        Path("mine.toml").write_text(
            'name = "mine"\ntitle = "My machine"\nfamilies = ["gpu"]\nlanguages = ["cuda"]\n[facts]\n[cites]\n'
        )
        Path("a.cu").write_text(MASKS)
        result = check("a.cu", "--target", "./mine.toml", "--output-format", "json", "--select", "lanes")
        assert result.exit_code == 0
        assert {one["verdict"] for one in report(result)["findings"]} == {"unknown"}

    def test_standard_input(self, check: Check) -> None:
        result = check("-", "--stdin-filename", "lib/a.py", "-t", "mps", "--output-format", "concise", stdin=DEVICE)
        assert result.stdout.startswith("lib/a.py:3:27: breaks[device/is-cuda] mps:")

    def test_a_notebook_is_reported_by_its_file_and_by_its_cell(self, check: Check) -> None:
        cells = [
            {"cell_type": "markdown", "metadata": {}, "source": ["call `x.cuda()`"]},
            {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": ["%pip list\n"]},
            {
                "cell_type": "code",
                "metadata": {},
                "outputs": [],
                "execution_count": None,
                "source": ["import torch\n", 'x = torch.zeros(3, device="cuda")'],
            },
        ]
        text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
        Path("a.ipynb").write_text(text)
        (found,) = report(check(".", "-t", "mps", "--output-format", "json"))["findings"]
        line = next(n for n, one in enumerate(text.splitlines(), 1) if "torch.zeros" in one)
        assert (found["line"], found["cell"], found["cell_line"]) == (line, 3, 2)


class TestConfiguration:
    def test_it_names_targets_rules_and_exclusions(self, check: Check) -> None:
        Path("pyproject.toml").write_text(
            '[tool.portlint]\ntarget = ["cdna3"]\nselect = ["lanes"]\nextend-exclude = ["old/"]\n'
        )
        Path("old").mkdir()
        Path("old/b.cu").write_text(MASKS)
        Path("a.cu").write_text(MASKS)
        result = check(".", "--output-format", "json")
        assert {one["path"] for one in report(result)["findings"]} == {"a.cu"}
        assert {str(one["rule"]).partition("/")[0] for one in report(result)["findings"]} == {"lanes"}

    def test_isolated_ignores_it(self, check: Check) -> None:
        Path("portlint.toml").write_text('target = ["cdna3"]\n')
        Path("a.cu").write_text(MASKS)
        assert check(".", "--isolated").exit_code == 2

    def test_per_file_ignores(self, check: Check) -> None:
        Path("portlint.toml").write_text('target = ["cdna3"]\n[per-file-ignores]\n"a.cu" = ["lanes"]\n')
        Path("a.cu").write_text(MASKS)
        Path("b.cu").write_text(MASKS)
        assert {one["path"] for one in report(check(".", "--output-format", "json"))["findings"]} == {"b.cu"}

    def test_an_unknown_key_is_an_error_that_names_file_and_key(self, check: Check) -> None:
        Path("portlint.toml").write_text('targets = ["cdna3"]\n')
        result = check(".")
        assert result.exit_code == 2
        assert "portlint.toml" in result.stderr
        assert "'targets'" in result.stderr
        assert "Did you mean 'target'?" in result.stderr


class TestSelection:
    @pytest.mark.parametrize(
        ("arguments", "left"),
        [
            (["--select", "lanes/mask-is-32-bit"], {"lanes/mask-is-32-bit"}),
            (["--ignore", "lanes/mask-is-32-bit"], {"lanes/reduction-starts-at-16"}),
            (["--ignore", "lanes @ cdna3"], set()),
            (["--ignore", "lanes @ hopper"], {"lanes/mask-is-32-bit", "lanes/reduction-starts-at-16"}),
        ],
    )
    def test_rules_are_chosen_by_pack_name_and_target(self, check: Check, arguments: list[str], left: set[str]) -> None:
        Path("a.cu").write_text(MASKS)
        result = check(".", "-t", "cdna3", "--output-format", "json", *arguments)
        assert {one["rule"] for one in report(result)["findings"]} == left


class TestIsolation:
    """Promises 1 and 2: the same bytes for any number of jobs, and one bad file costs its own results only."""

    def good(self, count: int) -> None:
        for number in range(count):
            Path(f"good{number:02}.cu").write_text(MASKS)

    @pytest.mark.parametrize("jobs", ["2", "8"])
    def test_jobs_do_not_change_the_report(self, check: Check, jobs: str) -> None:
        self.good(20)
        one = check(".", "-t", "cdna3", "-j", "1", "--output-format", "concise")
        assert check(".", "-t", "cdna3", "-j", jobs, "--output-format", "concise").stdout == one.stdout

    def test_bad_files_among_good_ones_are_named_and_lose_nothing(self, check: Check) -> None:
        self.good(10)
        Path("brackets.py").write_text("x = " + "[" * 5000 + "]" * 5000)
        Path("binary.cu").write_bytes(b"\x7fELF\0\0\0" * 100)
        Path("hang.cu").write_text(("<!" * 100 + "\n") * 200)
        Path("huge.py").write_text("x = 1\n" * 300_000)
        Path("codec.py").write_text("# -*- coding: rot13 -*-\nvzcbeg gbepu\n")
        result = check(".", "-t", "cdna3", "--output-format", "json")
        assert {one["path"] for one in report(result)["findings"]} == {f"good{n:02}.cu" for n in range(10)}
        problems = {str(one["path"]): one["kind"] for one in report(result)["problems"]}
        assert problems == {
            "binary.cu": "read",
            "brackets.py": "skipped",
            "codec.py": "read",
            "hang.cu": "timeout",
            "huge.py": "skipped",
        }
        assert report(result)["summary"]["skipped"] == 5  # type: ignore[call-overload]

    def test_a_broken_file_still_gives_findings(self, check: Check) -> None:
        Path("a.cu").write_text("template <typename T struct {{{ \n" + MASKS)
        assert check(".", "-t", "cdna3").exit_code == 1

    def test_nothing_of_the_linted_tree_is_imported_or_run(self, check: Check) -> None:
        for name in ("conftest.py", "sitecustomize.py", "setup.py", "torch.py", "click.py"):
            Path(name).write_text(f"open('ran-{name}', 'w')\n")
        subprocess.run(
            [sys.executable, "-P", "-m", "portlint", "check", ".", "-t", "cdna3"],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
            check=True,
            capture_output=True,
        )
        assert not list(Path().glob("ran-*"))


class TestSuppression:
    def findings(self, check: Check, text: str, *more: str) -> tuple[list[str], list[str]]:
        Path("a.cu").write_text(text)
        result = report(check("a.cu", "-t", "cdna3", "--output-format", "json", *more))
        return [str(one["rule"]) for one in result["findings"]], [str(one["message"]) for one in result["problems"]]

    def test_a_trailing_comment_covers_its_line(self, check: Check) -> None:
        text = MASKS.replace("o);\n", "o);  // portlint: ignore[lanes/mask-is-32-bit] shim\n")
        assert self.findings(check, text) == (["lanes/reduction-starts-at-16"], [])

    def test_a_comment_of_its_own_covers_the_next_statement(self, check: Check) -> None:
        text = MASKS.replace("    for", "    // portlint: ignore[lanes] ported by hand\n    for")
        assert self.findings(check, text) == ([], [])

    def test_it_may_name_a_target(self, check: Check) -> None:
        text = MASKS.replace("o);\n", "o);  // portlint: ignore[lanes @ cdna4] only there\n")
        assert len(self.findings(check, text)[0]) == 2

    def test_file_ignore_covers_the_file(self, check: Check) -> None:
        assert self.findings(check, "/* portlint: file-ignore[lanes] vendored */\n" + MASKS) == ([], [])

    def test_one_that_suppresses_nothing_is_reported(self, check: Check) -> None:
        found, problems = self.findings(check, CLEAN + "// portlint: ignore[lanes/warp-is-32] old\nint x;\n")
        assert found == []
        assert "'portlint: ignore[lanes/warp-is-32]' suppresses nothing" in problems[0]

    def test_one_whose_rule_did_not_run_is_not(self, check: Check) -> None:
        text = CLEAN + "// portlint: ignore[lanes/warp-is-32] old\nint x;\n"
        assert self.findings(check, text, "--select", "isa") == ([], [])

    def test_a_blanket_ignore_is_refused(self, check: Check) -> None:
        found, problems = self.findings(check, MASKS.replace("o);\n", "o);  // portlint: ignore\n"))
        assert len(found) == 2
        assert "names no rule" in problems[0]

    def test_in_a_string_it_is_no_directive(self, check: Check) -> None:
        text = MASKS.replace("o);\n", 'o); puts("// portlint: ignore[lanes]");\n')
        assert len(self.findings(check, text)[0]) == 2

    def test_in_python(self, check: Check) -> None:
        Path("a.py").write_text(DEVICE.replace('"cuda")', '"cuda")  # portlint: ignore[device/is-cuda] CI has one'))
        assert check(".", "-t", "mps").exit_code == 0


def test_cuda_names_that_need_no_hand_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "cudaError_t run(cudaStream_t s) { cudaGreenCtxFoo(); return cudaStreamSynchronize(s); }\n"
    for name in ("a.cu", "b.cu"):
        (tmp_path / name).write_text(text)
    outcome = CliRunner().invoke(
        main, ["check", ".", "--target", "cdna3", "--target", "hopper", "--output-format", "json"]
    )
    assert json.loads(outcome.stdout)["summary"]["translated"] == {"cdna3": 6}
