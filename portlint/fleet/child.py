"""The process of a job: checks a folder as `portlint check .` would do there, and writes the reply.

It is a program, `python -m portlint.fleet.child ERRAND REPLY`, whose standard input is a pipe that nothing is written
to. The pipe closes when the worker that started it is gone, and then nobody wants the reply any more.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from portlint.cli.check import examined, status, targets_of
from portlint.config import Config, load
from portlint.fleet.job import Errand, Reply
from portlint.mistake import Mistake
from portlint.run import Request, run, tasks_of
from portlint.settings import selectors, settled
from portlint.worker import die_with_parent

if TYPE_CHECKING:
    from portlint.fleet.job import Job


def main() -> None:
    """Read an errand, do it, and write the reply."""
    import click

    errand, reply = sys.argv[1:]
    die_with_parent(sys.stdin.fileno())
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which the worker ignores
    try:
        answer = _reply(msgspec.msgpack.decode(Path(errand).read_bytes(), type=Errand))
    except (Mistake, click.ClickException) as error:
        answer = Reply(error=str(error))
    Path(reply).write_bytes(msgspec.msgpack.encode(answer))


def _reply(errand: Errand) -> Reply:
    job, options = errand.job, errand.job.options
    if options.rules:
        from portlint.rules import add

        for folder in options.rules:
            add(Path(folder))
    machines = targets_of(errand.targets)
    os.chdir(errand.folder)  # paths in reports, configuration, baseline and evidence are those of the checkout
    config = settled(_config(job), machines)
    request = Request(
        paths=(".",),
        targets=machines,
        config=config,
        select=selectors(options.select or config.select, machines),
        ignore=selectors((*config.ignore, *options.ignore), machines),
        exclude=options.exclude,
        jobs=1,  # each thread of the cluster stands for a processor
        shard=job.slice,
    )
    slices = 1 if job.slice else _slices(request, options.slice_bytes)
    if slices > 1:
        return Reply(slices=slices)
    report = examined(run(request), request, None, None, bool(job.slice), False)
    return Reply(report=report, status=status(report, options.fail_on or config.fail_on))


def _config(job: Job) -> Config:
    """The configuration of a checkout; a clone has none but its own, wherever it was put."""
    if job.options.isolated:
        return Config()
    config = load(Path.cwd())
    return Config() if job.is_url and not Path(config.file).is_relative_to(Path.cwd()) else config


def _slices(request: Request, most: int) -> int:
    """How many slices a checkout takes: one where its findings are matched against what was known of all of them."""
    from portlint import baseline
    from portlint.verify import evidence

    if request.config.baseline or baseline.place(request.config).is_file() or Path(evidence.FILE).is_file():
        return 1
    size = sum(task.size for task in tasks_of(request)[0])
    return min(999, max(1, -(-size // most)))


if __name__ == "__main__":
    main()
