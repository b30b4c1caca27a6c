"""What kernels written in Python share: their options, and the JSON line that each prints.

Only the standard library is imported here, so that a folder of kernels runs on any machine that has the framework.
"""

import argparse
import importlib
import json
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

NOT_INSTALLED = 3
"""exit status: a package, a compiler or a device that the kernel needs is not there"""


def options(*facts: str) -> argparse.Namespace:
    """The options that every kernel takes; `facts` are those that it measures, the first of them by default.

    A kernel asks for them before it needs its framework, so that what is wrong with them is said first.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--level", choices=("compile", "simulate", "run"), default="run")
    parser.add_argument("--architecture", default="", help="what to compile for, as its compiler calls it")
    parser.add_argument("--fact", default=facts[0], help=f"the fact that is measured: {', '.join(facts)}")
    parser.add_argument("--item", default="", help="which of a family: an instruction, a type, a function")
    parser.add_argument("--value", default="", help="the value that is tested")
    asked = parser.parse_args()
    if asked.fact not in facts:
        refuse(f"this kernel measures {', '.join(facts)}, and not {asked.fact}")
    return asked


def need(package: str, install: str) -> Any:
    """Import a package; without it, say how to install it and end with NOT_INSTALLED."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        refuse(f"{error}; install it with: {install}")


def refuse(why: str) -> NoReturn:
    """Say why nothing can be measured here, and end with NOT_INSTALLED."""
    sys.stderr.write(f"{why}\n")
    sys.exit(NOT_INSTALLED)


def report(assumption: str, measured: object, *, checked: bool, detail: str = "", **environment: str) -> NoReturn:
    """Print the line, and end with 1 if the kernel's own check of its result failed.

    `measured` is of the fact's own kind: a level, a number, a text, or the part of a list that was tried and holds.
    """
    line = {
        "assumption": assumption,
        "measured": measured,
        "outcome": "measured" if checked else "failed",
        "detail": detail,
        "environment": {"python": platform.python_version(), **environment},
    }
    sys.stdout.write(json.dumps(line) + "\n")
    sys.exit(0 if checked else 1)


def level_of(attempt: Callable[[], bool]) -> tuple[str, bool, str]:
    """("native" or "none", whether the result was right, what was said) of something that may be refused."""
    try:
        return "native", attempt(), ""
    except Exception as error:  # whatever a framework raises is its answer
        return "none", True, said(error)


def said(error: BaseException) -> str:
    """What an exception says, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def largest(sizes: Sequence[int], accepts: Callable[[int], bool]) -> int:
    """The largest of some growing sizes that is accepted, 0 if none is; below one that is accepted all must be."""
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high) // 2
        if accepts(sizes[middle]):
            low = middle + 1
        else:
            high = middle
    return sizes[low - 1] if low else 0
