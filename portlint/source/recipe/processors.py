"""The processors of hosts, by the names that build scripts and files have for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portlint.condition import Guard, Literal, Name, Op
from portlint.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterable

_SAME = (("x86_64", "amd64", "x86"), ("arm64", "aarch64", "aarch"), ("ppc64le",), ("s390x",))
"""the names of one processor, the first as Python's `platform.machine` has it"""
NAME = r"(?:linux/)?(x86_64|amd64|arm64|aarch64|ppc64le|s390x)(?:/v8)?"
"""a processor, or a platform of Docker's"""
_IN_PATH = regex(r"(?<![a-z0-9])(?:x86(?:_64)?|amd64|arm64|aarch(?:64)?|ppc64le|s390x)(?![a-z0-9])")


def is_one_of(names: Iterable[str], expected: bool, text: str, line: int) -> Guard:
    """That the host's processor is one that these names stand for, or is none."""
    known = {same for name in names for group in _SAME if name in group for same in group}
    condition = Op("in", (Name("platform.machine"), Literal(tuple(sorted(known)))))
    return Guard(condition, expected, " ".join(text.split())[:80], line)


def of_path(path: str) -> tuple[Guard, ...]:
    """That the host's processor is the one that a recipe is named for: `launch_aarch64.sh`, `Dockerfile.ppc64le`."""
    names = _IN_PATH.findall(path.lower())
    return (is_one_of(names, True, f"{path} is for {', '.join(sorted(set(names)))}", 0),) if names else ()
