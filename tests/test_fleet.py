"""Many checkouts on a cluster: what comes out is what `portlint check` says in each, whatever dies on the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from portlint import __version__, target
from portlint.cli import main
from portlint.config import Config
from portlint.fleet import folder as fleet_folder
from portlint.fleet.clone import CloneError, clone, commit
from portlint.fleet.folder import Fleet, FleetError, Repository, State, appearing, file_of, write_report, write_summary
from portlint.fleet.job import Options, Reply
from portlint.fleet.listing import Checkout, ListError, read, without_password
from portlint.fleet.run import _Pending, _Run
from portlint.run import Request, run
from portlint.target import load

SUM = """__global__ void sum(float* x) {
    for (int o = 16; o > 0; o >>= 1) x[0] += __shfl_xor_sync(0xffffffff, x[0], o);
}
"""
DEVICE = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'
TARGETS = ("--target", "cdna3", "--target", "mps")
HOSTILE = '"><img src=x onerror=alert(1)>'

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plant(place: Path, many: int = 3) -> Path:
    """A small tree; its files differ, so that no two findings are alike."""
    place.mkdir(parents=True)
    for number in range(many):
        (place / f"k{number}.cu").write_text(SUM.replace("sum", f"sum{number}") * (number % 7 + 1))
    (place / "run.py").write_text(DEVICE)
    return place


# ---- the list -------------------------------------------------------------------------------------------------------


class TestList:
    def test_a_line_is_a_folder_or_a_url(self) -> None:
        found = read(
            "# nightly\n\n/src/apex  # NVIDIA\n'/src/my code' name=ours\n"
            "https://host.example/org/vllm.git ref=v0.9\ngit@host.example:org/triton.git\n"
        ).checkouts
        assert [(one.name, one.is_url, one.ref) for one in found] == [
            ("apex", False, ""),
            ("ours", False, ""),
            ("triton", True, ""),
            ("vllm", True, "v0.9"),
        ]

    def test_a_relative_folder_starts_where_the_command_does(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.chdir(tmp_path)
        (one,) = read("code\n").checkouts
        assert (one.place, one.source) == ("code", os.fsencode(os.path.realpath(tmp_path / "code")))

    def test_equal_names_are_told_apart_by_their_folders(self) -> None:
        found = read(
            "/a/x/kernels\n/b/x/kernels\n/c/other\nhttps://h.example/o/r ref=v1\nhttps://h.example/o/r ref=v2\n"
        ).checkouts
        assert [one.name for one in found] == [
            "a/x/kernels",
            "b/x/kernels",
            "h.example/o/r@v1",
            "h.example/o/r@v2",
            "other",
        ]

    def test_what_is_named_twice_is_checked_once(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "code")
        found = read(f"{tmp_path}/code\n{tmp_path}/link\n{tmp_path}/code/ name=again\n")
        assert [one.name for one in found.checkouts] == ["code"]
        assert [sentence.partition(";")[0] for sentence in found.repeated] == [
            "line 2 names what line 1 names",
            "line 3 names what line 1 names",
        ]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("/a name=x\n/b name=x\n", "lines 1 and 2 have the name 'x'"),
            ("/a branch=x\n", "line 1: 'branch=x' is not understood"),
            ("/a b\n", "line 1: 'b' is not understood"),
            ("/a ref=main\n", "'ref=' goes with a URL"),
            ("https://h.example/r ref=--upload-pack=x\n", "is no branch, tag or commit"),
            ("'/a\n", "line 1: No closing quotation"),
        ],
    )
    def test_what_is_no_list(self, text: str, words: str) -> None:
        with pytest.raises(ListError, match=words):
            read(text)

    def test_passwords_are_not_shown(self) -> None:
        (one,) = read("https://me:secret@host.example/org/r.git\n").checkouts
        assert one.place == "https://host.example/org/r.git"
        assert b"secret" in one.source
        assert without_password("ssh://git@host.example/r") == "ssh://git@host.example/r"

    def test_a_name_is_a_file_of_its_own(self) -> None:
        names = ["a/b", "a%2Fb", "..", ".", ".git", "x" * 400, "x" * 401, "\u202e", HOSTILE]
        files = [file_of(name) for name in names]
        assert len(set(files)) == len(names)
        assert all("/" not in file and not file.startswith(".") and len(file) < 200 for file in files)


# ---- clones ---------------------------------------------------------------------------------------------------------


def git(place: Path, *arguments: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *who, *arguments], cwd=place, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository with a tag behind its branch."""
    place = tmp_path / "origin"
    place.mkdir()
    git(place, "init", "-q")
    for name, content in (("old.cu", SUM), ("new.py", DEVICE)):
        (place / name).write_text(content)
        git(place, "add", ".")
        git(place, "commit", "-q", "-m", name)
        if name == "old.cu":
            git(place, "tag", "v1")
    return place


@needs_git
class TestClone:
    @pytest.mark.parametrize("ref", ["", "main", "v1", "commit"])
    def test_a_commit_without_its_history(self, origin: Path, tmp_path: Path, ref: str) -> None:
        wanted = git(origin, "rev-parse", "v1" if ref in ("v1", "commit") else "HEAD")
        place = tmp_path / "clone"
        place.mkdir()
        assert clone(f"file://{origin}", wanted if ref == "commit" else ref, place) == wanted == commit(place)
        assert git(place, "rev-list", "--count", "HEAD") == "1"
        assert (place / "new.py").exists() == (ref in ("", "main"))

    @pytest.mark.parametrize(
        ("url", "words"),
        [
            ("ext::sh -c touch% {0}/ran", "not allowed"),
            ("git://127.0.0.1/r", "not allowed"),
            ("http://127.0.0.1:1/r", "not allowed"),
            ("file://{0}/none", "does not appear to be a git repository"),
            ("https://me:secret@127.0.0.1:1/r", "unable to access 'https://127.0.0.1:1/r"),
        ],
    )
    def test_what_git_refuses(self, tmp_path: Path, url: str, words: str) -> None:
        place = tmp_path / "clone"
        place.mkdir()
        with pytest.raises(CloneError, match=words) as raised:
            clone(url.format(tmp_path), "", place)
        assert "secret" not in str(raised.value)
        assert not (tmp_path / "ran").exists()

    def test_nothing_of_the_user_runs(self, origin: Path, tmp_path: Path, monkeypatch: Any) -> None:
        """A hook of the user's template would see every clone, and a filter every file."""
        (tmp_path / "hooks").mkdir()
        hook = tmp_path / "hooks" / "post-checkout"
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
        (tmp_path / ".gitconfig").write_text(
            f"[init]\n\ttemplateDir = {tmp_path}\n[core]\n\thooksPath = {tmp_path}/hooks\n"
        )
        monkeypatch.setenv("HOME", str(tmp_path))
        place = tmp_path / "clone"
        place.mkdir()
        clone(f"file://{origin}", "", place)
        assert not (tmp_path / "ran").exists()


# ---- the folder, without a cluster ----------------------------------------------------------------------------------


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run over two repositories, one with a hostile name, and one that failed."""
    place = tmp_path / "run"
    repositories = []
    with appearing(place) as part:
        for name, files in (("plain", {"a.py": DEVICE}), (HOSTILE, {"a.cu": SUM, "b.py": DEVICE})):
            tree = tmp_path / "trees" / file_of(name)
            tree.mkdir(parents=True)
            for file, content in files.items():
                (tree / file).write_text(content)
            monkeypatch.chdir(tree)
            targets = (load("cdna3"), load("mps"))
            report = run(Request(paths=(".",), targets=targets, config=Config(), jobs=1))
            write_report(part, file_of(name), report)
            counts: dict[str, dict[Any, int]] = {target: {} for target in report.targets}
            for finding in report.findings:
                counts[finding.target][finding.verdict] = counts[finding.target].get(finding.verdict, 0) + 1
            repositories.append(
                Repository(
                    name=name,
                    place=str(tree),
                    state=State.CHECKED,
                    file=file_of(name),
                    files=report.summary.files,
                    lines=report.summary.lines,
                    verdicts=counts,
                )
            )
        failed = Repository(name="<b>gone", place="/gone", state=State.FAILED, error="<script>no such folder", status=2)
        names = {one.name: one.title for one in targets}
        write_summary(part, Fleet(tuple(names), names, (*repositories, failed)))
    monkeypatch.chdir(tmp_path)
    return place


def portlint(*arguments: str) -> Any:
    return CliRunner().invoke(main, arguments)


class TestReport:
    def test_the_dearest_repository_comes_first(self, filled: Path) -> None:
        result = portlint("report", "--fleet", "run", "--output-format", "json")
        shown = json.loads(result.stdout)
        assert [one["name"] for one in shown["repositories"]] == [HOSTILE, "plain"]
        assert [one["name"] for one in shown["failed"]] == ["<b>gone"]
        hours = [sum(one["effort"]["needed_hours"] for one in each["readiness"]) for each in shown["repositories"]]
        assert hours[0] > hours[1] > 0

    def test_a_repository_is_reported_as_where_it_lies(self, filled: Path, monkeypatch: Any) -> None:
        """The hours rest on what each file is made of, which travels with the report."""
        alone = json.loads(
            portlint("report", "--fleet", "run", "--repository", HOSTILE, "--output-format", "json").stdout
        )
        monkeypatch.chdir(filled.parent / "trees" / file_of(HOSTILE))
        there = json.loads(portlint("report", *TARGETS, "--output-format", "json").stdout)
        for shown in (alone, there):
            shown["summary"].pop("seconds")
        assert alone == there

    def test_pages_are_linked_and_hostile_names_are_text(self, filled: Path) -> None:
        result = portlint("report", "--fleet", "run", "--output-format", "html:fleet.html", "--pages", "pages")
        assert result.exit_code == 0, result.output
        page = Path("fleet.html").read_text()
        assert "<img" not in page
        assert "<b>gone" not in page
        assert page.count("<script>") == 1
        assert 'href="pages/plain.html"' in page
        assert len(list(Path("pages").iterdir())) == 2
        assert all("<img" not in one.read_text() for one in Path("pages").iterdir())

    def test_markdown_and_csv_hold_no_markup_and_no_formulas(self, filled: Path) -> None:
        assert "\\>\\<img src=x" in portlint("report", "--fleet", "run").stdout
        rows = portlint("report", "--fleet", "run", "--output-format", "csv").stdout.splitlines()
        assert len(rows) == 1 + 2 * 2 + 1

    def test_some_of_its_targets(self, filled: Path) -> None:
        shown = json.loads(
            portlint("report", "--fleet", "run", "--target", "mps", "--output-format", "json").stdout,
        )
        assert [one["target"] for one in shown["targets"]] == ["mps"]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--fleet", "nowhere"], "cannot read nowhere/fleet.json"),
            (["--fleet", "run", "--target", "gaudi3"], "the run was not for gaudi3"),
            (["--fleet", "run", "--repository", "plan"], "Did you mean 'plain'?"),
            (["--fleet", "run", "--repository", "<b>gone"], "was not checked: <script>no such folder"),
            (["--fleet", "run", "src"], "name no paths"),
            (["--fleet", "run", "--output-format", "xlsx:x"], "there is no output format 'xlsx' for this report"),
            (["--repository", "plain"], "give it with '--fleet DIR'"),
        ],
    )
    def test_mistakes(self, filled: Path, arguments: list[str], words: str) -> None:
        result = portlint("report", *arguments)
        assert result.exit_code == 2
        assert words in result.stderr


def test_a_folder_appears_whole_or_not_at_all(filled: Path) -> None:
    before = fleet_folder.read(filled)

    def fail() -> None:
        with appearing(filled) as part:
            (part / "fleet.json").write_text("{}")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert fleet_folder.read(filled) == before
    assert [one.name for one in filled.parent.iterdir() if one.name.startswith(".")] == []


def test_only_a_run_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    with pytest.raises(FleetError, match="is no run of 'portlint fleet'"), appearing(tmp_path / "mine"):
        pass
    assert (tmp_path / "mine" / "file").read_text() == "x"


def job(slices: int, replies: dict[int, Reply], folder: Path) -> Repository:
    """What is said of a repository with these replies."""
    pending = _Pending(Checkout("r", "r", b"/r"))
    pending.slices, pending.replies = slices, replies
    (folder / "reports").mkdir()
    (folder / "shards").mkdir()
    return _Run(None, Options(targets=("mps",), slice_bytes=1), folder, lambda *_: None)._finish(pending)


def test_a_repository_without_one_of_its_slices_is_incomplete(work: Path) -> None:
    plant(work / "tree")
    os.chdir(work / "tree")
    request = Request(paths=(".",), targets=(load("mps"),), config=Config(), jobs=1, shard=(1, 2))
    half = run(request)
    found = job(2, {2: Reply(error="it is gone"), 1: Reply(report=half, status=1)}, work)
    assert (found.state, found.status, found.error) == (State.INCOMPLETE, 2, "it is gone")
    assert found.files == half.summary.files < 4
    problems = json.loads((work / "reports" / "r.json").read_text())["problems"]
    assert [(one["kind"], one["message"]) for one in problems] == [("skipped", "it is gone")]


def test_slices_of_a_tree_that_changed_do_not_fit_together(work: Path) -> None:
    place = plant(work / "tree")
    os.chdir(place)
    request = Request(paths=(".",), targets=(load("mps"),), config=Config(), jobs=1)
    one = run(msgspec.structs.replace(request, shard=(1, 2)))
    (place / "new.cu").write_text(SUM)
    two = run(msgspec.structs.replace(request, shard=(2, 2)))
    found = job(2, {1: Reply(report=one), 2: Reply(report=two)}, work)
    assert (found.state, found.status) == (State.INCOMPLETE, 2)
    assert "changed while they were read" in found.error


def test_the_page_in_a_browser(filled: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install '.[browser]'")
    portlint("report", "--fleet", "run", "--output-format", "html:fleet.html", "--pages", "pages")
    trouble: list[str] = []
    with playwright.sync_playwright() as started:
        page = started.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        for event in ("console", "pageerror", "dialog"):
            page.on(event, lambda said: trouble.append(str(said)))
        page.goto(Path("fleet.html").resolve().as_uri())
        assert page.locator("img").count() == 0
        names = page.locator("#repositories tbody td:first-child")
        assert names.all_inner_texts() == [HOSTILE, "plain"]
        page.click("#repositories th button >> nth=0")
        assert names.all_inner_texts() == ["plain", HOSTILE]
        page.fill("#filter input", "plain")
        assert page.locator("#repositories tbody tr:visible").count() == 1
        assert page.inner_text("#shown") == "1 shown"
        before = page.inner_text("#t-mps .small [data-work]")
        page.fill("#planning input[name=rewrite]", "80")
        assert page.inner_text("#t-mps .small [data-work]") != before
        page.set_viewport_size({"width": 400, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.fill("#filter input", "")
        page.click("#repositories tbody a >> nth=0")
        assert "plain" in page.inner_text("h1")
    assert trouble == []


# ---- on a cluster ---------------------------------------------------------------------------------------------------

MISSING = [name for name in ("distributed", "pyarrow") if find_spec(name) is None]
needs_dask = pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)} not installed: pip install '.[fleet]'")
if not MISSING:
    import psutil
    from pyarrow import parquet

COMMAND = [sys.executable, "-P", "-m", "portlint"]
"""Dask stays in other processes: warnings are errors here, and it has some of its own."""


def fleet(*arguments: str, text: str | None = None, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "fleet", *arguments],
        input=text,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def started(*arguments: str) -> subprocess.Popen[str]:
    """The command, in a session of its own as from a terminal."""
    return subprocess.Popen(
        [*COMMAND, "fleet", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def scans(process: subprocess.Popen[str], of: str = "") -> Iterator[Any]:
    """The processes that scan, as they come, until the command ends: those of one checkout, if it is named."""
    seen = set()
    while process.poll() is None:
        for one in psutil.Process(process.pid).children(recursive=True):
            try:
                line = one.cmdline()
                is_new = "portlint.fleet.child" in line and line[-1] not in seen
                if is_new and of.encode() in Path(line[-2]).read_bytes():
                    seen.add(line[-1])
                    yield one
            except (psutil.Error, OSError):
                continue
        time.sleep(0.02)


def content(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith('  "seconds": ')]


def assert_same(run: Path, name: str, place: Path, *options: str) -> None:
    """The report of a repository is that of a check in its folder, byte for byte."""
    checked = subprocess.run(
        [*COMMAND, "check", ".", *TARGETS, *options, "--output-format", "json", "--exit-zero"],
        cwd=place,
        capture_output=True,
        text=True,
        check=True,
    )
    assert content((run / "reports" / file_of(name)).read_text()) == content(checked.stdout)


def repositories(run: Path) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in json.loads((run / "fleet.json").read_text())["repositories"]}


@needs_git
@needs_dask
def test_what_comes_out_is_what_check_says(work: Path, origin: Path) -> None:
    one, two = plant(work / "a" / "kernels", 6), plant(work / "b" / "kernels", 2)
    known = plant(work / "known")
    subprocess.run([*COMMAND, "baseline", "write", *TARGETS], cwd=known, capture_output=True, check=True)
    (known / "more.py").write_text(DEVICE.replace("x", "y"))
    own = plant(work / "own")
    (own / "portlint.toml").write_text('ignore = ["lanes"]\nfail-on = "corrupts"\n')
    broken = plant(work / "broken")
    (broken / "portlint.toml").write_text("selekt = []\n")
    hostile = plant(work / HOSTILE.replace("/", "_"))
    (work / "list.txt").write_text(
        f"a/kernels\nb/kernels\nknown\nown\nbroken\nnowhere  # not there\nnowhere2 name=::error::x\n"
        f"a/kernels name=again\n'{hostile}'\n"
        f"file://{origin} ref=v1 name=clone\n"
    )
    result = fleet("list.txt", *TARGETS, "--output", "run", "--slice-size", "1000", "--jobs", "2")
    assert result.returncode == 2, result.stderr
    run, found = work / "run", repositories(work / "run")
    assert {name: found[name]["state"] for name in found} == {
        **dict.fromkeys(("a/kernels", "b/kernels", "clone", "known", "own", hostile.name), "checked"),
        **dict.fromkeys(("broken", "nowhere", "::error::x"), "failed"),
    }
    assert (found["nowhere"]["error"], found["nowhere"]["status"]) == ("there is no such folder", 2)
    assert "there is no key 'selekt'. Did you mean 'select'?" in found["broken"]["error"]
    assert "portlint: nowhere: there is no such folder\n" in result.stderr
    assert "\n::error" not in f"\n{result.stdout}"  # which a runner of GitHub would obey
    assert "line 8 names what line 1 names" in result.stderr
    assert "Traceback" not in result.stderr
    assert found["a/kernels"]["slices"] > 2
    assert (found["known"]["slices"], found["known"]["baselined"] > 0) == (1, True)
    assert (found["own"]["status"], found["b/kernels"]["status"]) == (0, 1)
    assert found["clone"]["commit"] == git(origin, "rev-parse", "v1")
    git(origin, "checkout", "-q", "v1")
    for name, place in (("a/kernels", one), ("b/kernels", two), ("known", known), ("own", own), ("clone", origin)):
        assert_same(run, name, place)

    merged = portlint("merge", f"run/shards/{file_of('own')}", "--output-format", "json", "--isolated")
    assert content(merged.stdout) == content((run / "reports" / file_of("own")).read_text())

    rows = parquet.read_table(run / "findings.parquet").to_pylist()
    assert len(rows) == sum(
        len(json.loads((run / "reports" / one["file"]).read_text())["findings"])
        for one in found.values()
        if one["file"]
    )
    order = [(row["repository"], row["path"], row["line"], row["column"]) for row in rows]
    assert order == sorted(order)
    assert {row["commit"] for row in rows if row["repository"] == "clone"} == {found["clone"]["commit"]}
    table = parquet.read_table(run / "repositories.parquet")
    assert table.column("repository").to_pylist() == sorted(found)
    assert set(table.column("portlint").to_pylist()) == {__version__}
    assert all(field.metadata[b"description"] for field in table.schema)

    # How it is split and over how many it is spread leaves no trace; and an earlier run is replaced.
    before = (run / "findings.parquet").read_bytes()
    again = fleet("list.txt", *TARGETS, "--output", "run", "--jobs", "1")
    assert again.stdout == result.stdout
    assert repositories(run)["a/kernels"]["slices"] == 1
    assert (run / "findings.parquet").read_bytes() == before
    assert sorted(one.name for one in run.iterdir()) == [
        "findings.parquet",
        "fleet.json",
        "reports",
        "repositories.parquet",
        "shards",
    ]
    assert not list(work.glob(".run*"))


@needs_dask
def test_a_worker_that_is_killed_loses_nothing(work: Path) -> None:
    place = plant(work / "kernels", 40)
    (work / "list.txt").write_text("kernels\n")
    process = started("list.txt", *TARGETS, "--output", "run", "--slice-size", "2000", "--jobs", "2")
    killed = []
    for scan in scans(process):
        if len(killed) < 2 and scan.status() != psutil.STATUS_ZOMBIE:
            killed.append(scan)
            scan.parent().kill()
    _, stderr = process.communicate(timeout=600)
    assert process.returncode == 1, stderr
    assert len(killed) == 2
    assert repositories(work / "run")["kernels"]["slices"] > 3
    assert_same(work / "run", "kernels", place)
    if sys.platform == "linux":  # elsewhere it reads to the end, and nobody hears of it
        assert not any(one.is_running() for one in killed)


@needs_dask
def test_what_kills_its_worker_again_and_again_is_left_out(work: Path) -> None:
    cursed, well = plant(work / "cursed"), plant(work / "well")
    (work / "list.txt").write_text(f"{cursed}\n{well}\n")
    process = started("list.txt", *TARGETS, "--output", "run", "--jobs", "2")
    for scan in scans(process, of="cursed"):
        scan.parent().kill()
    _, stderr = process.communicate(timeout=600)
    assert process.returncode == 2, stderr
    found = repositories(work / "run")
    assert found["cursed"]["error"] == "it killed the worker that read it, again and again"
    assert_same(work / "run", "well", well)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@needs_dask
def test_an_interrupted_run_leaves_nothing(work: Path, number: signal.Signals) -> None:
    plant(work / "kernels", 40)
    (work / "list.txt").write_text("kernels\n")
    process = started("list.txt", *TARGETS, "--output", "run", "--jobs", "2", "--slice-size", "2000")
    next(scans(process))
    family = psutil.Process(process.pid).children(recursive=True)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 128 + number, stderr
    assert "Traceback" not in stderr
    assert sorted(one.name for one in work.iterdir()) == ["kernels", "list.txt"]
    _, alive = psutil.wait_procs(family, timeout=20)
    assert not alive


@contextmanager
def program(*arguments: str) -> Iterator[None]:
    """A program of Dask's, which ends with the block."""
    command = [sys.executable, "-m", f"distributed.cli.{arguments[0]}", *arguments[1:]]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


@needs_dask
def test_a_cluster_that_runs_already(work: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = plant(work / "kernels")
    file = tmp_path_factory.mktemp("dask") / "address.json"
    own = ("--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file))
    with program("dask_scheduler", *own):
        while not file.exists():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        with program("dask_worker", address, "--nthreads", "2", "--local-directory", str(file.parent)):
            result = fleet("-", *TARGETS, "--output", "run", "--scheduler", address, text="kernels\n")
    assert result.returncode == 1, result.stderr
    assert_same(work / "run", "kernels", place)


@needs_dask
def test_profiles_and_rules_of_the_user(work: Path) -> None:
    """A worker has neither the folder that the command was called in nor, on another machine, the file of a profile."""
    place = plant(work / "kernels")
    shipped = (Path(target.__file__).parent / "targets" / "cdna3.toml").read_text()
    Path("acme.toml").write_text(shipped.replace('name = "cdna3"', 'name = "acme-1"', 1))
    assert portlint("rule", "lanes/warp-sum-is-32", "--new", "lint").exit_code == 0
    (place / "w.cu").write_text("__global__ void f(float* x) { x[0] = warp_sum_32(x[1]); }\n")
    command = [*COMMAND, "--rules", "lint", "fleet", "-", "--target", "acme.toml", "--output", "run"]
    result = subprocess.run(command, input="kernels\n", capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stderr
    rows = parquet.read_table("run/findings.parquet").to_pylist()
    assert {row["target"] for row in rows} == {"acme-1"}
    assert "lanes/warp-sum-is-32" in {row["rule"] for row in rows}
    Path("acme.toml").unlink()
    assert "acme-1" in portlint("report", "--fleet", "run").stdout


@needs_dask
def test_no_scheduler_answers(work: Path) -> None:
    plant(work / "kernels")
    settings = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    result = fleet("-", *TARGETS, "--scheduler", "tcp://127.0.0.1:1", text="kernels\n", **settings)
    assert result.returncode == 2
    assert result.stderr.startswith("Error: no Dask scheduler answers at tcp://127.0.0.1:1: ")
    assert "Traceback" not in result.stderr
    assert [one.name for one in work.iterdir()] == ["kernels"]


@needs_dask
def test_an_empty_list(work: Path) -> None:
    result = fleet("-", *TARGETS, "--output", "run", text="# nothing yet\n")
    assert (result.returncode, result.stderr) == (0, "portlint: no repositories to check\n")
    assert parquet.read_table("run/findings.parquet").num_rows == 0
    assert portlint("report", "--fleet", "run").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list.txt"], "no target"),
        (["none.txt", *TARGETS], "cannot read none.txt: No such file or directory"),
        (["list.txt", *TARGETS, "--select", "lane"], "there is no pack 'lane'. Did you mean 'lanes'?"),
        (["list.txt", *TARGETS, "--scheduler", "tcp://x:1", "--jobs", "2"], "'--jobs' is the size of a local cluster"),
        (["list.txt", *TARGETS, "--output", "."], "is no run of 'portlint fleet'"),
    ],
)
@needs_dask
def test_mistakes(work: Path, arguments: list[str], words: str) -> None:
    Path("list.txt").write_text("nowhere\n")
    result = portlint("fleet", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr


@needs_dask
def test_without_dask(work: Path) -> None:
    code = "import sys; sys.modules['distributed'] = None; from portlint.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "fleet", "-", *TARGETS], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (
        2,
        "Error: a fleet needs distributed: pip install 'portlint[fleet]'\n",
    )
