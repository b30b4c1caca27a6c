"""`portlint verify`: take findings towards proof with compilers, simulators and devices."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from portlint.cli.check import targets_of
from portlint.cli.errors import UserError, friendly

if TYPE_CHECKING:
    from portlint.config import Config
    from portlint.finding import Report
    from portlint.target import Target
    from portlint.verify.evidence import Entry
    from portlint.verify.levels import Reply
    from portlint.verify.questions import Question, Unasked

REFUSED = 1
"""the exit status where a compiler refuses the user's file"""


@click.command(short_help="Take findings towards proof with compilers, simulators and devices.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=str))
@click.option("--target", "-t", "targets", multiple=True, help="Machine to verify for; repeatable.")
@click.option(
    "--level",
    "levels",
    multiple=True,
    type=click.Choice(("compile", "simulate", "run")),
    help="How far to go; repeatable  [compile, simulate].",
)
@click.option("--select", multiple=True, metavar="RULES", help="Findings of these rules only.")
@click.option(
    "--evidence", type=click.Path(path_type=Path), metavar="FILE", help="Where answers go  [portlint-evidence.json]."
)
@click.option(
    "--compile", "program", type=click.Path(path_type=Path), metavar="FILE", help="Compile this file instead."
)
@click.option(
    "--execute", "script", type=click.Path(path_type=Path), metavar="FILE", help="Run this Python file instead."
)
@click.option("--timeout", type=click.FloatRange(min=1), default=600, help="Seconds that it may run  [600].")
@click.option("--python", "interpreter", metavar="EXE", help="The interpreter that runs it  [that of portlint].")
@click.option("--bundle", type=click.Path(path_type=Path), metavar="DIR", help="Write a folder for a device machine.")
@click.option("--import", "answers", type=click.Path(path_type=Path), metavar="FILE", help="Read answers in.")
@friendly
def verify(
    paths: tuple[str, ...],
    targets: tuple[str, ...],
    levels: tuple[str, ...],
    select: tuple[str, ...],
    evidence: Path | None,
    program: Path | None,
    script: Path | None,
    timeout: float,
    interpreter: str | None,
    bundle: Path | None,
    answers: Path | None,
) -> None:
    """Ask compilers, simulators and devices about the findings in PATHS, and keep what they say.

    Answers go to an evidence file, which `portlint check` shows beside its findings. No code of PATHS is executed or
    compiled unless a file is named with --compile or --execute.

    --execute runs a Python file on this machine's processor as if it were on the target, and says at its own lines what
    the target does not do, and where the host waits for it. What follows `--` are the file's arguments.
    """
    from portlint.config import load

    config = load(Path.cwd())
    machines = targets_of(targets or config.target)
    if program is not None:
        sys.exit(_compile(program, machines))
    if script is not None:
        chosen = interpreter or sys.executable
        sys.exit(max(_execute(script, paths, one, chosen, timeout, _place(evidence), config) for one in machines))
    paths = paths or (".",)
    report = _check(paths, machines, select, config)
    if bundle is not None:
        _bundle(bundle, report, machines)
    elif answers is not None:
        _import(answers, report, machines, _place(evidence), paths)
    else:
        _ask(report, machines, levels or ("compile", "simulate"), _place(evidence), paths)


def _place(evidence: Path | None) -> Path:
    from portlint.verify.evidence import FILE

    return evidence or Path(FILE)


def _check(paths: tuple[str, ...], machines: tuple[Target, ...], select: tuple[str, ...], config: Config) -> Report:
    from portlint.run import Request, run
    from portlint.settings import selectors, settled

    config = settled(config, machines)
    request = Request(
        paths=paths,
        targets=machines,
        config=config,
        select=selectors(select or config.select, machines),
        ignore=selectors(config.ignore, machines),
    )
    return run(request)


def _ask(
    report: Report, machines: tuple[Target, ...], levels: tuple[str, ...], place: Path, paths: tuple[str, ...]
) -> None:
    from portlint.run import cores
    from portlint.verify.proving import prove
    from portlint.verify.questions import climb, entries, entry, questions

    asked, unasked = questions(report.findings, machines)
    replies = list(climb(asked, levels))
    executed, problems = prove(report.findings, machines, cores()) if "simulate" in levels else ([], [])
    found = [one for question, reply in replies for one in entries(question, reply)]
    found += [entry(finding, finding.evidence[-1]) for finding in executed]
    _keep(place, found, report, paths)
    for finding in executed:
        said = finding.evidence[-1]
        click.echo(f"{finding.target}: {finding.path}:{finding.line}: {said.outcome} (simulate): {said.detail}")
    for problem in problems:
        click.echo(f"{problem.path}: {problem.message}", err=True)
    click.echo("\n".join(_shown(replies, unasked)))
    if executed:
        outcomes = Counter(finding.evidence[-1].outcome for finding in executed)
        click.echo("executed: " + ", ".join(f"{many} {outcome}" for outcome, many in sorted(outcomes.items())))


def _keep(place: Path, new: Iterable[Entry], report: Report, paths: tuple[str, ...]) -> None:
    """Merge entries into the evidence file, less those that say nothing any more."""
    from portlint.verify.evidence import merge, read, stale, write
    from portlint.verify.kernel import kernels

    old = read(place) if place.exists() else ()
    merged = merge(old, new)
    if not merged:
        return
    asked = [one for one in merged if report.asks(one.rule, one.target, one.path)]
    gone = {one.entry.key for one in stale(asked, report.findings, paths, kernels())}
    write(place, [entry for entry in merged if entry.key not in gone])
    click.echo(f"portlint: entries in {place}: {len(merged) - len(gone)}, stale ones left out: {len(gone)}", err=True)


def _shown(replies: list[tuple[Question, Reply]], unasked: list[Unasked]) -> Iterator[str]:
    """A line for each kernel, target and level, then what could not be asked, then the sum."""
    count: Counter[str] = Counter()
    for question, reply in replies:
        many = len(question.findings)
        count[f"{reply.outcome} at level {reply.level}"] += many
        what = f"{question.asked.fact}, assumed {_plain(question.assumed)}"
        yield f"{question.target.name}: {what}: {reply.outcome} ({reply.level}, {question.kernel.file}): {reply.detail}"
    for one in unasked:
        count["not asked"] += len(one.findings)
        yield f"{one.target}: {one.fact}: not asked: {one.reason}"
    if count:
        yield ""
        yield "findings: " + ", ".join(f"{many} {what}" for what, many in count.items())


def _plain(assumed: object) -> str:
    if isinstance(assumed, dict):
        return " ".join(f"{name.replace('_', ' ')} {value}" for name, value in assumed.items())
    return str(assumed)


def _compile(program: Path, machines: tuple[Target, ...]) -> int:
    """Compile a file of the user's for each target, and quote the compiler. Returns the exit status."""
    from portlint.verify.levels import architectures, compile_file

    status = 0
    for target in machines:
        if not architectures(target):
            raise UserError(f"{target.title} is not programmed in C++: nothing here compiles {program} for it.")
        try:
            answer = compile_file(program, target)
        except OSError as error:
            raise UserError(f"cannot read {program}: {error.strerror}") from error
        except LookupError as error:
            raise UserError(f"there is no compiler for {target.title} here; install it with: {error}") from error
        for one in answer.diagnostics:
            place = f"{one.path}:{one.line}" if one.line else one.path or str(program)
            click.echo(f"{place}: {one.kind}: {one.words}")
        verdict = {True: "accepted", False: "refused", None: "no answer"}[answer.accepted]
        click.echo(f"{target.name}: {program}: {verdict} ({answer.command})")
        status = status or (0 if answer.accepted else REFUSED)
    return status


def _execute(
    script: Path, arguments: tuple[str, ...], target: Target, python: str, seconds: float, place: Path, config: Config
) -> int:
    """Run a file of the user's for a target, and keep what that says of findings. Returns the exit status."""
    from portlint.verify.execute import joining, running, said

    if not script.is_file():
        raise UserError(f"there is no file {script}.")
    try:
        run = running.execute(script, arguments, target, python=python, seconds=seconds)
    except OSError as error:
        raise UserError(f"cannot start {python}: {error.strerror}") from error
    files = tuple(sorted({one.path for one in run.seen if Path(one.path).is_file()}))
    if files:
        report = _check(files, (target,), (), config)
        _keep(place, joining.entries(run, report.findings), report, files)
    click.echo("\n".join(said.lines(run)))
    return said.status(run)


def _bundle(folder: Path, report: Report, machines: tuple[Target, ...]) -> None:
    from portlint.verify.bundle import write
    from portlint.verify.questions import questions

    asked, unasked = questions(report.findings, machines)
    if not asked:
        raise UserError("there is nothing to ask a device: no finding rests on a fact that a kernel measures.")
    write(folder, asked)
    click.echo(f"{folder}: {len(asked)} questions. On the device machine: python3 {folder.name}/run.py")
    click.echo("\n".join(_shown([], unasked)))


def _import(answers: Path, report: Report, machines: tuple[Target, ...], place: Path, paths: tuple[str, ...]) -> None:
    from portlint.verify.bundle import imported, read
    from portlint.verify.evidence import Entry
    from portlint.verify.questions import questions

    asked, _ = questions(report.findings, machines)
    found: list[Entry] = []
    for question, result in imported(read(answers), asked):
        if isinstance(result, Entry):
            found.append(result)
        else:
            click.echo(f"{question.target.name}: {question.asked.fact}: not run: {result}")
    _keep(place, found, report, paths)
    outcomes = Counter(entry.evidence.outcome for entry in found)
    click.echo("findings: " + (", ".join(f"{many} {outcome}" for outcome, many in outcomes.items()) or "none answered"))
