"""What recipes ask for, and which recipe of a project is for which platform."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import scan

from portlint.condition import UNKNOWN, is_live
from portlint.rules import discover
from portlint.source import Source
from portlint.source.language import by_name
from portlint.target import load


def asked(text: str, path: str) -> list[tuple[str, str, str]]:
    """Kind, name and value of what a file of that name asks for."""
    source = Source(path, text.encode(), by_name(path) or "")
    return [(one.kind, one.name, one.value) for one in source.entries]


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("torch==2.5.1+cu121\n", [("package", "torch", "==2.5.1+cu121")]),
        ("Flash_Attn\n", [("package", "flash-attn", "")]),
        ("jax[cuda12] >= 0.4 ; sys_platform == 'linux'\n", [("package", "jax[cuda12]", ">= 0.4")]),
        ("-i https://a.example/cu124\n", [("index", "-i", "https://a.example/cu124")]),
        ("--find-links=https://a.example/x.html\n", [("index", "--find-links", "https://a.example/x.html")]),
        ("https://a.example/x.whl\n", [("package", "", "@ https://a.example/x.whl")]),
        ("# torch==2.5.1+cu121\n-r base.txt\n", []),
    ],
)
def test_requirements(text: str, entries: list[tuple[str, str, str]]) -> None:
    assert asked(text, "requirements.txt") == entries


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("FROM a/b:1 AS base\n", [("image", "a/b", "1")]),
        (
            'ENV A=1 B="2 3"\nENV C 4\nARG D=5\n',
            [("setting", *one) for one in (("A", "1"), ("B", "2 3"), ("C", "4"), ("D", "5"))],
        ),
        ("RUN true && \\\n    # why\n    pip install x\n", [("package", "x", "")]),
        ('RUN ["pip", "install", "x"]\n', [("package", "x", "")]),
        ("RUN <<EOF\npip install x\nEOF\n", [("package", "x", "")]),
        ("RUN uv pip install -r requirements.txt x --target /y\n", [("package", "x", "")]),
        ("RUN apt-get install -y pip torch\n", []),
    ],
)
def test_container_files(text: str, entries: list[tuple[str, str, str]]) -> None:
    assert asked(text, "Dockerfile") == entries


def test_a_command_inside_a_container_file_is_found_where_it_stands() -> None:
    text = b"FROM a\nRUN true && \\\n  # b\n  pip install torch==2+cu121\n"
    (entry,) = (one for one in Source("Dockerfile", text, "dockerfile").entries if one.kind == "package")
    start = entry.node.source.offset + entry.node.start
    assert text[start : start + entry.node.end - entry.node.start] == b"torch==2+cu121"


@pytest.mark.parametrize(
    ("name", "found"), [("release.yml", [("setting", "A", "8.0"), ("setting", "B", "9.0")]), ("test.yml", [])]
)
def test_of_workflows_only_those_count_that_make_what_users_get(name: str, found: list[tuple[str, str, str]]) -> None:
    text = 'env: {A: "8.0"}\njobs:\n  x:\n    steps:\n    - run: |\n        export B=9.0\n        pip install y\n'
    assert asked(text, f".github/workflows/{name}") == found


def test_manifests() -> None:
    text = """
[project]
dependencies = ["torch>=2", "triton; sys_platform == 'linux'"]
[project.optional-dependencies]
more = ["flash-attn"]
[[tool.uv.index]]
name = "cuda"
url = "https://a.example/whl/cu128"
explicit = true
[[tool.uv.index]]
name = "all"
url = "https://b.example/whl/cu128"
[tool.uv.sources]
torch = [{ index = "cuda", marker = "extra == 'cuda'" }]
"""
    packages = [("package", "torch", ">=2"), ("package", "triton", "")]
    assert asked(text, "pyproject.toml") == [*packages, ("index", "", "https://b.example/whl/cu128")]


@pytest.mark.parametrize(
    ("marker", "on"),
    [
        ("sys_platform == 'linux'", {"cdna3": True, "mps": False}),
        ("sys_platform == 'linux' and platform_machine == 'x86_64' or sys_platform == 'linux2'", {"mps": False}),
        ("platform_system != 'Darwin'", {"cdna3": True, "mps": False}),
        ("python_version < '3.9'", {"cdna3": UNKNOWN, "mps": UNKNOWN}),
    ],
)
def test_markers_are_guards(marker: str, on: dict[str, object]) -> None:
    (entry,) = Source("requirements.txt", f"x ; {marker}\n".encode(), "requirements").entries
    assert {target: is_live(entry.guards, load(target).queries()) for target in on} == on


def project(folder: Path, *names: str) -> None:
    (folder / ".git").mkdir()
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("FROM nvidia/cuda:12.4.1-devel\n" if "ocker" in name else "torch==2.7.1+cu128\n")


def targets(file: Path) -> set[str]:
    found = scan(file, [rule for name, rule in discover().items() if name.startswith("build/")])
    return {one.target for one in found}


@pytest.mark.parametrize(
    ("file", "beside", "silent"),
    [
        ("Dockerfile", "Dockerfile.rocm", {"cdna3", "rdna4"}),
        ("Dockerfile", "docker/rocm/Dockerfile", {"cdna3", "rdna4"}),
        ("docker/Dockerfile.cuda", "docker/Dockerfile.hpu", {"gaudi3"}),
        ("requirements.txt", "requirements/requirements-rocm.txt", {"cdna3", "rdna4"}),
        ("requirements.txt", "requirements-cpu.txt", {"cpu"}),
        ("requirements/cuda.txt", "requirements/xpu.txt", {"cdna3", "rdna4", "gaudi3", "cpu"}),
        ("requirements.txt", "Dockerfile.rocm", set()),
        ("Dockerfile", "Dockerfile.cuda", set()),
    ],
)
def test_a_recipe_is_not_read_where_another_is_named_for_the_platform(
    tmp_path: Path, file: str, beside: str, silent: set[str]
) -> None:
    project(tmp_path, file, beside)
    found = targets(tmp_path / file)
    assert not found & silent
    assert ({"cdna3", "rdna4", "gaudi3", "cpu"} - silent) <= found


def test_a_recipe_that_is_named_for_a_platform_is_read_there_alone(tmp_path: Path) -> None:
    project(tmp_path, "docker/hpu/Dockerfile")
    assert targets(tmp_path / "docker/hpu/Dockerfile") == {"gaudi3"}


@pytest.mark.parametrize(
    ("file", "is_read"),
    [
        ("Dockerfile.aarch64", False),
        ("docker/arm64/Dockerfile", False),
        ("Dockerfile.x86", True),
        ("Dockerfile.gh200", True),
    ],
)
def test_a_recipe_that_is_named_for_a_processor_is_read_on_such_hosts(tmp_path: Path, file: str, is_read: bool) -> None:
    project(tmp_path, file)
    assert bool(targets(tmp_path / file) & {"cdna3", "gaudi3"}) is is_read


def test_outside_a_project_the_folder_is_asked(tmp_path: Path) -> None:
    for name in ("Dockerfile", "Dockerfile.rocm"):
        (tmp_path / name).write_text("FROM nvidia/cuda:12.4.1-devel\n")
    assert {"gaudi3", "cpu"} <= targets(tmp_path / "Dockerfile")
    assert not targets(tmp_path / "Dockerfile") & {"cdna3", "rdna4"}


def found(folder: Path, files: dict[str, str], name: str) -> set[tuple[str, str, str]]:
    """Rule, target and verdict of what a project has in one of its files."""
    (folder / ".git").mkdir()
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    rules = [rule for name, rule in discover().items() if name.startswith("build/")]
    return {(one.rule, one.target, str(one.verdict)) for one in scan(folder / name, rules)}


SETUP = "from setuptools import setup\nsetup(name='x_y', install_requires=['triton<3'])\n"


@pytest.mark.parametrize(
    ("manifest", "is_read"),
    [
        ("[project]\nname = 'x'\ndependencies = ['torch']\n", False),
        ("[project]\nname = 'x'\ndynamic = ['dependencies']\n", True),
        ("[build-system]\nrequires = ['setuptools']\n", True),
    ],
)
def test_a_static_list_of_dependencies_overrides_that_of_setup(tmp_path: Path, manifest: str, is_read: bool) -> None:
    assert bool(found(tmp_path, {"pyproject.toml": manifest, "setup.py": SETUP}, "setup.py")) is is_read


@pytest.mark.parametrize(("name", "is_own"), [("flash_attn", True), ("flash-attn", True), ("x", False)])
def test_a_project_does_not_require_its_own_distribution(tmp_path: Path, name: str, is_own: bool) -> None:
    files = {"setup.py": SETUP.replace("x_y", name), "examples/requirements.txt": "torch\nFlash-Attn>=2\n"}
    assert bool(found(tmp_path, files, "examples/requirements.txt")) is not is_own


@pytest.mark.parametrize(
    ("manifest", "text", "is_chosen"),
    [
        (
            "setup.py",
            "import setuptools\ndef needed(kind):\n    if kind == 'rocm':\n        return ['triton>=3']\n",
            True,
        ),
        (
            "setup.py",
            "import setuptools\ndef needed(kind):\n    if kind != 'rocm':\n        return ['triton>=3']\n",
            False,
        ),
        ("pyproject.toml", "[project.optional-dependencies]\nrocm = ['triton>=3']\n", True),
        ("pyproject.toml", "[project.optional-dependencies]\nfast = ['triton>=3']\n", False),
    ],
)
def test_a_project_that_requires_triton_for_rocm_has_chosen_it(
    tmp_path: Path, manifest: str, text: str, is_chosen: bool
) -> None:
    of_amd = ("build/triton-is-from-pypi", "cdna3", "degrades")
    files = {manifest: text, "requirements.txt": "torch\ntriton\n"}
    assert (of_amd in found(tmp_path, files, "requirements.txt")) is not is_chosen


def test_a_package_that_most_modules_import_is_what_the_project_is_about(tmp_path: Path) -> None:
    manifest = "[project]\nname = 'x'\ndependencies = ['nvidia-cutlass-dsl', 'numpy']\n"
    modules = {f"x/m{index}.py": "import cutlass.cute\n" for index in range(5)}
    assert not found(tmp_path, {"pyproject.toml": manifest, **modules}, "pyproject.toml")


@pytest.mark.parametrize(
    "name", ["ci/Dockerfile", "tests/requirements.txt", ".ci/docker/Dockerfile.cuda", "docker/gh-builder/Dockerfile"]
)
def test_what_the_projects_own_tests_run_on_says_nothing_of_the_project(tmp_path: Path, name: str) -> None:
    project(tmp_path, name)
    assert not targets(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("Containerfile", "dockerfile"),
        ("docker/app.Dockerfile", "dockerfile"),
        ("dockerfile-stages.png", None),
        ("docker-compose.gpu.yml", "yaml"),
        ("environment.yaml", "yaml"),
        ("config.yml", None),
        ("run.sh", "bash"),
        ("requirements-dev.txt", "requirements"),
        ("notes.txt", None),
    ],
)
def test_names(name: str, language: str | None) -> None:
    assert by_name(name) == language


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "Dockerfile",
            "FROM a\n# portlint: ignore[build/wheels-are-cuda] why\nRUN true && \\\n  pip install cupy-cuda12x\n",
        ),
        ("requirements.txt", "cupy-cuda12x  # portlint: ignore[build/wheels-are-cuda] why\n"),
        ("run.sh", "# portlint: ignore[build/wheels-are-cuda] why\npip install a \\\n  cupy-cuda12x\n"),
        ("environment.yml", "dependencies:\n  # portlint: ignore[build/wheels-are-cuda] why\n  - pytorch-cuda=12.1\n"),
        (
            "pyproject.toml",
            '[project]\ndependencies = [\n  # portlint: ignore[build/wheels-are-cuda] why\n  "cupy-cuda12x",\n]\n',
        ),
    ],
)
def test_comments_of_recipes_suppress(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text.replace("portlint:", "other:"))
    assert targets(file)
    file.write_text(text)
    assert not targets(file)
