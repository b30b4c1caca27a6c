"""The verification kernels in C++ and the profiles say the same: the exact compilers are asked.

A kernel whose proof is `compile` is accepted for a target where the profile says that the assumption holds, and refused
where it says that it does not. What is to be accepted goes to a compiler in one program per architecture.
"""

from __future__ import annotations

import multiprocessing
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import msgspec
import pytest

from portlint.target import Level, Target, load, shipped, vocabulary
from portlint.verify import levels
from portlint.verify.kernel import Kernel, Parameters, folder, kernels, parameters
from portlint.verify.toolchains import Answer, Toolchain, clang, nvidia, nvrtc

WORKERS = 2
ENDLESS = 2  # a value of a number that is too large, as a multiple of the right one
PACKS = ("lanes", "isa", "memory", "launch", "api", "numerics", "build")
OF_PYTHON = re.compile(r"triton|scaled_mm")
"""facts of these packs that code in C++ cannot assume"""
MAKERS = {
    "NVIDIA": "no NVRTC: pip install 'portlint[verify]'",
    "AMD": "no clang that compiles for AMD's GPUs: apt-get install clang-22 lld-22",
}
"""maker -> what to install where its compiler is missing"""


class Question(msgspec.Struct, frozen=True, order=True):
    """What a compiler is asked, and what the profile answers."""

    architecture: str
    kernel: Kernel
    asked: Parameters
    accepted: bool
    profile: str
    """what the profile says, for people"""

    @property
    def maker(self) -> str:
        return "NVIDIA" if self.architecture.startswith("sm_") else "AMD"

    @property
    def options(self) -> tuple[str, ...]:
        target = self.architecture
        return levels.device_options(self.kernel, self.asked, target)

    @property
    def fits_with_others(self) -> bool:
        """Whether its text can stand in one program with those of other kernels."""
        return self.accepted and "#include <" not in self.kernel.program[self.kernel.file] and not self.kernel.options


def targets() -> tuple[Target, ...]:
    """The targets of C++ code that a compiler here can build for."""
    found = (load(name) for name in shipped())
    return tuple(one for one in found if "cuda" in one.profile.languages and levels.architectures(one))


def of_cxx(fact: str) -> Kernel | None:
    """The C++ kernel that measures a fact."""
    return next((one for one in kernels().get(vocabulary()[fact].kernel, ()) if one.route == "cuda"), None)


def facts() -> dict[str, Kernel]:
    """The facts that a C++ kernel measures."""
    return {name: kernel for name in vocabulary() if (kernel := of_cxx(name)) is not None}


@cache
def questions() -> tuple[Question, ...]:
    return tuple(one for target in targets() for fact in facts() for one in _questions(target, fact))


def _questions(target: Target, fact: str) -> Iterator[Question]:
    stated = target.fact(fact)
    if stated is None:
        return
    kernel = facts()[fact]
    plain, *variants = levels.architectures(target)
    profile = f"{target.name} says {stated.value}"
    asked = parameters(fact, stated.value)
    if kernel.proof == "run":  # its host part alone knows items
        yield Question(plain, kernel, Parameters(kernel.name, "", ""), True, profile)
    elif vocabulary()[fact].kind == "level":
        assert stated.value in {Level.NATIVE, Level.VARIANT, Level.NONE}, "decide what a compiler makes of it"
        asked = parameters(fact, str(Level.NATIVE))
        yield Question(plain, kernel, asked, stated.value == Level.NATIVE, profile)
        if stated.value != Level.NATIVE:  # what a family shares is less than what its `a` variant has
            last = [one for one in variants if one.endswith("a")]
            yield from (Question(one, kernel, asked, stated.value == Level.VARIANT, profile) for one in last)
    else:
        yield Question(plain, kernel, asked, True, profile)
        for wrong in _other_values(fact, stated.value):
            yield Question(plain, kernel, parameters(fact, wrong), False, profile)


def _other_values(fact: str, value: object) -> Iterable[object]:
    """Values that an assumption may have and that do not hold."""
    if isinstance(value, int):
        return {ENDLESS * value}
    others = {one.value for one in (target.fact(fact) for target in targets()) if one is not None}
    return others - {value}


def _together(asked: Iterable[Question]) -> str:
    """One program of several kernels, each in a namespace of its own."""
    lines = ['#include "portlint.h"']
    for number, one in enumerate(asked):
        text = one.kernel.program[one.kernel.file]
        given = [name.split("=", 1) for name in levels.macros(one.asked)]
        lines += [f"#define {name} {value}" for name, value in given]
        lines += [f"namespace kernel_{number} {{", f'#line 1 "{one.kernel.file} {one.asked.item}"', text, "}"]
        own = re.findall(r"^#define (\w+)", text, re.MULTILINE)
        lines += [f"#undef {name}" for name in (*(name for name, _ in given), *own)]
    return "\n".join(lines)


def _compile(maker: str, architecture: str, program: dict[str, str], options: tuple[str, ...]) -> Answer:
    """Asked in a worker, which loads NVRTC once."""
    if maker == "AMD":
        toolchain = clang.find()
        assert isinstance(toolchain, Toolchain)
        return clang.compile(toolchain, program, architecture, options)
    with tempfile.TemporaryDirectory() as place:
        for name, text in program.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        file = Path(place) / next(iter(program))
        accepted, log = nvrtc.compile_file(architecture, file, ("-std=c++17", f"-I{place}", *options))
    return nvidia.answer(log, "", 0.0, accepted=accepted)


def _ask(job: tuple[Question, ...]) -> list[tuple[Question, Answer]]:
    first = job[0]
    if len(job) == 1:
        return [(first, _compile(first.maker, first.architecture, dict(first.kernel.program), first.options))]
    shared = {name: text for name, text in first.kernel.program.items() if name.endswith(".h")}
    program = {"kernels.cu": _together(job), **shared}
    given = _compile(first.maker, first.architecture, program, ("-DPORTLINT_DEVICE_ONLY",))
    if given.accepted:
        return [(one, given) for one in job]
    return [reply for one in job for reply in _ask((one,))]


@pytest.fixture(scope="session")
def answers() -> dict[str, list[tuple[Question, Answer]]]:
    """What the compilers of this machine say, by maker."""
    found = {"NVIDIA": nvidia.find(), "AMD": clang.find()}
    asked = {
        maker: [one for one in questions() if one.maker == maker]
        for maker, toolchain in found.items()
        if isinstance(toolchain, Toolchain) and toolchain.name != "nvcc"
    }
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
        pending = {maker: [pool.submit(_ask, job) for job in _jobs(some)] for maker, some in asked.items()}
        return {maker: [reply for job in jobs for reply in job.result()] for maker, jobs in pending.items()}


def _jobs(asked: list[Question]) -> Iterator[tuple[Question, ...]]:
    alike: dict[str, dict[tuple[str, Parameters], Question]] = {}
    for one in asked:
        if one.fits_with_others:
            alike.setdefault(one.architecture, {})[one.kernel.name, one.asked] = one
        else:
            yield (one,)
    yield from (tuple(some.values()) for some in alike.values())


@pytest.mark.parametrize("maker", MAKERS)
def test_compilers_and_profiles_agree(maker, answers):
    if maker not in answers:
        pytest.skip(MAKERS[maker])
    wrong = [
        f"{one.asked.fact}={one.asked.value} for {one.architecture}: {one.profile}; "
        f"{'accepted' if answer.accepted else answer.words or 'no answer'}"
        for one, answer in answers[maker]
        if answer.accepted is not None and answer.accepted != one.accepted
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("maker", MAKERS)
def test_few_questions_go_without_an_answer(maker, answers):
    """Only a missing header is a reason for none."""
    if maker not in answers:
        pytest.skip(MAKERS[maker])
    silent = {one.kernel.name: answer.words for one, answer in answers[maker] if answer.accepted is None}
    assert all("open source file" in words for words in silent.values()), silent
    if silent:
        pytest.skip(f"{', '.join(sorted(silent))} need CUDA's headers: pip install 'portlint[verify]'")


def test_host_parts_compile():
    """All of them in one program, with the host code that each item asks for."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc on PATH: install NVIDIA's CUDA toolkit")
    asked = [
        Question("sm_90", kernel, parameters(fact, "native"), True, "")
        for fact, kernel in facts().items()
        if kernel.proof == "run"
    ]
    with tempfile.TemporaryDirectory() as place:
        for name, text in asked[0].kernel.program.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        text = '#include "portlint.h"\n#include "child.h"\n#define main measured\n' + _together(asked)
        (Path(place) / "kernels.cu").write_text(text, encoding="utf-8")
        command = [nvcc, "-std=c++17", "-arch=sm_90", "-O0", "-Xcicc", "-O0", "-c", "-o", "kernels.o", "kernels.cu"]
        ended = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr


def test_facts_of_cxx_have_a_kernel_or_a_reason():
    stated = {fact for target in targets() for fact in target.profile.facts}
    owed = [
        name
        for name, term in vocabulary().items()
        if name in stated and name.startswith(tuple(f"{pack}." for pack in PACKS)) and not OF_PYTHON.search(name)
        if term.kernel not in kernels() and not term.unmeasured
    ]
    assert not owed


def test_every_kernel_measures_a_fact():
    named = {term.kernel for term in vocabulary().values()}
    assert not [name for name, some in kernels().items() if name not in named and some[0].route == "cuda"]


@pytest.mark.parametrize("fact", facts())
def test_kernels_know_their_items(fact):
    """A kernel that takes some items only refuses all others, and that must not pass for the compiler's answer."""
    kernel = facts()[fact]
    item = parameters(fact, "native").item
    text = kernel.program[kernel.file]
    assert "#error" not in text or f"defined(ITEM_{item})" in text


def test_folder_has_nothing_else():
    names = {entry.name for entry in (folder() / "cuda").iterdir()}
    assert names == {kernel.file for some in kernels().values() for kernel in some if kernel.route == "cuda"} | {
        "portlint.h", "child.h",
    }  # fmt: skip


def test_missing_header_is_no_answer():
    words = 'kernel.cu(4): catastrophic error: could not open source file "mma.h" (no directories in search list)'
    assert nvidia.answer(words, "", 0.0, accepted=False).accepted is None
    assert nvidia.answer("kernel.cu(4): error: no", "", 0.0, accepted=False).accepted is False
