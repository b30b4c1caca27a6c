"""`portlint check --changed`: findings on lines that differ from a commit, and nothing of the checkout is run."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from portlint import changed as module
from portlint.cli import main
from portlint.finding import Edit

LINE = 'x = torch.zeros(3, device="cuda")\n'
TEXT = "import torch\n\n" + LINE
MORE = 'y = torch.ones(3, device="cuda")\n'

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Run git in a fresh repository, which is the working directory."""
    folder = tmp_path / "repo"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    module._without_filters.cache_clear()

    def run(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *who, *arguments], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    run("init", "-q", "-b", "main")
    return run


def commit(git: Git, **files: str) -> str:
    """Commit files, named with `__` for a slash and `_` for the dot."""
    for name, text in files.items():
        path = Path(name.replace("__", "/").replace("_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git("add", "-A")
    git("commit", "-q", "-m", "x", "--allow-empty")
    return git("rev-parse", "HEAD")


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", *arguments, "-t", "mps", "--output-format", "json"])


def places(*arguments: str) -> list[tuple[str, int]]:
    outcome = check(*arguments)
    assert outcome.exit_code in (0, 1), outcome.output
    return [(one["path"], one["line"]) for one in json.loads(outcome.stdout)["findings"]]


class TestWhatDiffers:
    def test_staged_unstaged_and_untracked(self, git: Git) -> None:
        commit(git, a_py=TEXT, b_py=TEXT, c_py=TEXT)
        assert places("--changed", ".") == []
        Path("a.py").write_text(TEXT + MORE)
        git("add", "a.py")
        Path("a.py").write_text(TEXT + MORE + LINE)
        Path("b.py").write_text("import torch\n# word\n\n" + LINE)
        Path("new.py").write_text(TEXT)
        assert places("--changed", ".") == [("a.py", 4), ("a.py", 5), ("new.py", 3)]
        assert places(".", "--changed") == places("--changed=HEAD", ".")
        assert check("--changed", ".").exit_code == 1

    def test_only_files_that_differ_are_analysed(self, git: Git) -> None:
        commit(git, a_py=TEXT, b_py=TEXT)
        Path("b.py").write_text(TEXT + MORE)
        assert json.loads(check("--changed", ".").stdout)["summary"]["files"] == 1

    def test_folders_where_nothing_differs_are_not_read(self, git: Git) -> None:
        folders = ("other", "deep/er 50%", "deep/other")
        commit(git, **{f"{folder}/a_py".replace("/", "__"): TEXT for folder in folders})
        Path("deep/er 50%/a.py").write_text(TEXT + MORE)
        for folder in folders:
            Path(folder, "loose.py").symlink_to("nowhere")
        Path("deep/er 50%/new").mkdir()
        Path("deep/er 50%/new/b.py").write_text(TEXT)
        git("add", "other/loose.py", "deep/other/loose.py")
        git("commit", "-q", "-m", "x")
        told = json.loads(check("--changed", ".").stdout)
        assert told["summary"]["files"] == 2
        assert [one["path"] for one in told["problems"]] == ["deep/er 50%/loose.py"]
        assert len(json.loads(check(".").stdout)["problems"]) == 3

    def test_a_commit_is_given(self, git: Git) -> None:
        first = commit(git, a_py=TEXT)
        git("tag", "v1")
        commit(git, a_py=TEXT + MORE)
        assert places("--changed", ".") == []
        for ref in (first, first[:8], "HEAD~1", "v1"):
            assert places(f"--changed={ref}", ".") == [("a.py", 4)]

    def test_since_the_upstream(self, git: Git) -> None:
        commit(git, a_py=TEXT)
        git("branch", "base")
        git("checkout", "-q", "-b", "topic", "--track", "base")
        commit(git, a_py=TEXT + MORE)
        git("checkout", "-q", "base")
        commit(git, b_py=TEXT)
        git("checkout", "-q", "topic")
        assert places("--changed", ".") == [("a.py", 4)]

    def test_since_the_default_branch(self, git: Git) -> None:
        commit(git, a_py=TEXT)
        git("update-ref", "refs/remotes/origin/main", "HEAD")
        git("checkout", "-q", "-b", "topic")
        commit(git, a_py=TEXT + MORE)
        assert places("--changed", ".") == [("a.py", 4)]

    def test_renamed_files(self, git: Git) -> None:
        commit(git, a_py=TEXT * 5)
        git("mv", "a.py", "b.py")
        assert places("--changed", ".") == []
        Path("b.py").write_text(TEXT * 5 + MORE)
        assert places("--changed", ".") == [("b.py", 16)]

    def test_removed_lines_and_files(self, git: Git) -> None:
        commit(git, a_py=TEXT + "z = 1\n" + MORE, b_py=TEXT)
        Path("a.py").write_text(TEXT + MORE)
        Path("b.py").unlink()
        assert places("--changed", ".") == []

    def test_a_repository_without_commits(self, git: Git) -> None:
        Path("a.py").write_text(TEXT)
        git("add", "a.py")
        Path("b.py").write_text(TEXT)
        assert places("--changed", ".") == [("a.py", 3), ("b.py", 3)]

    def test_from_a_folder_below(self, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
        commit(git, src__a_py=TEXT, b_py=TEXT)
        Path("src/a.py").write_text(TEXT + MORE)
        Path("b.py").write_text(TEXT + MORE)
        Path("src/new.py").write_text(TEXT)
        monkeypatch.chdir("src")
        assert places("--changed", ".") == [("a.py", 4), ("new.py", 3)]
        assert len(places("--changed", "..")) == 3

    @pytest.mark.parametrize("name", ["a b.py", "ä.py", 'q"uote.py', "back\\slash.py", "tab\t.py", "a/a.py", "b/b.py"])
    def test_names(self, git: Git, name: str) -> None:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(TEXT)
        commit(git)
        Path(name).write_text(TEXT + MORE)
        assert [line for _, line in places("--changed", ".")] == [4]
        Path(name).unlink()
        commit(git)
        Path(name).write_text(TEXT)
        assert [line for _, line in places("--changed", ".")] == [3]

    def test_lines_that_look_like_a_patch(self, git: Git) -> None:
        text = '"""\n--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n"""\n' + TEXT
        commit(git, a_py="import torch\n")
        Path("a.py").write_text(text)
        assert places("--changed", ".") == [("a.py", 8)]

    def test_what_git_takes_for_binary_differs_as_a_whole(self, git: Git) -> None:
        commit(git, a_py=TEXT)
        Path(".gitattributes").write_text("*.py -diff\n")
        Path("a.py").write_text(TEXT + "z = 1\n")
        assert places("--changed", ".") == [("a.py", 3)]

    def test_with_a_baseline(self, git: Git) -> None:
        commit(git, a_py=TEXT)
        Path("a.py").write_text(TEXT + MORE)
        assert CliRunner().invoke(main, ["baseline", "write", ".", "-t", "mps"]).exit_code == 0
        Path("a.py").write_text(TEXT + MORE + LINE)
        assert places("--changed", ".") == [("a.py", 5)]


class TestMistakes:
    def test_no_checkout(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
        outcome = check("--changed", ".")
        assert outcome.exit_code == 2
        assert "'--changed' needs a git checkout" in outcome.output

    @pytest.mark.parametrize("ref", ["nothing", "--output=x", "HEAD:a.py", "HEAD..HEAD"])
    def test_an_unknown_commit(self, git: Git, ref: str) -> None:
        commit(git, a_py=TEXT)
        outcome = check(f"--changed={ref}", ".")
        assert outcome.exit_code == 2
        assert f"git knows no commit '{ref}'" in outcome.output

    def test_no_git(self, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        outcome = check("--changed", ".")
        assert outcome.exit_code == 2
        assert "there is no program 'git'" in outcome.output

    def test_git_takes_too_long(self, git: Git, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 5\n")
        (tmp_path / "git").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        monkeypatch.setattr(module, "_SECONDS", 0.2)
        outcome = check("--changed", ".")
        assert outcome.exit_code == 2
        assert "did not answer" in outcome.output


def test_nothing_of_the_checkout_is_run(git: Git, tmp_path: Path) -> None:
    commit(git, a_py=TEXT, b_py=TEXT)
    marker = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho $0 $@ >> {marker}\ncat\n")
    script.chmod(0o755)
    for name in os.listdir(".git/hooks"):
        Path(".git/hooks", name).unlink()
    for name in ("post-index-change", "post-checkout", "fsmonitor-watchman", "pre-auto-gc", "reference-transaction"):
        Path(".git/hooks", name).symlink_to(script)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "diff.evil.command", "diff.evil.textconv",
                "filter.evil.clean", "filter.evil.smudge", "filter.e=vil.process", "core.sshCommand"):  # fmt: skip
        git("config", key, str(script))
    git("config", "filter.evil.required", "true")
    Path(".gitattributes").write_text("a.py diff=evil filter=evil\nb.py filter=e=vil diff=evil\n")
    Path("a.py").write_text(TEXT + MORE)
    Path("b.py").write_text(TEXT + MORE)
    marker.unlink(missing_ok=True)
    assert places("--changed", ".") == [("a.py", 4), ("b.py", 4)]
    assert not marker.exists()


WAIT = "    torch.cuda.synchronize()\n"
HEAD = "import torch\n\n\ndef wait(job):\n"
TESTED = "    if torch.cuda.is_available():\n        torch.cuda.synchronize()\n"


class TestFixes:
    def test_what_is_on_changed_lines_is_mended_and_nothing_else(self, git: Git) -> None:
        text = HEAD + WAIT + "    job()\n" + WAIT
        commit(git, a_py=text, b_py=text)
        Path("a.py").write_text(text + "    job()\n" + WAIT)
        outcome = check("--changed", "--fix", ".")
        assert outcome.exit_code == 0
        assert "1 fix made in 1 file" in outcome.stderr
        assert json.loads(outcome.stdout)["findings"] == []
        assert Path("a.py").read_text() == text + "    job()\n" + TESTED
        assert Path("b.py").read_text() == text
        assert "no fixes made" in check("--changed", "--fix", ".").stderr

    def test_the_lines_move_with_what_is_mended_above(self, git: Git) -> None:
        commit(git, a_py=HEAD + "    job()\n" * 3 + WAIT)
        Path("a.py").write_text(HEAD + WAIT + "    job()\n" * 3 + WAIT + "    x = torch.randn(3).cuda()\n")
        outcome = check("--changed", "--fix", ".")
        assert [one["line"] for one in json.loads(outcome.stdout)["findings"]] == [11]
        assert Path("a.py").read_text() == HEAD + TESTED + "    job()\n" * 3 + WAIT + "    x = torch.randn(3).cuda()\n"

    def test_a_diff_shows_the_same(self, git: Git) -> None:
        commit(git, a_py=HEAD + WAIT)
        Path("a.py").write_text(HEAD + WAIT + "    job()\n" + WAIT)
        outcome = CliRunner().invoke(main, ["check", "--changed", "--diff", ".", "-t", "mps"])
        assert outcome.stdout.count("+    if torch.cuda.is_available():") == 1


def test_lines_that_are_edited_differ_and_those_behind_have_moved() -> None:
    place = module._real("a.py")
    changed = module.Changed({place: (module.Span(1, 1), module.Span(5, 6), module.Span(9, 9))})
    edits = [
        Edit(0, 0, "a\nb\n", 3, 1, 3, 1),  # two more lines in front of the third
        Edit(0, 0, "", 5, 4, 6, 2),  # one less in the second span
        Edit(0, 0, "x", 9, 1, 9, 2),
    ]
    spans = changed.edited("a.py", edits).files[place]
    assert spans is not None
    assert {(one.first, one.last) for one in spans} == {(1, 1), (7, 7), (10, 10), (3, 5)}
    assert changed.edited("b.py", edits).files[place] == changed.files[place]
