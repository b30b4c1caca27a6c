"""Kept results: a run finds the same with them and without, whatever became of the files, the settings or the cache."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portlint.cache import Cache, place
from portlint.cli import main
from portlint.config import Config
from portlint.finding import FileResult, Problem
from portlint.run import Request, prepare
from portlint.run import run as run_request
from portlint.target import load

KERNEL = """__global__ void sum(float* x) {
    for (int o = 16; o > 0; o >>= 1) x[0] += __shfl_xor_sync(0xffffffff, x[0], o);
}
"""
DEVICE = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'
TREE = {
    "pyproject.toml": '[project]\nname = "acme"\n',
    "a.cu": KERNEL,
    "b.py": DEVICE,
    "plain.py": "x = 1\n",
    "cut.cu": KERNEL.replace("o);\n", "o);  // portlint: ignore[lanes until 2026-01-01] ported\n"),
    "host.py": "import torch\nfrom machine import on_nvidia\n\nif on_nvidia():\n    x = torch.zeros(3).cuda()\n",
    "machine.py": "import torch\n\n\ndef on_nvidia():\n    return torch.version.cuda is not None\n",
}
OLD = 1_700_000_000
"""when the files were written, in seconds: long before any run"""

Portlint = Callable[..., Result]


@pytest.fixture
def portlint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Portlint:
    """Run `portlint check` in a folder with a small project `src`, each time in a process of its own."""
    monkeypatch.chdir(tmp_path)
    for name, content in TREE.items():
        write(f"src/{name}", content)

    def run(*arguments: str, code: int | None = None) -> Result:
        result = CliRunner().invoke(main, ["check", "src", "-t", "cdna3", "-t", "mps", *arguments])
        assert code is None or result.exit_code == code, result.output
        return result

    return run


def write(name: str, content: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (OLD, OLD))


def report(result: Result) -> dict[str, object]:
    found: dict[str, object] = json.loads(result.stdout)
    found["summary"]["seconds"] = 0  # type: ignore[index]
    return found


def fresh(*arguments: str) -> dict[str, object]:
    """What a new process finds without a cache."""
    command = [sys.executable, "-m", "portlint", "check", "src", "-t", "cdna3", "-t", "mps", "--no-cache", *arguments]
    done = subprocess.run([*command, "--output-format", "json"], capture_output=True, check=False, text=True)
    found: dict[str, object] = json.loads(done.stdout)
    found["summary"]["seconds"] = 0  # type: ignore[index]
    return found


def analysed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fills up with the names of the files that are analysed and not looked up."""
    from portlint import engine

    names: list[str] = []
    before = engine.run

    def run(tasks: list[object], *rest: object, **more: object) -> object:
        names.extend(Path(task.path).name for task in tasks)  # type: ignore[attr-defined]
        return before(tasks, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "run", run)
    return names


def test_a_second_run_analyses_nothing_and_says_the_same(portlint: Portlint, monkeypatch: pytest.MonkeyPatch) -> None:
    first = portlint("--output-format", "json", code=1)
    names = analysed(monkeypatch)
    second = portlint("--output-format", "json", code=1)
    assert names == ["cut.cu"]  # what it says ends on a day
    assert report(first) == report(second) == fresh()
    assert portlint("--output-format", "sarif").stdout == portlint("--output-format", "sarif", "--no-cache").stdout


def test_a_file_that_changed_is_analysed_again_and_what_rests_on_itself_alone_is_not(
    portlint: Portlint, monkeypatch: pytest.MonkeyPatch
) -> None:
    portlint()
    write("src/b.py", DEVICE.replace("3", "4"))
    Path("src/b.py").touch()
    names = analysed(monkeypatch)
    result = portlint("--output-format", "json")
    assert "b.py" in names
    assert "plain.py" not in names
    assert report(result) == fresh()


def test_a_change_of_what_another_file_imports_is_seen(portlint: Portlint) -> None:
    def told(result: Result) -> list[object]:
        return [one for one in report(result)["findings"] if one["path"] == "src/host.py"]  # type: ignore[attr-defined,index]

    assert not told(portlint("--output-format", "json"))
    write("src/machine.py", TREE["machine.py"].replace("torch.version.cuda is not None", "True"))
    Path("src/machine.py").touch()
    command = [sys.executable, "-m", "portlint", "check", "src", "-t", "cdna3", "-t", "mps", "--output-format", "json"]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    again = json.loads(done.stdout)
    again["summary"]["seconds"] = 0
    assert again == fresh()
    assert [one for one in again["findings"] if one["path"] == "src/host.py"]


def test_a_checkout_with_new_times_is_known_by_its_content(portlint: Portlint, monkeypatch: pytest.MonkeyPatch) -> None:
    portlint()
    for path in Path("src").iterdir():
        os.utime(path, (OLD + 60, OLD + 60))
    names = analysed(monkeypatch)
    portlint()
    assert names == ["cut.cu"]


@pytest.mark.parametrize(
    "arguments", [("--select", "lanes"), ("--ignore", "lanes/warp-is-32"), ("-t", "tpu-v6e"), ("--jobs", "1")]
)
def test_other_settings_have_results_of_their_own(portlint: Portlint, arguments: tuple[str, ...]) -> None:
    portlint()
    assert report(portlint("--output-format", "json", *arguments)) == fresh(*arguments)


def test_a_profile_that_changed_is_judged_by_again(portlint: Portlint) -> None:
    profile = Path(load("cdna3").path).read_text()
    Path("mine.toml").write_text(profile.replace('name = "cdna3"', 'name = "mine"', 1))
    portlint("-t", "mine.toml")
    Path("mine.toml").write_text(
        profile.replace('name = "cdna3"', 'name = "mine"', 1).replace('title = "', 'title = "my ', 1)
    )
    assert report(portlint("--output-format", "json", "-t", "mine.toml")) == fresh("-t", "mine.toml")


def test_the_folder_says_that_it_is_a_cache_and_clean_removes_it(portlint: Portlint) -> None:
    portlint()
    folder = Path(".portlint_cache")
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert (folder / ".gitignore").read_text() == "*\n"
    cleaned = CliRunner().invoke(main, ["clean"])
    assert (cleaned.exit_code, cleaned.output) == (0, "removed .portlint_cache\n")
    assert not folder.exists()
    assert CliRunner().invoke(main, ["clean"]).output == "there are no results in .portlint_cache\n"


def test_clean_removes_nothing_that_is_no_cache(portlint: Portlint) -> None:
    refused = CliRunner().invoke(main, ["clean", "--cache-dir", "src"])
    assert refused.exit_code == 2
    assert "src is no cache of portlint's" in refused.output
    assert Path("src/a.cu").exists()


def test_no_cache_keeps_nothing_and_cache_dir_keeps_it_elsewhere(portlint: Portlint) -> None:
    portlint("--no-cache")
    assert not Path(".portlint_cache").exists()
    portlint("--cache-dir", "elsewhere")
    assert Path("elsewhere/CACHEDIR.TAG").exists()
    assert not Path(".portlint_cache").exists()


def test_a_folder_that_cannot_be_written_is_said_once(portlint: Portlint) -> None:
    Path("file").write_text("")
    result = portlint("--cache-dir", "file/below", "--output-format", "json", code=1)
    assert result.stderr.count("warning: results are not kept in file/below") == 1
    assert report(result) == fresh()


def test_a_file_that_is_no_database_is_replaced(portlint: Portlint, monkeypatch: pytest.MonkeyPatch) -> None:
    portlint()
    (database,) = Path(".portlint_cache").glob("*.sqlite")
    database.write_bytes(b"no database" * 1000)
    assert report(portlint("--output-format", "json")) == fresh()
    portlint()
    names = analysed(monkeypatch)
    portlint()
    assert names == ["cut.cu"]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_a_damaged_cache_gives_the_right_result_or_none(
    seed: int, kept: tuple[Path, bytes, Request, list[FileResult | None]]
) -> None:
    """Bytes changed, put in and cut off at any place."""
    database, content, request, results = kept
    chance, damaged = random.Random(seed), bytearray(content)
    for _ in range(chance.randrange(1, 20)):
        at = chance.randrange(len(damaged))
        damaged[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
    database.write_bytes(damaged[: chance.choice((None, len(damaged) // 2))])
    tasks, scan = prepare(request)
    found = Cache(database.parent).known(tasks, request, scan.rules.rules)
    assert all(one in (None, result) for one, result in zip(found, results, strict=True))


@pytest.fixture
def kept(portlint: Portlint) -> tuple[Path, bytes, Request, list[FileResult | None]]:
    """The database of a run, its content, and what was asked and kept."""
    request = Request(paths=("src",), targets=(load("cdna3"),), config=Config())
    run_request(request, cache=Cache(place(None)))
    tasks, scan = prepare(request)
    known = Cache(place(None)).known(tasks, request, scan.rules.rules)
    (database,) = Path(".portlint_cache").glob("*.sqlite")
    assert sum(one is None for one in known) == 1  # cut.cu
    return database, database.read_bytes(), request, known


def test_a_result_under_the_key_of_another_is_not_believed(portlint: Portlint) -> None:
    portlint()
    (database,) = Path(".portlint_cache").glob("*.sqlite")
    with sqlite3.connect(database) as rows:
        contents = rows.execute("SELECT key, content, sum FROM results ORDER BY key").fetchall()
        shifted = zip(contents, [*contents[1:], contents[0]], strict=True)
        for (key, _, _), (_, content, checked) in shifted:
            rows.execute("UPDATE results SET content = ?, sum = ? WHERE key = ?", (content, checked, key))
    rows.close()
    assert report(portlint("--output-format", "json")) == fresh()


def test_processes_at_once_share_one_cache(portlint: Portlint) -> None:
    command = [sys.executable, "-m", "portlint", "check", "src", "-t", "cdna3", "-t", "mps", "--output-format", "sarif"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    said = [process.communicate() for process in running]
    assert len({output for output, _ in said}) == 1
    assert {errors for _, errors in said} == {b""}


def test_a_time_that_does_not_lie_behind_is_not_relied_on(portlint: Portlint) -> None:
    """A file that was just written may be written once more and keep its time."""
    Path("src/b.py").write_text(DEVICE)
    now = time.time_ns() + 3_600_000_000_000
    os.utime("src/b.py", ns=(now, now))
    portlint()
    Path("src/b.py").write_text(DEVICE.replace("cuda", "cpu "))
    os.utime("src/b.py", ns=(now, now))
    assert report(portlint("--output-format", "json")) == fresh()


def test_what_a_busy_machine_stopped_is_tried_again(
    portlint: Portlint, kept: tuple[Path, bytes, Request, list[FileResult | None]]
) -> None:
    """A rule that was stopped leaves a result that is good for one run."""
    database, _, request, results = kept
    tasks, scan = prepare(request)
    database.unlink()
    cache = Cache(database.parent)
    cache.known(tasks, request, scan.rules.rules)
    first = next(one for one in results if one is not None)
    late = msgspec.structs.replace(first, problems=(Problem(first.path, 0, "timeout", "was stopped"),))
    cache.keep(tasks, [late, *(one for one in results if one is not None and one is not first)])
    again = Cache(database.parent).known(tasks, request, scan.rules.rules)
    assert [one for one in again if one is not None] == [one for one in results if one not in (None, first)]


def test_a_file_that_vanishes_is_no_result(portlint: Portlint) -> None:
    portlint()
    Path("src/a.cu").unlink()
    assert report(portlint("--output-format", "json")) == fresh()


def test_standard_input_is_never_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(main, ["check", "-", "--stdin-filename", "a.py", "-t", "mps"], input=DEVICE)
    assert run.exit_code == 1
    assert not Path(".portlint_cache").exists()
