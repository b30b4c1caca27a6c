"""What rules are written with. A rule module imports this module and nothing else of the project.

A rule module holds one `Rule` named `rule`, and generator functions under its decorators that yield `Hit`s. The
module's path is the rule's name, its docstring is its documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from portlint.condition import Environment, Guard, Literal, Name, Op, Value, any_way, is_live, names, words_of
from portlint.finding import Edit
from portlint.naming import declared
from portlint.regex import regex
from portlint.source import amdgcn, architectures, ptx
from portlint.source.node import Node
from portlint.source.python.kernels import MARKS as PYTHON_KERNELS
from portlint.source.python.pallas import Array, Cut, Side
from portlint.source.python.pipelines import PIPELINES, Load, Product, Stage
from portlint.source.python.triton import Configuration
from portlint.source.python.values import CREATORS as TORCH_CREATORS
from portlint.source.python.values import dtype_bytes
from portlint.source.recipe import Entry
from portlint.tables import cuda_name, is_cuda_name, torch_operators, triton_functions, triton_vendor

__all__ = [
    "ACCELERATOR",
    "DEVICE_PASS",
    "HOST_PASS",
    "PIPELINES",
    "PYTHON_KERNELS",
    "TORCH_CREATORS",
    "AnyOf",
    "Array",
    "Assumed",
    "AtLeast",
    "AtMost",
    "Configuration",
    "Cut",
    "Edit",
    "Entry",
    "Guard",
    "Has",
    "Hit",
    "Hits",
    "Load",
    "Node",
    "Product",
    "Rule",
    "Side",
    "Stage",
    "Value",
    "add_argument",
    "amdgcn",
    "answers",
    "any_of",
    "any_way",
    "architectures",
    "asked",
    "asked_by",
    "asks_for_platform",
    "at_least",
    "at_most",
    "cuda_name",
    "divides",
    "dtype_bytes",
    "has",
    "in_generation",
    "is_cuda_name",
    "may_run",
    "mended_by_accelerator",
    "none_runs",
    "on_platform",
    "one_runs",
    "ptx",
    "put_after",
    "put_before",
    "regex",
    "replace",
    "torch_operators",
    "triton_functions",
    "triton_vendor",
    "unless",
    "when",
    "words_of",
]


class AtMost(msgspec.Struct, frozen=True):
    """The code needs this much, and assumes that the target has at least that."""

    needed: float


class AtLeast(msgspec.Struct, frozen=True):
    """The code brings this much, and assumes that the target asks for no more."""

    given: float


class Has(msgspec.Struct, frozen=True):
    """The code assumes that a list fact contains this item."""

    item: str


def at_most(needed: float) -> AtMost:
    """Assume that `needed` is at most what the target states."""
    return AtMost(needed)


def at_least(given: float) -> AtLeast:
    """Assume that `given` is at least what the target asks for."""
    return AtLeast(given)


def has(item: str) -> Has:
    """Assume that the target's list holds `item`."""
    return Has(item)


class AnyOf(msgspec.Struct, frozen=True):
    """The code serves these, and assumes that the target is one of them."""

    items: tuple[str, ...]


def any_of(items: Iterable[str]) -> AnyOf:
    """Assume that the target's list holds one of `items`."""
    return AnyOf(tuple(items))


class Divides(msgspec.Struct, frozen=True):
    """The code has a size, and assumes that the number that the target wants divides it."""

    size: int


def divides(size: int) -> Divides:
    """Assume that the target's number divides `size`."""
    return Divides(size)


DEVICE_PASS = Guard(
    Op("or", (Op("defined", (Name("__CUDA_ARCH__"),)), Op("defined", (Name("__HIP_DEVICE_COMPILE__"),)))),
    True,
    "device code",
    0,
)
"""the guard of what only device code reads: a constant that the host pass sees with another value is none of it"""


HOST_PASS = Guard(DEVICE_PASS.condition, False, "host code", 0)
"""the guard of what only host code reads"""


def on_platform(word: str) -> Guard:
    """A guard that holds only on the targets of a platform, for code that other platforms never read."""
    return Guard(Name(f"is_{word}"), True, f"is_{word}", 0)


def asked(query: str) -> tuple[Guard, Guard]:
    """The guards of what holds where a target answers a query with true, and of what holds where it does not."""
    return Guard(Name(query), True, query, 0), Guard(Name(query), False, query, 0)


def answers(query: str, value: str) -> Guard:
    """A guard that holds only where a target answers a query so."""
    return Guard(Op("==", (Name(query), Literal(value))), True, f"{query} {value}", 0)


def in_generation(major: int) -> Guard:
    """A guard that holds only on devices whose compute capability has that major version."""
    own = Op("item", (Name("device.capability"), Literal(0)))
    return Guard(Op("==", (own, Literal(major))), True, f"compute capability {major}.x", 0)


def when(query: str) -> Guard:
    """A guard that holds where a query, such as "torch.cuda.is_available", is true."""
    return Guard(Name(query), True, query, 0)


def unless(query: str) -> Guard:
    """A guard that holds where a query, such as "torch.accelerator.is_available", is not true."""
    return Guard(Name(query), False, f"not {query}", 0)


def asked_by(guards: Sequence[Guard]) -> frozenset[str]:
    """Every macro and query that guards ask for."""
    return frozenset().union(*(names(guard.condition) for guard in guards))


def asks_for_platform(guards: Sequence[Guard], *words: str) -> bool:
    """Whether guards ask for a macro or a query with one of these words in its name, or for one declared to mean it."""
    return any(not set(words).isdisjoint({*words_of(name), *(declared(name) or ())}) for name in asked_by(guards))


def may_run(guards: Iterable[Guard], answers: Mapping[str, Value]) -> bool:
    """Whether code under guards can run where queries are answered so; what is not known does not stop it."""
    return is_live(guards, Environment(answers)) is not False


_MOST_PLACES = 256
"""uses that are looked at; each place that defines what has more would look at all of them"""


def one_runs(places: Sequence[Node]) -> Guard:
    """A guard that holds where at least one of several nodes can run; of very many, one surely can."""
    ways = (place.guards for place in places) if len(places) <= _MOST_PLACES else ((),)
    return any_way(ways, places[0].text, places[0].line)


def none_runs(places: Sequence[Node]) -> Guard:
    """A guard that holds where none of several nodes can run."""
    one = one_runs(places)
    return Guard(one.condition, False, one.text, one.line)


T = TypeVar("T", bool, int, str, tuple[str, ...])
"""what an option can be"""

Assumed: TypeAlias = "int | float | str | AtMost | AtLeast | Has | AnyOf | Divides"
"""A plain value is assumed to equal the fact; for a level fact write the level, mostly "native"."""


def add_argument(call: Node, text: str) -> Edit:
    """The edit that gives a Python call one more argument, on a line of its own where the last one has that.

    The call has arguments.
    """
    last = call["arguments"].children[-1]
    lead = last.source.text[: last.start].rpartition(b"\n")[2]
    alone = not lead.strip() and last.source.text[last.start - 1 : last.start] != b"("
    return put_after(last, f",\n{lead.decode()}{text}" if alone else f", {text}")


class Hit(msgspec.Struct, frozen=True):
    """An assumption seen in one place. It knows no target."""

    node: Node
    """what to point at: keep it small, the literal rather than the statement"""
    assumes: Mapping[str, Assumed] | None = None
    """instead of the rule's own, where the code says a value"""
    words: Mapping[str, object] = {}
    """more placeholders for the message"""
    guards: tuple[Guard, ...] | None = None
    """the conditions under which it is live; the node's own where the rule says nothing"""
    otherwise: str | None = None
    """instead of the rule's own"""
    language: str = ""
    """the kernel language it concerns, where that is not the file's: "triton" in a Python file"""
    edits: tuple[Edit, ...] = ()
    """what mends it: bytes of the node's source; all of them are made, or none"""
    safe: bool = False
    """whether the edits change nothing on the platform that the code was written for"""


Hits: TypeAlias = Iterator[Hit]


def replace(node: Node, text: str) -> Edit:
    """The edit that writes a text in place of a node."""
    return Edit(node.start, node.end, text)


def put_before(node: Node, text: str) -> Edit:
    """The edit that writes a text before a node."""
    return Edit(node.start, node.start, text)


def put_after(node: Node, text: str) -> Edit:
    """The edit that writes a text after a node."""
    return Edit(node.end, node.end, text)


ASKS_FOR_DEVICE = ("cuda", "torch", "triton", "jax", "capability", "device", "gpu", "GPU")
"""what Python speaks of where it asks for the device, in whatever spelling: for `mentions`"""
ACCELERATOR = "torch.accelerator.is_available"
"""what stands for `torch.cuda.is_available` on any machine, since PyTorch 2.6"""


def mended_by_accelerator(node: Node, guards: tuple[Guard, ...], edits: tuple[Edit, ...]) -> Hits:
    """A hit whose edits ask `torch.accelerator`: for targets that it does not know, the same hit without them."""
    if edits:
        yield Hit(node, guards=(*guards, when(ACCELERATOR)), edits=edits)
        guards = (*guards, unless(ACCELERATOR))
    yield Hit(node, guards=guards)


class Option(Generic[T]):
    """What a project may set for a rule: `[tool.portlint.rules."pack/name"]`."""

    def __init__(self, name: str, default: T, about: str) -> None:
        self.name = name
        self.default: T = default
        self.about = about
        """one line about what it is for"""
        self.value: T = default
        """what detectors ask for: as configured for this run"""

    @property
    def kind(self) -> str:
        """The type of its values, for people."""
        return _KINDS[type(self.default)]

    @property
    def type(self) -> Any:
        """The type of its values."""
        return tuple[str, ...] if isinstance(self.default, tuple) else type(self.default)

    def set(self, value: object) -> None:
        """Take a value as a configuration has it. Raises ValueError where it is of another type."""
        try:
            self.value = msgspec.convert(value, self.type)
        except msgspec.ValidationError:
            raise ValueError(f"must be {self.kind}") from None


_KINDS = {bool: "true or false", int: "a whole number", str: "a string", tuple: "a list of strings"}

Detect: TypeAlias = Callable[..., Hits]


class Detector(msgspec.Struct, frozen=True):
    """What to look at, and the function that looks. Captures become arguments of that name.

    Either a query of its own, or names: calls of functions (`kind` "call") or references ("name") by these names, or a
    test of identifiers ("word").
    """

    language: str
    """python | cuda | cmake: the grammar, code in another language has no such nodes; recipe: all of its formats"""
    detect: Detect
    query: str = ""
    names: frozenset[str] = frozenset()
    """Python: qualified names, or `.method` names; C++: the last parts of function names; recipes: kinds of entry"""
    kind: str = ""
    wanted: Callable[[str], bool] | None = None
    """C++: which identifiers to look at, where they are too many for a list"""
    mentions: tuple[str, ...] = ()
    """what a file must have one of, anywhere in its text, for the detector to see anything; () where that is open"""

    @property
    def last_parts(self) -> frozenset[str]:
        """The identifiers that an anchor of a detector with names may end in."""
        return frozenset(name.rpartition(".")[2] for name in self.names)


class Rule:
    """One belief about the machine.

    assumes: the facts believed, by name; a hit may pick some of them, and where it is empty each hit brings its own.
    otherwise: the verdict where a fact that is not a level differs.
    message: one sentence with the code in single quotes; `{text}` is the code, `{target}` the target's title, `{fact}`
    what the target states, `{assumed}` the assumed value. remedy: what to do, by target family, `*` for all others.
    """

    def __init__(
        self,
        *,
        assumes: Mapping[str, Assumed],
        message: str,
        remedy: Mapping[str, str],
        otherwise: str = "breaks",
    ) -> None:
        self.assumes = assumes
        self.otherwise = otherwise
        self.message = message
        self.remedy = remedy
        self.detectors: list[Detector] = []
        self.options: dict[str, Option[Any]] = {}
        self.name = ""
        """set when the rule is discovered, from its module's path"""
        self.doc = ""
        self.home: Path | None = None
        """for a rule that is not portlint's own: the folder of its packs, with `fixtures` beside them"""

    def option(self, name: str, default: T, about: str) -> Option[T]:
        """Let projects set something: a truth value, a whole number, a text or a tuple of texts, as the default is.

        Ask the option that is returned for its `value` in a detector, not before: it is set for each run. It can make
        more or less of what a detector has been handed, and not change what is looked for.
        """
        made = Option(name, default, about)
        self.options[name] = made
        return made

    def cuda(self, query: str, *, mentions: tuple[str, ...] = ()) -> Callable[[Detect], Detect]:
        """Look at each match of a tree-sitter query in CUDA or HIP C++ (grammar: tree-sitter-cuda)."""
        return self._register("cuda", query=query, mentions=mentions)

    def cmake(self, query: str, *, mentions: tuple[str, ...] = ()) -> Callable[[Detect], Detect]:
        """Look at each match of a tree-sitter query in CMake files."""
        return self._register("cmake", query=query, mentions=mentions)

    def python(self, query: str, *, mentions: tuple[str, ...] = ()) -> Callable[[Detect], Detect]:
        """Look at each match of a tree-sitter query in Python, Triton, JAX and NKI sources.

        `mentions`, here and for the other languages: texts of which a file must have one, whatever the query says;
        other files are not looked at.
        """
        return self._register("python", query=query, mentions=mentions)

    def cuda_calls(self, *functions: str) -> Callable[[Detect], Detect]:
        """Look at each call of a C++ function by one of these names, qualified or not, as `call`."""
        return self._register("cuda", names=frozenset(functions), kind="call")

    def cuda_words(self, wanted: Callable[[str], bool]) -> Callable[[Detect], Detect]:
        """Look at each identifier of C++ code that `wanted` takes, wherever it stands in the code, as `word`."""
        return self._register("cuda", wanted=wanted, kind="word")

    def calls(self, *functions: str, mentions: tuple[str, ...] = ()) -> Callable[[Detect], Detect]:
        """Look at each Python call of these qualified names (`torch.load`) or methods (`.item`), as `call`."""
        return self._register("python", names=frozenset(functions), kind="call", mentions=mentions)

    def recipes(self, *kinds: str) -> Callable[[Detect], Detect]:
        """Look at each `entry` of these kinds in whatever says what is installed and built: see `source/recipe`."""
        return self._register("recipe", names=frozenset(kinds), kind="entry")

    def references(self, *names: str) -> Callable[[Detect], Detect]:
        """Look at each Python use of these qualified names (`torch.float64`) or attributes (`.double`), as `name`."""
        return self._register("python", names=frozenset(names), kind="name")

    def _register(
        self,
        language: str,
        *,
        query: str = "",
        names: frozenset[str] = frozenset(),
        kind: str = "",
        wanted: Callable[[str], bool] | None = None,
        mentions: tuple[str, ...] = (),
    ) -> Callable[[Detect], Detect]:
        def register(detect: Detect) -> Detect:
            self.detectors.append(Detector(language, detect, query, names, kind, wanted, mentions))
            return detect

        return register


def unfold(assumed: Assumed) -> Any:
    """An assumption as JSON shows it: the plain value, or an object with at_most, at_least, has, any_of or divides."""
    if isinstance(assumed, AtLeast):
        return {"at_least": assumed.given}
    if isinstance(assumed, AtMost):
        return {"at_most": assumed.needed}
    if isinstance(assumed, AnyOf):
        return {"any_of": list(assumed.items)}
    if isinstance(assumed, Divides):
        return {"divides": assumed.size}
    return {"has": assumed.item} if isinstance(assumed, Has) else assumed


def fold(shown: Any) -> Assumed:
    """The assumption that `unfold` shows as this."""
    if not isinstance(shown, Mapping):
        plain: Assumed = shown
        return plain
    ((kind, value),) = shown.items()
    made: dict[str, Callable[[Any], Assumed]] = {
        "at_least": AtLeast,
        "at_most": AtMost,
        "any_of": any_of,
        "divides": Divides,
        "has": Has,
    }
    return made[kind](value)
