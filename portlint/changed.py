"""The lines of the working tree that differ from a commit, as git tells them.

git is asked in a way that runs nothing of the checkout: no hooks, no monitor of the file system, no drivers for
differences, no filters, no transports. A line that was only removed leaves nothing to point at; so this is a view of
what somebody has touched, and no proof that nothing else was broken.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from portlint.mistake import Mistake
from portlint.regex import regex
from portlint.source.discover import printable_path, reported_path

if TYPE_CHECKING:
    from portlint.finding import Edit, Finding

_SECONDS = 60
_HARMLESS = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "core.quotePath=false")
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_LINE_END = regex(r"\r\n|\r|\n")
_OVERRIDES = ("GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS")
"""variables of the environment that would change what git says"""
_DEFAULT_BRANCHES = ("@{upstream}", "refs/remotes/origin/HEAD", "origin/main", "origin/master")


class ChangedError(Mistake):
    """git cannot say what has changed."""


class Span(msgspec.Struct, frozen=True):
    """Lines from `first` to `last`."""

    first: int
    last: int


class Changed(msgspec.Struct, frozen=True):
    """What differs from a commit."""

    files: Mapping[str, tuple[Span, ...] | None]
    """path as reports show it -> the lines that differ, None for all of them"""

    def has_file(self, path: str) -> bool:
        """Whether a file differs at all."""
        return _real(path) in self.files

    def folders(self) -> frozenset[str]:
        """The folders that have such a file in them, at any depth."""
        here = os.path.realpath(os.curdir)
        found: set[str] = set()
        for file in self.files:
            folder = os.path.dirname(os.path.join(here, file))
            while (shown := reported_path(folder)) not in found:
                found.add(shown)
                folder = os.path.dirname(folder)
        return frozenset(found)

    def has(self, finding: Finding) -> bool:
        """Whether a finding is on a line that differs."""
        spans = self.files.get(_real(finding.path), ())
        return spans is None or any(one.first <= finding.end_line and finding.line <= one.last for one in spans)

    def edited(self, path: str, edits: Sequence[Edit]) -> Changed:
        """The same after edits of a file: the lines that they touch differ as well, and those behind have moved."""
        spans = self.files.get(_real(path), ())
        if spans is None:
            return self
        grown = [(one, len(_LINE_END.findall(one.text)) - (one.end_line - one.line)) for one in edits]
        moved = [
            Span(
                span.first + sum(lines for edit, lines in grown if edit.end_line < span.first),
                span.last + sum(lines for edit, lines in grown if edit.line <= span.last),
            )
            for span in (*spans, *(Span(edit.line, edit.end_line) for edit in edits))
        ]
        return Changed({**self.files, _real(path): tuple(moved)})


def changed(ref: str = "") -> Changed:
    """What differs from a commit in the repository of the working directory, untracked files included.

    Without a commit it is the last one that this branch has in common with its upstream or, where it has none, with the
    default branch of the remote `origin`; else HEAD. Raises ChangedError.
    """
    try:
        top = _git(["rev-parse", "--show-toplevel"]).rstrip("\n")
    except ChangedError as error:
        raise ChangedError(f"'--changed' needs a git checkout: {error}") from None
    files: dict[str, tuple[Span, ...] | None] = {}
    commit = _commit(ref)
    if commit is not None:
        files.update(_differences(top, commit))
    listed = ["--others"] if commit is not None else ["--others", "--cached"]
    for name in _git(["ls-files", "-z", "--exclude-standard", "--full-name", *listed, "--", ":/"], top).split("\0"):
        if name:
            files[_place(top, name)] = None
    return Changed(files)


def _commit(ref: str) -> str | None:
    """The commit to compare with; None in a repository that has none yet."""
    if ref:
        found = _resolved(ref)
        if found is None:
            raise ChangedError(f"git knows no commit '{ref}' here; in a shallow clone, fetch it first.")
        return found
    head = _resolved("HEAD")
    for name in _DEFAULT_BRANCHES if head is not None else ():
        branch = _resolved(name)
        if branch is not None:
            try:
                return _git(["merge-base", "HEAD", branch]).split()[0]
            except ChangedError:  # they have no commit in common, as far as a shallow clone goes
                return head
    return head


def _resolved(ref: str) -> str | None:
    try:
        return _git(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]).split()[-1]
    except ChangedError:
        return None


def _differences(top: str, commit: str) -> dict[str, tuple[Span, ...] | None]:
    """The lines that differ in each tracked file; a file that git takes for binary differs as a whole."""
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    shared = ["diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--find-renames", "--diff-filter=d"]
    layout = [
        "--unified=0",
        "--no-color",
        "--no-relative",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "--inter-hunk-context=0",
    ]
    files: dict[str, tuple[Span, ...] | None] = {}
    try:
        patches = PatchSet(_git([*shared, *layout, commit, "--", ":/"], top), metadata_only=True)
    except UnidiffParseError as error:
        raise ChangedError(f"the answer of git diff cannot be read: {error}") from None
    for patch in patches:
        spans = (Span(hunk.target_start, hunk.target_start + hunk.target_length - 1) for hunk in patch)
        files[_place(top, _unquoted(patch.target_file).removeprefix("b/"))] = tuple(spans)
    counts = _git([*shared, "--numstat", "--no-renames", "-z", commit, "--", ":/"], top)
    files.update((_place(top, line[4:]), None) for line in counts.split("\0") if line.startswith("-\t-\t"))
    return files


_ESCAPE = regex(rb"\\([0-7]{3}|.)", re.DOTALL)
_CONTROLS = dict(zip(b"abtnvfr", b"\a\b\t\n\v\f\r", strict=True))


def _unquoted(name: str) -> str:
    """A name as git writes it in the head of a patch: quoted as in C where it holds control characters."""
    if not name.startswith('"'):
        return name
    plain = _ESCAPE.sub(_unescaped, os.fsencode(name[1:-1]))
    return os.fsdecode(plain)


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) if len(code) == 3 else _CONTROLS.get(code[0], code[0])])


def _place(top: str, name: str) -> str:
    return reported_path(os.path.realpath(os.path.join(top, name)))


def _real(path: str) -> str:
    return reported_path(os.path.realpath(path))


@cache
def _without_filters(folder: str) -> dict[str, str]:
    """The environment in which git converts no file by a program: clean filters would run when files are compared."""
    listed = _run(["config", "--null", "--name-only", "--get-regexp", r"^filter\."], folder, {})
    names = sorted(set(filter(None, listed.stdout.split("\0")))) if listed.returncode == 0 else []
    given = os.environ.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isdigit() else 0
    settings = {"GIT_CONFIG_COUNT": str(first + len(names))}
    for number, name in enumerate(names, start=first):
        settings[f"GIT_CONFIG_KEY_{number}"] = name
        settings[f"GIT_CONFIG_VALUE_{number}"] = "false" if name.endswith(".required") else ""
    return settings


def _git(arguments: Sequence[str], folder: str = "") -> str:
    """What git answers. Raises ChangedError where it fails."""
    answer = _run(arguments, folder, _without_filters(os.path.abspath(folder)))
    if answer.returncode:
        said = " ".join(answer.stderr.split()) or f"git {arguments[0]} ended with status {answer.returncode}"
        raise ChangedError(printable_path(said.removeprefix("fatal: "))[:300])
    return answer.stdout


def _run(arguments: Sequence[str], folder: str, settings: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in _OVERRIDES}
    try:
        return subprocess.run(  # noqa: S603
            ["git", "--no-pager", *_HARMLESS, *arguments],  # noqa: S607
            cwd=folder or None,
            env={**environment, **_ENVIRONMENT, **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise ChangedError("there is no program 'git'") from None
    except subprocess.TimeoutExpired:
        raise ChangedError(f"git {arguments[0]} did not answer within {_SECONDS} seconds") from None
