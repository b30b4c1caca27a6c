"""The baseline, and the fingerprints that it rests on: what is the same finding in a later version of the code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from portlint.baseline import FILE, Entry, read, write
from portlint.cli import main

CUDA = """__global__ void widest(float* part, float x) {
    x += __shfl_xor_sync(0xffffffff, x, 16);
    if (threadIdx.x % 32 == 0) part[0] = x;
    part[1] = __ballot_sync(0xffffffff, x > 0);
}

__device__ float again(float x, int lane) {
    x += __shfl_xor_sync(0xffffffff, x, 16);
    return x;
}
"""
PYTHON = """import torch

x = torch.zeros(3, 4, device='cuda')
y = torch.zeros(3, device='cuda')
"""

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command of portlint in a temporary folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, target: str = "cdna3", code: int | None = 0) -> Result:
        given = [*arguments] if "-t" in arguments else [*arguments, "-t", target]
        outcome = CliRunner().invoke(main, given)
        assert code is None or outcome.exit_code == code, outcome.output
        return outcome

    return run


def report(run: Run, *arguments: str, **more: object) -> dict[str, list[dict[str, object]]]:
    outcome = run("check", *(arguments or (".",)), "--output-format", "json", code=None, **more)
    found: dict[str, list[dict[str, object]]] = json.loads(outcome.stdout)
    return found


def put(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def move_lines(text: str) -> str:
    return "\n\n// a word\n" + text


def move_a_function(text: str) -> str:
    first, second = text.strip().split("\n\n")
    return f"{second}\n\n{first}\n"


CUDA_EDITS: dict[str, Callable[[str], str]] = {
    "moved lines": move_lines,
    "moved functions": move_a_function,
    "another argument": lambda text: text.replace("0xffffffff, x, 16", "0xffffffff, x * 2.0f, 16"),
    "a name that is assigned": lambda text: text.replace("x +=", "total +="),
    "a condition around it": lambda text: text.replace("    x +=", "    if (x > 3) x +="),
    "comments": lambda text: text.replace("0xffffffff, x", "0xffffffff /* all */, x").replace(";\n", ";  // c\n"),
    "line breaks": lambda text: text.replace("0xffffffff, x, 16", "\n        0xffffffff,\n        x,\n        16"),
    "white space": lambda text: text.replace("threadIdx.x % 32", "threadIdx.x%32").replace("    ", "\t"),
    "line ends": lambda text: text.replace("\n", "\r\n"),
    "a renamed function": lambda text: text.replace("widest", "widest_of_all"),
}
PYTHON_EDITS: dict[str, Callable[[str], str]] = {
    "moved lines": lambda text: text.replace("import torch\n", "import torch\n\nn = 1\n"),
    "another argument": lambda text: text.replace("3, 4,", "3, 4, 5,"),
    "quotes": lambda text: text.replace("'", '"'),
    "one argument a line": lambda text: text.replace(
        "(3, 4, device='cuda')", "(\n    3,\n    4,\n    device='cuda',\n)"
    ),
    "a name that is assigned": lambda text: text.replace("x =", "zeros: torch.Tensor ="),
    "a block around it": lambda text: text.replace("x =", "if True:\n    x ="),
}


class TestFingerprint:
    def fingerprints(self, run: Run, text: str, name: str, target: str) -> list[object]:
        put(name, text)
        found = report(run, name, target=target)["findings"]
        Path(name).unlink()
        assert len(found) >= 2
        return sorted(str(one["fingerprint"]) for one in found)

    @pytest.mark.parametrize("edit", CUDA_EDITS.values(), ids=CUDA_EDITS)
    def test_cuda(self, run: Run, edit: Callable[[str], str]) -> None:
        assert edit(CUDA) != CUDA
        before = self.fingerprints(run, CUDA, "a.cu", "cdna3")
        assert self.fingerprints(run, edit(CUDA), "sub/b.cu", "cdna3") == before

    @pytest.mark.parametrize("edit", PYTHON_EDITS.values(), ids=PYTHON_EDITS)
    def test_python(self, run: Run, edit: Callable[[str], str]) -> None:
        assert edit(PYTHON) != PYTHON
        before = self.fingerprints(run, PYTHON, "a.py", "mps")
        assert self.fingerprints(run, edit(PYTHON), "sub/b.py", "mps") == before

    def test_equal_lines_are_told_apart(self, run: Run) -> None:
        found = self.fingerprints(run, CUDA, "a.cu", "cdna3")
        assert len(set(found)) == len(found)

    def test_other_code_has_another(self, run: Run) -> None:
        before = self.fingerprints(run, CUDA, "a.cu", "cdna3")
        for old, new in (
            ("0xffffffff", "0x0000ffff"),
            ("__shfl_xor_sync", "__shfl_down_sync"),
            ("threadIdx.x %", "threadIdx.x /"),
        ):
            assert self.fingerprints(run, CUDA.replace(old, new), "a.cu", "cdna3") != before

    def test_it_does_not_depend_on_the_other_targets(self, run: Run) -> None:
        put("a.cu", "#ifdef __HIP__\n" + CUDA + "#else\n" + CUDA.replace("float ", "double ") + "#endif\n")
        put("b.cu", "#ifndef __HIP__\n" + CUDA + "#else\n" + CUDA.replace("float ", "double ") + "#endif\n")
        alone = report(run, "a.cu", "b.cu", "-t", "cdna3")["findings"]
        both = report(run, "a.cu", "b.cu", "-t", "hopper", "-t", "cdna3", "-t", "rdna3")["findings"]
        assert alone
        assert [one for one in both if one["target"] == "cdna3"] == alone


class TestCheck:
    def test_what_is_known_is_counted_and_left_out(self, run: Run) -> None:
        put("a.cu", CUDA)
        run("check", ".", code=1)
        run("baseline", "write", ".")
        run("check", ".")
        found = report(run)
        assert found["findings"] == found["problems"] == []
        assert found["summary"]["baselined"] > 2  # type: ignore[call-overload]

    @pytest.mark.parametrize("edit", CUDA_EDITS.values(), ids=CUDA_EDITS)
    def test_an_edit_around_it_changes_nothing(self, run: Run, edit: Callable[[str], str]) -> None:
        put("a.cu", CUDA)
        run("baseline", "write", ".")
        put("a.cu", edit(CUDA))
        assert report(run)["findings"] == report(run)["problems"] == []
        Path("a.cu").unlink()
        put("sub/b.cu", edit(CUDA))
        assert report(run)["findings"] == report(run)["problems"] == []

    def test_of_equal_code_the_new_one_is_reported(self, run: Run) -> None:
        put("a.cu", CUDA)
        run("baseline", "write", ".")
        more = "__device__ float first(float y) {\n    y = __shfl_xor_sync(0xffffffff, y, 8);\n    return y;\n}\n"
        put("a.cu", more + CUDA)
        assert {one["line"] for one in report(run)["findings"]} == {2}
        run("check", ".", code=1)

    def test_a_copy_in_another_file_is_new(self, run: Run) -> None:
        put("a.cu", CUDA)
        run("baseline", "write", ".")
        put("b.cu", CUDA)
        for paths in (".", "b.cu"):
            assert {one["path"] for one in report(run, paths)["findings"]} == {"b.cu"}

    def test_what_moves_to_another_file_is_known(self, run: Run) -> None:
        put("a.cu", CUDA)
        put("b.cu", "__global__ void none() {}\n")
        run("baseline", "write", ".")
        first, second = CUDA.strip().split("\n\n")
        put("a.cu", first)
        put("b.cu", second)
        assert report(run)["findings"] == report(run)["problems"] == []

    def test_a_mended_finding_is_no_room_for_another_file(self, run: Run) -> None:
        put("a.cu", CUDA)
        put("b.cu", "__global__ void none() {}\n")
        run("baseline", "write", ".")
        put("a.cu", CUDA.replace("threadIdx.x % 32 == 0", "true"))
        put("b.cu", CUDA.partition("\n\n")[0].replace("part[0]", "part[8]"))
        assert ("b.cu", "lanes/warp-is-32") in {(one["path"], one["rule"]) for one in report(run)["findings"]}

    def test_another_target_is_not_known(self, run: Run) -> None:
        put("a.cu", CUDA)
        run("baseline", "write", ".")
        run("check", ".", target="cdna4", code=1)

    def test_what_is_gone_is_named(self, run: Run) -> None:
        put("a.cu", CUDA)
        put("b.cu", CUDA)
        run("baseline", "write", ".")
        put("a.cu", CUDA.replace(" % 32 == 0", ""))
        problems = report(run, "b.cu")["problems"]
        assert problems == []  # a.cu was not checked
        assert report(run, ".", "--select", "isa")["problems"] == []  # the rule was not asked
        assert report(run, ".", target="cdna4")["problems"] == []
        (problem,) = report(run)["problems"]
        assert (problem["kind"], problem["path"]) == ("baseline", FILE)
        assert "a.cu: 1 of 'lanes/warp-is-32' for cdna3 no longer found" in str(problem["message"])
        Path("a.cu").unlink()
        assert len(report(run)["problems"]) > 1
        run("check", ".", "--no-baseline", code=1)

    def test_a_file_that_cannot_be_read_says_nothing_of_its_entries(self, run: Run) -> None:
        put("a.cu", CUDA)
        run("baseline", "write", ".")
        Path("a.cu").write_bytes(b"\0")
        assert [one["kind"] for one in report(run)["problems"]] == ["read"]
        run("baseline", "prune", ".")
        put("a.cu", CUDA)
        run("check", ".")

    def test_suppressed_findings_need_no_entry(self, run: Run) -> None:
        put("a.cu", "// portlint: file-ignore[lanes] old\n" + CUDA)
        run("baseline", "write", ".")
        assert read(Path(FILE)) == ()

    def test_it_is_found_from_the_configuration(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        put("pyproject.toml", "[tool.portlint]\ntarget = ['cdna3']\nbaseline = 'ci/known.json'\n")
        put("src/a.cu", CUDA)
        Path("ci").mkdir()
        run("check", ".", code=2)
        run("baseline", "write", ".")
        assert {one["path"] for one in json.loads(Path("ci/known.json").read_text())["entries"]} == {
            str(Path("src/a.cu").resolve())
        }
        monkeypatch.chdir("src")
        run("check", ".")
        run("check", ".", "--no-baseline", code=1)

    def test_it_is_found_beside_the_configuration(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        put("portlint.toml", "target = ['cdna3']\n")
        put("src/a.cu", CUDA)
        monkeypatch.chdir("src")
        run("baseline", "write", ".")
        assert {one["path"] for one in json.loads(Path("..", FILE).read_text())["entries"]} == {"src/a.cu"}
        run("check", ".")
        monkeypatch.chdir("..")
        run("check", ".")

    @pytest.mark.parametrize(
        "text", ["", "{}", "[]", '{"version": 2, "entries": []}', '{"version": 1, "entries": [1]}']
    )
    def test_a_broken_one_is_an_error(self, run: Run, text: str) -> None:
        put(FILE, text)
        put("a.cu", CUDA)
        assert FILE in run("check", ".", code=2).output

    def test_one_that_is_not_there_is_an_error(self, run: Run) -> None:
        put("a.cu", CUDA)
        assert "portlint baseline write" in run("check", ".", "--baseline", "no.json", code=2).output


class TestCommands:
    def test_one_line_for_an_entry(self, run: Run) -> None:
        put("a.cu", CUDA)
        run("baseline", "write", ".")
        lines = Path(FILE).read_text().splitlines()
        assert len(lines) == len(read(Path(FILE))) + 2
        assert lines[1:-1] == sorted(lines[1:-1], key=lambda line: json.loads(line.rstrip(","))["rule"])

    def test_equal_findings_are_counted(self, run: Run) -> None:
        put("a.cu", CUDA)
        run("baseline", "write", ".")
        assert 2 in {one.count for one in read(Path(FILE))}

    def test_writing_twice_changes_nothing(self, run: Run) -> None:
        put("a.cu", CUDA)
        put("b.py", PYTHON)
        run("baseline", "write", ".")
        before = Path(FILE).read_bytes()
        for command in ("write", "prune"):
            run("baseline", command, ".", "-j", "1")
            assert Path(FILE).read_bytes() == before

    def test_prune_adds_nothing(self, run: Run) -> None:
        put("a.cu", CUDA)
        run("baseline", "write", ".")
        put("a.cu", CUDA.replace(" % 32 == 0", ""))
        put("b.cu", CUDA)
        assert "1 dropped" in run("baseline", "prune", ".").output
        assert {one.path for one in read(Path(FILE))} == {"a.cu"}
        assert {one["path"] for one in report(run)["findings"]} == {"b.cu"}

    def test_prune_follows_a_renamed_file(self, run: Run) -> None:
        put("a.cu", CUDA)
        run("baseline", "write", ".")
        Path("a.cu").rename("b.cu")
        run("baseline", "prune", ".")
        assert {one.path for one in read(Path(FILE))} == {"b.cu"}

    def test_what_a_command_does_not_look_at_stays(self, run: Run) -> None:
        put("a.cu", CUDA)
        put("b.py", PYTHON)
        run("baseline", "write", ".", "-t", "cdna3", "-t", "mps")
        before = read(Path(FILE))
        Path("b.py").write_text("")
        run("baseline", "write", "a.cu")
        run("baseline", "prune", ".", "-t", "cdna3")
        run("baseline", "write", ".", "-t", "mps", "--select", "lanes")
        assert read(Path(FILE)) == before
        run("baseline", "write", ".", "-t", "mps")
        assert {one.path for one in read(Path(FILE))} == {"a.cu"}

    def test_show(self, run: Run) -> None:
        put("a.cu", CUDA)
        run("baseline", "write", ".")
        put("a.cu", CUDA.replace(" % 32 == 0", "").replace("__device__ float again", "__device__ float anew"))
        put("b.cu", CUDA)
        shown = run("baseline", "show", ".")
        assert "a.cu:2:" in shown.stdout
        assert "b.cu" not in shown.stdout
        assert "no longer found" in shown.stdout
        assert "1 gone" in shown.stdout

    def test_a_file_that_cannot_be_written_stays(self, tmp_path: Path) -> None:
        from portlint.baseline import BaselineError

        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "held").touch()
        with pytest.raises(BaselineError, match="cannot write"):
            write(tmp_path / "folder", [Entry("a.cu", "lanes/warp-is-32", "cdna3", "0")])
        assert [one.name for one in tmp_path.iterdir()] == ["folder"]
