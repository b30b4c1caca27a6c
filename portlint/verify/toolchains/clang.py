"""clang with the AMDGPU back end: takes HIP for any gfx architecture, with no ROCm and no device.

`stub/hip/hip_runtime.h` stands in for HIP's headers: it declares what kernels use, with the types of HIP 7, and nothing
else. Known releases: gfx950 needs clang 20 or newer (LLVM's AMDGPU usage guide).
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from portlint.verify import runner
from portlint.verify.toolchains import Answer, Missing, Toolchain
from portlint.verify.toolchains.gcc_style import diagnostics

_NEWEST, _OLDEST = 24, 20
_SECONDS = 60.0
_INSTALL = "apt-get install clang-22 lld-22"
_OPTIONS = ("--cuda-device-only", "--no-gpu-bundle-output", "-nogpulib", "-nogpuinc", "-fdeclspec", "-std=c++17", "-O2")


@cache
def find() -> Toolchain | Missing:
    """The newest clang of this machine that can compile for AMD's GPUs."""
    names = [f"clang-{number}" for number in range(_NEWEST, _OLDEST - 1, -1)]
    for name in (*names, "clang"):
        path = shutil.which(name)
        if path is None:
            continue
        version = re.search(r"clang version (\d+)\.(\S+)", runner.run([path, "--version"], seconds=_SECONDS).out)
        targets = runner.run([path, "--print-targets"], seconds=_SECONDS).out
        if version and int(version[1]) >= _OLDEST and "amdgcn" in targets:
            return Toolchain("clang", f"{version[1]}.{version[2]}", (path,))
    return Missing("clang with the AMDGPU back end", _INSTALL)


def compile(  # noqa: A001
    toolchain: Toolchain, program: Mapping[str, str], architecture: str, options: Iterable[str] = ()
) -> Answer:
    """Compile the device code of a program (name -> text; the first file) for one architecture, such as "gfx942"."""
    with tempfile.TemporaryDirectory() as place, as_file(files("portlint") / "verify" / "toolchains" / "stub") as stub:
        name, *_ = program
        for file, text in program.items():
            (Path(place) / file).write_text(text, encoding="utf-8")
        command = [
            *toolchain.command, "-x", "hip", *_OPTIONS, f"--offload-arch={architecture}", f"-I{stub}", *options,
            "-c", "-o", "kernel.o", name,
        ]  # fmt: skip
        ended = runner.run(command, seconds=_SECONDS, folder=Path(place))
    found = tuple(diagnostics(ended.err))
    refused = any(one.kind == "error" for one in found)
    accepted = True if ended.status == 0 else False if refused else None
    return Answer(accepted, found, ended.command.replace(str(stub), "stub"), ended.seconds)
