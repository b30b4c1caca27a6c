"""Compiles Triton kernels for an architecture that need not be here, each in a process of its own.

A process of its own, because the compiler of another architecture may end the process, or print an error and go on.
"""

import argparse
import os
import pickle
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from _kernel import need, refuse, said

INSTALL = "pip install triton"

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="portlint-triton-"))
triton = need("triton", INSTALL)
backends = need("triton.backends.compiler", INSTALL)
compiler = need("triton.compiler.compiler", INSTALL)

ASSEMBLY = ("ptx", "amdgcn")


class Compiled(NamedTuple):
    """What became of a kernel."""

    accepted: bool
    assembly: str
    metadata: Mapping[str, Any]
    words: str
    """what the compiler said"""


def target(asked: argparse.Namespace) -> Any:
    """The GPU to compile for: that of the options, or the one of this machine. Refuses what PyPI's Triton has not."""
    name: str = asked.architecture
    if asked.level == "simulate":
        refuse("Triton's interpreter knows no architecture: ask for --level compile or run")
    if asked.level == "run":
        return _here(name)
    if not name.startswith(("sm_", "gfx")):
        refuse(f"the Triton of PyPI has no back end for '{name}': give an sm_ or gfx architecture")
    if name.startswith("sm_"):
        return backends.GPUTarget("cuda", int(name.removeprefix("sm_").rstrip("af")), 32)
    return backends.GPUTarget("hip", name, 64 if name.startswith("gfx9") else 32)


def _here(name: str) -> Any:
    try:
        gpu = triton.runtime.driver.active.get_current_target()
    except RuntimeError as error:
        refuse(f"no device for Triton here: {error}")
    if name and name not in (f"sm_{gpu.arch}", gpu.arch):
        refuse(f"the device here is {gpu.arch}, not {name}")
    return gpu


def backend_options(target: Any, **launch: Any) -> Any:
    """The options with which the back end of a GPU compiles where a launch says these."""
    return compiler.make_backend(target).parse_options(dict(launch))


def compiled(function: Any, types: Sequence[str], constants: Mapping[str, Any], target: Any, **launch: Any) -> Compiled:
    """Compile a kernel; `types` are those of its parameters that are not constants, in order."""
    names = [name for name in function.arg_names if name not in constants]
    signature = {**dict(zip(names, types, strict=True)), **dict.fromkeys(constants, "constexpr")}
    aligned = {(function.arg_names.index(name),): [["tt.divisibility", 16]] for name in names}

    def build() -> Compiled:
        source = compiler.ASTSource(fn=function, signature=signature, constexprs=dict(constants), attrs=aligned)
        made = triton.compile(source, target=target, options=launch)
        texts = [text for kind in ASSEMBLY if (text := made.asm.get(kind))]
        metadata = {name: getattr(made.metadata, name) for name in ("shared", "num_warps", "num_stages")}
        return Compiled(True, texts[0], metadata, "")

    return _apart(build)


def _apart(build: Callable[[], Compiled]) -> Compiled:
    with tempfile.TemporaryDirectory() as place:
        answer, words = Path(place) / "answer", Path(place) / "words"
        child = os.fork()
        if child == 0:
            _answer(build, answer, words)
        _, status = os.waitpid(child, 0)
        printed = words.read_text(encoding="utf-8", errors="replace")
        errors = " ".join(line.strip() for line in printed.splitlines() if "error:" in line)[:300]
        if status or not answer.exists():
            return Compiled(False, "", {}, errors or f"the compiler ended with status {status}")
        made: Compiled = pickle.loads(answer.read_bytes())  # noqa: S301  (the child wrote it)
    return Compiled(False, "", {}, errors) if errors else made


def _answer(build: Callable[[], Compiled], answer: Path, words: Path) -> None:
    """Write what a compilation gives, and end the process that was forked for it."""
    os.dup2(os.open(words, os.O_WRONLY | os.O_CREAT), 2)
    try:
        made = build()
    except Exception as error:  # a compiler's refusal may be any exception; its cause has the reason
        last = said(error.__cause__ or error) if error.__cause__ else str(error).strip().rpartition("\n")[2]
        made = Compiled(False, "", {}, last[:300])
    answer.write_bytes(pickle.dumps(made))
    os._exit(0)
