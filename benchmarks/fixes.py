"""Make fixes in copies of real trees, and count what must not happen.

    python benchmarks/fixes.py FOLDER... --target cdna3 --target mps --unsafe-fixes --sample 40

Nothing is changed in place. The counts are over all folders:

- files that parse worse than before: by the grammar, or for Python by the compiler of this interpreter;
- bytes that changed although no edit covers them;
- findings of a rule that are still there although their fix was made, and findings that were not there before;
- files that a second run over those changed changes again.

`--sample N` prints N of the diffs, chosen by `--seed`, each with what was found there: read them.
"""

from __future__ import annotations

import codecs
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from portlint.cli.check import targets_of
from portlint.config import Config
from portlint.finding import FileResult
from portlint.fix import Change, Unfit, edits_of, fix, unified, write
from portlint.run import Request, scanner, tasks_of
from portlint.settings import selectors
from portlint.source.decode import decode
from portlint.source.language import by_name


class Checked(msgspec.Struct):
    """What is to be said of one file that fixes have changed."""

    change: Change
    worse: bool
    outside: int
    """bytes that differ and are in no edit"""
    left: Counter[str]
    """rule -> findings that are there although they were mended"""
    new: Counter[str]
    """rule -> findings that were not there before"""


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--target", "targets", multiple=True, required=True)
@click.option("--select", multiple=True, help="Only these rules.")
@click.option("--unsafe-fixes", is_flag=True)
@click.option("--sample", default=0, help="How many diffs to print.")
@click.option("--seed", default=0)
@click.option("--jobs", "-j", type=int)
@click.option("--diffs", type=click.Path(path_type=Path), help="Write every diff into this folder, too.")
def main(
    folders: tuple[Path, ...],
    targets: tuple[str, ...],
    select: tuple[str, ...],
    unsafe_fixes: bool,
    sample: int,
    seed: int,
    jobs: int | None,
    diffs: Path | None,
) -> None:
    """Mend copies of all folders and print the counts."""
    machines = targets_of(targets)
    checked: list[Checked] = []
    again = 0
    problems: Counter[str] = Counter()
    for folder in folders:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place) / folder.name
            shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            request = Request(
                paths=(str(copy),), targets=machines, config=Config(), select=selectors(select, machines), jobs=jobs
            )
            outcome = fix(request, unsafe=unsafe_fixes)
            here = [check(request, one) for one in outcome.changes]
            for problem in outcome.problems:
                problems[problem.message] += 1
                click.echo(f"  {shown(problem.path, place)}: {problem.message}", err=True)
            for change in outcome.changes:
                try:
                    write(change)
                except Unfit as reason:
                    problems[f"not written: {reason}"] += 1
            if outcome.changes:
                mended = msgspec.structs.replace(request, paths=tuple(change.file for change in outcome.changes))
                second = fix(mended, unsafe=unsafe_fixes)
                for change in second.changes:
                    click.echo(f"  changed again: {shown(change.path, place)}", err=True)
                again += len(second.changes)
            renamed = [msgspec.structs.replace(one.change, path=shown(one.change.path, place)) for one in here]
            checked += [msgspec.structs.replace(one, change=change) for one, change in zip(here, renamed, strict=True)]
        click.echo(f"{folder.name}: {len(here)} files, {time.monotonic() - started:.0f} s", err=True)
    if diffs is not None:
        diffs.mkdir(parents=True, exist_ok=True)
        for one in checked:
            (diffs / (one.change.path.replace("/", "+") + ".diff")).write_bytes(as_read(one))
    for line in summary(checked, again, problems):
        click.echo(line)
    chosen = random.Random(seed).sample(checked, min(sample, len(checked)))
    for one in chosen:
        sys.stdout.flush()
        sys.stdout.buffer.write(as_read(one))
    sys.stdout.buffer.flush()


def shown(path: str, place: str) -> str:
    """A path without the folder that holds the copies."""
    return path.rpartition(f"{Path(place).name}/")[2]


def summary(checked: list[Checked], again: int, problems: Counter[str]) -> Iterator[str]:
    """The counts, one a line."""
    made: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for one in checked:
        places = {(*found.order[:-1], found.safe) for made_at_once in one.change.rounds for found in made_at_once}
        made.update(f"{place[5]} ({'safe' if place[6] else 'unsafe'})" for place in places)
        files.update({f"{place[5]} ({'safe' if place[6] else 'unsafe'})" for place in places})
    left: Counter[str] = sum((one.left for one in checked), Counter())
    new: Counter[str] = sum((one.new for one in checked), Counter())
    yield f"files changed: {len(checked)}"
    yield f"fixes made: {sum(made.values())}"
    yield f"files that parse worse: {sum(one.worse for one in checked)}"
    yield f"files that a second run changes: {again}"
    yield f"findings left where a fix was made: {left.total()} {dict(left) or ''}"
    yield f"findings that were not there before: {new.total()} {dict(new) or ''}"
    yield f"bytes changed outside of edits: {sum(one.outside for one in checked)}"
    yield "left alone: " + (", ".join(f"{count} ({why})" for why, count in problems.most_common()) or "none")
    for rule, count in made.most_common():
        yield f"{count:6} in {files[rule]:4} files  {rule}"
    for one in checked:
        if one.worse or one.outside or one.left or one.new:
            why = [*("parses worse" for _ in range(one.worse)), *(f"left {rule}" for rule in one.left)]
            yield f"  {one.change.path}: {', '.join([*why, *(f'new {rule}' for rule in one.new)])}"


def check(request: Request, change: Change) -> Checked:
    """What fixes have done to a file, found out without what made them."""
    before, after = (measured(request, change, data) for data in (change.before, change.after))
    had, has = (Counter((one.rule, one.target) for one in result.findings) for result in (before, after))
    made = Counter((one.rule, one.target) for made_at_once in change.rounds for one in made_at_once)
    left: Counter[str] = Counter()
    new: Counter[str] = Counter()
    for (rule, target), count in has.items():
        gone = had[rule, target] - count
        if gone < 0:
            new[rule] += -gone
        left[rule] += max(0, made[rule, target] - max(gone, 0)) if count else 0
    worse = after.broken > before.broken or not after.analysed or (compiles(change.before) > compiles(change.after))
    return Checked(change, worse and by_name(change.path) is not None, outside(change), +left, new)


def measured(request: Request, change: Change, data: bytes) -> FileResult:
    """The scan of a file with other content, by all rules and in this process."""
    one = msgspec.structs.replace(request, paths=(change.file,), select=())
    (found,) = tasks_of(one)[0]
    return scanner(one, {found.file: data}, measures=True)(found, frozenset(), lambda _: None)


def compiles(data: bytes) -> bool:
    """Whether this interpreter takes a text for Python; it is not run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(data, "text", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
    return True


def outside(change: Change) -> int:
    """How many bytes differ from what the edits say, each made here once more in the encoding of the file."""
    kind = by_name(change.path) or ""
    data = change.before
    for made in change.rounds:
        if kind == "notebook":
            mark, text, encoding = data[: 3 * data.startswith(codecs.BOM_UTF8)], data, "utf_8"
            text = data[len(mark) :]
        else:
            decoded = decode(data, kind)
            text, encoding = decoded.text, decoded.encoding
            mark = data[: len(data) - len(text.decode().encode(encoding))]
        parts, at = [mark], 0
        for edit in edits_of(made):
            if edit.start < at:
                return len(data)
            parts += [text[at : edit.start].decode().encode(encoding), edit.text.encode(encoding)]
            at = edit.end
        data = b"".join([*parts, text[at:].decode().encode(encoding)])
    return sum(one != other for one, other in zip(data, change.after, strict=False)) + abs(
        len(data) - len(change.after)
    )


def as_read(one: Checked) -> bytes:
    """A diff under what was found."""
    found = (
        f"# {finding.rule} @ {finding.target} ({finding.fix}) line {finding.line}: {finding.message}\n"
        for made in one.change.rounds
        for finding in made
    )
    return b"\n" + "".join(dict.fromkeys(found)).encode(errors="replace") + unified(one.change)


if __name__ == "__main__":
    main()
