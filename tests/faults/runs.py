"""Running `portlint` on a folder full of trouble: in this process where that will do, else in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from click.testing import CliRunner, Result
from harness import ROOT

from portlint.cli import main
from portlint.detect import RuleSet
from portlint.engine import run
from portlint.finding import FileResult
from portlint.rules import discover
from portlint.scan import Scan
from portlint.source.discover import Found
from portlint.source.language import by_name
from portlint.source.prescan import Limits
from portlint.target import load

FULL = os.environ.get("PORTLINT_FAULTS") == "full"
"""whether inputs have the sizes that are promised; otherwise they are smaller, and the tests short"""

KERNEL = """__global__ void sum(float* x) {
    for (int o = 16; o > 0; o >>= 1) x[0] += __shfl_xor_sync(0xffffffff, x[0], o);
}
"""
"""a finding for cdna3"""
DEVICE = "import torch\n\nx = torch.cuda.current_device()\n"
"""a finding for mps"""
TARGETS = ("-t", "cdna3", "-t", "mps")

Invoke: TypeAlias = Callable[..., Result]


def portlint(*arguments: str) -> Result:
    """What a command prints, in this process."""
    return CliRunner().invoke(main, list(arguments))


def check(*arguments: str) -> dict[str, Any]:
    """The JSON report of `portlint check`, which has to end as it does with findings or without."""
    result = portlint("check", *TARGETS, "--isolated", "--output-format", "json", *(arguments or (".",)))
    assert result.exit_code in (0, 1), result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def found(report: dict[str, Any]) -> list[str]:
    """Where a report has findings."""
    return sorted({one["path"] for one in report["findings"]})


def told(report: dict[str, Any]) -> dict[str, str]:
    """What a report says of files that it does not cover as a whole."""
    return {one["path"]: f"{one['kind']}: {one['message']}" for one in report["problems"]}


def command(*arguments: str) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-P", "-m", "portlint", *arguments]


def environment(**more: str) -> dict[str, str]:
    """The environment of such a process."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **more}


def start(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """A process of its own, not waited for."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(), **options}
    return subprocess.Popen(command(*arguments), **options)


@cache
def rule_set() -> RuleSet:
    """All rules, with their queries compiled: that takes longer than the limits of some tests."""
    rules = RuleSet(discover().values())
    for name, text in {"a.cu": KERNEL, "a.py": DEVICE, "a.sh": "pip install torch\n", "Dockerfile": "RUN a\n"}.items():
        _work({name: text.encode()}, rules, ("cdna3", "mps"))(_task(name, b""), frozenset(), lambda _: None)
    return rules


def _work(contents: Mapping[str, bytes], rules: RuleSet, targets: Sequence[str], limits: Limits | None = None) -> Scan:
    files = {f"/{name}": text for name, text in contents.items()}
    return Scan(rules, tuple(load(name) for name in targets), limits or Limits(), contents=files)


def _task(name: str, text: bytes) -> Found:
    return Found(path=name, file=f"/{name}", size=len(text), kind=by_name(name) or "")


def scan(
    texts: Iterable[tuple[str, bytes]],
    limits: Limits,
    *,
    targets: Sequence[str] = ("cdna3", "mps"),
    jobs: int = 2,
    fails: str = "",
) -> dict[str, FileResult]:
    """What the scan of texts brings, each under its name: all rules, worker processes, limits of one's own.

    The rule that `fails` raises in every file.
    """
    contents = dict(texts)
    work = _work(contents, rule_set(), targets, limits)

    def failing(task: Found, without: frozenset[str], phase: Callable[[str], None]) -> FileResult:
        def raising(name: str) -> None:
            phase(name)
            if name == fails:
                raise RuntimeError("no")

        return work(task, without, raising)

    tasks = [_task(name, text) for name, text in contents.items()]
    return {result.path: result for result in run(tasks, failing if fails else work, jobs=jobs, limits=limits)}


def write(files: dict[str, str | bytes]) -> None:
    """Put files into the working directory."""
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
