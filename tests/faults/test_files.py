"""Trees as no developer makes them: large files, many files, deep folders, links, pipes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from runs import DEVICE, FULL, KERNEL, check, found, scan, told, write

from portlint.source.discover import discover
from portlint.source.prescan import Limits

MEGABYTE = 1_000_000
FACTOR = 50 if FULL else 6


@pytest.mark.parametrize(
    ("name", "unit", "message"),
    [
        ("statements.py", b"x = 1\n", "more than the 1,000,000 that are analysed"),
        ("kernels.cu", b"__global__ void k() {}\n", "more than the 5,000,000 that are analysed"),
        ("notebook.ipynb", b'{"cells": [],\n', "more than the 10,000,000 that are analysed"),
        ("CMakeLists.txt", b"set(x 1)\n", "more than the 1,000,000 that are analysed"),
        ("run.sh", b"pip install torch\n", "more than the 1,000,000 that are analysed"),
    ],
)
def test_a_large_file_is_named_and_not_read(
    name: str, unit: bytes, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (2 if name == "notebook.ipynb" else 1) * FACTOR * MEGABYTE
    write({name: unit * (size // len(unit)), "good.py": DEVICE})
    report = check()
    assert found(report) == ["good.py"]
    assert told(report).keys() == {name}
    assert message in told(report)[name]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("line.py", b"x = '" + b"y" * 900_000 + b"'\n", "a line of 900,006 bytes: it looks generated"),
        ("line.cu", b"int x[] = {" + b"1," * 2_000_000 + b"};\n", "a line of 4,000,013 bytes: it looks generated"),
        ("spaces.py", b" " * 900_000 + b"x\n", "a line of 900,001 bytes: it looks generated"),
        ("blank.py", b"\n" * 900_000, "it has 900,000 lines"),
        ("blank.cu", b"\n" * 4_900_000, "it has 4,900,000 lines"),
        ("returns.cu", b"\r" * 4_900_000, "it has 4,900,000 lines"),
        ("minified.py", b"a=1;" * 100_000, "a line of 400,000 bytes"),
        ("generated.cu", (b"a=1;" * 200 + b"\n") * 500, "its lines have 801 bytes on average: it looks minified"),
    ],
)
def test_what_nobody_wrote_is_named_before_it_is_parsed(name: str, text: bytes, message: str) -> None:
    ((_, result),) = scan([(name, text)], Limits()).items()
    assert result.problems[0].message.startswith(message)


def test_pipes_devices_and_loops_are_not_opened() -> None:
    """Neither where they are found, nor where a neighbour of a file is looked for."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs pipes with a name")
    pipes = (
        "a.h",
        "b.cuh",
        "CMakeLists.txt",
        "setup.py",
        "__init__.py",
        "conftest.py",
        "requirements.txt",
        "c.py",
        "d.ipynb",
    )
    unnamed = (".gitignore", "portlint.toml", "portlint-baseline.json", "portlint-evidence.json", "pyproject.toml")
    for name in (*pipes, *unnamed):
        os.mkfifo(name)
    write(
        {
            ".git/HEAD": "",
            "k.cu": '#include "a.h"\n#include "b.cuh"\n' + KERNEL,
            "m.py": "import c\nfrom . import c\n" + DEVICE,
        }
    )
    Path("loop").symlink_to(".")
    Path("self.py").symlink_to("self.py")
    Path("zero.py").symlink_to("/dev/zero")
    Path("random.cu").symlink_to("/dev/urandom")
    Path("out.py").symlink_to("/etc/passwd")
    os.mkdir("down")
    Path("down/up").symlink_to("..")
    report = check("-j", "2", ".")
    assert found(report) == ["k.cu", "m.py"]
    notes = told(report)
    assert {name: notes[name] for name in pipes} == dict.fromkeys(pipes, "skipped: not a regular file")
    assert notes.keys() >= {"self.py", "zero.py", "random.cu", "out.py"}
    assert told(check("c.py", "/dev/null"))["c.py"] == "skipped: not a regular file"


def test_a_tree_of_very_many_files_and_very_deep_folders() -> None:
    """Only a part of the files is looked for here; what counts is that nothing grows faster than the tree."""
    many = 100_000 if FULL else 4_000
    for number in range(many):
        if number % 1_000 == 0:
            os.makedirs(f"d{number // 1_000}")
        with open(f"d{number // 1_000}/{number}.py", "w", encoding="utf-8") as file:
            file.write("")
    here = os.getcwd()
    for level in range(500):
        os.mkdir("n")
        os.chdir("n")
        if level in (0, 250, 499):
            write({"k.cu": KERNEL})
    os.chdir(here)
    began = time.process_time()
    files = discover(["."], exclude=(), force_exclude=False).found
    assert len(files) == many + 3
    assert time.process_time() - began < many / 1_000 + 20
    report = check("n")
    assert found(report) == sorted("n/" * level + "k.cu" for level in (1, 251, 500))
    if FULL:
        assert len(check(".")["findings"]) == len(report["findings"])


@pytest.mark.skipif(sys.platform == "win32" or not hasattr(os, "getuid"), reason="needs the rights of Unix")
def test_what_may_not_be_read_is_named() -> None:
    write({"good.py": DEVICE, "closed.py": DEVICE, "closed/a.py": DEVICE})
    os.chmod("closed.py", 0)
    os.chmod("closed", 0)
    try:
        report = check()
    finally:
        os.chmod("closed", 0o700)
    if os.getuid() == 0:
        assert found(report) == [
            "closed.py",
            "closed/a.py",
            "good.py",
        ]  # for root there is nothing that may not be read
    else:
        assert found(report) == ["good.py"]
        assert told(report) == {
            "closed": "read: the folder cannot be read: Permission denied",
            "closed.py": "read: cannot be read: Permission denied",
        }
