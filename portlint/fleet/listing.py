"""The list of a fleet: one checkout per line, a folder or the URL of a git repository, and what it is called."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from portlint.mistake import Mistake
from portlint.regex import regex
from portlint.source.discover import printable_path

_KEYS = ("ref", "name")
_SCP = regex(r"[\w.-]+@[\w.-]+:(?!//).+")
"""`git@host:path`, which git takes for ssh"""
_URL = regex(r"[A-Za-z][\w+.-]*(?:://|::).*")
"""with a scheme, or with a helper of git before it (`ext::`)"""


class ListError(Mistake):
    """A list of checkouts that cannot be used; the message says which line and why."""


class Checkout(msgspec.Struct, frozen=True):
    """One repository of the list."""

    name: str
    """what reports call it; unique in the list"""
    place: str
    """as the list has it, without a password, and printable"""
    source: bytes
    """the absolute path of a folder, in the bytes of the file system, or a URL"""
    is_url: bool = False
    ref: str = ""
    """the branch, tag or commit to fetch; "" for what the repository has checked out"""


class Listed(msgspec.Struct, frozen=True):
    """A list, read."""

    checkouts: tuple[Checkout, ...]
    """each once, sorted by name"""
    repeated: tuple[str, ...]
    """a sentence for each line that names what another one names"""


class _Line(msgspec.Struct, frozen=True):
    number: int
    place: str
    source: str
    is_url: bool
    ref: str
    name: str

    @property
    def key(self) -> tuple[str, str]:
        return self.place if self.is_url else self.source, self.ref

    @property
    def parts(self) -> list[str]:
        """The components of its place, the last of which is its name unless another has it, too."""
        path = re.sub(r"^\w[\w+.-]*://", "", self.place).replace(":", "/") if self.is_url else self.source
        found = [part for part in path.removesuffix("/").removesuffix(".git").split("/") if part not in ("", ".")]
        return found or ["root"]


def read(text: str) -> Listed:
    """Read a list. Raises ListError for a line that says nothing that can be followed."""
    lines: dict[tuple[str, str], _Line] = {}
    repeated = []
    for number, written in enumerate(text.splitlines(), start=1):
        line = _line(number, written)
        if line is None:
            continue
        first = lines.setdefault(line.key, line)
        if first is not line:
            repeated.append(f"line {number} names what line {first.number} names; it is checked once")
    names = _names(list(lines.values()))
    checkouts = [
        Checkout(name, printable_path(line.place), os.fsencode(line.source), line.is_url, line.ref)
        for name, line in zip(names, lines.values(), strict=True)
    ]
    return Listed(tuple(sorted(checkouts, key=lambda one: one.name)), tuple(repeated))


def _line(number: int, text: str) -> _Line | None:
    if text.lstrip().startswith("#"):
        return None
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ListError(f"line {number}: {error}: quote a path that holds quotes or backslashes") from None
    for at, word in enumerate(words):
        if word.startswith("#"):
            words = words[:at]
            break
    if not words:
        return None
    place, given = words[0], dict[str, str]()
    for word in words[1:]:
        key, is_given, value = word.partition("=")
        if key not in _KEYS or not is_given or not value or key in given:
            raise ListError(
                f"line {number}: '{printable_path(word)}' is not understood: behind a path or a URL comes 'ref=REF' or"
                " 'name=NAME', each once; a path with spaces stands in quotes"
            )
        given[key] = value
    is_url = is_address(place)
    ref = given.get("ref", "")
    if ref and not is_url:
        raise ListError(
            f"line {number}: 'ref=' goes with a URL: a folder is read as it is; write file://PATH to clone it"
        )
    if ref.startswith("-") or any(char.isspace() for char in ref):
        raise ListError(f"line {number}: '{printable_path(ref)}' is no branch, tag or commit")
    source = place if is_url else os.path.realpath(place)
    shown = without_password(place) if is_url else place
    return _Line(number, shown, source, is_url, ref, printable_path(given.get("name", "")))


def is_address(place: str) -> bool:
    """Whether git would fetch this, rather than read it as a folder."""
    return bool(_URL.fullmatch(place)) or bool(_SCP.fullmatch(place) and not os.path.exists(place))


def without_password(url: str) -> str:
    """A URL as it may be shown: without a password, and over HTTP without the user, who can be a token."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url
    kept = user.partition(":")[0] + "@" if parts.scheme == "ssh" else ""
    return parts._replace(netloc=kept + host).geturl()


def _names(lines: Sequence[_Line]) -> list[str]:
    """A name for each: as given, or as much of the end of its place as tells it from the others."""
    given = Counter(line.name for line in lines if line.name)
    if double := [name for name, count in given.items() if count > 1]:
        numbers = " and ".join(str(line.number) for line in lines if line.name == double[0])
        raise ListError(f"lines {numbers} have the name '{double[0]}': each repository needs one of its own")
    depths = dict.fromkeys((line.number for line in lines if not line.name), 1)
    while True:
        names = [line.name or _tail(line, depths[line.number]) for line in lines]
        counts = Counter(names)
        alike = [line for line, name in zip(lines, names, strict=True) if counts[name] > 1 and not line.name]
        longer = [line for line in alike if depths[line.number] <= len(line.parts)]
        if not longer:
            break
        for line in longer:
            depths[line.number] += 1
    # What is alike to the last component differs in its ref or its scheme: the number of the line tells it apart.
    numbered = {line.number for line in alike}
    return [
        f"{name} (line {line.number})" if line.number in numbered else name
        for line, name in zip(lines, names, strict=True)
    ]


def _tail(line: _Line, depth: int) -> str:
    """The last components of a place, and behind all of them the ref."""
    name = "/".join(line.parts[-depth:])
    return printable_path(f"{name}@{line.ref}" if depth > len(line.parts) and line.ref else name)
