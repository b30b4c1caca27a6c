"""The verification kernels in Python: how they are written, and, where a framework is installed, what they measure."""

from __future__ import annotations

import ast
import json
import runpy
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from portlint.rule import has
from portlint.target import Target, load, shipped, vocabulary
from portlint.verify import levels, runner
from portlint.verify.kernel import Kernel, Parameters, folder, kernels, of_fact
from portlint.verify.levels import named

FRAMEWORKS = {
    "triton": "triton",
    "torch": "torch",
    "torch_xla": "torch_xla",
    "jax": "jax",
    "nki": "nki",
}
"""route -> the package that its kernels need"""
PYTHON_KERNELS = [one for group in kernels().values() for one in group if one.route in FRAMEWORKS]
LANGUAGE_NEUTRAL = ("device", "shape", "sync", "tile", "dtype", "numerics", "system")
"""packs whose facts are all measured in Python"""


def name(kernel: Kernel) -> str:
    return f"{kernel.route}/{kernel.name}"


def place(kernel: Kernel) -> Path:
    return Path(str(folder())) / kernel.route / kernel.file


def modules() -> list[Path]:
    """Every Python file among the kernels, shared ones included."""
    return sorted(Path(str(folder())).rglob("*.py"))


def started(kernel: Kernel, where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a kernel in a folder of its own, as `portlint verify` does, with nothing but the standard library."""
    for file, text in kernel.program.items():
        (where / file).write_text(text, encoding="utf-8")
    command = [sys.executable, "-S", kernel.file, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=where)


@pytest.mark.parametrize("kernel", PYTHON_KERNELS, ids=name)
def test_header(kernel: Kernel) -> None:
    tree = ast.parse(place(kernel).read_text(encoding="utf-8"))
    header = ast.get_docstring(tree)
    assert header is not None
    assert "How it checks itself: " in header
    assert header.splitlines()[-1] == f"Proof: {kernel.proof}"
    if kernel.route == "nki":
        assert "it has not run" in header


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(str(folder()))))
def test_only_the_standard_library_is_imported(path: Path) -> None:
    """Frameworks come through `need`, which says what to install."""
    shared = {one.stem for one in (*path.parent.glob("_*.py"), *path.parent.parent.glob("_*.py"))}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for one in names:
            assert one.partition(".")[0] in sys.stdlib_module_names | shared, f"line {node.lineno}: {one}"


@pytest.mark.parametrize("kernel", PYTHON_KERNELS, ids=name)
def test_wrong_options(kernel: Kernel, tmp_path: Path) -> None:
    ended = started(kernel, tmp_path, "--level=guess")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("usage:")


@pytest.mark.parametrize("kernel", PYTHON_KERNELS, ids=name)
def test_without_its_framework(kernel: Kernel, tmp_path: Path) -> None:
    """The last line says what to install, as `portlint verify` shows it."""
    level = "compile" if kernel.proof == "compile" else "run"
    ended = started(kernel, tmp_path, f"--level={level}")
    assert (ended.returncode, ended.stdout) == (3, ""), ended.stderr
    assert "install it with: " in ended.stderr.splitlines()[-1]


def test_a_fact_of_another_kernel(tmp_path: Path) -> None:
    kernel = next(one for one in PYTHON_KERNELS if one.name == "shape_traced")
    ended = started(kernel, tmp_path, "--fact=lanes.width")
    assert ended.returncode == 3
    assert "shape.traced_branches" in ended.stderr


def replied(measured: object, outcome: str, kernel: Kernel, asked: Parameters, assumed: Any, level: str) -> str:
    """What a level makes of a line that a kernel printed."""
    line = {"measured": measured, "outcome": outcome, "detail": "", "environment": {"triton": "3.9.0"}}
    ended = runner.Ended("python kernel.py", 0, "", "", 0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "_line", lambda *_: (line, ended))
        return levels.answer(kernel, asked, assumed, load("cdna3"), level).outcome


@pytest.mark.parametrize(
    ("measured", "outcome", "level", "expected"),
    [
        (["fp8e4nv", "fp8e5"], "measured", "compile", "refuted"),
        (["fp8e5"], "measured", "compile", "confirmed"),
        ([], "failed", "compile", "not decided"),
        (["fp8e5"], "measured", "run", "confirmed"),
    ],
)
def test_what_is_measured_decides(measured: object, outcome: str, level: str, expected: str) -> None:
    (kernel,) = (one for one in PYTHON_KERNELS if name(one) == "triton/dtype_fp8")
    asked = Parameters("dtype.triton_fp8", "fp8e4nv", "")
    assert replied(measured, outcome, kernel, asked, has("fp8e4nv"), level) == expected


def test_a_simulation_decides_nothing_of_the_device() -> None:
    (kernel,) = (one for one in PYTHON_KERNELS if name(one) == "torch/sync_host_read")
    asked = Parameters("sync.host_read", "host_read", "")
    assert replied("slow", "measured", kernel, asked, "native", "simulate") == "not decided"
    assert replied("slow", "measured", kernel, asked, "native", "run") == "confirmed"


@pytest.mark.skipif(find_spec("triton") is not None, reason="Triton is installed")
def test_a_missing_framework_is_no_answer() -> None:
    (kernel,) = (one for one in PYTHON_KERNELS if name(one) == "triton/dtype_fp8")
    asked = Parameters("dtype.triton_fp8", "fp8e4nv", "")
    reply = levels.answer(kernel, asked, has("fp8e4nv"), load("cdna3"), "compile")
    assert reply.outcome == "not run"
    assert "install it with: pip install triton" in reply.detail


def is_python_fact(fact: str) -> bool:
    """Whether a fact is one that only Python code relies on."""
    pack, _, noun = fact.partition(".")
    return (
        pack in LANGUAGE_NEUTRAL
        or fact.startswith(("launch.triton_", "isa.triton_", "isa.nki."))
        or (pack == "memory" and noun.startswith(("vmem", "smem", "sbuf", "psum")))
    )


def test_every_fact_has_a_kernel_or_says_why_not() -> None:
    silent = [fact for fact, term in vocabulary().items() if not term.kernel and not term.unmeasured]
    assert not [fact for fact in silent if is_python_fact(fact)]
    assert not [fact for fact, term in vocabulary().items() if term.kernel and term.unmeasured]


def can_fail(fact: str, target: Target) -> bool:
    """Whether a finding can rest on the fact for a target."""
    stated = target.fact(fact)
    return stated is not None and not (vocabulary()[fact].kind == "level" and stated.value == "native")


MEASURED_IN_PYTHON = sorted({term.kernel for term in vocabulary().values()} & {one.name for one in PYTHON_KERNELS})


@pytest.mark.parametrize("target", tuple(shipped()))
def test_a_target_can_be_asked(target: str) -> None:
    """Each fact on which a finding can rest has its kernel in something that the target is programmed in."""
    profile = load(target)
    asked = [fact for fact, term in vocabulary().items() if term.kernel in MEASURED_IN_PYTHON]
    assert not [
        fact
        for fact in asked
        if can_fail(fact, profile) and not any(fact in measures(one) for one in of_fact(fact, profile))
    ]


def test_every_kernel_measures_something() -> None:
    assert sorted({one.name for one in PYTHON_KERNELS}) == MEASURED_IN_PYTHON


class Asked(Exception):
    """A kernel has said which facts it measures."""


@cache
def measures(kernel: Kernel) -> tuple[str, ...]:
    """The facts that a kernel measures, as it says them to `options` before it needs anything; C++ is compiled."""
    if kernel.route == "cuda":
        return tuple(fact for fact, term in vocabulary().items() if term.kernel == kernel.name)

    def options(*facts: str) -> None:
        raise Asked(facts)

    shared = ModuleType("_kernel")
    vars(shared).update({"options": options, "__getattr__": lambda name: name})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "_kernel", shared)
        patch.syspath_prepend(str(folder()))
        with pytest.raises(Asked) as said:
            runpy.run_path(str(place(kernel)))
    facts: tuple[str, ...] = said.value.args[0]
    return facts


@pytest.mark.parametrize("kernel", PYTHON_KERNELS, ids=name)
def test_facts_and_kernels_name_each_other(kernel: Kernel) -> None:
    assert {vocabulary()[fact].kernel for fact in measures(kernel)} == {kernel.name}


class Task(NamedTuple):
    """A question to a kernel whose answer the profile of a target states."""

    kernel: str
    level: str
    target: str
    fact: str

    def __str__(self) -> str:
        return f"{self.kernel}-{self.fact}-{self.target}-{self.level}"


TARGETS = {
    "triton": (("compile", "cdna3"), ("compile", "cdna4"), ("compile", "rdna3"), ("compile", "hopper")),
    "torch": (("run", "cpu"),),
    "jax": (("run", "cpu"), ("compile", "cpu"), ("compile", "tpu-v5e"), ("compile", "cdna3")),
    "torch_xla": (("simulate", "tpu-v6e"),),
    "nki": (("simulate", "trainium2"),),
}
"""route -> what can be asked of it on a machine without an accelerator"""
OF_LATER_RELEASES = {("dtype.linear_algebra", "tpu-v5e"), ("dtype.linear_algebra", "cdna3")}
"""what JAX checks from August 2026 on, whatever the platform; an older one lowers more"""
ALTERNATIVES = frozenset(("device.jax_kinds",))
"""lists of names of which a machine has one"""
VALUES_OF_THE_HOST = frozenset(("device.type", "device.cuda_version"))
"""what a simulation on this machine says of this machine"""


def tasks(route: str) -> Iterator[Task]:
    measured = {fact: one.name for one in PYTHON_KERNELS if one.route == route for fact in measures(one)}
    for level, target in TARGETS[route]:
        for fact, kernel in measured.items():
            is_of_host = level == "simulate" and fact in VALUES_OF_THE_HOST
            is_later = (fact, target) in OF_LATER_RELEASES
            if load(target).fact(fact) is not None and not is_of_host and not is_later:
                yield Task(kernel, level, target, fact)


SERVER = """
import json, os, runpy, sys
folder, route, framework, tasks = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
sys.path[:0] = [f"{folder}/{route}", folder]
sys.dont_write_bytecode = True
__import__(framework)
for kernel, *words in tasks:
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.dup2(writing, 1)
        sys.stdout = os.fdopen(1, "w")
        sys.argv = [kernel, *words]
        try:
            runpy.run_path(f"{folder}/{route}/{kernel}.py", run_name="__main__")
        except SystemExit as ended:
            sys.stdout.flush()
            os._exit(ended.code or 0)
        finally:
            sys.stdout.flush()
            os._exit(9)
    os.close(writing)
    printed = os.fdopen(reading).read()
    _, status = os.wait()
    print(json.dumps([os.waitstatus_to_exitcode(status), printed]), flush=True)
"""
"""Imports a framework once, and runs each kernel in a fork of itself."""


@cache
def answers(route: str) -> dict[Task, tuple[int, str]]:
    """What the kernels of a route print, and their exit statuses."""
    asked = list(tasks(route))
    words = [
        (one.kernel, f"--level={one.level}", f"--architecture={named(load(one.target))}", f"--fact={one.fact}")
        for one in asked
    ]
    command = [sys.executable, "-c", SERVER, str(folder()), route, FRAMEWORKS[route], json.dumps(words)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=True)
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("[")]
    return {task: (status, printed) for task, (status, printed) in zip(asked, lines, strict=True)}


def agrees(fact: str, measured: Any, stated: Any) -> bool:
    """Whether a measured value and a stated one are the same to every assumption that code makes of it.

    Levels are the same where both are native or neither is: whether the rest is emulated or refused is the framework's
    matter.
    """
    if isinstance(stated, list):
        return bool(sorted(measured) == sorted(stated)) or (fact in ALTERNATIVES and set(measured) <= set(stated))
    levels = ("native", "none", "emulated", "narrowed", "slow", "fallback")
    if stated in levels and measured in levels:
        return bool((measured == "native") == (stated == "native"))
    return bool(measured == stated)


ALL_TASKS = [
    pytest.param(route, task, id=f"{route}-{task}")
    for route, framework in FRAMEWORKS.items()
    if find_spec(framework) is not None
    for task in tasks(route)
]


@pytest.mark.parametrize(("route", "task"), ALL_TASKS)
def test_measured_values(route: str, task: Task) -> None:
    """A kernel that can answer here prints one line, and agrees with the profile."""
    status, printed = answers(route)[task]
    if status == 3:
        pytest.skip("it cannot answer here")
    (line,) = (json.loads(text) for text in printed.splitlines())
    assert status == 0, line
    fact = load(task.target).fact(task.fact)
    assert fact is not None
    assert agrees(task.fact, line["measured"], fact.value), (
        f"{line['measured']} is stated as {fact.value}; {line['detail']}"
    )
