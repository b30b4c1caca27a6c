"""Files of the same tree, found from one of its files: a header that it includes, a package that it imports.

What is asked here is noted, so that a result that rests on a file alone can be told from one that rests on its tree.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache, lru_cache, wraps
from itertools import islice
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from portlint.condition import words_of
from portlint.files import read_regular
from portlint.regex import regex

if TYPE_CHECKING:
    from portlint.source import Source

_LEVELS_UP = 6
"""how many folders above a file are looked at"""
_LEVELS_OF_A_PROJECT = 12
_BUILD_FILES = ("pyproject.toml", "setup.py", "CMakeLists.txt")
_MOST_FILES = 20_000
"""and folders, of a project"""
_LARGEST_FILE = 1 << 20
_MOST_KEPT = 24 << 20
"""bytes of a project's texts that are kept in memory"""
_OF_TESTS = regex(r"(^|[/\\])((tests?|testing)[/\\]|(test_[^/\\]*|[^/\\]*_test|conftest)\.\w+$)")
_MOST_OPEN = 384 << 10
"""bytes of files that are kept parsed although nobody asked for their findings"""

P = ParamSpec("P")
T = TypeVar("T")


class _Seen:
    """What has been asked since the scan of a file began."""

    root: str | None = None
    """of the file's project"""
    around = False
    """whether anything was"""
    beyond = False
    """whether that led to a file outside of the project"""


_seen = _Seen()
_open: dict[tuple[str, str], Source | None] = {}


def begin(file: str) -> None:
    """Forget what was asked, and what was opened if it is much, for the scan of a file that begins."""
    sources = [one for one in _open.values() if one is not None]
    if sum(len(one.text) for one in sources) > _MOST_OPEN:
        _open.clear()
        for source in sources:
            source.close()
    _seen.root, _seen.around, _seen.beyond = project(file), False, False


def rests_on() -> str:
    """What the answers since `begin` rest on: the "file", its "tree", or more than that: ""."""
    if not _seen.around:
        return "file"
    return "" if _seen.root is None or _seen.beyond else "tree"


def remembered(function: Callable[P, T]) -> Callable[P, T]:
    """`functools.cache` for answers that rest on the tree: whoever gets one again has asked the tree as well."""
    known: dict[Hashable, tuple[T, bool]] = {}

    @wraps(function)
    def ask(*args: P.args, **kwargs: P.kwargs) -> T:
        key = (args, tuple(kwargs.items())) if kwargs else args
        if key not in known:
            before, _seen.beyond = _seen.beyond, False
            known[key] = function(*args, **kwargs), _seen.beyond
            _seen.beyond = _seen.beyond or before
        _seen.around = True
        value, beyond = known[key]
        _seen.beyond = _seen.beyond or beyond
        return value

    return ask


def _look(path: str | None) -> None:
    """Note that the tree was asked, and came up with a path."""
    _seen.around = True
    if path is not None and _seen.root is not None and not path.startswith(_seen.root + os.sep):
        _seen.beyond = True


def find(file: str, name: str, roots: Iterable[str] = ("",), levels: int = _LEVELS_UP) -> str | None:
    """The file `name` next to `file`, or below one of `roots` in a folder above it.

    A file in the working directory finds nothing outside it, and no links.
    """
    found = _find(os.path.dirname(file), file.startswith(os.getcwd() + os.sep), name, tuple(roots), levels)
    _look(found)
    return found


@cache
def _find(folder: str, inside: bool, name: str, roots: tuple[str, ...], levels: int) -> str | None:
    here = os.getcwd() + os.sep
    for above in _upwards(folder, levels):
        for root in roots:
            candidate = os.path.normpath(os.path.join(above, root, name))
            if inside and not candidate.startswith(here):
                continue  # a scan reads nothing outside the folder that it is run in
            if os.path.isfile(candidate) and not os.path.islink(candidate):
                return candidate
    return None


def folders(file: str, levels: int = _LEVELS_UP) -> Iterator[str]:
    """The folder of a file and those above it; for a file in the working directory, none outside it."""
    here = os.getcwd()
    inside = file.startswith(here + os.sep)
    for folder in _upwards(os.path.dirname(file), levels):
        if inside and not (folder + os.sep).startswith(here + os.sep):
            return
        yield folder


def other_platform(file: str, own: frozenset[str], others: frozenset[str]) -> str | None:
    """The sibling for another platform of a file or of a folder around it that has one of the `own` names."""
    _look(None)
    return _other_platform(file, own, others) if file else None


@cache
def _other_platform(file: str, own: frozenset[str], others: frozenset[str]) -> str | None:
    root = project(file)
    place = os.path.splitext(file)[0]
    while place != root:
        folder, name = os.path.split(place)
        if name in own:
            beside = {entry.removesuffix(".py") for entry in entries(folder)}
            return next(iter(sorted(beside & others)), None)
        if root is None or folder == place:  # outside a project, what a folder is called is the user's business
            return None
        place = folder
    return None


def part_of(file: str, names: frozenset[str]) -> str | None:
    """The one of `names` that a folder around a file is called for, if it is the smaller part of its project.

    A project that is for one machine as a whole says nothing by the name of its only package.
    """
    _look(None)
    return _part_of(os.path.dirname(file), names) if file else None


@cache
def _part_of(folder: str, names: frozenset[str]) -> str | None:
    root = _project(folder)
    while root is not None and folder != root:
        named = names.intersection(words_of(os.path.basename(folder)))
        if len(named) == 1:
            files = modules(root)
            inside = sum(one.startswith(folder + os.sep) for one in files)
            return next(iter(named)) if 2 * inside < len(files) else None
        folder = os.path.dirname(folder)
    return None


@remembered
def modules(root: str) -> tuple[str, ...]:
    """The Python files of a project."""
    return tuple(below(root, (".py",)))


@remembered
def entries(folder: str) -> tuple[str, ...]:
    """The names in a folder, in any order; none where it cannot be read."""
    try:
        return tuple(os.listdir(folder or "."))
    except OSError:
        return ()


def within(file: str, path: str) -> str:
    """The path of a file below the top of its project; outside of any, as it was given, unless that is absolute.

    What the folders above a project are called says nothing of it.
    """
    root = project(file)
    if root is not None:
        return os.path.relpath(file, root)
    return os.path.basename(path) if os.path.isabs(path) else path


def is_of_tests(path: str) -> bool:
    """Whether a path below the top of a project is that of a test, or of what tests share."""
    return _OF_TESTS.search(path) is not None


def project(file: str) -> str | None:
    """The top folder of the project of a file: its repository, else the outermost folder above it with a build file."""
    return _project(os.path.dirname(file)) if file else None


@cache
def _project(folder: str) -> str | None:
    outermost: str | None = None
    for one in folders(os.path.join(folder, ""), _LEVELS_OF_A_PROJECT):
        if os.path.exists(os.path.join(one, ".git")):
            return one
        if any(os.path.isfile(os.path.join(one, name)) for name in _BUILD_FILES):
            outermost = one
    return outermost


def below(root: str, endings: tuple[str, ...]) -> Iterator[str]:
    """The files below a folder with these endings, no links or hidden folders; of a very large tree, the first."""
    _look(None)
    return islice(_below(root, endings), _MOST_FILES)


def _below(root: str, endings: tuple[str, ...]) -> Iterator[str]:
    for folder, folders_below, names in islice(os.walk(root), _MOST_FILES):
        folders_below[:] = sorted(one for one in folders_below if not one.startswith("."))
        files = (os.path.join(folder, name) for name in sorted(names) if name.endswith(endings))
        yield from (file for file in files if not os.path.islink(file))


def beside(folder: str) -> list[str]:
    """The files of a folder."""
    _look(None)
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder or "."))
    except OSError:
        return []


def read(path: str) -> bytes | None:
    """What a file of the tree holds; None where it cannot be read, or is so large that it is data."""
    _look(None)
    try:
        text = read_regular(path, _LARGEST_FILE + 1)
    except OSError:
        return None
    _look(path)
    return text if len(text) <= _LARGEST_FILE else None


def texts(root: str, endings: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """The files below a folder with these endings, and what they hold; of a project that is not large they are kept."""
    _look(root + os.sep)
    kept, others = _texts(root, endings)
    yield from kept
    yield from ((path, read(path) or b"") for path in others)


@lru_cache(maxsize=1)
def _texts(root: str, endings: tuple[str, ...]) -> tuple[list[tuple[str, bytes]], list[str]]:
    kept: list[tuple[str, bytes]] = []
    room = _MOST_KEPT
    paths = list(below(root, endings))
    for at, path in enumerate(paths):
        text = read(path) or b""
        room -= len(text)
        if room < 0:
            return kept, paths[at:]
        kept.append((path, text))
    return kept, []


def is_file(path: str) -> bool:
    """Whether the tree has a file."""
    found = os.path.isfile(path)
    _look(path if found else None)
    return found


def is_folder(path: str) -> bool:
    """Whether the tree has a folder."""
    _look(None)
    return os.path.isdir(path)


def opened(path: str, language: str) -> Source | None:
    """A file of the tree as a source, to ask what it says of another; None where no parser should have it."""
    from portlint.source import Source
    from portlint.source.prescan import Limits, refuse

    key = path, language
    if key not in _open:
        text = read(path)
        is_fit = text is not None and not refuse(text, language, Limits())
        _open[key] = Source(path, text, language, path) if text is not None and is_fit else None
    source = _open[key]
    _look(path if source is not None else None)
    return source


def _upwards(folder: str, levels: int) -> Iterator[str]:
    for _ in range(levels):
        yield folder
        if os.path.dirname(folder) == folder:
            return
        folder = os.path.dirname(folder)
