"""No regular expression of portlint takes more than quadratic time on a text that repeats, in the way that it is used.

What is quadratic is stopped by the limits of a worker, as every rule is; what is worse would be stopped on short texts.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import ROOT
from runs import FULL

import portlint
from portlint.regex import regex

SIZE = 8_000 if FULL else 400
SECONDS = 5.0
"""many times what a quadratic search takes, and nothing to one that is exponential"""
PIECES = [
    " ",
    "a",
    "0",
    "_",
    "(",
    ")",
    "*",
    "\\",
    '"',
    "'",
    "/",
    "\n",
    "<",
    ".",
    ",",
    "#",
    "a ",
    "a,",
    "a(",
    " \n",
    "\\\n",
    "::",
    "a::",
    "[",
    "{",
    "${",
    "=",
    "\t",
    "é",
    "a.",
    "const a ",
    "struct a ",
    "typedef a ",
    "inline a(a,",
    "extern a ",
    'R"(',
    "/*",
    "//",
]
METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "split")
PACKAGE = ROOT / "portlint"


Expression = re.Pattern[str] | re.Pattern[bytes]
KINDS = (re.Pattern, type(regex("")))
"""what `re.compile` gives, and what stands for it until it is used"""


def expressions() -> Iterator[tuple[str, Expression]]:
    """Every regular expression that a module keeps, alone or in a container."""
    for module in pkgutil.walk_packages(portlint.__path__, "portlint."):
        if ".kernels" in module.name or ".child" in module.name or module.name.endswith("__main__"):
            continue
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:  # of an extra that is not installed
            continue
        for name, value in vars(loaded).items():
            if isinstance(value, KINDS):
                yield name, value
            elif isinstance(value, (tuple, list)):
                yield from ((name, one) for one in value if isinstance(one, KINDS))
            elif isinstance(value, dict) and not name.startswith("__"):
                yield from ((name, one) for one in value.values() if isinstance(one, KINDS))


def uses() -> dict[tuple[str | bytes, int], tuple[str, set[str]]]:
    """Pattern -> its name, and the methods that are called on that name anywhere in the package."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted(Path(PACKAGE).rglob("*.py")))
    found: dict[tuple[str | bytes, int], tuple[str, set[str]]] = {}
    for name, pattern in expressions():
        called = set(re.findall(rf"\b{name}\.({'|'.join(METHODS)})\b", source))
        found.setdefault((pattern.pattern, pattern.flags), (name, set()))[1].update(called)
    return found


def run(jobs: list[tuple[str | bytes, int, str, str]], place: int) -> int:
    """Match in a process of its own, which is ended by the first that takes too long: its number, or the end."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        for number in range(place, len(jobs)):
            text, flags, method, piece = jobs[number]
            pattern = re.compile(text, flags)
            subject = piece * (SIZE // len(piece))
            given = subject if isinstance(text, str) else subject.encode()
            os.write(write_end, number.to_bytes(4, "little"))
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            if method == "sub":
                pattern.sub(given[:0], given)
            elif method == "finditer":
                for _ in pattern.finditer(given):
                    pass
            else:
                getattr(pattern, method)(given)
        os._exit(0)
    os.close(write_end)
    told = b""
    while chunk := os.read(read_end, 65_536):
        told = (told + chunk)[-4:]
    os.close(read_end)
    return len(jobs) if os.waitpid(child, 0)[1] == 0 else int.from_bytes(told, "little")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be ended")
def test_each_expression_on_texts_that_repeat() -> None:
    jobs = [
        (pattern, flags, method, piece)
        for (pattern, flags), (name, methods) in sorted(uses().items(), key=lambda one: one[1][0])
        for method in sorted(methods)
        for piece in (PIECES if FULL else PIECES[::3])
    ]
    assert len(jobs) > 1_000
    slow: list[tuple[str, str, str]] = []
    place = 0
    while (place := run(jobs, place)) < len(jobs):
        pattern, flags, method, piece = jobs[place]
        slow.append((uses()[pattern, flags][0], method, piece))
        place += 1
    assert slow == []
