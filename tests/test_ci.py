"""What others run in their CI: the hook, the action and the recipes of docs/ci are parsed, and their commands run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import pytest

from portlint.source.language import by_name

yaml = pytest.importorskip("yaml", reason="needs PyYAML: pip install 'portlint[test]'")

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "ci"
MASKS = """__global__ void sum(float* x) {
    for (int o = 16; o > 0; o >>= 1) x[0] += __shfl_xor_sync(0xffffffff, x[0], o);
}
"""
DEVICE = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'
CELL = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": DEVICE.splitlines(True)}
NOTEBOOK = json.dumps({"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
TREE = {"a.cu": MASKS, "b.hip": MASKS, "c.py": DEVICE, "d.ipynb": NOTEBOOK, "notes.md": "warp 32\n"}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def bash(script: str, folder: Path, environment: dict[str, str], *programs: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as GitHub, GitLab and Jenkins do: a shell that stops at the first failure."""
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def assert_is_bash(script: str) -> None:
    assert "${{" not in script, "what is written into a script is run by the shell: pass it in the environment"
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with code of each kind."""
    folder = tmp_path / "tree"
    folder.mkdir()
    for name, text in TREE.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a `portlint` that is this one, and a `pip` that does nothing."""
    folder = tmp_path / "portlint" / "bin"
    folder.mkdir(parents=True)
    own = f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m portlint "$@"\n'
    for name, text in {"portlint": own, "pip": "#!/bin/sh\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


class TestAction:
    ACTION = load(ROOT / "action.yml")
    STEPS: ClassVar[dict[str, dict[str, Any]]] = {step["name"]: step for step in ACTION["runs"]["steps"]}

    def test_inputs_and_outputs_are_described(self) -> None:
        assert self.ACTION["runs"]["using"] == "composite"
        for one in [*self.ACTION["inputs"].values(), *self.ACTION["outputs"].values()]:
            assert one["description"].endswith(".")
        used = re.findall(r"inputs\.([a-z-]+)", (ROOT / "action.yml").read_text())
        assert set(used) == set(self.ACTION["inputs"])

    def test_scripts_are_bash_and_take_inputs_from_the_environment(self) -> None:
        for step in self.STEPS.values():
            if "run" in step:
                assert step["shell"] == "bash"
                assert_is_bash(step["run"])

    def test_other_actions_are_pinned(self) -> None:
        used = [step["uses"] for step in self.STEPS.values() if "uses" in step]
        assert used
        assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) for one in used)

    def check(self, tree: Path, programs: Path, **inputs: str) -> tuple[subprocess.CompletedProcess[str], Path]:
        step = self.STEPS["Check"]
        given = {name: one["default"] for name, one in self.ACTION["inputs"].items()} | inputs
        names = {name: re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", text) for name, text in step["env"].items()}
        environment = {name: given[match[1]] for name, match in names.items() if match}
        assert len(environment) == len(names)
        temporary = programs.parent.parent
        environment |= {"RUNNER_TEMP": str(temporary)}
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
            environment[name] = str(temporary / name)
            (temporary / name).touch()
        return bash(step["run"], tree, environment), temporary

    def test_one_run_annotates_sums_up_and_writes_sarif(self, tree: Path, programs: Path) -> None:
        result, temporary = self.check(tree, programs, target="cdna3, mps")
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith("::error title=")
        assert (temporary / "GITHUB_STEP_SUMMARY").read_text().startswith("<!-- portlint -->\n## portlint\n")
        outputs = dict(line.split("=", 1) for line in (temporary / "GITHUB_OUTPUT").read_text().splitlines())
        assert outputs["status"] == "1"
        runs = json.loads(Path(outputs["sarif-file"]).read_text())["runs"]
        assert [run["automationDetails"]["id"] for run in runs] == ["portlint/cdna3/", "portlint/mps/"]
        found = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in runs[0]["results"]}
        assert found >= {"a.cu", "b.hip"}

    @pytest.mark.parametrize(
        ("inputs", "status"),
        [
            ({"fail-on": "never"}, "0"),
            ({"paths": "notes.md"}, "0"),
            ({"fail-on": "corrupts", "paths": "c.py\n"}, "0"),
            ({"args": "--ignore lanes --isolated", "paths": "a.cu\nb.hip"}, "0"),
            ({"args": "--ignore build", "paths": "a.cu\nb.hip"}, "1"),
        ],
    )
    def test_inputs(self, tree: Path, programs: Path, inputs: dict[str, str], status: str) -> None:
        target = "mps" if "c.py" in inputs.get("paths", "") else "cdna3"
        result, temporary = self.check(tree, programs, target=target, **inputs)
        assert result.returncode == 0, result.stderr
        assert f"status={status}\n" in (temporary / "GITHUB_OUTPUT").read_text()

    def test_a_mistake_fails_at_once(self, tree: Path, programs: Path) -> None:
        result, temporary = self.check(tree, programs, target="cdna33")
        assert result.returncode == 2
        assert "Did you mean 'cdna3'?" in result.stderr
        assert not (temporary / "GITHUB_OUTPUT").read_text()

    @pytest.mark.parametrize("name", ["target", "paths", "args", "fail-on"])
    def test_an_input_is_never_run(self, tree: Path, programs: Path, name: str) -> None:
        evil = "$(touch pwned) `touch pwned`; touch pwned & \" ' * --version\ntouch pwned"
        result, _ = self.check(tree, programs, **{"target": "cdna3", name: evil})
        assert result.returncode == 2
        assert {path.name for path in tree.iterdir()} == set(TREE)


class TestHook:
    (HOOK,) = load(ROOT / ".pre-commit-hooks.yaml")

    @pytest.mark.parametrize(
        "path",
        [
            *(f"src/a.{ending}" for ending in "py pyi pyw ipynb cu cuh hip h hpp hxx hh inl inc cpp cc cxx c".split()),
            *("a.cmake", "CMakeLists.txt", "x/CMakeLists.txt", "pyproject.toml", ".gitlab-ci.yml", "run.sh", "a.bash"),
            *("Dockerfile", "docker/Dockerfile.rocm", "Containerfile-gpu", "gpu.dockerfile", "environment.yml"),
            *("requirements.txt", "requirements-gpu.txt", "requirements/gpu.txt", "x/dev-constraints.txt"),
            *(".github/workflows/ci.yml", "compose.yaml", "docker-compose.gpu.yml", "conda-env.yaml"),
            *(
                "README.md",
                "a.txt",
                "workflows/ci.yml",
                "a.json",
                "a.rs",
                "pyproject.toml.bak",
                "composed.yml",
                "a.hipx",
            ),
        ],
    )
    def test_it_takes_what_portlint_reads(self, path: str) -> None:
        assert bool(re.search(self.HOOK["files"], path)) == (by_name(path) is not None)

    def test_excludes_hold_for_named_files(self) -> None:
        assert self.HOOK["entry"].split() == ["portlint", "check", "--force-exclude"]
        assert self.HOOK["types"] == ["text"]
        assert self.HOOK["require_serial"]

    @pytest.mark.skipif(find_spec("pre_commit") is None, reason="needs pre-commit: pip install 'portlint[test]'")
    @pytest.mark.skipif(
        not (ROOT / ".git").exists(), reason="needs a git checkout: pre-commit clones the hook's repository"
    )
    def test_pre_commit_runs_it(self, tree: Path, tmp_path: Path) -> None:
        (tree / "old").mkdir()
        (tree / "old" / "e.cu").write_text(MASKS)
        (tree / "portlint.toml").write_text('target = ["cdna3", "mps"]\nextend-exclude = ["old/"]\n')
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PYTHONPATH"))}
        environment |= {"PRE_COMMIT_HOME": str(tmp_path / "cache"), "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig")}
        (tmp_path / "gitconfig").write_text("[safe]\n\tdirectory = *\n[user]\n\tname = a\n\temail = a@example.org\n")
        for command in (["git", "init", "--quiet"], ["git", "add", "."]):
            subprocess.run(command, cwd=tree, env=environment, check=True)
        run = [sys.executable, "-m", "pre_commit", "try-repo", str(ROOT), "portlint", "--all-files", "--color", "never"]
        result = subprocess.run(run, cwd=tree, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 1, result.stdout + result.stderr
        found = set(re.findall(r"^ *--> ([\w./]+):\d+:\d+", result.stdout, flags=re.MULTILINE))
        assert found == {"a.cu", "b.hip", "c.py", "d.ipynb"}, result.stdout


class TestRecipes:
    def test_each_is_tested(self) -> None:
        tested = {"github.yml", "gitlab.yml", "gitlab-sharded.yml", "Jenkinsfile", "Containerfile"}
        assert {path.name for path in DOCS.iterdir()} == tested

    def test_github_calls_the_action(self) -> None:
        workflow = load(DOCS / "github.yml")
        assert workflow["permissions"] == {}
        (job,) = workflow["jobs"].values()
        assert job["permissions"]["security-events"] == "write"
        checkout, step = job["steps"]
        assert re.fullmatch(r"actions/checkout@[0-9a-f]{40}", checkout["uses"])
        assert step["uses"].startswith("portlint/portlint@")
        assert set(step["with"]) <= set(TestAction.ACTION["inputs"])

    def test_gitlab(self, tree: Path, programs: Path) -> None:
        (job,) = load(DOCS / "gitlab.yml").values()
        result = self.scripts(job, tree, programs)
        assert result.returncode == 1, result.stderr
        self.assert_reports(job, tree)

    def test_gitlab_in_parts(self, tree: Path, programs: Path) -> None:
        jobs = load(DOCS / "gitlab-sharded.yml")
        part, whole = jobs["portlint-part"], jobs["portlint"]
        assert whole["needs"] == ["portlint-part"]
        for index in range(1, part["parallel"] + 1):
            numbers = {"CI_NODE_INDEX": str(index), "CI_NODE_TOTAL": str(part["parallel"])}
            result = self.scripts({**jobs[".portlint"], **part}, tree, programs, **numbers)
            assert result.returncode == 0, result.stderr
        (pattern,) = part["artifacts"]["paths"]
        assert len(list(tree.glob(pattern))) == part["parallel"]
        result = self.scripts({**jobs[".portlint"], **whole}, tree, programs)
        assert result.returncode == 1, result.stderr
        self.assert_reports(whole, tree)

    def scripts(
        self, job: dict[str, Any], tree: Path, programs: Path, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        script = "\n".join([*job.get("before_script", ()), *job["script"]])
        assert_is_bash(script)
        return bash(script, tree, variables, programs)

    def assert_reports(self, job: dict[str, Any], tree: Path) -> None:
        assert job["artifacts"]["when"] == "always"
        reports = job["artifacts"]["reports"]
        assert {entry["location"]["path"] for entry in json.loads((tree / reports["codequality"]).read_text())} >= {
            "a.cu",
            "b.hip",
        }
        assert ElementTree.parse(tree / reports["junit"]).getroot().get("failures") != "0"

    def test_jenkins(self, tree: Path, programs: Path) -> None:
        text = (DOCS / "Jenkinsfile").read_text()
        assert text.count("{") == text.count("}")
        install, run = re.findall(r"sh '''\n(.*?)'''", text, flags=re.DOTALL)
        for script in (install, run):
            assert_is_bash(script)
        result = bash(run, tree, {}, programs)
        assert result.returncode == 0, result.stderr
        for pattern in re.findall(r"(?:testResults|pattern): '([^']+)'", text):
            assert (tree / pattern).is_file()

    def test_container(self, tree: Path, programs: Path) -> None:
        import tree_sitter
        import tree_sitter_containerfile

        text = (DOCS / "Containerfile").read_text()
        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_containerfile.language()))
        assert not parser.parse(text.encode()).root_node.has_error
        for script in instructions(text, "RUN"):
            assert_is_bash(script)
        entry, command = (json.loads(one) for kind in ("ENTRYPOINT", "CMD") for one in instructions(text, kind))
        assert bash(" ".join([*entry, *command, "--target", "cdna3"]), tree, {}, programs).returncode == 1


def instructions(text: str, kind: str) -> Iterator[str]:
    return (line.removeprefix(f"{kind} ") for line in text.splitlines() if line.startswith(f"{kind} "))
