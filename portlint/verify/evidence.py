"""The evidence file: what compilers, simulators and devices said of findings, and whether that still holds.

An entry belongs to one finding's fingerprint, one target and one assumption. It is stale where the source, the profile
or the kernel has changed since, and where somebody changed the entry itself; stale entries are named, and join nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from portlint.files import read_json, replace
from portlint.finding import Evidence, Finding
from portlint.mistake import Mistake
from portlint.source.discover import is_below
from portlint.target import ProfileError, load

if TYPE_CHECKING:
    from portlint.verify.kernel import Kernel

VERSION = 1
FILE = "portlint-evidence.json"
"""where `portlint verify` writes, and what `portlint check` reads if it is in the working directory"""


class EvidenceError(Mistake):
    """An evidence file that cannot be read."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, order=True, omit_defaults=True):
    """One answer, joined to one finding."""

    fingerprint: str
    setting: str = ""
    """the statement of the finding; "" where it is not known"""
    rule: str
    path: str
    """the file of the finding, as it was named then"""
    target: str
    fact: str
    """the name of the fact that the finding rests on"""
    stated: Any
    """what the profile said of it at that time"""
    assumes: Mapping[str, Any]
    """what the code assumes, as findings have it"""
    kernel: str = ""
    """the kernel that was asked; "" where the code of the finding itself was"""
    kernel_digest: str = ""
    evidence: Evidence
    digest: str = ""
    """of all the rest"""

    @property
    def key(self) -> tuple[str, ...]:
        """What two answers to the same question share."""
        return self.fingerprint, self.target, self.fact, self.evidence.level, self.kernel

    def sealed(self) -> Entry:
        """The entry with the digest of what it says."""
        return msgspec.structs.replace(self, digest=self.expected_digest())

    def expected_digest(self) -> str:
        """The digest that belongs to what it says."""
        plain = msgspec.json.encode(msgspec.structs.replace(self, digest=""), order="deterministic")
        return hashlib.blake2b(plain, digest_size=16).hexdigest()


class EvidenceFile(msgspec.Struct, frozen=True):
    """All entries, in the order of their keys."""

    version: int
    entries: tuple[Entry, ...]


class Stale(msgspec.Struct, frozen=True):
    """An entry that no longer says anything, and why."""

    entry: Entry
    reason: str

    @property
    def text(self) -> str:
        """For people."""
        return f"what it says of '{self.entry.rule}' in {self.entry.path} is stale: {self.reason}"


def read(path: Path) -> tuple[Entry, ...]:
    """The entries of a file. Raises EvidenceError where there is no such file, or where it is not well formed."""
    return read_json(path, EvidenceFile, "evidence file", error=EvidenceError, version=VERSION).entries


def write(path: Path, entries: Iterable[Entry]) -> None:
    """Write a file, whole or not at all. Raises EvidenceError where that is not possible."""
    content = EvidenceFile(VERSION, tuple(sorted(entries, key=lambda one: one.key)))
    text = msgspec.json.format(msgspec.json.encode(content, order="deterministic"), indent=1) + b"\n"
    try:
        replace(path, text)
    except OSError as error:
        raise EvidenceError(f"cannot write the evidence to {path}: {error.strerror}") from error


def merge(older: Iterable[Entry], newer: Iterable[Entry]) -> tuple[Entry, ...]:
    """Both, where the latest answer to a question wins; of the same day, that of `newer`."""
    found: dict[tuple[str, ...], Entry] = {}
    for entry in (*older, *newer):
        known = found.get(entry.key)
        if known is None or known.evidence.date <= entry.evidence.date:
            found[entry.key] = entry
    return tuple(found[key] for key in sorted(found))


def stale(
    entries: Iterable[Entry],
    findings: Iterable[Finding],
    paths: Iterable[str],
    kernels: Mapping[str, Iterable[Kernel]],
) -> list[Stale]:
    """The entries that no longer say anything, where these are all findings below `paths`."""
    below = tuple(os.path.normpath(path) for path in paths)
    known = {(one.fingerprint, one.target): one.setting for one in findings}
    digests = {name: {one.digest for one in group} for name, group in kernels.items()}
    found: list[Stale] = []
    for entry in entries:
        if entry.digest != entry.expected_digest():
            found.append(Stale(entry, "the entry was changed by hand"))
        elif (entry.fingerprint, entry.target) not in known:
            if not any(is_below(entry.path, path) for path in below):
                continue
            found.append(Stale(entry, "the code has changed: there is no such finding now"))
        elif entry.setting and entry.setting != known[entry.fingerprint, entry.target]:
            found.append(Stale(entry, "the statement around the finding has changed"))
        elif _stated(entry) != entry.stated:
            found.append(Stale(entry, f"the profile of {entry.target} now states another value of {entry.fact}"))
        elif entry.kernel and entry.kernel_digest not in digests.get(entry.kernel, ()):
            found.append(Stale(entry, f"the kernel {entry.kernel} has changed"))
    return found


def _stated(entry: Entry) -> Any:
    try:
        fact = load(entry.target).fact(entry.fact)
    except ProfileError:  # a profile of the user's own that is elsewhere now
        return entry.stated
    return None if fact is None else fact.value


def join(findings: Iterable[Finding], entries: Iterable[Entry]) -> tuple[Finding, ...]:
    """The findings with the evidence that belongs to them."""
    by_finding: dict[tuple[str, str], list[Evidence]] = {}
    for entry in entries:
        by_finding.setdefault((entry.fingerprint, entry.target), []).append(entry.evidence)
    return tuple(
        msgspec.structs.replace(one, evidence=(*one.evidence, *by_finding.get((one.fingerprint, one.target), ())))
        for one in findings
    )
