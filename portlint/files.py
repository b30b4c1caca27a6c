"""Files: replaced in one step, read only if they are regular, and read with their shape and version checked."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from portlint.mistake import Mistake

T = TypeVar("T")


_CAREFULLY = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))


def read_regular(path: str, most: int) -> bytes:
    """The first `most` bytes of a regular file. Raises OSError, also for a link.

    Reading a pipe or a device may block for ever, and a name can come to mean one after it was looked at.
    """
    descriptor = os.open(path, _CAREFULLY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)


def replace(path: Path | str, content: bytes) -> None:
    """Write a file, whole or not at all; one that is there keeps its mode and owner, and a link stays one.

    Raises OSError. Ctrl-C and SIGTERM wait until it is done, so that nothing half written is left. What is there and is
    no regular file, such as a pipe or `/dev/stdout`, is written to.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as stream:
            stream.write(content)
        return
    place = os.path.realpath(path)
    folder, name = os.path.split(place)
    part = os.path.join(folder, f".{name}.{os.getpid()}.part")
    with interrupts_held():
        try:
            with open(part, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if os.path.exists(place):
                _keep_owner(place, part)
                shutil.copymode(place, part)
            os.replace(part, place)
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            raise


def _keep_owner(place: str, part: str) -> None:
    """Give a file the owner of another, where that is another one: root rewrites files of users."""
    old, new = os.stat(place), os.stat(part)
    if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with suppress(OSError):
            os.chown(part, old.st_uid, old.st_gid)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait, where a system can, so that they come between two steps and not within one."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def read_json(path: Path, kind: type[T], what: str, *, error: type[Mistake], version: int = 1, hint: str = "") -> T:
    """A JSON file of a struct with a `version`. `what` names it; raises `error` where it is no such file."""
    try:
        if path.is_char_device() or path.is_block_device():  # which may never end
            raise error(f"cannot read {path}: it is a device.{hint}")
        found: Any = msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as reason:
        raise error(f"cannot read {path}: {reason.strerror}.{hint}") from reason
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as reason:
        raise error(f"{path} is no {what}: {reason}") from reason
    if found.version != version:
        raise error(f"{path} has version {found.version} of the {what}; this portlint reads {version}.")
    return found  # type: ignore[no-any-return]
