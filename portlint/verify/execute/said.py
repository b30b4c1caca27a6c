"""What a run says to people, and to those who read its exit status."""

from __future__ import annotations

from collections.abc import Iterator

from portlint.verify.execute.running import Run, Seen

CLEAN, FAULT, NO_ANSWER = 0, 1, 2


def lines(run: Run) -> Iterator[str]:
    """A line for each thing that was seen, and the sum."""
    for one in run.seen:
        place = f"{one.path}:{one.line}" if one.line else run.file
        caught = "; the file caught it" if one.caught else ""
        yield f"{place}: {one.kind}: {words(one)}{caught}"
    yield f"{run.target.name}: {run.file}: {', '.join(_sum(run))}"


def words(one: Seen) -> str:
    """What was seen, and how often."""
    return one.words + (f" ({one.count} times)" if one.count > 1 else "")


def status(run: Run) -> int:
    """The exit status: whether the file met something that the target does not do."""
    if run.faults:
        return FAULT
    return CLEAN if run.status == 0 and run.simulated else NO_ANSWER


def _sum(run: Run) -> Iterator[str]:
    if run.of("missing"):
        yield "did not run"
        return
    if run.status is None:
        yield f"stopped after {run.seconds:.0f} s"
    elif run.status == 0:
        yield "ran through"
    else:
        yield "ended at a fault" if run.faults else f"ended with status {run.status}"
    if not run.simulated:
        yield f"nothing was simulated: it imported no framework that portlint simulates for {run.target.title}"
        return
    yield f"{len(run.faults) or 'no'} fault{'' if len(run.faults) == 1 else 's'}"
    for kind, many in (("sync", "syncs"), ("compile", "compilations")):
        if found := run.of(kind):
            total = sum(one.count for one in found)
            places = len({(one.path, one.line) for one in found})
            yield f"{total} {many if total > 1 else many[:-1]} at {places} line{'s' if places > 1 else ''}"
    yield f"simulated with {', '.join(run.simulated)}"
