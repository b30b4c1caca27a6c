"""`portlint check`: lint files and folders for one or more targets."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from portlint.cli.errors import UserError, friendly

if TYPE_CHECKING:
    from portlint.config import Config, Selector
    from portlint.finding import Problem, Report
    from portlint.fix import Change
    from portlint.run import Progress, Request
    from portlint.target import Target

VERDICTS = ("corrupts", "breaks", "degrades", "unknown")
PROGRESS_AFTER = 200
"""files; a shorter scan is over before a progress line helps"""


@click.command(short_help="Check files for assumptions that do not hold on a target.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=str))
@click.option(
    "--target", "-t", "targets", multiple=True, help="Machine to judge for; repeatable. 'portlint target' lists them."
)
@click.option(
    "--output-format", "outputs", multiple=True, metavar="KIND[:FILE]", help="full, concise, json or sarif; repeatable."
)
@click.option("--select", multiple=True, metavar="RULES", help="Only these: pack, pack/name or 'pack/name @ target'.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these.")
@click.option(
    "--fail-on", type=click.Choice(VERDICTS), help="The mildest verdict that makes the exit status 1  [degrades]."
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever is found.")
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
@click.option("--no-cache", is_flag=True, expose_value=False, help="Use no cached results (there is no cache yet).")
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Worker processes  [one per core].")
@click.option("--stdin-filename", metavar="NAME", help="Read one file from standard input, and report it by this name.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave these out (.gitignore patterns).")
@click.option("--force-exclude", is_flag=True, help="Leave out excluded files even if they are named.")
@click.option(
    "--color", type=click.Choice(("auto", "always", "never")), default="auto", help="Colours in the full report."
)
@click.option(
    "--evidence",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What 'portlint verify' found out  [portlint-evidence.json, if it is there].",
)
@click.option("--fix", "fixes", is_flag=True, help="Mend what has a safe fix, then report what is left.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: take fixes that may change what code does.")
@click.option("--diff", is_flag=True, help="Print what --fix would change, and write nothing; exit 1 if it would.")
@click.option("--prove", is_flag=True, help="Execute the code around findings about lanes; note what is refuted.")
@friendly
def check(
    paths: tuple[str, ...],
    targets: tuple[str, ...],
    outputs: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str | None,
    exit_zero: bool,
    isolated: bool,
    jobs: int | None,
    stdin_filename: str | None,
    exclude: tuple[str, ...],
    force_exclude: bool,
    color: str,
    evidence: Path | None,
    prove: bool,
    fixes: bool,
    unsafe_fixes: bool,
    diff: bool,
) -> None:
    """Check PATHS (the current folder if none) for assumptions that do not hold on a target."""
    from portlint.config import Config, load
    from portlint.run import Request, run

    if unsafe_fixes and not fixes and not diff:
        raise UserError("'--unsafe-fixes' says which fixes '--fix' makes or '--diff' shows: give one of them as well.")
    if diff and (outputs or prove):
        raise UserError("'--diff' prints a diff and no findings: leave out '--output-format' and '--prove'.")
    if fixes and not diff and (stdin_filename is not None or "-" in paths):
        raise UserError("'--fix' rewrites files: for standard input there is '--diff'.")
    config = Config() if isolated else load(Path.cwd())
    machines = targets_of(targets or config.target)
    kinds = [_output(one) for one in outputs] or [("full", None)]
    request = Request(
        paths=paths or (".",),
        targets=machines,
        config=config,
        select=selectors(select or config.select, machines),
        ignore=selectors((*config.ignore, *ignore), machines),
        exclude=exclude,
        force_exclude=force_exclude,
        stdin=_stdin(paths, stdin_filename),
        jobs=jobs,
    )
    if diff:
        sys.exit(_show_diff(request, unsafe=unsafe_fixes) and not exit_zero)
    report = _fixed(request, unsafe=unsafe_fixes) if fixes else run(request, progress_line())
    report = with_evidence(report, request.paths, evidence)
    if prove:
        report = _proven(report, machines, jobs)
    for kind, file in kinds:
        _write(report, kind, file, color)
    if not report.summary.files and not report.problems:
        click.echo("portlint: no files to check", err=True)
    sys.exit(0 if exit_zero else _status(report, config, fail_on))


def _show_diff(request: Request, *, unsafe: bool) -> bool:
    """Print what fixes would change, and say whether that is anything."""
    from portlint.fix import fix, unified
    from portlint.report.escape import printable

    outcome = fix(request, unsafe=unsafe, progress=progress_line())
    for change in outcome.changes:
        text = unified(change)
        if sys.stdout.isatty():
            text = printable(text.decode(errors="replace"), keep="\n\t").encode()
        sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()
    _say(outcome.changes, "would be made", outcome.problems)
    return bool(outcome.changes)


def _fixed(request: Request, *, unsafe: bool) -> Report:
    """Make the fixes of a request, and report what is left."""
    import msgspec

    from portlint.finding import Problem
    from portlint.fix import MOST_ROUNDS, Unfit, fix, write

    done: list[Change] = []
    problems: list[Problem] = []
    progress = progress_line()
    outcome = fix(request, unsafe=unsafe, progress=progress)
    for _ in range(MOST_ROUNDS):
        written = 0
        for change in outcome.changes:
            try:
                write(change)
            except Unfit as reason:
                problems.append(Problem(change.path, 0, "fix", f"left alone: {reason}"))
            else:
                done.append(change)
                written += 1
        if not written:
            break
        outcome = fix(request, unsafe=unsafe, progress=progress)  # a mended header may have bearing on other files
    _say(done, "made", ())
    problems = sorted({*outcome.report.problems, *outcome.problems, *problems})
    return msgspec.structs.replace(outcome.report, problems=tuple(problems))


def _say(changes: Sequence[Change], what: str, problems: Iterable[Problem]) -> None:
    """Count fixes for people, and name the files that they leave alone."""
    from portlint.report.escape import printable

    for problem in problems:
        click.echo(f"portlint: {printable(problem.path)}: {printable(problem.message)}", err=True)
    fixes, files = sum(change.fixes for change in changes), len({change.path for change in changes})
    counted = f"{fixes} fix{'es' * (fixes != 1)} {what} in {files} file{'s' * (files != 1)}" if fixes else ""
    click.echo(f"portlint: {counted or f'no fixes {what}'}", err=True)


def with_evidence(report: Report, paths: tuple[str, ...], named: Path | None) -> Report:
    """The report with the evidence that belongs to its findings; evidence that is stale becomes a problem."""
    from portlint.verify.evidence import FILE

    place = named or Path(FILE)
    if named is None and not place.is_file():
        return report

    import msgspec

    from portlint.finding import Problem
    from portlint.verify.evidence import join, read, stale
    from portlint.verify.kernel import kernels

    entries = [one for one in read(place) if one.rule in report.rules and one.target in report.targets]
    gone = stale(entries, report.findings, paths, kernels())
    dead = {one.entry.key for one in gone}
    problems = (Problem(str(place), 0, "evidence", one.text) for one in gone)
    return msgspec.structs.replace(
        report,
        findings=join(report.findings, (entry for entry in entries if entry.key not in dead)),
        problems=tuple(sorted((*report.problems, *problems))),
    )


def _proven(report: Report, targets: tuple[Target, ...], jobs: int | None) -> Report:
    """The report after the code around findings about lanes was executed: those that it refutes become notes."""
    import msgspec

    from portlint.finding import Problem
    from portlint.run import cores
    from portlint.verify.levels import Outcome
    from portlint.verify.proving import prove

    executed, problems = prove(report.findings, targets, jobs or cores())
    by_order = {one.order: one for one in executed}
    findings = [by_order.get(one.order, one) for one in report.findings]
    refuted = [one for one in findings if one.evidence and one.evidence[-1].outcome == Outcome.REFUTED]
    notes = [
        Problem(one.path, one.line, "refuted", f"'{one.rule}' for {one.target} is refuted: {one.evidence[-1].detail}")
        for one in refuted
    ]
    return msgspec.structs.replace(
        report,
        findings=tuple(one for one in findings if one not in refuted),
        problems=tuple(sorted((*report.problems, *problems, *notes))),
    )


def targets_of(names: tuple[str, ...]) -> tuple[Target, ...]:
    """The targets of these names, each once. Raises UserError where there is none."""
    from portlint.target import load

    if not names:
        raise UserError(
            "no target: say for which machine with '--target', such as '--target cdna3', or with 'target' in the"
            " configuration. 'portlint target' lists them."
        )
    return tuple(dict.fromkeys(load(name) for name in names))


def selectors(texts: tuple[str, ...], targets: tuple[Target, ...]) -> tuple[Selector, ...]:
    """The selectors in these texts, each checked to name a rule and a target that there are."""
    from portlint.config import Selector, check_selectors
    from portlint.rules import discover
    from portlint.target import aliases

    selectors = tuple(Selector.parse(part) for text in texts for part in text.split(","))
    check_selectors(selectors, set(discover()), {*aliases(), *(target.name for target in targets)})
    return selectors


def _output(text: str) -> tuple[str, Path | None]:
    from portlint.report import KINDS

    kind, _, file = text.partition(":")
    if kind not in KINDS:
        raise UserError(f"there is no output format '{kind}': it is one of {', '.join(KINDS)}, or KIND:FILE.")
    return kind, Path(file) if file else None


def _stdin(paths: tuple[str, ...], name: str | None) -> tuple[str, bytes] | None:
    if name is None:
        if "-" in paths:
            raise UserError("'-' needs '--stdin-filename NAME', which says what language the text is in.")
        return None
    if any(path != "-" for path in paths):
        raise UserError("'--stdin-filename' reads one file from standard input; name no other paths with it.")
    return name, sys.stdin.buffer.read()


def progress_line() -> Progress | None:
    """A counter on standard error, for long scans that somebody watches."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        if total >= PROGRESS_AFTER:
            end = "\r\x1b[K" if done == total else ""
            sys.stderr.write(f"\rportlint: {done:,} of {total:,} files{end}")
            sys.stderr.flush()

    return show


def _write(report: Report, kind: str, file: Path | None, color: str) -> None:
    import shutil

    from portlint import __version__
    from portlint.report import render

    colored = color == "always" or (color == "auto" and file is None and is_terminal())
    width = shutil.get_terminal_size((100, 24)).columns
    text = render(report, kind, color=colored, width=width, version=__version__)
    if file is None:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write the report to {file}: {error.strerror}") from error


def is_terminal() -> bool:
    """Whether standard output understands colours, by what the environment says."""
    import os

    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE")) or sys.stdout.isatty()


def _status(report: Report, config: Config, fail_on: str | None) -> int:
    from portlint.finding import Verdict

    floor = Verdict(fail_on or config.fail_on).rank
    return int(any(finding.verdict.rank <= floor for finding in report.findings))
