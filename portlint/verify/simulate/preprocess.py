"""The text that a compiler for one machine sees: conditionals decided, macros replaced, lines kept.

A line of the result is the same line of its file, so that whatever happens in it can be reported there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from portlint.condition import UNKNOWN, Environment, Literal, Name, evaluate
from portlint.source import nearby
from portlint.source.cxx.conditions import parse_condition
from portlint.source.cxx.lexer import blank, mask
from portlint.source.cxx.preprocessor import Directive, Macro, Preprocessor
from portlint.source.cxx.users import INCLUDE_ROOTS

if TYPE_CHECKING:
    from portlint.condition import Expression
    from portlint.source import Source
    from portlint.verify.simulate.machine import Edit, Machine

_PLATFORMS: Mapping[str, Mapping[str, str]] = {
    "cuda": {
        "__CUDACC__": "1", "__NVCC__": "1", "__CUDA_ARCH__": "800", "CUDA_VERSION": "12040", "CUDART_VERSION": "12040",
        "__CUDACC_VER_MAJOR__": "12",
    },
    "rocm": {
        "__HIPCC__": "1", "__HIP__": "1", "__HIP_PLATFORM_AMD__": "1", "__HIP_DEVICE_COMPILE__": "1", "USE_ROCM": "1",
        "__HIP_PLATFORM_HCC__": "1", "__AMDGCN__": "1", "HIP_VERSION": "70000000", "HIP_VERSION_MAJOR": "7",
        "HIP_ENABLE_WARP_SYNC_BUILTINS": "1",
    },
}  # fmt: skip
_WAVES_OF_64 = {"__GFX9__": "1", "__gfx942__": "1", "__AMDGCN_WAVEFRONT_SIZE": "64", "__AMDGCN_WAVEFRONT_SIZE__": "64"}
_WAVES_OF_32 = {
    "__GFX11__": "1",
    "__gfx1100__": "1",
    "__AMDGCN_WAVEFRONT_SIZE": "32",
    "__AMDGCN_WAVEFRONT_SIZE__": "32",
}
_BUILT_IN = {"INFINITY": "(__builtin_inff())", "NAN": '(__builtin_nanf(""))'}

_WORDS = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|[A-Za-z_$][\w$]*|\.?[0-9](?:[\w.]|[eEpP][+-])*|\S|\s+')
_NOT_CODE = re.compile(rb"//(?:[^\\\n]|\\.)*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.){1,4}'", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_$]")
_INCLUDE = re.compile(r"""\s*(?:"([^"]+)"|<(\w+)(/[^>]+)>)""")
_DROPPED = re.compile(
    rb"\b(?:__launch_bounds__|__align__|alignas|__attribute__|__declspec|__cluster_dims__)\s*\((?:[^()]|\([^()]*\))*\)"
    rb"|\b(?:__restrict__|__restrict|__forceinline__|__noinline__|__grid_constant__|__inline__|volatile|noexcept)\b"
    rb"|\[\[\w+(?:::\w+)?(?:\([^()]*\))?\]\]"
    rb"|\b(?:TORCH_LIBRARY|PYBIND11_MODULE)\w*\s*\([^()]*\)"
    rb"|(?<=\])\s*(?:__host__|__device__)(?:\s+(?:__host__|__device__))*(?=\s*\()"
)
_INCLUDE_ROOTS = (*INCLUDE_ROOTS, "includes", "inc")
_DEEPEST = 40
_MOST_HEADERS = 40
_MOST_TEXT = 2_000_000


class Unit(msgspec.Struct, frozen=True):
    """One file as the compiler sees it."""

    path: str
    """"" for the file that was asked for"""
    text: bytes


class _States:
    """What `#if` asks for, answered by the macros that are defined at that point."""

    def __init__(self, macros: Mapping[str, Macro]) -> None:
        self._macros = macros

    def defined(self, name: str) -> Expression:
        return Literal(name in self._macros)

    def value(self, name: str) -> Expression:
        macro = self._macros.get(name)
        if macro is None:
            return Literal(0)
        if macro.parameters is not None or macro.body == name:
            return Name(name)
        return parse_condition(macro.body, self)


def preprocess(source: Source, machine: Machine) -> list[Unit]:
    """The file and the headers of its tree that it includes, headers first."""
    width = str(machine.width)
    given = {**_BUILT_IN, "C10_WARP_SIZE": width, **_PLATFORMS[machine.platform]}
    if machine.platform == "rocm":
        given |= _WAVES_OF_64 if machine.width == 64 else _WAVES_OF_32
    given |= machine.macros
    macros = {name: Macro(name, None, body, 0, 0, 0) for name, body in given.items()}
    state = _Files(macros, machine.edits)
    state.read(source.text, source.file, "")
    return state.units


class _Files:
    def __init__(self, macros: dict[str, Macro], edits: Sequence[Edit]) -> None:
        self.macros = macros
        self.edits = edits
        self.units: list[Unit] = []
        self._seen: set[str] = set()

    def read(self, text: bytes, file: str, path: str) -> None:
        """Append the units of a file: those of its headers, then its own."""
        for edit in self.edits:
            if edit.file == file:
                text = _edited(text, edit)
        code = mask(text)
        text = _NOT_CODE.sub(_kept, text)
        preprocessor = Preprocessor(code)
        defined = {one.start: one for many in preprocessor.macros.values() for one in many}
        page: list[bytes] = []
        done, live = 0, [True]
        taken: list[bool] = []
        for directive in preprocessor.directives:
            page.append(self._code(text[done : directive.start], live[-1]))
            page.append(blank(text[directive.start : directive.end]))
            done = directive.end
            self._directive(directive, defined, live, taken, file, text)
        page.append(self._code(text[done:], live[-1]))
        self.units.append(Unit(path, _without_attributes(b"".join(page))))

    def _directive(
        self,
        directive: Directive,
        defined: Mapping[int, Macro],
        live: list[bool],
        taken: list[bool],
        file: str,
        text: bytes,
    ) -> None:
        kind = directive.kind
        if kind in ("if", "ifdef", "ifndef"):
            holds = live[-1] and self._holds(kind, directive.text)
            live.append(holds)
            taken.append(holds)
        elif kind in ("elif", "elifdef", "elifndef") and taken:
            holds = live[-2] and not taken[-1] and self._holds(kind.removeprefix("el"), directive.text)
            live[-1] = holds
            taken[-1] = taken[-1] or holds
        elif kind == "else" and taken:
            live[-1] = live[-2] and not taken[-1]
        elif kind == "endif" and taken:
            live.pop()
            taken.pop()
        elif not live[-1]:
            return
        elif kind == "define":
            macro = defined.get(directive.start)
            if macro is not None:
                self.macros[macro.name] = macro
        elif kind == "undef":
            self.macros.pop(directive.text.strip(), None)
        elif kind == "include" and file:
            # the name is in quotes, which the masked text leaves empty
            named = _INCLUDE.match(text[directive.argument : directive.end].decode(errors="replace"))
            if named and named[1]:
                self._include(file, named[1])
            elif named and named[2] in file.split(os.sep):  # a library names its own headers like others'
                self._include(file, named[2] + named[3])

    def _include(self, file: str, name: str) -> None:
        found = nearby.find(file, name, _INCLUDE_ROOTS)
        if found is None or found in self._seen or len(self._seen) > _MOST_HEADERS:
            return
        self._seen.add(found)
        text = nearby.read(found)
        if text is not None and len(text) < _MOST_TEXT:
            self.read(text, found, found)

    def _holds(self, kind: str, text: str) -> bool:
        if kind in ("ifdef", "ifndef"):
            words = text.split()
            return bool(words) and (words[0] in self.macros) is (kind == "ifdef")
        value = evaluate(parse_condition(text, _States(self.macros)), Environment({}))
        return value is not UNKNOWN and bool(value)

    def _code(self, text: bytes, live: bool) -> bytes:
        return self._expand(text.decode(errors="replace"), frozenset(), 0).encode() if live else blank(text)

    def _expand(self, text: str, active: frozenset[str], depth: int) -> str:
        if depth > _DEEPEST or not any(word in self.macros for word in set(re.findall(r"[A-Za-z_$][\w$]*", text))):
            return text
        words = _WORDS.findall(text)
        out: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            macro = self.macros.get(word) if _WORD.match(word) and word not in active else None
            if macro is None:
                out.append(word)
                continue
            inner = active | {word}
            if macro.parameters is None:
                out.append(self._expand(_flat(macro.body), inner, depth + 1))
                continue
            call = _arguments(words, at)
            if call is None:
                out.append(word)
                continue
            arguments, end = call
            lines = "\n" * "".join(words[at:end]).count("\n")
            at = end
            body = self._substituted(macro, arguments, active, depth)
            out.append(self._expand(body, inner, depth + 1) + lines if body is not None else word)
        return "".join(out)

    def _substituted(self, macro: Macro, arguments: list[str], active: frozenset[str], depth: int) -> str | None:
        names = list(macro.parameters or ())
        variadic = bool(names) and names[-1].endswith("...")
        if variadic:
            names[-1] = names[-1].removesuffix("...").strip() or "__VA_ARGS__"
            fixed = len(names) - 1
            arguments = [*arguments[:fixed], ",".join(arguments[fixed:])]
        if not names and arguments == [""]:
            arguments = []
        if len(arguments) != len(names):
            return None
        raw = {name: _flat(one).strip() for name, one in zip(names, arguments, strict=True)}
        expanded = {name: self._expand(one, active, depth + 1) for name, one in raw.items()}
        words = _WORDS.findall(_flat(macro.body))
        out: list[str] = []
        index = 0
        while index < len(words):
            word = words[index]
            if word == "#" and index + 1 < len(words) and words[index + 1] == "#":
                while out and out[-1].isspace():
                    out.pop()
                index += 2
                while index < len(words) and words[index].isspace():
                    index += 1
                if index < len(words):
                    out.append(raw.get(words[index], words[index]))
            elif word == "#" and index + 1 < len(words) and words[index + 1] in raw:
                out.append('"' + raw[words[index + 1]].replace("\\", "\\\\").replace('"', '\\"') + '"')
                index += 1
            else:
                following = "".join(words[index + 1 : index + 4]).lstrip()
                out.append(raw[word] if word in raw and following.startswith("##") else expanded.get(word, word))
            index += 1
        return "".join(out)


def _edited(text: bytes, edit: Edit) -> bytes:
    lines = text.splitlines(keepends=True)
    lines[edit.line - 1] = edit.text.encode() + b"\n"
    return b"".join(lines)


def _flat(text: str) -> str:
    return text.replace("\\\n", " ").replace("\n", " ").replace("\r", " ")


def _kept(found: re.Match[bytes]) -> bytes:
    return blank(found[0]) if found[0].startswith(b"/") else found[0]


def _arguments(words: list[str], at: int) -> tuple[list[str], int] | None:
    """The arguments of a macro from its bracket on, and where the words go on; None where there is no bracket."""
    while at < len(words) and words[at].isspace():
        at += 1
    if at >= len(words) or words[at] != "(":
        return None
    depth, current = 0, ""
    found: list[str] = []
    for index, word in enumerate(words[at:], at):
        if word in "([{":
            depth += 1
            if depth == 1:
                continue
        elif word in ")]}":
            depth -= 1
            if depth == 0:
                return [*found, current], index + 1
        elif word == "," and depth == 1:
            found.append(current)
            current = ""
            continue
        current += word
    return None


def _without_attributes(text: bytes) -> bytes:
    return _DROPPED.sub(lambda found: blank(found[0]), text)
