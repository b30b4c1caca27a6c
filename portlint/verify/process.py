"""Runs compilers and kernels: always a process of its own, with a time limit, and ended with all that it started."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

_MOST_OUTPUT = 1 << 20
"""characters that are kept of each stream"""
_GRACE_SECONDS = 5.0
"""for what is left of a process that was ended; a device that hangs in the kernel keeps its process longer"""


class Ended(msgspec.Struct, frozen=True):
    """A process that has ended, or was ended."""

    command: str
    """as a shell would take it"""
    status: int | None
    """the exit status, negative for a signal; None if the time ran out"""
    out: str
    err: str
    seconds: float


def run(
    command: Sequence[str],
    *,
    seconds: float,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    text: str = "",
) -> Ended:
    """Run a command and wait for it, `seconds` of wall time at most.

    It leads a process group, which is killed at the end: what it started does not outlive it. What cannot be killed,
    as a process that waits for a hung device, is left behind. Raises OSError where the program cannot be started.
    """
    started = time.monotonic()
    process = subprocess.Popen(  # noqa: S603  (nothing of the linted tree; the caller names the program)
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        text=True,
        errors="replace",
        start_new_session=True,
    )
    status: int | None
    out = err = ""
    try:
        out, err = process.communicate(text, timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        status = None
    finally:
        _end(process)
    if status is None:
        with suppress(subprocess.TimeoutExpired):
            out, err = process.communicate(timeout=_GRACE_SECONDS)
    return Ended(shlex.join(command), status, out[:_MOST_OUTPUT], err[:_MOST_OUTPUT], time.monotonic() - started)


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
