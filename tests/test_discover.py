"""From paths on the command line to files: what is taken, in which language, and what is reported as left out."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from portlint.source.discover import (
    DEFAULT_EXCLUDE,
    Discovery,
    MissingPath,
    PatternError,
    discover,
    printable_path,
)
from portlint.source.language import by_content, by_name


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    folder = tmp_path / "tree"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def write(folder: Path, *names: str, text: str = "") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def look(
    *paths: str, exclude: Sequence[str] = DEFAULT_EXCLUDE, force_exclude: bool = False, root: str | None = None
) -> Discovery:
    return discover(paths or ["."], exclude=exclude, force_exclude=force_exclude, root=root)


def names(discovery: Discovery) -> list[str]:
    return [found.path for found in discovery.found]


def problems(discovery: Discovery) -> list[tuple[str, str]]:
    return [(problem.path, problem.kind) for problem in discovery.problems]


# ---- what is taken --------------------------------------------------------------------------------------------------


def test_sources_in_a_folder_are_found_sorted_by_path(tree: Path) -> None:
    write(tree, "b.py", "a/z.cu", "a/b/c.hip", "readme.md", "data.json")
    discovery = look()
    assert names(discovery) == ["a/b/c.hip", "a/z.cu", "b.py"]
    assert [found.kind for found in discovery.found] == ["cuda", "cuda", "python"]
    assert discovery.problems == []


def test_a_found_file_can_be_opened_and_has_its_size(tree: Path) -> None:
    write(tree, "k.cu", text="12345")
    (found,) = look("./k.cu").found
    assert (found.path, found.size) == ("k.cu", 5)
    assert Path(found.file).read_text() == "12345"


def test_paths_in_the_working_directory_are_relative_and_others_absolute(tree: Path) -> None:
    write(tree, "in/a.py")
    write(tree.parent, "out/b.py")
    assert names(look("./in", "../out", str(tree / "in" / "a.py"))) == [f"{tree.parent}/out/b.py", "in/a.py"]


def test_a_file_reached_in_two_ways_is_taken_once_whatever_the_order(tree: Path) -> None:
    write(tree, "src/a.py")
    (tree / "alias").symlink_to("src")
    assert names(look("src", "alias/a.py", "src/a.py")) == names(look("alias/a.py", "src")) == ["alias/a.py"]


def test_a_path_that_does_not_exist_is_an_error_that_names_it(tree: Path) -> None:
    with pytest.raises(MissingPath, match=r"'gone\.cu'"):
        look("gone.cu")


def test_a_named_file_is_taken_whatever_its_name(tree: Path) -> None:
    write(tree, "tool", text="#!/usr/bin/env python3\n")
    (found,) = look("tool").found
    assert found.kind == ""
    assert by_content(found.kind, b"#!/usr/bin/env python3\n") == "python"
    assert by_content(found.kind, b"#!/bin/sh\n# not python\n") is None
    assert names(look()) == []


# ---- what is left out -----------------------------------------------------------------------------------------------


def test_tool_folders_are_left_out_and_build_and_third_party_are_not(tree: Path) -> None:
    write(tree, ".git/a.py", "node_modules/a.py", "x/.venv/lib/a.py", "x/__pycache__/a.py", "dist/a.py")
    write(tree, "build/a.py", "third_party/a.py", "dist.py", ".github/workflows/ci.yml")
    assert names(look()) == [".github/workflows/ci.yml", "build/a.py", "dist.py", "third_party/a.py"]


def test_what_cmake_built_is_left_out_but_not_sources_that_were_built_in_place(tree: Path) -> None:
    write(
        tree, "build/CMakeCache.txt", "build/gen.cu", "inplace/CMakeCache.txt", "inplace/CMakeLists.txt", "inplace/a.cu"
    )
    assert names(look()) == ["inplace/CMakeLists.txt", "inplace/a.cu"]
    assert names(look("build")) == ["build/gen.cu"]


def test_excluded_folders_and_files_are_taken_only_when_named(tree: Path) -> None:
    write(tree, "gen/deep/a.py", "gen/b.py", "src/skip.py", "src/c.py")
    exclude = ["gen/", "skip.py"]
    assert names(look(exclude=exclude)) == ["src/c.py"]
    assert names(look("gen", exclude=exclude)) == ["gen/b.py", "gen/deep/a.py"]
    assert names(look("src/skip.py", exclude=exclude)) == ["src/skip.py"]
    assert names(look("gen/b.py", "gen", "src/skip.py", "src", exclude=exclude, force_exclude=True)) == ["src/c.py"]


def test_the_other_patterns_still_hold_in_an_excluded_folder_that_is_named(tree: Path) -> None:
    write(tree, "gen/a.py", "gen/node_modules/b.py")
    assert names(look("gen", exclude=["gen/", "node_modules/"])) == ["gen/a.py"]


def test_exclude_patterns_are_relative_to_the_given_root(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tree, "sub/gen/a.py", "sub/b.py")
    monkeypatch.chdir(tree / "sub")
    assert names(look(exclude=["/sub/gen"], root=str(tree))) == ["b.py"]
    assert names(look(exclude=["/sub/gen"])) == ["b.py", "gen/a.py"]


@pytest.mark.parametrize("pattern", ["!", "[z-a]", "a*a*a*a*a*b"])
def test_an_exclude_pattern_that_cannot_be_used_is_an_error(tree: Path, pattern: str) -> None:
    with pytest.raises(PatternError):
        look(exclude=[pattern])


# ---- .gitignore -----------------------------------------------------------------------------------------------------


def test_gitignore_files_hold_for_their_folder_and_below(tree: Path) -> None:
    write(tree, "a.py", "x/a.py", "x/y/a.py", "x/y/keep.py", "z/b.py", "out/c.py")
    write(tree, ".gitignore", text="/out/\nb.py\n")
    write(tree, "x/.gitignore", text="a.py\n!keep.py\n")
    assert names(look()) == ["a.py", "x/y/keep.py"]
    assert names(discover(["."], exclude=(), force_exclude=False, respect_gitignore=False))[:2] == ["a.py", "out/c.py"]


def test_the_nearest_gitignore_decides(tree: Path) -> None:
    write(tree, "sub/a.py", "sub/b.py", "sub/gen/c.py")
    write(tree, ".gitignore", text="*.py\ngen/\n")
    write(tree, "sub/.gitignore", text="!a.py\n!gen/\n!c.py\n")
    assert names(look()) == ["sub/a.py", "sub/gen/c.py"]


def test_gitignore_above_the_named_folder_counts_up_to_the_top_of_the_work_tree(tree: Path) -> None:
    write(tree, ".gitignore", text="outside.py\n")
    write(tree, "repo/.gitignore", text="gen.py\n")
    write(tree, "repo/.git/HEAD", "repo/src/gen.py", "repo/src/outside.py")
    assert names(look("repo/src")) == ["repo/src/outside.py"]


def test_what_git_ignores_is_taken_when_it_is_named(tree: Path) -> None:
    write(tree, ".gitignore", text="out/\n*.tmp.py\n")
    write(tree, "out/a.py", "out/b.tmp.py")
    assert names(look()) == []
    assert names(look("out")) == ["out/a.py"]
    assert names(look("out/b.tmp.py")) == ["out/b.tmp.py"]


def test_a_gitignore_line_that_cannot_be_used_is_reported_and_the_others_hold(tree: Path) -> None:
    write(tree, ".gitignore", text="# [z-a]\n[z-a]\na*a*a*a*a*b\nb.py\n[[:alpha:]]x.py\n")
    write(tree, "a.py", "b.py")
    discovery = look()
    assert names(discovery) == ["a.py"]
    assert [(problem.path, problem.line) for problem in discovery.problems] == [(".gitignore", 2), (".gitignore", 3)]


@pytest.mark.parametrize(
    "patterns",
    [
        "*\n!*/\n!*.cu\n",
        "/*\n!/src/\n/src/*\n!/src/keep/\n",
        "src/**/gen\n",
        "**/b.cu\n!/src/b.cu\n",
        "*.py\n\\!odd.cu\n",
        "doc?/\n[a-c].py\n",
    ],
)
def test_the_answer_is_git_s_own(tree: Path, patterns: str) -> None:
    files = ["a.cu", "a.py", "d.py", "src/a.cu", "src/b.cu", "src/keep/a.cu", "src/keep/gen/b.cu", "src/gen/x.py"]
    write(tree, *files, "!odd.cu", "docs/a.py")
    write(tree, ".gitignore", text=patterns)
    git = ["git", "-c", "init.defaultBranch=main"]
    try:
        subprocess.run([*git, "init", "-q", "."], check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs git")
    listed = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard"], check=True, capture_output=True, text=True
    ).stdout.split()
    assert names(look()) == sorted(set(listed) - {".gitignore"})


# ---- links and other oddities ---------------------------------------------------------------------------------------


def test_links_to_folders_are_not_followed_and_loops_end(tree: Path) -> None:
    write(tree, "src/a.py")
    (tree / "src" / "up").symlink_to("..")
    (tree / "src" / "self").symlink_to("self")
    (tree / "again").symlink_to("src")
    assert names(look()) == ["src/a.py"]


def test_links_out_of_the_tree_are_reported_and_not_taken(tree: Path) -> None:
    write(tree.parent, "secret/s.py")
    (tree / "s.py").symlink_to("../secret/s.py")
    (tree / "folder").symlink_to("../secret")
    (tree / "passwd").symlink_to("/etc/passwd")
    discovery = look()
    assert names(discovery) == []
    assert problems(discovery) == [("folder", "skipped"), ("s.py", "skipped")]


def test_a_link_in_the_tree_is_taken_only_if_its_file_is_not_found_by_itself(tree: Path) -> None:
    write(tree, "real.py", "kernel.txt")
    (tree / "alias.py").symlink_to("real.py")
    (tree / "kernel.cu").symlink_to("kernel.txt")
    discovery = look()
    assert names(discovery) == ["kernel.cu", "real.py"]
    assert Path(discovery.found[0].file).name == "kernel.txt"
    assert discovery.problems == []


def test_a_link_that_is_named_is_taken_wherever_it_leads(tree: Path) -> None:
    write(tree.parent, "elsewhere.py")
    (tree / "link.py").symlink_to("../elsewhere.py")
    assert names(look("link.py")) == ["link.py"]


def test_what_is_no_regular_file_is_reported_and_never_opened(tree: Path) -> None:
    os.mkfifo(tree / "pipe.cu")
    os.mkfifo(tree / "pipe.txt")
    (tree / "dangling.py").symlink_to("nowhere")
    assert problems(look()) == [("dangling.py", "skipped"), ("pipe.cu", "skipped")]
    assert problems(look("pipe.cu")) == [("pipe.cu", "skipped")]


def test_a_gitignore_that_is_a_pipe_or_a_link_is_not_read(tree: Path) -> None:
    write(tree, "a/x.py", "b/x.py", "ignore.txt", text="x.py\n")
    os.mkfifo(tree / "a" / ".gitignore")
    (tree / "b" / ".gitignore").symlink_to("../ignore.txt")
    assert names(look()) == ["a/x.py", "b/x.py"]


def test_a_folder_that_may_not_be_read_is_reported(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tree, "a.py", "closed/b.py")
    scandir = os.scandir

    def closed(path: str) -> object:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    discovery = look()
    assert names(discovery) == ["a.py"]
    assert problems(discovery) == [("closed", "read")]
    assert "Permission denied" in discovery.problems[0].message


def test_a_path_too_long_for_the_system_is_reported(tree: Path) -> None:
    write(tree, "a.py")
    here = Path.cwd()
    for _ in range(20):
        os.mkdir("d" * 250)
        os.chdir("d" * 250)
    os.chdir(here)
    discovery = look()
    assert names(discovery) == ["a.py"]
    assert [problem.kind for problem in discovery.problems] == ["read"]


def test_file_names_that_are_not_utf_8_are_found_and_printable(tree: Path) -> None:
    try:
        Path(os.fsdecode(b"caf\xe9.py")).write_text("x")
    except OSError:
        pytest.skip("the file system takes only UTF-8 names")
    (found,) = look().found
    assert found.path == "caf\\xe9.py"
    assert Path(found.file).read_text() == "x"


@pytest.mark.parametrize("name", ["-rf.py", "a b.py", "[/foo].py", "a\nb.py", "\x1b[2J.py", "ü🎉.py"])
def test_odd_file_names_are_reported_as_they_are(tree: Path, name: str) -> None:
    write(tree, name)
    assert names(look()) == [name]


def test_printable_path_escapes_only_what_is_not_utf_8() -> None:
    assert printable_path("a/ü\n") == "a/ü\n"
    assert printable_path(os.fsdecode(b"\xff\x80/x")) == "\\xff\\x80/x"
    printable_path("\ud800").encode()


# ---- languages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a.py", "python"),
        ("A.PYI", "python"),
        ("n.ipynb", "notebook"),
        ("a.cuh", "cuda"),
        ("a.hip", "cuda"),
        ("a.h", "cxx?"),
        ("a.inl", "cxx?"),
        ("x/CMakeLists.txt", "cmake"),
        ("cuda.cmake", "cmake"),
        ("requirements-dev.txt", "requirements"),
        ("test_requirements.txt", "requirements"),
        ("requirements/cuda.txt", "requirements"),
        ("constraints.txt", "requirements"),
        ("docker/Dockerfile.rocm", "dockerfile"),
        ("Containerfile", "dockerfile"),
        ("gpu.dockerfile", "dockerfile"),
        ("Dockerfile.dockerignore", None),
        ("pyproject.toml", "toml"),
        ("Cargo.toml", None),
        (".github/workflows/ci.yml", "yaml"),
        ("/r/.github/workflows/ci.yaml", "yaml"),
        ("workflows/ci.yml", None),
        (".gitlab-ci.yml", "yaml"),
        ("notes.txt", None),
        ("py", None),
        ("Makefile", None),
    ],
)
def test_by_name(path: str, language: str | None) -> None:
    assert by_name(path) == language


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k();",
        "run<<<grid, block>>>(x);",
        "run<int>\n  <<<1, 1>>>();",
        "cudaMalloc(&p, n);",
        "void f(cudaStream_t s);",
        "hipMemcpy(a, b, n, k);",
        "cuLaunchKernel(f);",
        "#include <hip/hip_runtime.h>",
        "int i = threadIdx.x;",
        "using cub::BlockReduce;",
        "thrust::sort(a, b);",
        "v = __shfl_down_sync(m, v, 1);",
        'asm volatile("mov.u32 %0, %laneid;" : "=r"(x));',
        ' asm("{\\n\\t.reg .pred p;" : : ); ncclAllReduce(a);',
        '__asm__ __volatile__("s_waitcnt vmcnt(0)");',
        "#if defined(__CUDACC__)",
        "CUTLASS_DEVICE void f();",
    ],
)
def test_c_plus_plus_that_uses_a_gpu_is_cuda(text: str) -> None:
    assert by_content("cxx?", f"int a;\n{text}\n".encode()) == "cuda"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "int main() { return 1 << 3; }",
        "<<<<<<< HEAD\nint a;\n=======\n",
        "execute::now(); shipTo(x); calculateX(y); circumference();",
        'asm volatile("pause");',
        'asm("mov %0, %1" : "=r"(a) : "r"(b));',
        "std::cout << std::setw(3) << a;",
        "accounts::focusOn(me);",
    ],
)
def test_plain_c_plus_plus_is_none_of_ours(text: str) -> None:
    assert by_content("cxx?", text.encode()) is None


def test_the_content_of_a_file_does_not_change_what_its_name_says() -> None:
    assert by_content("python", b"__global__") == "python"
    assert by_content("cuda", b"int a;") == "cuda"
