"""Fuzz one family of inputs, and write what fails, made small.

    python benchmarks/fuzz/run.py FAMILY --minutes 10 --seed 1 [--output FOLDER] [--engine auto|atheris|plain]

With atheris installed, inputs are chosen by the code of portlint that they reach; without it, at random. Inputs that
raise, end the process, take too long, or are judged otherwise without the byte gate fail. In between, the inputs of
late are written into a folder, which is checked as a whole in several ways that must give equal bytes: by one process
and by two, in another order of paths, and from a warm cache. The exit status is 1 if anything failed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import click

from fuzz.child import Watch, limit
from fuzz.families import FAMILIES, Files

HERE = Path(__file__).resolve().parent
ROUND_SECONDS = 240.0
TREE_FILES = 60
STACK_BYTES = 64 << 20
"""what a worker has; children take it over"""


def _environment() -> dict[str, str]:
    paths = [str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONHASHSEED": "0"}


def fuzz_round(family: str, engine: str, seed: int, seconds: float, folder: Path) -> tuple[int, float]:
    """Run a child for some time. Returns how many inputs it checked, and the CPU seconds that it took."""
    arguments = [sys.executable, str(HERE / "child.py"), family, engine, str(seed), str(seconds), str(folder)]
    with (folder / "log").open("ab") as log:
        child = subprocess.Popen(arguments, stdout=log, stderr=log, env=_environment())
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        _keep_last(folder, child.returncode)
    count = (folder / "count").read_text() if (folder / "count").exists() else ""
    return int(count or 0), usage.ru_utime + usage.ru_stime


def _keep_last(folder: Path, code: int) -> None:
    """Keep the input that ended a child."""
    phase = (folder / "phase").read_text().strip() if (folder / "phase").exists() else "before the first input"
    signature = f"{'slow in C' if code == -signal.SIGVTALRM else f'ended with {code}'}: {phase}"
    key = hashlib.blake2b(signature.encode(), digest_size=6).hexdigest()
    data = (folder / "current").read_bytes() if (folder / "current").exists() else b""
    (folder / "failures").mkdir(exist_ok=True)
    (folder / "failures" / f"{key}.input").write_bytes(data)
    (folder / "failures" / f"{key}.json").write_text(json.dumps({"signature": signature, "ends": code}))


def signature_of(family: str, data: bytes, folder: Path) -> str:
    """What is wrong with an input, found in a process of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        limit()
        os.write(write, Watch(FAMILIES[family], folder / "small")(data).encode(errors="replace")[:2_000])
        os._exit(0)
    os.close(write)
    said = b"".join(iter(lambda: os.read(read, 1 << 12), b""))
    os.close(read)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return f"ended with {code}" if code else said.decode()


def minimise(data: bytes, fails: Callable[[bytes], bool], seconds: float) -> bytes:
    """A smaller input that still fails: without lines, then without bytes, in ever smaller pieces."""
    ends = time.monotonic() + seconds
    for unit in ("lines", "bytes"):
        parts: list[bytes] = (
            data.splitlines(keepends=True) if unit == "lines" else [data[at : at + 1] for at in range(len(data))]
        )
        size = max(1, len(parts) // 2)
        while parts and time.monotonic() < ends:
            shorter = None
            for start in range(0, len(parts), size):
                candidate = parts[:start] + parts[start + size :]
                if time.monotonic() > ends:
                    break
                if candidate and fails(b"".join(candidate)):
                    shorter = candidate
                    break
            if shorter is not None:
                parts = shorter
            elif size == 1:
                break
            else:
                size = max(1, size // 2)
        data = b"".join(parts)
    return data


def check_tree(family: Files, random: Random, folder: Path) -> str:
    """Write inputs into a folder and check it in several ways. Returns how the reports differ, or nothing."""
    tree = folder / "tree"
    subprocess.run(["rm", "-rf", str(tree)], check=True)
    for number in range(TREE_FILES):
        data = family.make(random) if random.random() < 0.7 else random.choice(list(family.seeds))
        name = Path(family.names[data[0] % len(family.names)])
        # Every other file stands beside others of its name's kind, where rules look for what belongs together.
        place = (
            tree
            / (f"{number}" if number % 2 else "together")
            / name.parent
            / (name.name if number % 2 else f"{number}_{name.name}")
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data[1:])
    paths = sorted(str(one) for one in tree.iterdir())
    shuffled = random.sample(paths, len(paths))
    ways = {
        "one process": _report(tree, paths, 1, folder / "cache1"),
        "two processes, other order": _report(tree, shuffled, 2, folder / "cache2"),
        "warm": _report(tree, paths, 2, folder / "cache1"),
        "no cache": _report(tree, shuffled, 1, None),
    }
    first = ways["one process"]
    for way, text in ways.items():
        if text != first:
            return f"{way} differs: {_first_difference(first, text)}"
    if not first.startswith("{"):
        return f"lost: {first}"
    lost = [one for one in json.loads(first)["problems"] if one["kind"] in ("rule", "timeout")]
    return f"lost: {json.dumps(lost[0])[:400]}" if lost else ""


def _report(tree: Path, paths: Sequence[str], jobs: int, cache: Path | None) -> str:
    arguments = [
        sys.executable,
        "-P",
        "-m",
        "portlint",
        "check",
        *paths,
        "--isolated",
        "--no-baseline",
        "--exit-zero",
        f"--jobs={jobs}",
        "--target=cdna3",
        "--target=tpu-v6e",
        "--target=mps",
        "--output-format=json",
    ]
    environment = _environment()
    if cache is None:
        arguments.append("--no-cache")
    else:
        environment["XDG_CACHE_HOME"] = str(cache)
    ended = subprocess.run(arguments, cwd=tree, capture_output=True, text=True, env=environment, check=False)
    if ended.returncode:
        return f"status {ended.returncode}: {ended.stderr[-500:]}"
    report = json.loads(ended.stdout)
    del report["summary"]["seconds"]
    return json.dumps(report, indent=0)


def _first_difference(one: str, other: str) -> str:
    pairs = zip(one.splitlines(), other.splitlines(), strict=False)
    return next((f"{ours[:200]} and {theirs[:200]}" for ours, theirs in pairs if ours != theirs), "one is longer")


@click.command(help=__doc__)
@click.argument("family", type=click.Choice(list(FAMILIES)))
@click.option("--minutes", default=1.0, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--engine", type=click.Choice(("auto", "atheris", "plain")), default="auto", show_default=True)
@click.option("--patience", default=60.0, show_default=True, help="Seconds for making each failure small.")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="What fails is kept here.")
def main(family: str, minutes: float, seed: int, engine: str, patience: float, output: Path | None) -> None:
    """Run rounds until the time is over, then make what failed small."""
    resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    has_atheris = importlib.util.find_spec("atheris") is not None
    if engine == "auto":
        engine = "atheris" if has_atheris else "plain"
    folder = (output or Path(tempfile.mkdtemp(prefix=f"portlint-fuzz-{family}-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    ends, inputs, cpu, trees, rounds = time.monotonic() + 60 * minutes, 0, 0.0, 0, 0
    differing: list[str] = []
    random = Random(seed)
    while (left := ends - time.monotonic()) > 1:
        rounds += 1
        # Every other round is at random: what is nested leads to no new line of code, and still may fail.
        how = engine if rounds % 2 else "plain"
        count, seconds = fuzz_round(family, how, random.randrange(1 << 30), min(left, ROUND_SECONDS), folder)
        inputs, cpu = inputs + count, cpu + seconds
        kind = FAMILIES[family]
        if isinstance(kind, Files) and time.monotonic() < ends:
            trees += 1
            if difference := check_tree(kind, random, folder):
                differing.append(difference)
                subprocess.run(["cp", "-r", str(folder / "tree"), str(folder / f"tree{trees}")], check=False)
    failures = sorted((folder / "failures").glob("*.json")) if (folder / "failures").exists() else []
    click.echo(
        f"{family}: {inputs:,} inputs in {cpu / 60:.1f} minutes of CPU time ({engine}, seed {seed}), {trees} trees; "
        f"{len(failures)} failures, {len(differing)} trees that differ"
    )
    for difference in differing:
        click.echo(f"    {difference}")
    for failure in failures:
        told = json.loads(failure.read_text())
        data = failure.with_suffix(".input").read_bytes()
        wanted = told["signature"].partition(":")[0]
        again = signature_of(family, data, folder)
        if again and patience:
            start = again.partition(":")[0]
            small = minimise(data, lambda one, s=start: signature_of(family, one, folder).startswith(s), patience)  # type: ignore[misc]
            failure.with_suffix(".small").write_bytes(small)
        click.echo(f"    {told['signature']}" + ("" if again else f" ({wanted} did not come again)"))
        click.echo(f"        {failure.with_suffix('.small' if again and patience else '.input')}")
    sys.exit(bool(failures or differing))


if __name__ == "__main__":
    main()
