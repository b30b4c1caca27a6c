"""The verification kernels: ordinary source files, each of which measures one fact or a family of like facts.

`kernels/<route>/<name>.<ext>`: the name is the one that the vocabulary gives a fact, the route is what the file is
written in. A file begins with a comment or docstring that says what it measures; its last line is `Proof: compile`
where the compiler's answer decides, or `Proof: run` where compiling proves nothing yet. A line `Options: ...` before it
has what NVIDIA's compilers need besides.

A kernel gets two parameters: ITEM, the last word of the fact's name or the item of a list that the code relies on, and
VALUE, the value that is to be tested. In C++ they are the macros `ITEM_<item>` and `VALUE`; in Python the options
`--item` and `--value`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from portlint.target import vocabulary

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from portlint.target import Target

ROUTES: Mapping[str, str] = {
    "cuda": ".cu",
    "triton": ".py",
    "torch": ".py",
    "torch_xla": ".py",
    "jax": ".py",
    "nki": ".py",
}
"""what a kernel may be written in -> the ending of its file"""

_LANGUAGES = {"cuda": "cuda", "triton": "triton", "jax": "jax", "nki": "nki"}
"""routes that a target has if its profile names the language"""
_OPTIONS = re.compile(r"^\W*Options: (.*)$", re.MULTILINE)
_PROOF = re.compile(r"^\W*Proof: (compile|run)\W*$", re.MULTILINE)


class Kernel(msgspec.Struct, frozen=True, order=True):
    """A verification kernel in one of its languages."""

    name: str
    route: str
    about: str
    """what it measures, in prose"""
    proof: str
    """the first level whose answer decides: compile or run"""
    options: tuple[str, ...] = ()
    """what NVIDIA's compilers need besides"""

    @property
    def file(self) -> str:
        """The name of its file."""
        return self.name + ROUTES[self.route]

    @property
    def program(self) -> Mapping[str, str]:
        """Its own file and those that the kernels of its route share, name -> text, its own first."""
        place = folder() / self.route
        shared = sorted(
            (entry for where in (place, folder()) for entry in where.iterdir() if _is_shared(entry.name, self.route)),
            key=lambda entry: entry.name,
        )
        return {entry.name: entry.read_text(encoding="utf-8") for entry in (place / self.file, *shared)}

    @property
    def digest(self) -> str:
        """Changes with any of its files, so that evidence of an older kernel can be told."""
        text = "\0".join(part for item in self.program.items() for part in item)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _is_shared(name: str, route: str) -> bool:
    return name.endswith(".h") if ROUTES[route] == ".cu" else name.startswith("_") and name.endswith(".py")


class Parameters(msgspec.Struct, frozen=True, order=True):
    """What a kernel is asked for one finding or fact."""

    fact: str
    item: str
    value: str
    """as a literal of the kernel's language; "" where the fact has none that a kernel could take"""


def folder() -> Traversable:
    """Where the kernels are."""
    return files("portlint") / "verify" / "kernels"


@cache
def kernels() -> Mapping[str, tuple[Kernel, ...]]:
    """The kernels of each name, in the order of ROUTES. Raises ValueError for a file without a `Proof:` line."""
    found: dict[str, tuple[Kernel, ...]] = {}
    for route, ending in ROUTES.items():
        for kernel in _of_route(route, ending):
            found[kernel.name] = (*found.get(kernel.name, ()), kernel)
    return found


def _of_route(route: str, ending: str) -> Iterator[Kernel]:
    place = folder() / route
    if not place.is_dir():
        return
    for entry in sorted(place.iterdir(), key=lambda one: one.name):
        if entry.name.endswith(ending) and not entry.name.startswith("_"):
            about = _header(entry.read_text(encoding="utf-8"))
            proof = _PROOF.search(about)
            if proof is None:
                raise ValueError(f"{entry.name}: the header of a kernel ends with 'Proof: compile' or 'Proof: run'")
            name = entry.name.removesuffix(ending)
            options = _OPTIONS.search(about)
            end = options.start() if options else proof.start()
            yield Kernel(name, route, about[:end].strip(), proof[1], tuple(options[1].split()) if options else ())


def _header(text: str) -> str:
    """The comment or docstring that a file begins with."""
    if text.startswith('"""'):
        return text[3:].partition('"""')[0]
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").strip())
    return "\n".join(lines)


def routes(target: Target) -> tuple[str, ...]:
    """The routes that code for a target may be written in."""
    languages, platforms = target.profile.languages, target.profile.platforms
    has = {route: language in languages for route, language in _LANGUAGES.items()}
    has["torch_xla"] = "xla" in platforms
    has["torch"] = "python" in languages and "xla" not in platforms
    return tuple(route for route in ROUTES if has[route])


def of_fact(fact: str, target: Target) -> tuple[Kernel, ...]:
    """The kernels that measure a fact on a target; none where there is none, or the vocabulary says why not."""
    name = vocabulary()[fact].kernel
    possible = routes(target)
    return tuple(kernel for kernel in kernels().get(name, ()) if kernel.route in possible)


def parameters(fact: str, assumed: Any) -> Parameters:
    """What to ask of the kernel of a fact: `assumed` is the assumption of a finding as JSON has it."""
    value = assumed
    item = fact.rpartition(".")[2]
    if isinstance(assumed, Mapping):
        (kind, value), *_ = assumed.items()
        if kind in ("has", "any_of"):
            item, value = str(value if kind == "has" else value[0]), ""
    if isinstance(value, bool):
        value = int(value)
    return Parameters(fact, item, "" if value is None or isinstance(value, list | tuple) else _literal(value))


def _literal(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
