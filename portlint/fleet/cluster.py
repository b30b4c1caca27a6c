"""The cluster that does the jobs of a fleet: one of this machine's processors, or one that somebody runs already."""

from __future__ import annotations

import logging
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from portlint import __version__
from portlint.mistake import Mistake

if TYPE_CHECKING:
    from distributed import Client

_SILENT = logging.CRITICAL + 1
_LEAN = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.gil.enabled": False,
}
"""Dask watches itself a hundred times a second; on a machine of its own a scan has better use for the processor."""


class ClusterError(Mistake):
    """A cluster that cannot be reached, or that cannot run portlint."""


@contextmanager
def cluster(scheduler: str | None, jobs: int) -> Iterator[Client]:
    """A client of the scheduler at an address or, without one, of a local cluster with so many workers.

    A local cluster has ended when the block ends, and what its workers put on the disk is gone. Raises
    ClusterError.
    """
    import dask
    import distributed

    # What dies is said in the report; what distributed writes of its own ends is of no use to anybody.
    logging.getLogger("distributed").setLevel(_SILENT)
    if scheduler is None:
        with (
            dask.config.set(_LEAN),
            tempfile.TemporaryDirectory(prefix="portlint-fleet-", ignore_cleanup_errors=True) as scratch,
            distributed.LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                memory_limit=0,  # the scan runs in processes that limit themselves
                dashboard_address="127.0.0.1:0",  # any free port, for this machine alone
                local_directory=scratch,
                silence_logs=_SILENT,
                preload=[__name__],
                security=True,  # a scheduler runs what it is sent, and other users of the machine reach its port
            ) as local,
            distributed.Client(local) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(scheduler)  # waits as long as Dask's `distributed.comm.timeouts.connect` says
    except (OSError, ValueError, TypeError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise ClusterError(f"no Dask scheduler answers at {scheduler}: {said}") from error
    with client:
        _check(client)
        yield client


def dask_setup(_: object) -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the command. Dask calls this in each local worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _check(client: Client) -> None:
    """Raise ClusterError where the workers that are there have no portlint, or another one."""
    try:
        versions = client.run(_version)
    except Exception as error:
        raise ClusterError(f"the workers cannot run portlint: {error}") from error
    for worker, version in versions.items():
        if version != __version__:
            raise ClusterError(f"the worker {worker} has portlint {version}, and this is {__version__}")


def _version() -> str:
    return __version__
