"""Paths of the command line -> the files to analyse, and what was seen and left out."""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from portlint.finding import Problem
from portlint.mistake import Mistake
from portlint.source.language import by_name

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

DEFAULT_EXCLUDE = (
    ".git/",
    ".hg/",
    ".svn/",
    "node_modules/",
    "__pycache__/",
    ".venv/",
    "venv/",
    ".tox/",
    ".nox/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".pytest_cache/",
    "dist/",
    "site-packages/",
    ".eggs/",
)
"""What is left out unless the configuration says otherwise. `build/` is not here: many trees keep sources in it."""

_MOST_STARS = 4
"""In one pattern. Each run of stars multiplies the time that a hostile file name can cost."""
_LONGEST_GITIGNORE = 1 << 20


class Found(msgspec.Struct, frozen=True):
    """A file to analyse."""

    path: str
    """as reported: relative to the working directory with forward slashes, absolute outside it; always printable"""
    file: str
    """the regular file to open, absolute and with links resolved; bytes that are not UTF-8 are surrogate escapes"""
    size: int
    """in bytes"""
    kind: str
    """what the name says (see `language.by_name`); "" for a file that was named and whose name says nothing"""


class Discovery(msgspec.Struct, frozen=True):
    """What there is to analyse, sorted by path, and what looked like source and was left out."""

    found: list[Found]
    problems: list[Problem]


class MissingPath(Mistake):
    """A path that was named does not exist."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no file or folder '{printable_path(path)}'")
        self.path = path


class PatternError(Mistake):
    """An exclude pattern that cannot be used; the message says which and why."""


def discover(
    paths: Sequence[str],
    *,
    exclude: Sequence[str],
    force_exclude: bool,
    respect_gitignore: bool = True,
    root: str | None = None,
    only: Container[str] | None = None,
) -> Discovery:
    """Find the source files in `paths`.

    Folders are searched; links to folders are not followed. `exclude` holds patterns in the syntax of .gitignore,
    relative to `root` (default: the working directory); `DEFAULT_EXCLUDE` applies only where it is part of them. What
    is named in `paths` is taken even if it is excluded, unless `force_exclude`. `only` has the folders that are worth
    entering, by their real paths as reports show them; None for all. Raises MissingPath, PatternError.
    """
    walk = _Walk(_Ignore(os.path.realpath(root or os.getcwd()), ignore_spec(exclude)), respect_gitignore, only)
    for path in paths:
        walk.take(path, force_exclude)
    walk.settle_links()
    return Discovery(sorted(walk.found.values(), key=lambda found: found.path), sorted(walk.problems))


def printable_path(path: str) -> str:
    r"""A path as UTF-8 text: bytes that are not UTF-8 are written `\xNN`."""
    return re.sub("[\ud800-\udfff]", _escape, path)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def reported_path(file: str) -> str:
    """An absolute path as reports show it: see `Found.path`."""
    try:
        inside = os.path.relpath(file)
    except ValueError:  # another drive
        inside = os.pardir
    outside = inside == os.pardir or inside.startswith(os.pardir + os.sep)
    return printable_path(file if outside else inside).replace(os.sep, "/")


def is_below(path: str, folder: str) -> bool:
    """Whether a path, as reports show it, is the other one or in it."""
    return folder in (".", path) or os.path.normpath(path).startswith(folder.rstrip("/") + "/")


def ignore_spec(patterns: Iterable[str]) -> GitIgnoreSpec:
    """Compile patterns in the syntax of .gitignore. Raises PatternError."""
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec([part for pattern in patterns for part in _compile(pattern).patterns])


def _compile(pattern: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    if len(re.findall(r"\*+", pattern)) > _MOST_STARS and not pattern.startswith("#"):
        raise PatternError(f"the pattern '{printable_path(pattern)}' has more than {_MOST_STARS} wildcards '*'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # re warns of `[[:alpha:]]`
            return GitIgnoreSpec.from_lines([pattern])
    except (ValueError, re.error):
        raise PatternError(f"'{printable_path(pattern)}' is not a pattern in the syntax of .gitignore") from None


class _Ignore:
    """Patterns and the folder that they are relative to."""

    def __init__(self, folder: str, spec: GitIgnoreSpec) -> None:
        self.spec = spec
        self._folder = folder
        self._prefix = folder.rstrip(os.sep) + os.sep
        # With patterns like `*`, `!*/`, `!*.cu` pathspec judges files right and folders wrong, so no folder is cut off.
        # In such a file a `!` pattern also brings back what lies in an ignored folder; git would not look there.
        self.cuts = all(pattern.include is not False for pattern in spec.patterns)

    def decide(self, path: str, *, folder: bool = False) -> bool | None:
        """Whether an absolute path is ignored; None where no pattern speaks of it."""
        if path == self._folder:
            return None
        inside = path.startswith(self._prefix)
        relative = path[len(self._prefix) :] if inside else os.path.relpath(path, self._folder)
        return self.spec.check_file(relative.replace(os.sep, "/") + "/" * folder).include

    def without(self, path: str) -> _Ignore:
        """The patterns that do not speak of this folder as a whole."""
        from pathspec import GitIgnoreSpec

        kept = [
            p for p in self.spec.patterns if _Ignore(self._folder, GitIgnoreSpec([p])).decide(path, folder=True) is None
        ]
        return _Ignore(self._folder, GitIgnoreSpec(kept))


class _Folder(msgspec.Struct, frozen=True):
    """A folder still to be searched."""

    file: str
    shown: str
    """its path in reports with a slash at the end, "" for the working directory"""
    exclude: _Ignore
    ignores: tuple[_Ignore, ...]
    """the .gitignore files that hold here, the nearest first"""
    named: bool = False


class _Walk:
    def __init__(self, exclude: _Ignore, respect_gitignore: bool, only: Container[str] | None) -> None:
        self.found: dict[str, Found] = {}
        """by the file to open, so that nothing is taken twice"""
        self.problems: set[Problem] = set()
        self._exclude = exclude
        self._respect_gitignore = respect_gitignore
        self._only = only
        self._tops: list[str] = []
        self._links: list[tuple[Found, bool]] = []
        """links to files, and whether they were named"""

    # ---- what is named ----------------------------------------------------------------------------------------------

    def take(self, path: str, force_exclude: bool) -> None:
        """Take a path of the command line: the file, or what is in the folder."""
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            raise MissingPath(path) from None
        except OSError as error:
            self._problem(printable_path(path), "read", f"cannot be read: {error.strerror}")
            return
        # `a/../b` is not `b` where `a` is a link.
        absolute = os.path.realpath(path) if os.pardir in path.split(os.sep) else os.path.abspath(path)
        shown, real = reported_path(absolute), os.path.realpath(path)
        folder = stat.S_ISDIR(status.st_mode)
        if force_exclude and self._exclude.decide(absolute, folder=folder):
            return
        if folder:
            self._search(real, shown)
        elif not stat.S_ISREG(status.st_mode):
            self._problem(shown, "skipped", "not a regular file")
        else:
            found = Found(shown, real, status.st_size, by_name(absolute) or "")
            if os.path.islink(absolute):
                self._links.append((found, True))
            else:
                self._keep(found)

    def _search(self, top: str, shown: str) -> None:
        ignores = self._above(top) if self._respect_gitignore else ()
        ignores = tuple(ignore.without(top) for ignore in ignores)
        prefix = "" if shown == "." else shown.rstrip("/") + "/"
        self._tops.append(top.rstrip(os.sep) + os.sep)
        folders = [_Folder(top, prefix, self._exclude.without(top), ignores, named=True)]
        while folders:
            folders += self._list(folders.pop())

    def _above(self, top: str) -> tuple[_Ignore, ...]:
        """The .gitignore files above a folder, up to the top of its work tree, else to the working directory."""
        above: list[str] = []
        folder = top
        while not os.path.lexists(os.path.join(folder, ".git")):
            folder, below = os.path.dirname(folder), folder
            if folder == below:  # no work tree
                here = os.path.realpath(os.getcwd())
                above = above[: above.index(here) + 1] if here in above else []
                break
            above.append(folder)
        return tuple(ignore for folder in above for ignore in self._gitignore(folder))

    # ---- what is found ----------------------------------------------------------------------------------------------

    def _list(self, folder: _Folder) -> list[_Folder]:
        """Take the files of a folder; the folders in it are returned."""
        try:
            with os.scandir(folder.file) as scan:
                entries = {entry.name: entry for entry in scan}
        except OSError as error:
            path = printable_path(folder.shown.rstrip("/") or ".")
            self._problem(path, "read", f"the folder cannot be read: {error.strerror}")
            return []
        if "CMakeCache.txt" in entries and "CMakeLists.txt" not in entries and not folder.named:
            return []  # what CMake built, beside its sources elsewhere
        ignores = () if ".git" in entries and not folder.named else folder.ignores
        if self._respect_gitignore and ".gitignore" in entries:
            ignores = (*self._gitignore(folder.file), *ignores)
        folders = []
        for name, entry in entries.items():
            path = folder.shown + printable_path(name)
            try:
                if entry.is_dir(follow_symlinks=False):
                    is_asked = self._only is None or reported_path(entry.path) in self._only
                    if is_asked and not self._ignored(entry.path, folder.exclude, ignores, folder=True):
                        folders.append(_Folder(entry.path, path + "/", folder.exclude, ignores))
                    continue
                kind = by_name(entry.path)
                linked_folder = entry.is_symlink() and entry.is_dir()
                if (kind or linked_folder) and not self._ignored(
                    entry.path, folder.exclude, ignores, folder=linked_folder
                ):
                    self._file(entry, path, kind or "")
            except OSError as error:
                self._problem(path, "read", f"cannot be read: {error.strerror}")
        return folders

    def _file(self, entry: os.DirEntry[str], path: str, kind: str) -> None:
        if not entry.is_symlink():
            if entry.is_file():
                self._keep(Found(path, entry.path, entry.stat().st_size, kind))
            else:
                self._problem(path, "skipped", "not a regular file")
        elif entry.is_file() or entry.is_dir():
            size = entry.stat().st_size
            self._links.append((Found(path, os.path.realpath(entry.path), size, kind), False))
        else:
            self._problem(path, "skipped", "a link to nothing, or to no regular file")

    def _keep(self, found: Found) -> None:
        known = self.found.setdefault(found.file, found)
        if found.path < known.path:  # the same file by another way: whatever the order, one path is reported
            self.found[found.file] = found

    def settle_links(self) -> None:
        """Take the links whose files were not found by themselves: those in the tree, and those that were named."""
        for link, named in sorted(self._links, key=lambda item: item[0].path):
            inside = any(f"{link.file}{os.sep}".startswith(top) for top in self._tops)
            if named or (inside and not os.path.isdir(link.file)):
                self.found.setdefault(link.file, link)
            elif not inside:
                self._problem(link.path, "skipped", f"a link out of the tree, to {reported_path(link.file)}")

    def _ignored(self, path: str, exclude: _Ignore, ignores: tuple[_Ignore, ...], *, folder: bool) -> bool:
        if exclude.decide(path, folder=folder) and (exclude.cuts or not folder):
            return True
        for ignore in ignores:
            decision = ignore.decide(path, folder=folder)
            if decision is not None:
                return decision and (ignore.cuts or not folder)
        return False

    def _gitignore(self, folder: str) -> list[_Ignore]:
        """The patterns of the .gitignore file of a folder; git follows no link there, and so do we."""
        file = os.path.join(folder, ".gitignore")
        try:
            if not stat.S_ISREG(os.lstat(file).st_mode):
                return []
            with open(file, encoding="utf-8", errors="surrogateescape") as stream:
                lines = stream.read(_LONGEST_GITIGNORE).split("\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            self._problem(reported_path(file), "read", f"cannot be read, so nothing is ignored: {error.strerror}")
            return []
        from pathspec import GitIgnoreSpec

        patterns: list[GitIgnoreSpecPattern] = []
        for number, line in enumerate(lines, start=1):
            try:
                patterns += _compile(line).patterns
            except PatternError as error:
                self._problem(reported_path(file), "read", f"{error}; it is not used", number)
        return [_Ignore(folder, GitIgnoreSpec(patterns))]

    def _problem(self, path: str, kind: str, message: str, line: int = 0) -> None:
        self.problems.add(Problem(path, line, kind, message))
