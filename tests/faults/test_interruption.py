"""A run that is cut short: by its user, by a reader that went away, by a full disk, by files that vanish."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from runs import DEVICE, KERNEL, TARGETS, check, command, environment, found, portlint, start, told, write

from portlint import scan as scanning

ENDLESS = ("<!" * 100 + "\n") * 5_000
LONG = ("check", ".", *TARGETS, "--isolated", "--output-format", "concise", "-j", "2")

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a busy worker that its parent is gone")


def children(pid: int) -> list[int]:
    """The processes that one has started."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_run(number: signal.Signals) -> None:
    """Not even in the middle of a parse that does not return; and what a user sees is one line."""
    if not Path("/proc/self/task").is_dir():
        pytest.skip("needs /proc with the children of a process")
    write({"a.cu": ENDLESS, "b.cu": ENDLESS, "kernel.cu": KERNEL})
    # All processes hold the write end, so the read end comes to its end when the last of them is gone.
    read_end, write_end = os.pipe()
    run = start(*LONG, pass_fds=[write_end])
    os.close(write_end)
    try:
        while len(children(run.pid)) < 2:
            time.sleep(0.05)
        time.sleep(0.3)
        run.send_signal(number)
        out, errors = run.communicate(timeout=60)
        assert run.returncode == (130 if number == signal.SIGINT else -number)
        assert out == b""
        assert errors.decode().strip() == ("portlint: interrupted" if number == signal.SIGINT else "")
        assert select.select([read_end], [], [], 10)[0], "a worker is still there"
    finally:
        run.kill()
        os.close(read_end)


@pytest.mark.parametrize("kind", ["concise", "json"])
def test_a_reader_that_goes_away_is_no_error(kind: str) -> None:
    write({f"{number:03}.cu": KERNEL * 20 for number in range(20)})
    run = start("check", ".", *TARGETS, "--isolated", "--output-format", kind)
    assert run.stdout is not None
    run.stdout.readline()
    run.stdout.close()
    run.stdout = None
    assert run.communicate()[1] == b""
    assert run.returncode == 1


def test_standard_output_on_a_full_disk_is_an_error_and_no_finding() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    write({"a.cu": KERNEL})
    for arguments in (LONG, ("rule",)):
        with open("/dev/full", "wb") as full:
            run = subprocess.run(
                command(*arguments), stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
            )
        assert run.returncode == 2
        assert run.stderr.decode().strip() == "Error: No space left on device"


FULL_DISK = """
import resource, signal, sys
from portlint.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
for line in sys.argv[1:]:
    try:
        main(line.split(" "))
    except SystemExit as end:
        print(f"{end.code} {line}", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_leaves_every_file_as_it_was() -> None:
    """No file may grow beyond 200 bytes: old reports stay, and so does the source."""
    reports = ("check . -t mps --output-format json:out", "report . -t mps --output-format html:out")
    commands = (
        *reports,
        "baseline write . -t mps --baseline known",
        "check . -t mps --fix --unsafe-fixes",
        "check . -t mps --add-ignore known",
    )
    files = {
        "out": "an old report",
        "known": '{"version": 1, "entries": []}',
        "a.cu": KERNEL * 3,
        "a.py": DEVICE * 8,
        "portlint.toml": "",
    }
    write(files)
    run = subprocess.run(
        [sys.executable, "-P", "-c", FULL_DISK, *commands], capture_output=True, env=environment(), check=False
    )
    assert b"Traceback" not in run.stderr
    statuses = [line for line in run.stdout.decode().splitlines() if line[2:] in commands]
    assert [line[0] for line in statuses] == ["2", "2", "2", "1", "1"]
    assert run.stderr.count(b": File too large") == 3
    assert " ".join(run.stdout.decode().split()).count("cannot be written: File too large") == 2
    assert {one.name: one.read_text() for one in Path().iterdir() if one.is_file()} == files


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with a name")
def test_a_report_goes_to_a_pipe_or_a_device_as_well() -> None:
    write({"a.cu": KERNEL})
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    outputs = ("--output-format", "concise:pipe", "--output-format", f"json:{os.devnull}")
    assert portlint("check", "a.cu", *TARGETS, *outputs).exit_code == 1
    assert os.read(reader, 100).startswith(b"a.cu:1:17: breaks[isa/cuda-cxx] mps")
    os.close(reader)
    assert Path("pipe").is_fifo()


# ---- files that change while a run looks at them ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("becomes", "message"),
    [
        ("nothing", "read: cannot be read: No such file or directory"),
        ("a folder", "read: cannot be read: not a regular file"),
        ("a pipe", "read: cannot be read: not a regular file"),
        ("a link", "read: cannot be read: Too many levels of symbolic links"),
        (
            "larger",
            "skipped: it grew while it was read: it has 1,000,001 bytes, more than the 1,000,000 that are analysed",
        ),
    ],
)
def test_a_file_that_is_another_by_the_time_it_is_read(
    becomes: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform != "linux":
        pytest.skip("the words are those of Linux")
    write({"a.py": DEVICE, "b.py": DEVICE, "secret": DEVICE})
    examine = scanning.Scan.examine

    def late(self: scanning.Scan, task: scanning.Found, *rest: object) -> scanning.Examined:
        file = Path(task.file)
        if file.name == "a.py":
            size = file.stat().st_size
            file.unlink()
            match becomes:
                case "a folder":
                    file.mkdir()
                case "a pipe":
                    os.mkfifo(file)
                case "a link":
                    file.symlink_to("secret")
                case "larger":
                    file.write_bytes(b"#" * 3_000_000)
            assert size < 1_000
        return examine(self, task, *rest)

    monkeypatch.setattr(scanning.Scan, "examine", late)
    report = check("-j", "2", ".")
    assert found(report) == ["b.py"]
    assert told(report) == {"a.py": message}
