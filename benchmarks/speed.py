"""Measure how long portlint takes, beside other tools on the same files in the same run.

    python benchmarks/speed.py --python DIR --cuda DIR [--every 12] [--rounds 3] [--peers FOLDER] [--output FILE]
    python benchmarks/speed.py --python DIR --cuda DIR --profile

The figure is CPU time, user and system, of a process and all that it starts, the least of some rounds: machines are
shared, and clocks count what others do. Tools take turns, so that a slow hour is slow for all. The peers are expected
in the folder `--peers`, ripgrep and Perl on the path; what is not there is listed as not run.

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install ruff ast-grep-cli semgrep flake8

`peers/` has rules for semgrep and ast-grep that ask for as much as 34 of portlint's do: they compare engines, not
rules. Semgrep reads no `.cu` and by default no tests, so it gets copies by the name of C++ and an empty list of
exclusions; ast-grep has no grammar for CUDA, and takes that of C++.
"""

from __future__ import annotations

import cProfile
import datetime
import json
import os
import platform
import pstats
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import msgspec

HERE = Path(__file__).resolve().parent
PYTHON = (".py",)
CUDA = (".cu", ".cuh", ".hip", ".h", ".hpp", ".inl", ".cpp", ".cc", ".c")
TARGETS = ("cdna3", "tpu-v6e")
PARTS = (8, 4, 2, 1)
POLL_SECONDS = 0.05
OFFLINE = {"SEMGREP_SEND_METRICS": "off", "SEMGREP_ENABLE_VERSION_CHECK": "0"}
"""without these, semgrep waits for its makers' server"""
TINY = b'import torch\n\nmodel = torch.nn.Linear(2, 2).to("cuda")\n'
LONG_BYTES, KERNEL_BYTES = 300_000, 40_000


class Cost(msgspec.Struct, frozen=True):
    """What one run of a tool took."""

    cpu: float
    wall: float
    process_mb: float
    """of memory, the largest process"""
    all_mb: float
    """all processes together, as far as looking now and then shows"""
    status: int


class Tool(msgspec.Struct, frozen=True):
    """A program that is measured."""

    name: str
    command: tuple[str, ...]
    version: tuple[str, ...]
    languages: tuple[str, ...] = ("python",)
    suffix: str = ""
    """of the folder that it is given in place of the tree, where it needs other names"""


def measure(command: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float) -> Cost:
    """Run a command in a folder. One that takes longer than the limit is ended, with the status -9."""
    started = time.monotonic()
    child = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    peak = 0.0
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        peak = max(peak, _resident_mb(child.pid))
        if time.monotonic() - started > limit:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        time.sleep(POLL_SECONDS if time.monotonic() - started > 1 else POLL_SECONDS / 10)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - started
    largest = usage.ru_maxrss / 1024
    return Cost(usage.ru_utime + usage.ru_stime, wall, largest, max(peak, largest), child.returncode)


def _resident_mb(session: int) -> float:
    """The memory of all processes of a session."""
    pages = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError, ValueError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def best(costs: Iterable[Cost]) -> Cost:
    """The least time of several runs, and the most memory."""
    every = list(costs)
    return Cost(
        min(one.cpu for one in every),
        min(one.wall for one in every),
        max(one.process_mb for one in every),
        max(one.all_mb for one in every),
        max((one.status for one in every), key=abs),
    )


# ---- trees ----------------------------------------------------------------------------------------------------------


def copy_tree(roots: Sequence[Path], suffixes: tuple[str, ...], every: int, to: Path) -> int:
    """Copy every nth file with one of the suffixes. Returns how many bytes that are."""
    size, count = 0, 0
    for root in roots:
        for path in sorted(root.rglob("*")):
            is_build = path.name == "CMakeLists.txt"  # marks a project, within which results rest on other files
            if (
                (is_build or path.suffix in suffixes)
                and path.is_file()
                and not path.is_symlink()
                and ".git" not in path.parts
            ):
                count += 1
                if is_build or count % every == 0:
                    place = to / root.name / path.relative_to(root)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, place)
                    size += path.stat().st_size
    return size


def rename_for_cxx(tree: Path, to: Path) -> None:
    """The same files by names that a tool takes for C++."""
    shutil.copytree(tree, to)
    for path in list(to.rglob("*")):
        ending = {".cu": ".cpp", ".hip": ".cpp", ".cuh": ".hpp", ".inl": ".hpp"}.get(path.suffix)
        if ending:
            path.rename(path.with_name(path.name + ending))


def part_of(tree: Path, nth: int, to: Path) -> Path:
    """A folder with every nth file of a tree."""
    if nth == 1:
        return tree
    for number, path in enumerate(sorted(one for one in tree.rglob("*") if one.is_file())):
        if number % nth == 0:
            place = to / path.relative_to(tree)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
    return to


def nearest(tree: Path, suffix: str, size: int) -> Path | None:
    """The file whose size is nearest to one."""
    return min(tree.rglob(f"*{suffix}"), key=lambda path: (abs(path.stat().st_size - size), str(path)), default=None)


# ---- tools ----------------------------------------------------------------------------------------------------------


def tools(portlint: Sequence[str], peers: Path, hipify: Path | None) -> list[Tool]:
    """Everything that is compared, with portlint as the first."""
    targets = tuple(f"--target={name}" for name in TARGETS)
    quiet = ("--isolated", "--no-baseline", "--exit-zero", "--output-format=concise:/dev/null")
    check = (*portlint, "check", ".", *quiet, *targets)
    both = ("python", "cuda")

    def peer(name: str) -> str:
        return str(peers / name)

    semgrep = (
        peer("semgrep"),
        "scan",
        "--metrics=off",
        "--disable-version-check",
        "--no-git-ignore",
        "--quiet",
        "-j",
        "1",
        f"--config={HERE / 'peers' / 'semgrep.yml'}",
        "--max-target-bytes=0",
        "--timeout=0",
        ".",
    )
    listed = [
        Tool("portlint", (*check, "--no-cache", "--jobs=1"), (*portlint, "--version"), both),
        Tool("portlint, warm", (*check, "--jobs=1"), (*portlint, "--version"), both),
        Tool("portlint, 2 jobs", (*check, "--no-cache", "--jobs=2"), (*portlint, "--version"), both),
        Tool("ripgrep", ("rg", "-c", "--no-ignore", "cuda|warp|shfl", "."), ("rg", "--version"), both),
        Tool(
            "ruff", (peer("ruff"), "check", "--isolated", "--no-cache", "--exit-zero", "."), (peer("ruff"), "--version")
        ),
        Tool(
            "ruff --select ALL",
            (peer("ruff"), "check", "--isolated", "--no-cache", "--exit-zero", "--select", "ALL", "."),
            (peer("ruff"), "--version"),
        ),
        Tool("flake8", (peer("flake8"), "--isolated", "--jobs=1", "--exit-zero", "."), (peer("flake8"), "--version")),
        Tool(
            "ast-grep",
            (
                peer("ast-grep"),
                "scan",
                "--no-ignore=hidden",
                f"--config={HERE / 'peers' / 'sgconfig.yml'}",
                "--json=stream",
                ".",
            ),
            (peer("ast-grep"), "--version"),
            both,
        ),
        Tool("semgrep", semgrep, (peer("semgrep"), "--version"), both, "_cpp"),
    ]
    if hipify is not None:
        examine = f"find . -name '*.cu*' -type f | head -3 | xargs perl {hipify} -examine"
        listed.append(Tool("hipify-perl, 3 files", ("sh", "-c", examine), ("perl", "-e", "print $]"), ("cuda",)))
    return listed


def version_of(tool: Tool) -> str | None:
    """What a tool says of itself; None where it is not there."""
    try:
        said = subprocess.run(
            tool.version, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **OFFLINE}
        ).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next((word for word in said if word[:1].isdigit()), " ".join(said[:2]))


# ---- what is measured -----------------------------------------------------------------------------------------------


class Run:
    """The measurements of one run."""

    def __init__(
        self, listed: Sequence[Tool], trees: Mapping[str, Path], work: Path, rounds: int, limit: float
    ) -> None:
        self.tools = listed
        self.trees = trees
        self.work = work
        self.rounds = rounds
        self.limit = limit

    def _environment(self, name: str) -> dict[str, str]:
        return {
            "XDG_CACHE_HOME": str(self.work / "cache" / name),
            **OFFLINE,
            "SEMGREP_SETTINGS_FILE": str(self.work / "semgrep-settings.yml"),
            "PYTHONDONTWRITEBYTECODE": "",
        }

    def whole_trees(self) -> dict[str, dict[str, Cost]]:
        """Tree -> tool -> cost."""
        costs: dict[str, dict[str, list[Cost]]] = {}
        for number in range(self.rounds):
            for name, tree in self.trees.items():
                for tool in self.tools:
                    if name not in tool.languages:
                        continue
                    folder = Path(f"{tree}{tool.suffix}") if tool.suffix and name == "cuda" else tree
                    if tool.name == "portlint, warm" and number == 0:
                        measure(tool.command, folder, self._environment(name), self.limit)
                    cost = measure(tool.command, folder, self._environment(name), self.limit)
                    click.echo(
                        f"round {number + 1}: {name}: {tool.name}: {cost.cpu:.2f} s, status {cost.status}", err=True
                    )
                    costs.setdefault(name, {}).setdefault(tool.name, []).append(cost)
        return {name: {tool: best(every) for tool, every in of.items()} for name, of in costs.items()}

    def parts(self) -> dict[str, dict[str, Cost]]:
        """Tree and part of it -> cost of portlint with one job, for how time grows with size."""
        found: dict[str, dict[str, Cost]] = {}
        for name, tree in self.trees.items():
            for nth in PARTS:
                folder = part_of(tree, nth, self.work / "parts" / f"{name}{nth}")
                every = [measure(self.tools[0].command, folder, {}, self.limit) for _ in range(self.rounds)]
                found.setdefault(name, {})[f"1/{nth}"] = best(every)
        return found

    def single_files(self) -> dict[str, dict[str, Cost]]:
        """File -> tool -> cost, with all that it takes to start."""
        files = {
            "tiny .py": ("python", TINY, ".py"),
            "long .py": ("python", _bytes(nearest(self.trees["python"], ".py", LONG_BYTES)), ".py"),
            ".cu": ("cuda", _bytes(nearest(self.trees["cuda"], ".cu", KERNEL_BYTES)), ".cu"),
        }
        found: dict[str, dict[str, Cost]] = {}
        for label, (language, text, suffix) in files.items():
            folder = self.work / "single" / label.strip(".").replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"file{suffix}").write_bytes(text)
            for tool in self.tools:
                if language in tool.languages and not (tool.suffix and suffix == ".cu"):
                    every = [
                        measure(tool.command, folder, self._environment("single"), self.limit)
                        for _ in range(self.rounds + 2)
                    ]
                    found.setdefault(f"{label}, {len(text):,} bytes", {})[tool.name] = best(every)
        return found


def _bytes(path: Path | None) -> bytes:
    return path.read_bytes() if path is not None else b"\n"


# ---- the profile ----------------------------------------------------------------------------------------------------


def profile(folder: Path, most: int) -> str:
    """CPU time of each stage of a scan of a folder in this process, and of each module."""
    from portlint.config import Config
    from portlint.detect import RuleSet
    from portlint.finding import FileResult
    from portlint.run import Request, scanner, tasks_of
    from portlint.scan import Scan
    from portlint.target import load

    spent: Counter[str] = Counter()
    now, at = "start", time.process_time()

    def phase(name: str) -> None:
        nonlocal now, at
        moment = time.process_time()
        spent[now] += moment - at  # type: ignore[assignment]
        now, at = name, moment

    class Timed(RuleSet):
        """Rules whose gate is a stage of its own."""

        def may_fire(self, text: bytes, language: str) -> bool:
            before = now
            phase("gate")
            fires = super().may_fire(text, language)
            phase(before)
            return fires

    request = Request(paths=(str(folder),), targets=tuple(load(name) for name in TARGETS), config=Config())
    phase("discover")
    tasks, _ = tasks_of(request)
    phase("start")
    whole = scanner(request)
    scan = Scan(Timed(whole.rules.rules), whole.targets, whole.limits)
    sys.setrecursionlimit(whole.limits.recursion)
    results: list[FileResult] = []
    for task in tasks:
        results.append(scan(task, frozenset(), phase))
        phase("between files")
    total = sum(spent.values())
    lines = [
        f"{len(tasks):,} files, {sum(len(one.findings) for one in results):,} findings, {total:.1f} s of CPU time",
        "",
    ]
    lines += ["| stage | CPU ms | share |", "|---|---|---|"]
    lines += [
        f"| {stage} | {1000 * seconds:,.0f} | {seconds / total:.1%} |" for stage, seconds in spent.most_common(most)
    ]
    profiler = cProfile.Profile(time.process_time)
    profiler.enable()
    for task in tasks:
        scan(task, frozenset(), lambda _: None)
    profiler.disable()
    modules: Counter[str] = Counter()
    table: Mapping[tuple[str, int, str], Any] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    for (file, _, _), (_, _, own, _, _) in table.items():
        modules[file.rpartition("portlint/")[2] if "portlint/" in file else "built in, and libraries"] += own
    lines += ["", "| module, by its own time under the profiler | share |", "|---|---|"]
    lines += [f"| {module} | {seconds / sum(modules.values()):.1%} |" for module, seconds in modules.most_common(most)]
    return "\n".join(lines)


# ---- tables ---------------------------------------------------------------------------------------------------------


def tables(
    found: Mapping[str, Any],
    whole: Mapping[str, Mapping[str, Cost]],
    single: Mapping[str, Mapping[str, Cost]],
    parts: Mapping[str, Mapping[str, Cost]],
) -> str:
    """All measurements as Markdown."""
    said = ", ".join(f"{name} {version or 'not run'}" for name, version in found["versions"].items())
    lines = [f"{found['machine']}; {found['day']}; the least CPU time of {found['rounds']} rounds. {said}."]
    for name, costs in whole.items():
        own = costs["portlint"].cpu
        lines += [
            "",
            f"{name}: {found['trees'][name]}",
            "",
            "| tool | CPU s | portlint takes | wall s | largest process, MB | all, MB |",
            "|---|---|---|---|---|---|",
        ]
        for tool, cost in costs.items():
            failed = f" (status {cost.status})" if cost.status < 0 else ""
            lines.append(
                f"| {tool}{failed} | {cost.cpu:.2f} | {own / max(cost.cpu, 1e-3):.2f} times that | {cost.wall:.1f} "
                f"| {cost.process_mb:.0f} | {cost.all_mb:.0f} |"
            )
    for label, costs in single.items():
        lines += ["", f"One file, {label}: CPU ms", "", "| " + " | ".join(costs) + " |", "|" + "---|" * len(costs)]
        lines.append("| " + " | ".join(f"{1000 * cost.cpu:.0f}" for cost in costs.values()) + " |")
    for name, costs in parts.items():
        whole_cpu = costs["1/1"].cpu
        lines += [
            "",
            f"{name} by size: CPU s, and the share of the whole in brackets",
            "",
            "| " + " | ".join(costs) + " |",
            "|" + "---|" * len(costs),
        ]
        fractions = {part: 1 / int(part.partition("/")[2]) for part in costs}
        lines.append(
            "| "
            + " | ".join(f"{one.cpu:.2f} ({whole_cpu * fractions[part]:.2f})" for part, one in costs.items())
            + " |"
        )
    return "\n".join(lines)


def machine() -> str:
    """What this runs on."""
    model = platform.processor() or platform.machine()
    with suppress(OSError):
        names = [
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ]
        model = names[0] if names else model
    return f"{os.cpu_count()} cores of {model}, CPython {platform.python_version()}"


@click.command(help=__doc__)
@click.option(
    "--python", "python", multiple=True, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@click.option("--cuda", multiple=True, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--every", default=1, show_default=True, metavar="N", help="Only every Nth file.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--command", default="portlint", show_default=True, help="How portlint is started.")
@click.option("--peers", default=Path("/tmp/peers/bin"), show_default=True, type=click.Path(path_type=Path))
@click.option("--hipify", type=click.Path(path_type=Path, exists=True), help="The script hipify-perl.")
@click.option("--skip", multiple=True, metavar="TOOL", help="A tool to leave out; repeatable.")
@click.option("--limit", default=1800.0, show_default=True, help="Seconds after which a tool is stopped.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures as JSON.")
@click.option("--profile", "profiled", is_flag=True, help="Instead: CPU time by stage, rule and module.")
@click.option("--most", default=25, show_default=True, help="Lines of each table of the profile.")
def main(
    python: tuple[Path, ...],
    cuda: tuple[Path, ...],
    every: int,
    rounds: int,
    command: str,
    peers: Path,
    hipify: Path | None,
    skip: tuple[str, ...],
    limit: float,
    output: Path | None,
    profiled: bool,
    most: int,
) -> None:
    """Copy the trees, measure, and print."""
    with tempfile.TemporaryDirectory(prefix="portlint-speed-") as scratch:
        work = Path(scratch)
        trees = {"python": work / "python", "cuda": work / "cuda"}
        sizes = {
            "python": copy_tree(python, PYTHON, every, trees["python"]),
            "cuda": copy_tree(cuda, CUDA, every, trees["cuda"]),
        }
        if profiled:
            for name, tree in trees.items():
                click.echo(f"## {name}\n\n{profile(tree, most)}\n")
            return
        rename_for_cxx(trees["cuda"], work / "cuda_cpp")
        for tree in (*trees.values(), work / "cuda_cpp"):
            (tree / ".semgrepignore").write_text("")
        listed = tools(command.split(), peers, hipify and hipify.resolve())
        versions = {tool.name: version_of(tool) if tool.name not in skip else None for tool in listed}
        run = Run([tool for tool in listed if versions[tool.name]], trees, work, rounds, limit)
        found: dict[str, Any] = {
            "machine": machine(),
            "day": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
            "rounds": rounds,
            "versions": versions,
            "trees": {
                name: f"{sum(one.is_file() for one in tree.rglob('*')) - 1:,} files, {sizes[name] / 1e6:.1f} MB"
                for name, tree in trees.items()
            },
        }
        whole, single, parts = run.whole_trees(), run.single_files(), run.parts()
    click.echo(tables(found, whole, single, parts))
    if output is not None:
        figures = {"whole": whole, "single": single, "parts": parts}
        output.write_text(json.dumps({**found, **msgspec.to_builtins(figures)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
