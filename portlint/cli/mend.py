"""What `portlint check` writes into the linted files when it is told to: fixes, and suppression comments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import click

from portlint.cli.progress import progress_line

if TYPE_CHECKING:
    from portlint.finding import Problem, Report
    from portlint.fix import Change
    from portlint.run import Request


def comments(request: Request, report: Report, reason: str | None) -> tuple[Problem, ...]:
    """Write suppression comments with a reason; without one, take those out that are unused. Returns what failed."""
    from portlint import ignores

    if reason is None:
        outcome = ignores.remove_unused(request, report, progress_line())
        click.echo(f"portlint: unused suppressions removed from {len(outcome.edited)} files", err=True)
    else:
        outcome = ignores.add(request, report, reason, progress_line())
        click.echo(f"portlint: suppressions written into {len(outcome.edited)} files", err=True)
    return outcome.problems


def show_diff(request: Request, *, unsafe: bool) -> bool:
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


def fixed(request: Request, *, unsafe: bool, now: Callable[[Request], Request]) -> tuple[Request, Report]:
    """Make the fixes of a request, and report what is left; `now` gives the request for the files as they are then."""
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
        request = now(request)
        outcome = fix(request, unsafe=unsafe, progress=progress)  # a mended header may have bearing on other files
    _say(done, "made", ())
    problems = sorted({*outcome.report.problems, *outcome.problems, *problems})
    return request, msgspec.structs.replace(outcome.report, problems=tuple(problems))


def _say(changes: Sequence[Change], what: str, problems: Iterable[Problem]) -> None:
    """Count fixes for people, and name the files that they leave alone."""
    from portlint.report.escape import printable

    for problem in problems:
        click.echo(f"portlint: {printable(problem.path)}: {printable(problem.message)}", err=True)
    fixes, files = sum(change.fixes for change in changes), len({change.path for change in changes})
    counted = f"{fixes} fix{'es' * (fixes != 1)} {what} in {files} file{'s' * (files != 1)}" if fixes else ""
    click.echo(f"portlint: {counted or f'no fixes {what}'}", err=True)
