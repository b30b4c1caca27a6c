"""NVIDIA's compilers: NVRTC from its wheel, or nvcc of an installed toolkit. Neither needs a driver or a device.

Both end in ptxas, which is what knows the instructions of an architecture.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from portlint.verify import runner
from portlint.verify.toolchains import Answer, Missing, Toolchain
from portlint.verify.toolchains.gcc_style import diagnostics

_SECONDS = 120.0
_INSTALL = "pip install 'portlint[verify]'"
_NO_HEADER = "open source file"
_NVRTC = (sys.executable, "-m", "portlint.verify.toolchains.nvrtc")


@cache
def find() -> Toolchain | Missing:
    """NVRTC where its wheel is installed, since it needs no host compiler; else nvcc."""
    asked = runner.run([*_NVRTC, "--version"], seconds=_SECONDS)
    if asked.status == 0:
        return Toolchain("NVRTC", asked.out.strip(), _NVRTC)
    if path := shutil.which("nvcc"):
        version = re.search(r"V(\d[\d.]*)", runner.run([path, "--version"], seconds=_SECONDS).out)
        if version:
            return Toolchain("nvcc", version[1], (path,))
    return Missing("NVRTC or nvcc", _INSTALL)


def compile(  # noqa: A001
    toolchain: Toolchain, program: Mapping[str, str], architecture: str, options: Iterable[str] = ()
) -> Answer:
    """Compile the device code of a program (name -> text; the first file) for one architecture, such as "sm_90a"."""
    with tempfile.TemporaryDirectory() as place:
        name, *_ = program
        for file, text in program.items():
            (Path(place) / file).write_text(text, encoding="utf-8")
        if toolchain.name == "nvcc":
            kept = ("-cubin", "-std=c++17", "-arch", architecture, *options, "-o", "kernel.cubin", name)
        else:
            kept = (architecture, name, "-std=c++17", "-I.", *options)
        ended = runner.run([*toolchain.command, *kept], seconds=_SECONDS, folder=Path(place))
    return answer(f"{ended.err}\n{ended.out}", ended.command, ended.seconds, accepted=ended.status == 0)


def answer(log: str, command: str, seconds: float, *, accepted: bool) -> Answer:
    """What a compiler's log says. A header of CUDA that this machine lacks is no answer of the architecture's."""
    found = tuple(diagnostics(log))
    refused = any(one.kind == "error" for one in found) and not any(_NO_HEADER in one.words for one in found)
    return Answer(True if accepted else False if refused else None, found, command, seconds)
