"""NVRTC through its C interface: `python -m portlint.verify.toolchains.nvrtc ARCHITECTURE FILE [OPTION...]`.

The headers of CUDA are those of the wheels of the extra `verify`, where they are installed.

A program of its own, since a library that crashes takes its process with it. Prints the compiler's log; the exit status
is 0 if it took the program, 1 if not, 3 if there is no NVRTC.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

NO_NVRTC = 3


def _folders() -> list[Path]:
    """Where NVIDIA's wheels put their files."""
    return sorted({Path(entry) / "nvidia" for entry in sys.path if entry})


def _headers() -> list[str]:
    """The options that name the headers of the wheels `nvidia-cuda-runtime` and `nvidia-cuda-cccl`."""
    runtime = [found.parent for folder in _folders() for found in folder.glob("**/include/cuda_runtime.h")]
    return [f"-I{place}" for one in runtime for place in (one, one / "cccl")]


@cache
def _library() -> ctypes.CDLL:
    """NVRTC of the wheel `nvidia-cuda-nvrtc`. Raises LookupError where it is not installed."""
    found = sorted(
        library
        for folder in _folders()
        for library in folder.glob("**/libnvrtc.so*")
        if "alt" not in library.name and "builtins" not in library.name
    )
    if not found:
        raise LookupError("there is no NVRTC: pip install nvidia-cuda-nvrtc")
    return ctypes.CDLL(str(found[-1]))


def _version() -> str:
    library = _library()
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compile_file(architecture: str, file: Path, options: Sequence[str]) -> tuple[bool, str]:
    """Whether NVRTC takes a file for one architecture, and its log. Raises LookupError where there is no NVRTC."""
    library = _library()
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), file.read_bytes(), file.name.encode(), 0, None, None)
    words = [f"--gpu-architecture={architecture}", *options, *_headers()]
    given = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    status = library.nvrtcCompileProgram(program, len(words), given)
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return status == 0, log.value.decode(errors="replace")


def _main(words: Sequence[str]) -> int:
    try:
        if words == ["--version"]:
            sys.stdout.write(_version() + "\n")
            return 0
        architecture, file, *options = words
        accepted, log = compile_file(architecture, Path(file), options)
    except LookupError as error:
        sys.stderr.write(f"{error}\n")
        return NO_NVRTC
    sys.stdout.write(log)
    return int(not accepted)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
