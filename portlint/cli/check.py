"""`portlint check`: lint files and folders for one or more targets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from portlint.cli.errors import UserError, friendly
from portlint.cli.progress import progress_line

if TYPE_CHECKING:
    from portlint.baseline import Matched
    from portlint.cache import Cache
    from portlint.changed import Changed
    from portlint.finding import Report
    from portlint.run import Request
    from portlint.target import Target

Mends: TypeAlias = Literal["safe", "unsafe"]

VERDICTS = ("corrupts", "breaks", "degrades", "unknown")


class _Command(click.Command):
    """A command with an option whose value may be left out, and never is the argument behind it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options, rest = (args[: args.index("--")], args[args.index("--") :]) if "--" in args else (args, [])
        return super().parse_args(ctx, ["--changed=" if one == "--changed" else one for one in options] + rest)


@click.command(cls=_Command, short_help="Check files for assumptions that do not hold on a target.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=str))
@click.option(
    "--target", "-t", "targets", multiple=True, help="Machine to judge for; repeatable. 'portlint target' lists them."
)
@click.option(
    "--output-format",
    "outputs",
    multiple=True,
    metavar="KIND[:FILE]",
    help="full, grouped, concise, json, json-lines, sarif, github, gitlab, junit or markdown; repeatable.",
)
@click.option("--select", multiple=True, metavar="RULES", help="Only these: pack, pack/name or 'pack/name @ target'.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these.")
@click.option(
    "--fail-on", type=click.Choice(VERDICTS), help="The mildest verdict that makes the exit status 1  [degrades]."
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever is found.")
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
@click.option("--no-cache", is_flag=True, help="Analyse every file again, and keep nothing.")
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where results are kept  [.portlint_cache beside the configuration].",
)
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
@click.option("--shard", metavar="I/N", help="Check one of N parts of the files; 'portlint merge' joins their JSON.")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Leave out the findings in it  [portlint-baseline.json, if it is there].",
)
@click.option("--no-baseline", is_flag=True, help="Report what the baseline has, too.")
@click.option(
    "--changed",
    metavar="[=REF]",
    help="Only lines that differ from the commit REF  [what this branch and its upstream have in common].",
)
@click.option("--add-ignore", metavar="REASON", help="Write a suppression comment for each finding into its file.")
@click.option("--remove-unused-ignores", is_flag=True, help="Take suppression comments out that suppress nothing.")
@click.option("--fix", "fixes", is_flag=True, help="Mend what has a safe fix, then report what is left.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: take fixes that may change what code does.")
@click.option("--diff", is_flag=True, help="Print what --fix would change, and write nothing; exit 1 if it would.")
@click.option("--show-settings", is_flag=True, help="Print the settings in force and where they come from, and stop.")
@click.option("--show-files", is_flag=True, help="Print the files that would be checked, and stop.")
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
    no_cache: bool,
    cache_dir: Path | None,
    jobs: int | None,
    stdin_filename: str | None,
    exclude: tuple[str, ...],
    force_exclude: bool,
    color: str,
    evidence: Path | None,
    shard: str | None,
    baseline: Path | None,
    no_baseline: bool,
    changed: str | None,
    add_ignore: str | None,
    remove_unused_ignores: bool,
    show_settings: bool,
    show_files: bool,
    prove: bool,
    fixes: bool,
    unsafe_fixes: bool,
    diff: bool,
) -> None:
    """Check PATHS (the current folder if none) for assumptions that do not hold on a target."""
    import msgspec

    from portlint.cache import Cache, of_folder
    from portlint.config import Config, load
    from portlint.run import Request
    from portlint.settings import selectors, settled

    if unsafe_fixes and not fixes and not diff:
        raise UserError("'--unsafe-fixes' says which fixes '--fix' makes or '--diff' shows: give one of them as well.")
    if diff and (outputs or prove):
        raise UserError("'--diff' prints a diff and no findings: leave out '--output-format' and '--prove'.")
    if fixes and not diff and (stdin_filename is not None or "-" in paths):
        raise UserError("'--fix' rewrites files: for standard input there is '--diff'.")
    config = Config() if isolated else load(Path.cwd())
    if show_settings:
        from portlint.settings import shown

        click.echo("\n".join(shown(config, target=targets, select=select, ignore=ignore)))
        return
    machines = targets_of(targets or config.target)
    config = settled(config, machines)
    kinds = outputs_of(outputs)
    if add_ignore is not None and remove_unused_ignores:
        raise UserError("'--add-ignore' and '--remove-unused-ignores' are two steps: use one at a time.")
    if stdin_filename is not None and (add_ignore is not None or remove_unused_ignores):
        raise UserError("what comes from standard input cannot be edited: name files.")
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
        shard=_shard(shard, evidence=evidence, prove=prove, stdin=stdin_filename),
        changed=_changed(changed),
    )
    if show_files:
        from portlint.run import tasks_of
        from portlint.settings import files, idle_patterns

        found = tasks_of(request)[0]
        click.echo("".join(f"{line}\n" for line in files(config, machines, found)), nl=False)
        for sentence in idle_patterns(config, found):
            click.echo(f"portlint: {sentence}", err=True)
        return
    if (fixes or diff) and changed is not None:
        raise UserError("fixes mend whole files: leave out '--changed', or name the files.")
    if diff:
        from portlint.cli.mend import show_diff

        sys.exit(show_diff(request, unsafe=unsafe_fixes) and not exit_zero)
    cache = Cache(cache_dir) if cache_dir else of_folder(config.root)
    options = (evidence, baseline, no_baseline, prove, None if no_cache else cache)
    report = _checked(request, *options, mends=("unsafe" if unsafe_fixes else "safe") if fixes else None)
    if add_ignore is not None or remove_unused_ignores:
        from portlint.cli.mend import comments

        problems = comments(request, report, add_ignore)
        report = _checked(msgspec.structs.replace(request, changed=_changed(changed)), *options)
        report = msgspec.structs.replace(report, problems=tuple(sorted((*report.problems, *problems))))
    write(report, kinds, color)
    if not report.summary.files and not report.problems:
        others = ": all of them are for other targets" if report.unchecked else ""
        click.echo(f"portlint: no files to check{others}", err=True)
    sys.exit(0 if exit_zero else status(report, fail_on or config.fail_on))


def _checked(
    request: Request,
    evidence: Path | None,
    baseline: Path | None,
    no_baseline: bool,
    prove: bool,
    cache: Cache | None,
    *,
    mends: Mends | None = None,
) -> Report:
    """What is to be reported: the findings of a run less those that are known or on other lines, with evidence."""
    from portlint.run import run

    if mends is None:
        report = run(request, progress_line(), cache)
        if cache is not None and cache.complaint:
            click.echo(f"portlint: warning: results are not kept in {cache.folder}: {cache.complaint}", err=True)
    else:
        from portlint.cli.mend import fixed

        report = fixed(request, unsafe=mends == "unsafe")
    known = None if no_baseline else _matched(report, request, baseline)
    if request.shard is None:  # evidence is joined, and found to be stale, with all findings at hand
        report = with_evidence(report, request.paths, evidence)
    if known is not None:
        report = _without_known(report, *known)
    if request.changed is not None:
        report = _on_changed_lines(report, request.changed)
    return _proven(report, request.targets, request.jobs) if prove else report


def _changed(ref: str | None) -> Changed | None:
    from portlint.changed import changed

    return None if ref is None else changed(ref)


def _on_changed_lines(report: Report, changed: Changed) -> Report:
    import msgspec

    return msgspec.structs.replace(report, findings=tuple(one for one in report.findings if changed.has(one)))


def _matched(report: Report, request: Request, named: Path | None) -> tuple[Matched, Path] | None:
    """What the baseline has of a report, and where it is; None where there is none."""
    from portlint import baseline

    place = baseline.place(request.config, named)
    if not (named or request.config.baseline or place.is_file()):
        return None
    return baseline.match(report.findings, baseline.read(place), request, report), place


def _without_known(report: Report, matched: Matched, place: Path) -> Report:
    """The report without what the baseline has; `report` may have learned of evidence since they were matched."""
    import msgspec

    from portlint import baseline

    known = {one.order for one in matched.known}
    new = tuple(one for one in report.findings if one.order not in known)
    return baseline.apply(report, msgspec.structs.replace(matched, new=new), place)


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

    entries = [one for one in read(place) if report.asks(one.rule, one.target, one.path)]
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


def _shard(text: str | None, *, evidence: Path | None, prove: bool, stdin: str | None) -> tuple[int, int] | None:
    from portlint.shard import parse

    if text is None:
        return None
    if evidence is not None:
        raise UserError("evidence is joined to whole runs: give '--evidence' to 'portlint merge'.")
    if prove or stdin is not None:
        raise UserError(f"'--shard' does not go with '{'--prove' if prove else '--stdin-filename'}'.")
    return parse(text)


def outputs_of(texts: tuple[str, ...]) -> list[tuple[str, Path | None]]:
    """Each output format and the file that it goes to, None for standard output. Raises UserError."""
    return [_output(text) for text in texts] or [("full", None)]


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


def write(report: Report, outputs: list[tuple[str, Path | None]], color: str) -> None:
    """Write a report in each of these formats."""
    for kind, file in outputs:
        _write(report, kind, file, color)


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


def status(report: Report, fail_on: str) -> int:
    """The exit status: 1 if a finding is at least as bad as the verdict `fail_on`."""
    from portlint.finding import Verdict

    floor = Verdict(fail_on).rank
    is_unmet = any(problem.kind == "expect" for problem in report.problems)
    return int(is_unmet or any(finding.verdict.rank <= floor for finding in report.findings))
