"""What kernels written in Python share: their options, and the JSON line that each prints.

Only the standard library is imported here, so that a folder of kernels runs on any machine that has the framework.
"""

import argparse
import importlib
import json
import platform
import sys
from collections.abc import Callable
from typing import Any

NOT_INSTALLED = 3
"""exit status: a package that the kernel needs is not there"""


def options() -> argparse.Namespace:
    """The options that every kernel takes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--level", choices=("compile", "simulate", "run"), default="run")
    parser.add_argument("--architecture", default="", help="what to compile for, as its compiler calls it")
    parser.add_argument("--fact", default="", help="the name of the fact that is measured")
    parser.add_argument("--item", default="", help="which of a family: an instruction, a type, a function")
    parser.add_argument("--value", default="", help="the value that is tested")
    return parser.parse_args()


def need(package: str, install: str) -> Any:
    """Import a package; without it, say how to install it and end with NOT_INSTALLED."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        sys.stderr.write(f"{error}; install it with: {install}\n")
        sys.exit(NOT_INSTALLED)


def report(assumption: str, measured: object, *, checked: bool, detail: str = "", **environment: str) -> None:
    """Print the line, and end with 1 if the kernel's own check of its result failed."""
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
        return "none", True, f"{type(error).__name__}: {error}".splitlines()[0][:300]
