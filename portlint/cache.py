"""Results of earlier runs, kept in a folder, so that what has not changed is not analysed again.

A result is looked up by all that it was made from: this portlint, rules, targets and settings, the bytes of the file,
and, if the analysis asked for other files, the state of the whole project. What cannot be read again counts for
nothing, and what cannot be written is said once: a run finds the same with a cache and without.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from portlint import __version__
from portlint.finding import FileResult
from portlint.mistake import Mistake
from portlint.source import nearby

if TYPE_CHECKING:
    from portlint.rule import Rule
    from portlint.run import Request
    from portlint.source.discover import Found

FOLDER = ".portlint_cache"
_DATABASE = "results-1.sqlite"
"""the number is that of its tables"""
_TAG = "CACHEDIR.TAG"
_TAGGED = """\
Signature: 8a477f597d28d172789f06886806bc55
# Results of portlint, which 'portlint clean' removes. What such a tag says: https://bford.info/cachedir/
"""
_TABLES = """
CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, content BLOB, sum BLOB, used INT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (path BLOB PRIMARY KEY, size INT, time INT, digest BLOB) WITHOUT ROWID;
"""
_LARGEST_FILE = 1 << 20
"""bytes; beside the file at hand, the analysis reads no larger one"""
_FRESH_SECONDS = 2.0
"""a file that was written so recently may change again without a new time"""
_KEPT_DAYS = 14
"""after which a result that nobody asked for is dropped"""
_WAIT_SECONDS = 5.0
"""for another portlint that writes"""
_NO_CODE = frozenset(
    ".bin .csv .gif .html .jpeg .jpg .json .jsonl .lock .log .md .npy .npz .parquet .pdf .png .pt .pth .rst"
    " .safetensors .sarif .svg .tsv .xlsx .xml".split()
)
_OF_THE_MACHINE = ("rule", "timeout")
"""problems that another run, on a machine with less to do, may not have"""
_AT_ONCE = 500
"""keys that one statement asks for"""

State: TypeAlias = tuple[int, int]
"""the size of a file in bytes, and when it was written, in nanoseconds"""


class CacheError(Mistake):
    """A folder that is no cache of portlint's."""


class Cache:
    """The results in a folder, for one run: `known` before it, `keep` after it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.complaint = ""
        """why results could not be kept, for people"""
        self._files = _Files()
        self._made_from = b""
        self._asked: list[bytes] = []

    def known(self, tasks: Sequence[Found], request: Request, rules: Sequence[Rule]) -> list[FileResult | None]:
        """The result of each file, where it is known."""
        self._made_from = _made_from(request, rules)
        try:
            with closing(self._open("ro")) as rows:
                self._files.remembered = {
                    os.fsdecode(path): ((size, written), digest)
                    for path, size, written, digest in rows.execute("SELECT * FROM files")
                }
                keys = [list(self._keys(found).values()) for found in tasks]
                results = _results(rows, [key for both in keys for key in both])
        except (sqlite3.Error, TypeError, ValueError):  # none is there, or it is broken
            return [None] * len(tasks)
        self._asked = list(results)
        return [next((results[key] for key in both if key in results), None) for both in keys]

    def keep(self, tasks: Sequence[Found], results: Iterable[FileResult]) -> None:
        """Keep the results of files that are still what they were when `known` was asked."""
        before = self._files
        self._files = _Files(before.remembered)  # looks again
        by_path = {result.path: result for result in results}
        kept: list[tuple[bytes, bytes, bytes, int]] = []
        for found in tasks:
            result = by_path.get(found.path)
            whole = result is not None and not any(one.kind in _OF_THE_MACHINE for one in result.problems)
            key = self._keys(found).get(result.rests_on) if result is not None and whole else None
            if key is not None and before.agrees_with(self._files, found.file):
                content = msgspec.msgpack.encode(result)
                kept.append((key, content, _sum(key, content), _today()))
        try:
            self._write(kept)
        except sqlite3.OperationalError as error:  # another one writes, or nothing can be written there
            self.complaint = str(error)
        except sqlite3.DatabaseError:
            self._remove_broken()
        except OSError as error:
            self.complaint = error.strerror or str(error)

    def _keys(self, found: Found) -> dict[str, bytes]:
        """What the results of a file are found by: one that rests on the file alone, one that rests on its tree."""
        own = self._files.digest(found.file)
        if own is None:
            return {}
        root = nearby.project(found.file)
        place = os.path.relpath(found.file, root) if root is not None else ""
        parts = (self._made_from, os.fsencode(found.path), found.kind.encode(), os.fsencode(place), own)
        keys = {"file": _digest(*parts)}
        if root is not None:
            keys["tree"] = _digest(*parts, os.fsencode(os.path.relpath(root)), self._files.tree(root))
        return keys

    def _open(self, mode: str) -> sqlite3.Connection:
        place = f"{(self.folder / _DATABASE).absolute().as_uri()}?mode={mode}"
        rows = sqlite3.connect(place, uri=True, timeout=_WAIT_SECONDS)
        rows.execute("PRAGMA trusted_schema = OFF")  # the file may be somebody else's
        return rows

    def _write(self, results: list[tuple[bytes, bytes, bytes, int]]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / _TAG).exists():
            (self.folder / ".gitignore").write_text("*\n")
            (self.folder / _TAG).write_text(_TAGGED)
        today = _today()
        with closing(self._open("rwc")) as rows:
            rows.executescript(_TABLES)
            with rows:
                rows.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", results)
                rows.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", self._files.settled())
                asked = ((today, key, today) for key in self._asked)
                rows.executemany("UPDATE results SET used = ? WHERE key = ? AND used < ?", asked)
                rows.execute("DELETE FROM results WHERE used < ?", (today - _KEPT_DAYS,))

    def _remove_broken(self) -> None:
        """Do without a database that cannot be read; the next run makes a new one."""
        try:
            (self.folder / _DATABASE).unlink(missing_ok=True)
        except OSError as error:
            self.complaint = error.strerror or str(error)


class _Files:
    """What files hold: by their size and time where an earlier run has read them, else by reading them."""

    def __init__(self, remembered: dict[str, tuple[State, bytes]] | None = None) -> None:
        self.remembered = remembered or {}
        self._read: dict[str, tuple[State, bytes]] = {}
        self._trees: dict[str, bytes] = {}

    def digest(self, file: str, found: os.stat_result | None = None) -> bytes | None:
        """What stands for the content of a file; None where it is no file that can be read."""
        path = os.path.abspath(file)
        if path not in self._read:
            try:
                state = _state(found or os.stat(path, follow_symlinks=False))
                self._read[path] = state, self._known(path, state) or _hashed(path)
            except OSError:
                return None
        return self._read[path][1]

    def tree(self, root: str) -> bytes:
        """What stands for the names below a folder, and for the contents of all files that the analysis may read."""
        if root not in self._trees:
            whole = hashlib.sha256()
            for path, found in sorted(_below(root), key=itemgetter(0)):
                content = self.digest(path, found) if _may_be_read(path, found.st_size) else None
                whole.update(_digest(os.fsencode(path.removeprefix(root)), content or b""))
            self._trees[root] = whole.digest()
        return self._trees[root]

    def agrees_with(self, later: _Files, file: str) -> bool:
        """Whether a file, and the tree around it, were the same when this and when `later` looked."""
        root = nearby.project(file)
        same_tree = root is None or self.tree(root) == later.tree(root)
        return same_tree and self.digest(file) == later.digest(file)

    def settled(self) -> Iterator[tuple[bytes, int, int, bytes]]:
        """The rows of the files that were read, those left out that were written a moment ago."""
        latest = time.time_ns() - int(_FRESH_SECONDS * 1e9)
        for path, ((size, written), digest) in self._read.items():
            if written < latest and self.remembered.get(path) != ((size, written), digest):
                yield os.fsencode(path), size, written, digest

    def _known(self, path: str, state: State) -> bytes | None:
        then, digest = self.remembered.get(path, (None, None))
        return digest if then == state else None


def place(folder: str | None) -> Path:
    """Where results are kept below a folder, that of the configuration; None for the working directory."""
    return Path(folder or ".") / FOLDER


def clean(folder: Path) -> bool:
    """Remove a cache; False where there is none. Raises CacheError for a folder that is no cache, and OSError."""
    if not folder.exists():
        return False
    if not (folder / _TAG).is_file() or folder.is_symlink():
        raise CacheError(f"{folder} is no cache of portlint's: it has no {_TAG}. Nothing was removed.")
    shutil.rmtree(folder)
    return True


def _made_from(request: Request, rules: Sequence[Rule]) -> bytes:
    """What the results of a run depend on beside the files: the program, the rules, the targets and the settings."""
    from portlint.run import names
    from portlint.source.prescan import Limits

    known = names(request)
    others = [rule.home for rule in rules if rule.home is not None]
    config = msgspec.to_builtins(request.config)
    parts: list[object] = [
        __version__, _program(), _grammars(), [_of_folder(str(home)).hex() for home in sorted(set(others))],
        [rule.name for rule in rules], [target.profile for target in request.targets],
        sorted(known.rules), known.targets,
        [list(map(str, request.select)), list(map(str, request.ignore))],
        {key: value for key, value in config.items() if key not in ("file", "baseline", "fail-on")},
        os.path.relpath(request.config.root or "."), Limits(),
    ]  # fmt: skip
    return _digest(msgspec.json.encode(parts, order="deterministic"))


@cache
def _program() -> str:
    """What tells one state of a checkout from the next; a release is told by its version."""
    package = Path(__file__).parent
    return _of_folder(str(package)).hex() if (package.parent / "pyproject.toml").is_file() else ""


@cache
def _grammars() -> list[str]:
    """The versions of the parser and its grammars, by the names of their folders of metadata."""
    spec = find_spec("tree_sitter")
    beside = os.path.dirname(os.path.dirname(spec.origin or "")) if spec is not None else ""
    names = os.listdir(beside) if beside else []
    return sorted(name for name in names if name.startswith("tree_sitter") and name.endswith("-info"))


def _of_folder(folder: str) -> bytes:
    """The names, sizes and times of the files of a folder."""
    found = sorted((path.removeprefix(folder), *_state(found)) for path, found in _below(folder))
    return _digest(msgspec.json.encode(found))


def _may_be_read(path: str, size: int) -> bool:
    """Whether the analysis of another file may read a file; reports and data change without a change of the code."""
    return size <= _LARGEST_FILE and os.path.splitext(path)[1].lower() not in _NO_CODE


def _below(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The regular files below a folder; folders that are hidden, or hold what Python compiled, are left out."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name != "__pycache__":
                    yield from _below(entry.path)
            elif stat.S_ISREG((found := entry.stat(follow_symlinks=False)).st_mode):
                yield entry.path, found
        except OSError:
            continue


def _results(rows: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, FileResult]:
    """The results by these keys; one that is not what was written is none."""
    found: dict[bytes, FileResult] = {}
    decode = msgspec.msgpack.Decoder(FileResult).decode
    for first in range(0, len(keys), _AT_ONCE):
        some = keys[first : first + _AT_ONCE]
        marks = ", ".join("?" * len(some))
        query = f"SELECT key, content, sum FROM results WHERE key IN ({marks})"  # noqa: S608  (question marks alone)
        for key, content, checked in rows.execute(query, some):
            if checked == _sum(key, content):
                try:
                    found[key] = decode(content)
                except msgspec.MsgspecError:
                    continue
    return found


def _hashed(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _state(found: os.stat_result) -> State:
    return found.st_size, found.st_mtime_ns


def _digest(*parts: bytes) -> bytes:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little") + part)
    return whole.digest()


def _sum(key: bytes, content: bytes) -> bytes:
    return _digest(key, content)


def _today() -> int:
    """The day, counted from 1970."""
    return int(time.time() // 86_400)
