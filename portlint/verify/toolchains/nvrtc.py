"""NVRTC through its C interface: `python -m portlint.verify.toolchains.nvrtc ARCHITECTURE FILE [OPTION...]`.

The headers of CUDA are those of the wheels of the extra `verify`, where they are installed.

A program of its own, since a library that crashes takes its process with it. Prints the compiler's log; the exit status
is 0 if it took the program, 1 if not, 3 if there is no NVRTC.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path

NO_NVRTC = 3


def _folders() -> list[Path]:
    """Where NVIDIA's wheels put their files."""
    return sorted({Path(entry) / "nvidia" for entry in sys.path if entry})


def _headers() -> list[str]:
    """The options that name the headers of the wheels `nvidia-cuda-runtime` and `nvidia-cuda-cccl`."""
    runtime = [found.parent for folder in _folders() for found in folder.glob("**/include/cuda_runtime.h")]
    return [f"-I{place}" for one in runtime for place in (one, one / "cccl")]


def _library() -> ctypes.CDLL | None:
    """NVRTC of the wheel `nvidia-cuda-nvrtc`."""
    found = sorted(
        library
        for folder in _folders()
        for library in folder.glob("**/libnvrtc.so*")
        if "alt" not in library.name and "builtins" not in library.name
    )
    return ctypes.CDLL(str(found[-1])) if found else None


def _version(library: ctypes.CDLL) -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def _compile(library: ctypes.CDLL, architecture: str, file: Path, options: Sequence[str]) -> int:
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), file.read_bytes(), file.name.encode(), 0, None, None)
    words = [f"--gpu-architecture={architecture}", *options, *_headers()]
    given = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    status = library.nvrtcCompileProgram(program, len(words), given)
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    sys.stdout.write(log.value.decode(errors="replace"))
    return int(status != 0)


def _main(words: Sequence[str]) -> int:
    library = _library()
    if library is None:
        sys.stderr.write("there is no NVRTC: pip install nvidia-cuda-nvrtc\n")
        return NO_NVRTC
    if words == ["--version"]:
        sys.stdout.write(_version(library) + "\n")
        return 0
    architecture, file, *options = words
    return _compile(library, architecture, Path(file), options)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
