"""Source x rules -> hits. No input or output, and it never raises because of the code that it looks at.

All detectors of a language share one query, so that a tree is matched once, in C; Python runs only for the anchors.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from portlint.condition import any_way
from portlint.rule import Detector, Entry, Hit, Rule
from portlint.source.node import MissingField, Node
from portlint.source.prescan import Limits
from portlint.source.recipe import LANGUAGES as RECIPES

if TYPE_CHECKING:
    import tree_sitter

    from portlint.condition import Guard
    from portlint.source import Source

Owned: TypeAlias = tuple[Rule, Detector]
Captures: TypeAlias = "dict[str, list[tree_sitter.Node]]"
Clause: TypeAlias = frozenset[bytes]
"""words of which a file must have one"""

_NAMED = {
    ("python", "call"): """
        ((call function: [(identifier) @_name (attribute attribute: (identifier) @_name)]) @call
            (#any-of? @_name {names}))""",
    ("python", "name"): """
        ((identifier) @_name @name (#any-of? @_name {names}))
        ((attribute attribute: (identifier) @_name) @name (#any-of? @_name {names}))""",
    ("cuda", "call"): """
        ((call_expression function: [(identifier) @_name
            (qualified_identifier name: (identifier) @_name)
            (template_function name: (identifier) @_name)
            (qualified_identifier name: (template_function name: (identifier) @_name))
            (field_expression field: (field_identifier) @_name)]) @call (#any-of? @_name {names}))""",
}
"""what finds calls and references whose last part is one of some names; shared by all detectors that look for names"""

_SETUP: Clause = frozenset((b"install_requires",))
"""what makes Python a recipe"""

_BEFORE_AS = re.compile(rb"\w+$")
_AFTER_AS = re.compile(rb"\w+")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_EQUALITY = re.compile(r"\(#(?:eq|any-of)\?\s+@\w+((?:\s+\"(?:[^\"\\]|\\.)*\")+)\s*\)")
_PLAIN_MATCH = re.compile(r'\(#match\?\s+@\w+\s+"([\w=|]+)"\s*\)')


class Match(msgspec.Struct, frozen=True):
    """One place for one detector to look at."""

    rule: Rule
    detector: Detector
    captures: dict[str, list[tree_sitter.Node]]
    entry: Entry | None = None
    """of a recipe, what to look at"""


class RuleSet:
    """The rules of one run, compiled when first used."""

    def __init__(self, rules: Iterable[Rule], match_limit: int = Limits().query_match_limit) -> None:
        self.rules = tuple(rules)
        self.match_limit = match_limit
        """query states that one file may hold at a time; beyond it the answer is incomplete, and says so"""
        self._compiled: dict[str, _Compiled] = {}

    def may_fire(self, text: bytes, language: str) -> bool:
        """The byte gate: False only if no detector of this language can match such a text."""
        return self._of(language).may_fire(text)

    def matches(self, source: Source) -> tuple[list[Match], bool]:
        """Every match of every detector in a file, and whether the match limit cut some off."""
        return self._of(source.language).matches(source, self.match_limit)

    def _of(self, language: str) -> _Compiled:
        if language not in self._compiled:
            wanted = {language, "recipe"} if language in (*RECIPES, "python") else {language}
            owned = [(rule, one) for rule in self.rules for one in rule.detectors if one.language in wanted]
            self._compiled[language] = _Compiled(language, owned)
        return self._compiled[language]


class _Compiled:
    """The detectors of one language."""

    def __init__(self, language: str, owned: Sequence[Owned]) -> None:
        self.language = language
        self.owned = owned
        self.named: dict[tuple[str, str], list[Owned]] = defaultdict(list)
        """(kind, last part of a name) -> who looks for it"""
        for pair in owned:
            for part in pair[1].last_parts if pair[1].language != "recipe" else ():
                self.named[pair[1].kind, part].append(pair)

    @cached_property
    def gates(self) -> list[list[Clause]]:
        """For each detector the clauses that a file must fulfil; the cheapest to refute come first."""
        in_python = [_SETUP] if self.language == "python" else []
        return [in_python if detector.language == "recipe" else gate(detector) for _, detector in self.owned]

    def may_fire(self, text: bytes) -> bool:
        present: dict[bytes, bool] = {}

        def has(word: bytes) -> bool:
            if word not in present:
                present[word] = word in text
            return present[word]

        return any(all(any(map(has, clause)) for clause in clauses) for clauses in self.gates)

    @cached_property
    def _parts(self) -> list[tuple[str, Owned | str]]:
        """The pieces of the query, each with the detector whose own it is, or the kind of names that it finds."""
        own: list[tuple[str, Owned | str]] = [(pair[1].query, pair) for pair in self.owned if pair[1].query]
        names: dict[str, list[str]] = defaultdict(list)
        for kind, part in sorted(self.named):
            names[kind].append(part)
        return own + [(_named_query(self.language, kind, parts), kind) for kind, parts in names.items()]

    @cached_property
    def query(self) -> tree_sitter.Query:
        return self._compile("\n".join(text for text, _ in self._parts))

    @cached_property
    def by_pattern(self) -> list[Owned | str]:
        """For each pattern of the query, whose it is."""
        ends = list(accumulate(len(text.encode()) + 1 for text, _ in self._parts))
        starts = map(self.query.start_byte_for_pattern, range(self.query.pattern_count))
        return [self._parts[bisect_right(ends, start)][1] for start in starts]

    def _compile(self, text: str) -> tree_sitter.Query:
        from tree_sitter import Query

        from portlint.source.grammar import language

        return Query(language(self.language), text)

    def matches(self, source: Source, limit: int) -> tuple[list[Match], bool]:
        from tree_sitter import QueryCursor

        if not self.owned:
            return [], False
        found: list[Match] = []
        exceeded = False
        for root in source.analysis.roots() if self._parts else ():
            cursor = QueryCursor(self.query, match_limit=limit)
            for pattern, captures in cursor.matches(root):
                owner = self.by_pattern[pattern]
                if isinstance(owner, str):
                    name = captures["_name"][0].text or b""
                    found += [Match(*pair, captures) for pair in self.named.get((owner, name.decode()), ())]
                else:
                    found.append(Match(*owner, captures))
            exceeded = exceeded or cursor.did_exceed_match_limit
        return [*found, *self._worded(source), *self._asked(source), *self._aliased(source)], exceeded

    def _worded(self, source: Source) -> Iterator[Match]:
        """The identifiers that detectors with a test of their own want."""
        for pair in self.owned:
            if (wanted := pair[1].wanted) is not None:
                yield from (Match(*pair, {"word": [raw]}) for raw in source.analysis.identifiers(wanted))

    def _asked(self, source: Source) -> Iterator[Match]:
        """What a recipe asks for."""
        owned = [pair for pair in self.owned if pair[1].language == "recipe"]
        for entry in source.analysis.entries if owned else ():
            yield from (Match(*pair, {}, entry) for pair in owned if entry.kind in pair[1].names)

    def _aliased(self, source: Source) -> Iterator[Match]:
        """Uses through an import alias: `from torch import load as restore`."""
        if self.language != "python" or b" as " not in source.text:
            return
        from tree_sitter import QueryCursor

        for original, alias in sorted(_aliases(source.text)):
            for kind in ("call", "name"):
                owned = self.named.get((kind, original.decode(errors="replace")), ())
                if not owned or original == alias:
                    continue
                query = self._compile(_named_query(self.language, kind, [alias.decode(errors="replace")]))
                for _, captures in QueryCursor(query).matches(source.tree.root_node):
                    yield from (Match(*pair, captures) for pair in owned)


def _aliases(text: bytes) -> set[tuple[bytes, bytes]]:
    """Every `x as y` of a text; `bytes.find` is many times faster here than a regular expression."""
    found: set[tuple[bytes, bytes]] = set()
    at = text.find(b" as ")
    while at >= 0:
        original, alias = _BEFORE_AS.search(text, max(0, at - 64), at), _AFTER_AS.match(text, at + len(b" as "))
        if original and alias:
            found.add((original[0], alias[0]))
        at = text.find(b" as ", at + 1)
    return found


def _named_query(language: str, kind: str, names: Iterable[str]) -> str:
    return _NAMED[language, kind].format(names=" ".join(f'"{name}"' for name in names))


def gate(detector: Detector) -> list[Clause]:
    """The words that a file must have for a detector to match, read off its names or the predicates of its query.

    A query with several patterns gives words only if all their predicates ask for the same.
    """
    if detector.names:
        clauses = [frozenset(part.encode() for part in detector.last_parts)]
        roots = frozenset(name.partition(".")[0].encode() for name in detector.names)
        return clauses if b"" in roots or detector.language != "python" else [*clauses, roots]
    words = {frozenset(map(str.encode, _STRING.findall(quoted))) for quoted in _EQUALITY.findall(detector.query)}
    words |= {frozenset(map(str.encode, plain.split("|"))) for plain in _PLAIN_MATCH.findall(detector.query)}
    return list(words) if len(words) == 1 else []


def detect(
    source: Source, rules: RuleSet, without: frozenset[str] = frozenset(), phase: Callable[[str], None] | None = None
) -> tuple[list[tuple[Rule, Hit]], bool]:
    """The hits in a file, in no particular order, and whether the match limit was exceeded.

    `without` names rules to leave out; `phase` is told the name of each rule before it looks.
    """
    matches, exceeded = rules.matches(source)
    by_rule: dict[str, list[Match]] = defaultdict(list)
    for match in matches:
        by_rule[match.rule.name].append(match)
    hits: list[tuple[Rule, Hit]] = []
    for name in sorted(by_rule.keys() - without):
        if phase is not None:
            phase(name)
        for match in by_rule[name]:
            hits += [(match.rule, hit) for hit in _look(source, match)]
    return hits, exceeded


def under(guards: tuple[Guard, ...], hits: Iterable[tuple[Rule, Hit]]) -> list[tuple[Rule, Hit]]:
    """The hits in a kernel inside a string, with the guards of the code that compiles it."""
    return [(rule, msgspec.structs.replace(hit, guards=(*guards, *(hit.guards or ())))) for rule, hit in hits]


def merged(hits: Iterable[tuple[Rule, Hit]]) -> list[tuple[Rule, Hit]]:
    """Hits with one for each place: a text that is part of two kernels is live where one of them is."""
    same: dict[tuple[object, ...], list[tuple[Rule, Hit]]] = defaultdict(list)
    for rule, hit in hits:
        start = hit.node.source.offset + hit.node.start
        said = (repr(hit.assumes), repr(hit.words), hit.otherwise, hit.node.source.language)
        same[(rule.name, start, start + hit.node.end - hit.node.start, *said)].append((rule, hit))
    return [owned[0] if len(owned) == 1 else _any_of(owned) for owned in same.values()]


def _any_of(owned: list[tuple[Rule, Hit]]) -> tuple[Rule, Hit]:
    rule, hit = owned[0]
    if all(one.guards == hit.guards for _, one in owned):
        return rule, hit
    ways = any_way((one.guards or () for _, one in owned), hit.node.text, hit.node.line)
    return rule, msgspec.structs.replace(hit, guards=(ways,))


def _look(source: Source, match: Match) -> Sequence[Hit]:
    """What a detector yields for one match."""
    captures: dict[str, Any] = {name: Node(source, nodes[0]) for name, nodes in match.captures.items()}
    if match.entry is not None:
        captures["entry"] = match.entry
    detector = match.detector
    if detector.language == "python" and detector.names and not _is_named(captures[detector.kind], detector.names):
        return ()
    code = detector.detect.__code__
    hits: list[Hit] = []
    try:
        for hit in detector.detect(*(captures.get(name) for name in code.co_varnames[: code.co_argcount])):
            if hit.node.start < hit.node.end:  # the parser puts in empty nodes where it misses something
                hits.append(_completed(hit, match.entry))
    except MissingField:
        pass  # broken code: what the detector saw before stands
    return hits


def _completed(hit: Hit, entry: Entry | None) -> Hit:
    """A hit with the guards of what it points at, and for a recipe with the language that its entry concerns."""
    if entry is not None:
        guards = entry.guards if hit.guards is None else hit.guards
        return msgspec.structs.replace(hit, guards=guards, language=hit.language or entry.language)
    return msgspec.structs.replace(hit, guards=hit.node.guards) if hit.guards is None else hit


def _is_named(anchor: Node, names: frozenset[str]) -> bool:
    """Whether a call or reference resolves to one of the qualified names, or is a `.method` of some value."""
    reference = anchor["function"] if anchor.type == "call" else anchor
    if reference.type == "identifier" and _is_part_of_another_name(reference):
        return False
    qualified = anchor.name
    if qualified:
        return qualified in names
    return reference.type == "attribute" and f".{reference['attribute'].text}" in names


_DECLARING = ("dotted_name", "aliased_import", "import_from_statement", "parameters", "keyword_argument")


def _is_part_of_another_name(identifier: Node) -> bool:
    """Whether an identifier is the last part of an attribute, an import, a keyword or a parameter."""
    parent = identifier.parent
    if parent is None:
        return False
    if parent.type == "keyword_argument":
        return parent["name"] == identifier
    return parent.type in _DECLARING or (parent.type == "attribute" and parent["attribute"] == identifier)
