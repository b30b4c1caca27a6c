"""Targets: what a machine is, as cited facts. A target is data; nothing here decides anything.

A profile is `portlint/targets/<name>.toml`, or any TOML file of the user's in the same shape; the words that it may use
are in `portlint/targets/facts.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import msgspec

from portlint.condition import UNKNOWN, Environment, Outcome, Value
from portlint.finding import Cite, StatedFact
from portlint.mistake import Mistake
from portlint.naming import declared, guess_platform
from portlint.regex import regex


class ProfileError(Mistake):
    """A profile that cannot be used; the message says which file, which key and what to do."""


class Level(StrEnum):
    """How well a target supports something."""

    NATIVE = "native"
    VARIANT = "variant"
    """only in a build for the architecture-specific variant (`sm_90a`), not in one for the plain architecture"""
    SLOW = "slow"
    EMULATED = "emulated"
    NARROWED = "narrowed"
    """accepted, and computed in a narrower type"""
    FALLBACK = "fallback"
    """runs on the host processor instead"""
    NONE = "none"


_LEVEL_PHRASES = {
    Level.NATIVE: "native {title}",
    Level.VARIANT: "{title} only in an architecture-specific build",
    Level.SLOW: "slow {title}",
    Level.EMULATED: "{title} only by emulation",
    Level.NARROWED: "{title} computed in a narrower type",
    Level.FALLBACK: "{title} only on the host processor",
    Level.NONE: "no {title}",
}


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One word of the vocabulary: a fact that a profile may state and a rule may assume."""

    kind: str
    """int | float | level | text | list | toolkit (text: one that the table of CUDA names knows) | operators (text: a
    library, with its column of the table of PyTorch's operators in parentheses)"""
    title: str
    """a noun phrase; for a level it follows "no", "native", "slow" """
    phrase: str = ""
    """how a message states the value: "{value} lanes per {warp}"; levels need none"""
    unit: str = ""
    kernel: str = ""
    """the verification kernel that measures it"""
    unmeasured: str = ""
    """why no kernel can measure it"""


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a profile says of one term."""

    value: Any
    cite: str | tuple[str, ...]
    """keys of the profile's [cites]"""
    note: str = ""
    since: str = ""
    """the software version from which it holds, such as "ROCm 7.0" """


class Pass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way in which the compiler sees a C++ file: the host pass, or the device pass for one architecture."""

    name: str
    defined: dict[str, int | str] = {}
    undefined: frozenset[str] = frozenset()
    variant: bool = False
    """an architecture-specific build: facts at level `variant` hold here"""

    @property
    def is_plain(self) -> bool:
        """A device pass of nvcc for a plain architecture."""
        return "__CUDA_ARCH__" in self.defined and not self.variant


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"pass_": "pass"}):
    """A profile file as it is written."""

    name: str
    title: str
    families: tuple[str, ...]
    """keys of a rule's remedies that apply, the nearest first; `*` is implied"""
    languages: frozenset[str]
    """what its code may be written in: python, cuda, triton, jax, pallas, nki; container: whether it runs in one"""
    facts: dict[str, Fact]
    cites: dict[str, Cite]
    platforms: frozenset[str] = frozenset()
    """platform words (`rocm`, `cuda`) that are true of this target when a name in code is made of them"""
    words: dict[str, str] = {}
    """how this vendor calls things in messages: warp, shared"""
    undefined: frozenset[str] = frozenset()
    """macros that no pass defines"""
    pass_: tuple[Pass, ...] = ()
    queries: dict[str, Any] = {}
    """what run-time queries of Python code answer here: `torch.cuda.is_available`, `device.type`; "none" is None"""
    products: dict[str, dict[str, Any]] = {}
    tools: dict[str, str] = {}
    """smi, profiler, and the verification routes"""
    analogs: dict[str, str] = {}
    """what this target has in place of a CUDA library"""


class Target(msgspec.Struct, frozen=True, dict=True):
    """A profile, ready to be asked."""

    profile: Profile
    path: str

    @property
    def name(self) -> str:
        """The name that `--target` takes and reports show."""
        return self.profile.name

    @property
    def title(self) -> str:
        """The name for people."""
        return self.profile.title

    def fact(self, name: str) -> Fact | None:
        """What the profile says of a term, or None."""
        return self.profile.facts.get(name)

    def cites(self, fact: Fact) -> tuple[Cite, ...]:
        """The sources of a fact."""
        keys = (fact.cite,) if isinstance(fact.cite, str) else fact.cite
        return tuple(self.profile.cites[key] for key in keys)

    def state(self, name: str) -> StatedFact:
        """A fact as messages and reports show it."""
        term, fact = vocabulary()[name], self.fact(name)
        if fact is None:
            return StatedFact(name, None, f"no known value for {term.title}")
        return StatedFact(name, fact.value, self._phrase(term, fact), self.cites(fact)[0], fact.note)

    def _phrase(self, term: Term, fact: Fact) -> str:
        words = {"warp": "warp", "shared": "shared memory", **self.profile.words}
        if term.kind == "level":
            return _LEVEL_PHRASES[Level(fact.value)].format(title=term.title.format(**words))
        value = fact.value
        shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
            shown = f"{value:,}"
        return (term.phrase or "{value} for {title}").format(value=shown, title=term.title, **words)

    def passes(self) -> tuple[tuple[Pass, Environment], ...]:
        """Each compiler pass over a C++ file with the macros that it knows; host code may ask queries as well."""
        return self._environments()

    def queries(self) -> Environment:
        """What Python code learns when it asks where it runs."""
        return self._query_environment()

    @cache  # noqa: B019  (targets live as long as the process)
    def _environments(self) -> tuple[tuple[Pass, Environment], ...]:
        profile = self.profile
        queries = self._query_environment().values
        return tuple(
            (
                one,
                Environment(
                    {**queries, "build.is_plain": one.is_plain, **one.defined},
                    profile.undefined | one.undefined,
                    self._guess_in(one),
                ),
            )
            for one in profile.pass_
        )

    @cache  # noqa: B019
    def _query_environment(self) -> Environment:
        values = {name: _plain(value) for name, value in self.profile.queries.items()}
        return Environment(values, frozenset(), self._guess)

    def _guess_in(self, one: Pass) -> Callable[[str], Outcome]:
        architecture = int(one.defined.get("__CUDA_ARCH__", 0)) // 10

        def guess(name: str) -> Outcome:
            if test := _OF_CUTLASS.fullmatch(name):  # the host pass, 0, has none of them
                return _is_cutlass_on(test, architecture)
            return self._guess(name)

        return guess

    def _guess(self, name: str) -> Outcome:
        if declared(name) is not None:
            return guess_platform(name, self._platforms)
        width = self.fact("lanes.width")
        package = self.fact(f"library.{name.removeprefix('installed ')}") if name.startswith("installed ") else None
        if family := _GFX_FAMILY.fullmatch(name):
            return str(self.profile.queries.get("gcn_arch", "")).startswith(family[1])
        if package is not None:
            return False if package.value == "none" else UNKNOWN
        # AMD's word, so a project's macro for the device's width; a macro named for the warp may be 32 everywhere
        if name.endswith("_WAVEFRONT_SIZE") and not name.startswith("__") and width is not None:
            return int(width.value)
        return guess_platform(name, self._platforms)

    @cached_property
    def _platforms(self) -> frozenset[str]:
        return self.profile.platforms | {f"@{self.name}"}

    def __hash__(self) -> int:
        return hash(self.name)


def _plain(value: Any) -> Value:
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    return None if value == "none" else value


_GFX_FAMILY = regex(r"__(gfx\d+)__")
"""`__gfx94__`, `__gfx12__`: what projects define for the gfx targets whose names begin so"""
_OF_CUTLASS = regex(
    r"(?:CUTE|CUTLASS)_ARCH_\w*?(?:SM(?P<number>\d{2,3})(?P<suffix>[AF]?)|TCGEN(?:05)?|TMEM)\w*_ENABLED"
)


def _is_cutlass_on(test: re.Match[str], architecture: int) -> Outcome:
    """Whether CUTLASS's macro for an architecture can be defined in a device pass for another.

    `..._SM90A_ENABLED` is for sm_90a alone, `F` for a family, a plain number for that part or for all from it on.
    """
    if test["number"] is None:  # tensor memory: data-centre Blackwell
        return UNKNOWN if architecture // 10 in (10, 11) else False
    number = int(test["number"])
    fits = {"A": architecture == number, "F": architecture // 10 == number // 10}.get(
        test["suffix"], architecture >= number
    )
    return UNKNOWN if fits else False


@cache
def vocabulary() -> Mapping[str, Term]:
    """Every fact that there is, by name, from facts.toml."""
    terms: dict[str, Term] = _decode(_FOLDER / "facts.toml", dict[str, Term])
    return terms


_FOLDER = Path(__file__).parent / "targets"
"""not by way of importlib.resources, which takes longer to import than the profiles to read"""


def _decode(path: Path, kind: Any) -> Any:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise ProfileError(f"{path}: {error}") from error
    except OSError as error:
        raise ProfileError(f"cannot read the target profile {path}: {error.strerror}") from error


_NO_PROFILES = ("facts", "aliases")


def shipped() -> Iterator[str]:
    """The names of the profiles that come with portlint, sorted."""
    names = (entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir() if entry.name.endswith(".toml"))
    yield from sorted(name for name in names if name not in _NO_PROFILES)


@cache
def aliases() -> Mapping[str, str]:
    """Every name that `--target` takes -> the name of the profile, be it shipped or of an installed package."""
    return {**_own_names(), **{name: name for name in installed()}}


class Installed(msgspec.Struct, frozen=True):
    """A profile that an installed package brings."""

    path: Path
    package: str


@cache
def installed() -> Mapping[str, Installed]:
    """The profiles of installed packages by name: `<name>.toml` in what the entry points `portlint.targets` name.

    No code of these packages is run. Raises ProfileError where a package is not there, or a name is taken already.
    """
    from portlint.plugins import TARGETS, entries

    found: dict[str, Installed] = {}
    for entry in entries(TARGETS):
        for path in _profiles_of(entry.module, entry.name):
            name = path.stem
            if name in found or name in _own_names():
                owner = f"the package '{found[name].package}'" if name in found else "portlint"
                raise ProfileError(f"{path}: there is a target '{name}' already, in {owner}: give it another name.")
            found[name] = Installed(path, entry.module)
    return dict(sorted(found.items()))


def _profiles_of(package: str, entry: str) -> list[Path]:
    from importlib.util import find_spec

    top, *inner = package.split(".")
    spec = find_spec(top)  # of what is inside, it would import the package around it
    places = spec.submodule_search_locations if spec is not None else None
    folders = [folder for place in places or () if (folder := Path(place, *inner)).is_dir()]
    if not folders:
        raise ProfileError(
            f"the entry point '{entry}' of portlint.targets names '{package}': there is no such package."
        )
    return sorted(path for folder in folders for path in folder.glob("*.toml"))


@cache
def _own_names() -> Mapping[str, str]:
    """Every name of a profile that comes with portlint -> the profile's name."""
    table: dict[str, list[str]] = _decode(_FOLDER / "aliases.toml", dict[str, list[str]])
    names = {name: name for name in shipped()}
    for name, others in table.items():
        names.update((other, name) for other in others)
    return names


def load(name: str) -> Target:
    """The target of that name or alias, from portlint or an installed package, or of a path to a TOML file.

    Raises ProfileError where there is none, or where it is not well formed.
    """
    if not name.endswith(".toml"):
        return _named(name)
    target = _load(Path(name))
    check(target.profile, name)
    return target


@cache
def _named(name: str) -> Target:
    others = installed()
    path = _FOLDER / f"{name}.toml"
    if name in others:
        return _installed(name, others[name].path)
    if name not in _NO_PROFILES and path.is_file():
        return _load(path)  # the tests hold these against the vocabulary
    known = aliases()
    if name.lower() not in known:
        raise ProfileError(f"there is no target '{name}'.{_nearest(name, known)} 'portlint target' lists them all.")
    return _named(known[name.lower()])


def _installed(name: str, path: Path) -> Target:
    target = _load(path)
    if target.name != name:
        raise ProfileError(f"{path}: its name is '{target.name}'; in a package a profile is named as its file is.")
    check(target.profile, str(path))
    return target


def _load(path: Path) -> Target:
    profile: Profile = _decode(path, Profile)
    return Target(profile, str(path))


def check(profile: Profile, path: str) -> None:
    """Raise ProfileError for a fact that is not in the vocabulary, has another kind of value, or cites nothing."""
    for name, fact in profile.facts.items():
        _check_fact(path, name, fact, profile)


def _nearest(name: str, known: Mapping[str, str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), known, n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


_KINDS: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "text": (str,),
    "toolkit": (str,),
    "operators": (str,),
    "list": (list,),
    "level": (str,),
}


def _check_fact(path: str, name: str, fact: Fact, profile: Profile) -> None:
    term = vocabulary().get(name)
    if term is None:
        raise ProfileError(f"{path}: '{name}' is not a fact; portlint/targets/facts.toml has the list.")
    if (
        isinstance(fact.value, bool)
        or not isinstance(fact.value, _KINDS[term.kind])
        or (term.kind == "level" and fact.value not in Level.__members__.values())
    ):
        wanted = " | ".join(Level) if term.kind == "level" else term.kind
        raise ProfileError(f"{path}: '{name}' = {fact.value!r} is not a value of kind {wanted}.")
    keys = (fact.cite,) if isinstance(fact.cite, str) else fact.cite
    missing = [key for key in keys if key not in profile.cites]
    if missing or not keys:
        raise ProfileError(f"{path}: '{name}' cites {', '.join(missing) or 'nothing'}, which [cites] does not have.")
