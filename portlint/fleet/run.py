"""A run over a fleet: jobs out to the cluster, replies in, and what became of each repository into the folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from portlint import __version__
from portlint.finding import Problem, Report, Verdict
from portlint.fleet.cluster import ClusterError
from portlint.fleet.folder import Repository, State, file_of, write_report
from portlint.fleet.job import Job, Options, Reply, work
from portlint.fleet.listing import Checkout
from portlint.shard import joined

if TYPE_CHECKING:
    from distributed import Client, Future

Told = Callable[[Repository, int, int], None]
"""called with each repository that is done, how many are, and how many there are"""


class _Pending:
    """A repository on its way: what is back of it, and what is not."""

    def __init__(self, checkout: Checkout) -> None:
        self.checkout = checkout
        self.replies: dict[int, Reply] = {}
        """by the number of the slice"""
        self.slices = 1
        self.commit = ""

    @property
    def done(self) -> bool:
        return len(self.replies) == self.slices


def run(
    client: Client, checkouts: Sequence[Checkout], options: Options, folder: Path, told: Told
) -> tuple[Repository, ...]:
    """Check all checkouts, write the reports into the folder, and return what there is of each, sorted by name.

    A worker that dies costs the job that it had, which another one does again. Whatever is wrong with a repository is
    said of it, and the run goes on. Raises ClusterError where the scheduler is lost.
    """
    return _Run(client, options, folder, told).run(checkouts)


class _Run:
    def __init__(self, client: Client, options: Options, folder: Path, told: Told) -> None:
        self._client = client
        self._options = options
        self._folder = folder
        self._told = told
        self._jobs: dict[str, tuple[_Pending, int]] = {}
        """key of a future -> its repository, and the number of its slice"""

    def run(self, checkouts: Sequence[Checkout]) -> tuple[Repository, ...]:
        from distributed import as_completed

        done: list[Repository] = []
        # A future that nobody holds is a job that nobody wants: `queue` holds those that are not done.
        queue = as_completed([self._submit(_Pending(one), None) for one in checkouts])
        for future in queue:
            pending, number = self._jobs.pop(future.key)
            reply = self._reply(future, pending, number)
            future.release()
            if reply.slices > 1:
                pending.slices, pending.commit = reply.slices, reply.commit
                for index in range(1, reply.slices + 1):
                    queue.add(self._submit(pending, index))
                continue
            pending.replies[number] = reply
            if pending.done:
                done.append(self._finish(pending))
                self._told(done[-1], len(done), len(checkouts))
        return tuple(sorted(done, key=lambda one: one.name))

    def _submit(self, pending: _Pending, index: int | None) -> Future:
        """Hand out a whole checkout, or one of its slices."""
        one = pending.checkout
        part = None if index is None else (index, pending.slices)
        job = Job(one.source, one.is_url, (pending.commit if index else "") or one.ref, self._options, part)
        # What is large was noticed late and takes long: its slices go before what has not begun.
        priority = 0 if index is None else 1
        future = self._client.submit(work, msgspec.msgpack.encode(job), pure=False, priority=priority)
        self._jobs[future.key] = pending, index or 1
        return future

    def _reply(self, future: Future, pending: _Pending, number: int) -> Reply:
        """What came back. Raises ClusterError where it is the cluster that failed."""
        from distributed import KilledWorker

        try:
            content: bytes = future.result()
            reply = msgspec.msgpack.decode(content, type=Reply)
        except KilledWorker:
            what = "it" if pending.slices == 1 else f"slice {number} of {pending.slices}"
            return Reply(error=f"{what} killed the worker that read it, again and again")
        except Exception as error:
            if future.cancelled() or self._client.status != "running":
                raise ClusterError("the connection to the Dask scheduler was lost") from error
            return Reply(error=f"its worker failed: {type(error).__name__}: {error}"[:500])
        if reply.version != __version__:
            return Reply(error=f"its worker has portlint {reply.version}, and this is {__version__}")
        return reply

    def _finish(self, pending: _Pending) -> Repository:
        """Write what was found of a repository, and say what there is."""
        one = pending.checkout
        replies = [pending.replies[number] for number in sorted(pending.replies)]
        reports = [reply.report for reply in replies if reply.report is not None]
        errors = list(dict.fromkeys(reply.error for reply in replies if reply.error))
        if len({report.shard.run for report in reports if report.shard}) > 1:
            errors.append("its files changed while they were read: what was found does not fit together")
        about: dict[str, Any] = {
            "name": one.name,
            "place": one.place,
            "ref": one.ref,
            "commit": pending.commit or replies[0].commit,
            "error": "; ".join(errors),
            "slices": pending.slices,
        }
        if not reports:
            return Repository(**about, state=State.FAILED, status=2)
        report = joined(reports) if pending.slices > 1 else reports[0]
        if errors:
            missing = [Problem(".", 0, "skipped", error) for error in errors]
            report = msgspec.structs.replace(report, problems=tuple(sorted((*report.problems, *missing))))
        file = file_of(one.name)
        write_report(self._folder, file, report)
        return Repository(
            **about,
            state=State.INCOMPLETE if errors else State.CHECKED,
            file=file,
            status=2 if errors else max(reply.status for reply in replies),
            files=report.summary.files,
            lines=report.summary.lines,
            skipped=report.summary.skipped,
            suppressed=report.summary.suppressed,
            baselined=report.summary.baselined,
            problems=len(report.problems),
            verdicts=_verdicts(report),
        )


def _verdicts(report: Report) -> Mapping[str, Mapping[Verdict, int]]:
    counts = Counter((finding.target, finding.verdict) for finding in report.findings)
    return {
        target: {verdict: counts[target, verdict] for verdict in Verdict if counts[target, verdict]}
        for target in report.targets
    }
