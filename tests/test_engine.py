"""What a scan promises of files and rules that crash, hang, or eat memory: only their own results are lost."""

import contextlib
import errno
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import tree_sitter
import tree_sitter_cuda
import tree_sitter_python

from portlint.engine import run
from portlint.finding import FileResult, Finding, Problem, StatedFact, Verdict
from portlint.source.prescan import Limits

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="isolation needs fork")

RULES = ("api/one", "lanes/two", "memory/three", "sync/four")


class Task(msgspec.Struct, frozen=True):
    path: str
    size: int = 100


def small_limits(**changes: float) -> Limits:
    """Limits of CPU time, so that a busy machine makes no difference."""
    small = {"parse_seconds": 0.3, "rule_seconds": 0.2, "memory_bytes": 1 << 30}
    return msgspec.structs.replace(Limits(), **small | changes)


def finding(path: str, rule: str) -> Finding:
    return Finding(
        rule=rule,
        target="cdna3",
        verdict=Verdict.CORRUPTS,
        path=path,
        line=1,
        column=1,
        end_line=1,
        end_column=2,
        message=f"{rule} in {path}",
        assumes={"lanes.width": 32},
        fact=StatedFact("lanes.width", 64, "64 lanes per wavefront"),
        remedy="",
        kernel=None,
        fingerprint="",
    )


Deeds = dict[tuple[str, str], Callable[[], object]]


def scan(deeds: Deeds) -> Callable[[Task, frozenset[str], Callable[[str], None]], FileResult]:
    """A work function that finds one thing with each rule, and does the deed of (path, phase) on the way."""

    def work(task: Task, left_out: frozenset[str], phase: Callable[[str], None]) -> FileResult:
        found = []
        for part in ("read", "parse", *RULES):
            if part in left_out:
                continue
            phase(part)
            deeds.get((task.path, part), lambda: None)()
            if part in RULES:
                found.append(finding(task.path, part))
        return FileResult(task.path, tuple(found), lines=10)

    return work


def good(path: str) -> FileResult:
    """The result for a file in which nothing goes wrong."""
    return FileResult(path, tuple(finding(path, rule) for rule in RULES), lines=10)


def messages(result: FileResult) -> list[str]:
    return [problem.message for problem in result.problems]


def rules_of(result: FileResult) -> list[str]:
    return [finding.rule for finding in result.findings]


def segfault() -> None:
    signal.raise_signal(signal.SIGSEGV)


def spin() -> None:
    while True:
        pass


def spin_in_c() -> None:
    """Never returns and never lets go of the interpreter's lock."""
    re.match(rb"(a+)+$", b"a" * 60 + b"b")


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def eat_memory() -> None:
    hoard = []
    while True:
        hoard.append(bytes(64 << 20))  # untouched, so it takes address space and no time


def fail(error: BaseException) -> None:
    raise error


DEEDS: Deeds = {
    ("bad/abort.cu", "parse"): os.abort,
    ("bad/exit.cu", "parse"): lambda: os._exit(7),
    ("bad/hang.cu", "parse"): spin_in_c,
    ("bad/memory.cu", "parse"): eat_memory,
    ("bad/raise.cu", "parse"): lambda: fail(ValueError("two\nlines")),
    ("bad/read.cu", "read"): lambda: fail(OSError(errno.EIO, "Input/output error")),
    ("bad/segfault.cu", "parse"): segfault,
    ("bad/spin.cu", "parse"): spin,
    ("rule/exit.cu", "lanes/two"): lambda: sys.exit(3),
    ("rule/hang.cu", "lanes/two"): spin_in_c,
    ("rule/memory.cu", "lanes/two"): eat_memory,
    ("rule/raise.cu", "lanes/two"): lambda: fail(KeyError("width")),
    ("rule/segfault.cu", "lanes/two"): segfault,
    ("rule/spin.cu", "lanes/two"): spin,
}

PROBLEMS = {
    "bad/abort.cu": (
        "parse",
        "the parser crashed (aborted, as parsers do that need more than the 1 GiB of memory they may have)",
    ),
    "bad/exit.cu": ("parse", "the parser ended its process with status 7"),
    "bad/hang.cu": ("timeout", "the parser was stopped after 0.3 s of CPU time"),
    "bad/memory.cu": ("parse", "the parser needed more than 1 GiB of memory"),
    "bad/raise.cu": ("parse", "the parser raised ValueError: two lines"),
    "bad/read.cu": ("read", "reading raised OSError: [Errno 5] Input/output error"),
    "bad/segfault.cu": ("parse", "the parser crashed (segmentation fault)"),
    "bad/spin.cu": ("timeout", "the parser was stopped after 0.3 s of CPU time"),
    "rule/exit.cu": ("rule", "'lanes/two' raised SystemExit: 3"),
    "rule/hang.cu": ("timeout", "'lanes/two' was stopped after 0.2 s of CPU time"),
    "rule/memory.cu": ("rule", "'lanes/two' needed more than 1 GiB of memory"),
    "rule/raise.cu": ("rule", "'lanes/two' raised KeyError: 'width'"),
    "rule/segfault.cu": ("rule", "'lanes/two' crashed (segmentation fault)"),
    "rule/spin.cu": ("timeout", "'lanes/two' was stopped after 0.2 s of CPU time"),
}


def expected(path: str) -> FileResult:
    """What the scan with DEEDS must say of a file."""
    if path not in PROBLEMS:
        return good(path)
    kind, what = PROBLEMS[path]
    if path.startswith("bad/"):
        return FileResult(
            path, problems=(Problem(path, 0, kind, f"{what}; the file was not analysed"),), analysed=False
        )
    rest = tuple(finding(path, rule) for rule in RULES if rule != "lanes/two")
    return FileResult(path, rest, (Problem(path, 0, kind, f"{what}; its findings in this file are missing"),), lines=10)


@pytest.mark.parametrize("jobs", [1, 2, 8])
def test_bad_files_and_rules_cost_their_own_results_only(jobs: int) -> None:
    paths = [f"good/{number:03}.cu" for number in range(100)] + list(PROBLEMS)
    tasks = [Task(path, size) for size, path in enumerate(paths)]
    random.Random(jobs).shuffle(tasks)
    results = run(tasks, scan(DEEDS), jobs=jobs, limits=small_limits())
    assert results == [expected(path) for path in sorted(paths)]


def test_no_process_is_left() -> None:
    run([Task(path) for path in ("a", "bad/segfault.cu", "bad/hang.cu")], scan(DEEDS), jobs=2, limits=small_limits())
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_no_descriptor_is_left() -> None:
    before = os.listdir("/dev/fd")
    run([Task(path) for path in ("a", "bad/segfault.cu", "bad/hang.cu")], scan(DEEDS), jobs=2, limits=small_limits())
    assert os.listdir("/dev/fd") == before


def test_nothing_to_do() -> None:
    assert run([], scan({}), jobs=4, limits=small_limits()) == []


def test_results_too_big_for_a_pipe_arrive() -> None:
    flood = tuple(Problem("x", line, "directive", "m" * 1000) for line in range(50_000))

    def work(task: Task, left_out: frozenset[str], phase: Callable[[str], None]) -> FileResult:
        return FileResult(task.path, problems=flood)

    results = run([Task("a"), Task("b"), Task("c")], work, jobs=2, limits=small_limits(parse_seconds=30))
    assert [result.problems == flood for result in results] == [True] * 3


def test_a_result_that_cannot_be_sent_costs_its_file_only() -> None:
    def work(task: Task, left_out: frozenset[str], phase: Callable[[str], None]) -> FileResult:
        phase("lanes/two")  # which has no part in it
        lines = {"big": 2**70, "text": "many"}.get(task.path, 10)
        return FileResult(task.path, lines=lines)  # type: ignore[arg-type]

    big, fine, text = run([Task("big"), Task("fine"), Task("text")], work, jobs=1, limits=small_limits())
    assert fine == FileResult("fine", lines=10)
    assert not big.analysed
    assert messages(big)[0].startswith("the scan raised OverflowError")
    assert not text.analysed
    assert messages(text)[0].startswith("the scan returned something unusable")


def test_an_exception_is_told_in_one_encodable_line() -> None:
    error = ValueError("caf\udce9\n" + "x" * 5000)
    (result,) = run([Task("a")], scan({("a", "parse"): lambda: fail(error)}), jobs=1, limits=small_limits())
    (message,) = messages(result)
    assert message.startswith("the parser raised ValueError: caf\\udce9 xxx")
    assert len(message) < 300


# ---- rules ----------------------------------------------------------------------------------------------------------


def test_every_bad_rule_of_a_file_is_left_out() -> None:
    deeds = {("a", "api/one"): segfault, ("a", "sync/four"): spin}
    (result,) = run([Task("a")], scan(deeds), jobs=2, limits=small_limits())
    assert rules_of(result) == ["lanes/two", "memory/three"]
    assert [(problem.kind, problem.line) for problem in result.problems] == [("rule", 0), ("timeout", 0)]
    assert "'api/one'" in messages(result)[0]
    assert "'sync/four'" in messages(result)[1]


def test_a_file_is_given_up_when_too_many_rules_had_to_be_stopped() -> None:
    deeds = {("a", rule): spin for rule in RULES}
    (result,) = run([Task("a")], scan(deeds), jobs=1, limits=small_limits(rule_timeouts=2))
    assert not result.analysed
    assert messages(result) == [
        "'api/one' was stopped after 0.2 s of CPU time; its findings in this file are missing",
        "'lanes/two' was stopped after 0.2 s of CPU time; its findings in this file are missing",
        "2 rules were stopped in this file, so it was not analysed",
    ]


def test_any_number_of_rules_may_raise() -> None:
    deeds = {("a", rule): lambda: fail(ValueError("no")) for rule in RULES}
    (result,) = run([Task("a")], scan(deeds), jobs=1, limits=small_limits(rule_timeouts=2))
    assert result.analysed
    assert len(result.problems) == len(RULES)


def test_a_rule_that_fails_though_left_out_ends_the_file() -> None:
    def work(task: Task, left_out: frozenset[str], phase: Callable[[str], None]) -> FileResult:
        phase("lanes/two")
        raise ValueError("again")

    (result,) = run([Task("a")], work, jobs=1, limits=small_limits())
    assert not result.analysed
    assert messages(result)[-1] == "'lanes/two' raised ValueError: again; the file was not analysed"


def test_problems_of_the_work_itself_are_kept() -> None:
    own = Problem("a", 3, "directive", "does nothing")

    def work(task: Task, left_out: frozenset[str], phase: Callable[[str], None]) -> FileResult:
        phase("lanes/two")
        if "lanes/two" not in left_out:
            raise ValueError("no")
        return FileResult("a", problems=(own,))

    (result,) = run([Task("a")], work, jobs=1, limits=small_limits())
    assert result.problems[0] == own
    assert messages(result)[1] == "'lanes/two' raised ValueError: no; its findings in this file are missing"


# ---- limits ---------------------------------------------------------------------------------------------------------


def test_each_phase_has_a_budget_of_its_own() -> None:
    deeds = {("a", part): lambda: burn(0.15) for part in ("read", "parse", *RULES)}
    assert run([Task("a")], scan(deeds), jobs=1, limits=small_limits()) == [good("a")]


def test_a_long_file_has_more_time_and_is_stopped_all_the_same() -> None:
    limits = small_limits(seconds_are_for_bytes=1000)
    deeds = {("slow", "api/one"): lambda: burn(0.5), ("endless", "api/one"): lambda: burn(60)}
    endless, slow = run([Task("slow", 4000), Task("endless", 4000)], scan(deeds), jobs=1, limits=limits)
    assert slow == good("slow")
    assert messages(endless) == ["'api/one' was stopped after 0.8 s of CPU time; its findings in this file are missing"]


def test_a_file_has_a_budget_for_all_of_its_phases() -> None:
    deeds = {("a", rule): lambda: burn(1.5) for rule in RULES}
    limits = small_limits(rule_seconds=60, file_seconds=1)
    slow, other = run([Task("a"), Task("b")], scan(deeds), jobs=1, limits=limits)
    assert other == good("b")
    assert [problem.kind for problem in slow.problems] == ["timeout"]
    assert messages(slow) == ["the scan was stopped after 1 s of CPU time; the file was not analysed"]


def test_a_worker_does_not_pay_for_its_earlier_files() -> None:
    paths = [f"{number:02}" for number in range(12)]
    deeds = {(path, "parse"): lambda: burn(0.2) for path in paths}
    assert run([Task(path) for path in paths], scan(deeds), jobs=1, limits=small_limits(file_seconds=1)) == [
        good(path) for path in paths
    ]


def test_a_file_that_sleeps_is_stopped_by_the_clock() -> None:
    deeds = {("a", "read"): lambda: time.sleep(3600)}
    (result,) = run([Task("a")], scan(deeds), jobs=1, limits=small_limits(file_seconds=0.1))
    assert [problem.kind for problem in result.problems] == ["timeout"]
    assert messages(result) == ["reading was stopped after 1 s by the clock; the file was not analysed"]


def test_limits_hold_though_the_parent_ignores_their_signals() -> None:
    numbers = (signal.SIGPROF, signal.SIGXCPU)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        (result,) = run([Task("bad/hang.cu")], scan(DEEDS), jobs=1, limits=small_limits())
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    assert result == expected("bad/hang.cu")


def test_deep_recursion_is_possible() -> None:
    def depth(number: int) -> int:
        return 1 + depth(number - 1) if number else 0

    def work(task: Task, left_out: frozenset[str], phase: Callable[[str], None]) -> FileResult:
        return FileResult(task.path, lines=depth(15_000))

    assert run([Task("a")], work, jobs=1, limits=small_limits()) == [FileResult("a", lines=15_000)]


# ---- crashes of the moment ------------------------------------------------------------------------------------------


def test_a_crash_that_does_not_happen_again_costs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "crashed"

    def crash_once() -> None:
        if not mark.exists():
            mark.touch()
            segfault()

    for part in ("parse", "lanes/two"):
        mark.unlink(missing_ok=True)
        paths = ["a", "b", "c"]
        assert run([Task(path) for path in paths], scan({("b", part): crash_once}), jobs=2, limits=small_limits()) == [
            good(path) for path in paths
        ]


def test_a_crash_is_confirmed_with_no_other_file_in_work(tmp_path: Path) -> None:
    def work(task: Task, left_out: frozenset[str], phase: Callable[[str], None]) -> FileResult:
        phase("parse")
        company = len(list(tmp_path.glob("*.busy")))
        busy = tmp_path / f"{task.path}.busy"
        if task.path == "bad":
            if not (tmp_path / "crashed").exists():
                (tmp_path / "crashed").touch()
                segfault()
            return FileResult(task.path, lines=company)
        busy.touch()
        time.sleep(0.02)
        busy.unlink()
        return FileResult(task.path)

    tasks = [Task("bad", size=200), *(Task(f"{number}") for number in range(10))]
    results = run(tasks, work, jobs=4, limits=small_limits())
    assert results[-1] == FileResult("bad", lines=0)


# ---- parsers that really crash and hang -----------------------------------------------------------------------------


def parse(language: str, text: bytes, then: Callable[[object], object] = lambda tree: None) -> Callable[[], object]:
    def deed() -> None:
        grammar = {"cuda": tree_sitter_cuda, "python": tree_sitter_python}[language]
        then(tree_sitter.Parser(tree_sitter.Language(grammar.language())).parse(text))

    return deed


@pytest.mark.parametrize("jobs", [1, 8])
def test_real_parsers(jobs: int) -> None:
    def write_out(tree: object) -> None:
        str(tree.root_node)  # type: ignore[attr-defined]  # recursive in C

    deeds = {
        ("hang.cu", "parse"): parse("cuda", b"<!" * 50_000),
        ("crash.py", "parse"): parse("python", b"(" * 250_000 + b")" * 250_000, write_out),
        ("deep.py", "parse"): parse("python", b"(" * 40_000 + b")" * 40_000, write_out),
        ("brackets.py", "parse"): parse("python", b"[" * 100_000),
    }
    paths = sorted({path for path, _ in deeds} | {f"good{number}.py" for number in range(20)})
    results = run([Task(path) for path in paths], scan(deeds), jobs=jobs, limits=small_limits(parse_seconds=2))
    told = {result.path: messages(result) for result in results if result.problems}
    assert told == {
        "crash.py": ["the parser crashed (segmentation fault); the file was not analysed"],
        "hang.cu": ["the parser was stopped after 2 s of CPU time; the file was not analysed"],
    }
    assert [result for result in results if not result.problems] == [good(path) for path in paths if path not in told]


# ---- the parent -----------------------------------------------------------------------------------------------------


def test_progress_counts_the_files_that_are_done() -> None:
    seen: list[tuple[int, int]] = []
    tasks = [Task(path) for path in ("a", "b", "bad/segfault.cu", "rule/raise.cu")]
    run(tasks, scan(DEEDS), jobs=2, limits=small_limits(), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_exception_in_the_parent_ends_the_workers(error: type[BaseException]) -> None:
    def stop(done: int, total: int) -> None:
        raise error

    tasks = [Task("bad/hang.cu"), Task("a"), Task("b")]
    with pytest.raises(error):
        run(tasks, scan(DEEDS), jobs=2, limits=small_limits(parse_seconds=1000), progress=stop)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


PARENT = """
import os, re, sys
from portlint.engine import run
from tests.test_engine import Task, small_limits

def work(task, left_out, phase):
    phase("parse")
    os.write(int(sys.argv[1]), b"x")
    re.match(rb"(a+)+$", b"a" * 60 + b"b")

limits = small_limits(parse_seconds=1000, file_seconds=1000)
run([Task(str(number)) for number in range(8)], work, jobs=3, limits=limits)
"""


@pytest.mark.parametrize(
    ("number", "group"),
    [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGKILL, False)],
)
def test_no_worker_outlives_its_parent(number: signal.Signals, group: bool) -> None:
    if number != signal.SIGINT and sys.platform != "linux":
        pytest.skip("only Linux tells a busy worker that its parent is gone")
    # All processes hold the write end, so the read end comes to its end when the last of them is gone.
    read_end, write_end = os.pipe()
    command = [sys.executable, "-c", PARENT, str(write_end)]
    root = Path(__file__).parents[1]
    parent = subprocess.Popen(
        command, pass_fds=[write_end], cwd=root, stderr=subprocess.PIPE, start_new_session=True, text=True
    )
    os.close(write_end)
    try:
        hung = b""
        while len(hung) < 3:
            hung += os.read(read_end, 3)
        if group:
            os.killpg(parent.pid, number)
        else:
            parent.send_signal(number)
        _, errors = parent.communicate(timeout=60)
        assert parent.returncode == -number
        assert ("KeyboardInterrupt" in errors) == (number == signal.SIGINT)
        assert select.select([read_end], [], [], 60)[0], "a worker is still there"
        assert os.read(read_end, 1) == b""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        os.close(read_end)


def test_a_machine_with_room_for_one_worker_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    fork, forks = os.fork, []

    def scarce_fork() -> int:
        if forks:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        forks.append(1)
        return fork()

    monkeypatch.setattr(os, "fork", scarce_fork)
    paths = ["a", "b", "c"]
    assert run([Task(path) for path in paths], scan({}), jobs=3, limits=small_limits()) == [
        good(path) for path in paths
    ]


def test_a_machine_with_no_room_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", lambda: fail(BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")))
    before = os.listdir("/dev/fd")
    with pytest.raises(BlockingIOError):
        run([Task("a")], scan({}), jobs=1, limits=small_limits())
    assert os.listdir("/dev/fd") == before


def test_without_fork_exceptions_are_still_contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    paths = ["a", "bad/raise.cu", "rule/raise.cu"]
    assert run([Task(path) for path in paths], scan(DEEDS), jobs=4, limits=small_limits()) == [
        expected(path) for path in paths
    ]


def test_nothing_that_a_worker_prints_reaches_the_report(capfd: pytest.CaptureFixture[str]) -> None:
    deeds = {("a", "parse"): lambda: os.write(1, b"debug"), ("a", "read"): lambda: os.write(2, b"debug")}
    run([Task("a"), Task("bad/segfault.cu")], scan(deeds | DEEDS), jobs=1, limits=small_limits())
    assert capfd.readouterr() == ("", "")


def test_a_launcher_that_ignores_the_death_of_children_makes_no_difference() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        results = run([Task("a"), Task("bad/segfault.cu")], scan(DEEDS), jobs=2, limits=small_limits())
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert results == [good("a"), expected("bad/segfault.cu")]


@pytest.mark.parametrize("closed", ["0<&-", "0<&- 1>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_streams_make_no_difference(closed: str) -> None:
    script = """if True:
        from portlint.engine import run
        from tests.test_engine import Task, good, scan, small_limits

        assert run([Task("a"), Task("b")], scan({}), jobs=2, limits=small_limits()) == [good("a"), good("b")]
    """
    command = ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, script]
    assert subprocess.run(command, cwd=Path(__file__).parents[1], check=False).returncode == 0
