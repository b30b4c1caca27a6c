"""Clones for a scan: one commit of a git repository, without its history, its submodules and whatever git could run.

Hooks, templates, monitors of the file system and large-file filters stay off, nothing asks for credentials, and the
transports are https, ssh and file alone: `ext::` would run a program that the URL names.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from portlint.fleet.listing import without_password
from portlint.mistake import Mistake
from portlint.source.discover import printable_path

PROTOCOLS = ("https", "ssh", "file")
SECONDS = 1800
"""for one command of git; a fetch that stalls ends sooner"""

_HARMLESS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "http.lowSpeedLimit": "1000",  # bytes per second, over the time below
    "http.lowSpeedTime": "60",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
    "init.defaultBranch": "main",
}
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS),
    "GIT_LFS_SKIP_SMUDGE": "1",
}
_FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
"""variables that would turn git to another repository, as it sets them for its hooks"""


class CloneError(Mistake):
    """A repository that cannot be fetched; the message is what git says."""


def clone(url: str, ref: str, folder: Path) -> str:
    """Put one commit of a repository into an empty folder and return its name. Raises CloneError.

    `ref` is a branch, a tag or the whole name of a commit; "" is what the repository itself has checked out.
    """
    _git(["init", "--quiet", "--template=", "."], folder)
    options = ["--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-auto-gc"]
    _git(["fetch", *options, "--end-of-options", url, ref or "HEAD"], folder, url)
    _git(["checkout", "--quiet", "--detach", "FETCH_HEAD"], folder)
    return commit(folder)


def commit(folder: Path) -> str:
    """The commit that a folder has checked out, "" where git cannot say."""
    try:
        return _git(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], folder).strip()
    except CloneError:
        return ""


def _git(arguments: Sequence[str], folder: Path, url: str = "") -> str:
    """What git answers. Raises CloneError where it fails; `url` is not shown with its password."""
    settings = [part for key, value in _HARMLESS.items() for part in ("-c", f"{key}={value}")]
    environment = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(  # noqa: S603
                ["git", "--no-pager", *settings, *arguments],  # noqa: S607
                cwd=folder,
                env={**environment, **_ENVIRONMENT},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,  # without a terminal, ssh cannot ask for a password either
            )
        except FileNotFoundError:
            raise CloneError("there is no program 'git'") from None
        try:
            answer, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise CloneError(f"git {arguments[0]} did not end within {SECONDS:,} seconds") from None
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        said.seek(0)
        words = " ".join(said.read(20_000).decode(errors="replace").split())
    if process.returncode:
        words = words or f"git {arguments[0]} ended with status {process.returncode}"
        shown = words.replace(url, without_password(url)) if url else words
        raise CloneError(printable_path(shown.removeprefix("fatal: "))[:300])
    return answer.decode(errors="replace")
