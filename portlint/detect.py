"""Source x rules -> hits. No input or output, and it never raises because of the code that it looks at.

All detectors of a language share one query, so that a tree is matched once, in C; Python runs only for the anchors.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from portlint.condition import any_way
from portlint.regex import regex
from portlint.rule import Detector, Entry, Hit, Rule
from portlint.source.node import MissingField, Node
from portlint.source.prescan import Limits
from portlint.source.recipe import LANGUAGES as RECIPES
from portlint.source.text import WORD_BYTES

if TYPE_CHECKING:
    import tree_sitter

    from portlint.condition import Guard
    from portlint.source import Source

Owned: TypeAlias = tuple[Rule, Detector]


class Clause(msgspec.Struct, frozen=True):
    """What a file must have one of."""

    words: frozenset[bytes] = frozenset()
    """whole words"""
    parts: frozenset[bytes] = frozenset()
    """anything, as part of a word or across several"""


_COMPILED = ("cmake", "cuda", "python")
"""the languages with queries"""
_FEW_FILES = 3
"""of a language, in one process"""
_SETUP = Clause(frozenset((b"install_requires",)))
"""what makes Python a recipe"""

_BEFORE_AS = regex(rb"\w+$")
_AFTER_AS = regex(rb"\w+")
_WORD = regex(rb"\w+")
_STRING = regex(r'"((?:[^"\\]|\\.)*)"')
_EQUALITY = regex(r"\(#(?:eq|any-of)\?\s+@\w+((?:\s+\"(?:[^\"\\]|\\.)*\")+)\s*\)")
_PLAIN_MATCH = regex(r'\(#match\?\s+@\w+\s+"([\w=|:,/ -]+)"\s*\)')


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

    def compile(self, languages: Iterable[str]) -> None:
        """Compile the queries for some languages now, once for all processes that are forked later."""
        for language in languages:
            if language in _COMPILED:
                self._of(language).whole()

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


class _Query:
    """The queries of several detectors as one."""

    def __init__(self, language: str, owned: Sequence[Owned]) -> None:
        from tree_sitter import Query

        from portlint.source import grammar

        queried = [pair for pair in owned if pair[1].query]
        self.compiled = Query(grammar.language(language), "\n".join(detector.query for _, detector in queried))
        ends = list(accumulate(len(detector.query.encode()) + 1 for _, detector in queried))
        starts = map(self.compiled.start_byte_for_pattern, range(self.compiled.pattern_count))
        self._owners = [queried[bisect_right(ends, start)] for start in starts]
        """for each pattern, whose it is"""

    def matches(
        self, roots: Iterable[tree_sitter.Node], wanted: frozenset[int], limit: int
    ) -> tuple[list[Match], bool]:
        """The matches of the detectors with these ids in some trees, and whether the limit cut some off."""
        from tree_sitter import QueryCursor

        found: list[Match] = []
        exceeded = False
        for root in roots:
            cursor = QueryCursor(self.compiled, match_limit=limit)
            for pattern, captures in cursor.matches(root):
                owner = self._owners[pattern]
                if id(owner[1]) in wanted:
                    found.append(Match(*owner, captures))
            exceeded = exceeded or cursor.did_exceed_match_limit
        return found, exceeded


class _Compiled:
    """The detectors of one language."""

    def __init__(self, language: str, owned: Sequence[Owned]) -> None:
        self.language = language
        self.owned = owned
        self.parts = {
            id(detector): frozenset(map(str.encode, () if detector.language == "recipe" else detector.last_parts))
            for _, detector in owned
        }
        """the last parts of the names that a detector looks for"""
        self._asked = 0
        self._whole: _Query | None = None

    @cached_property
    def gates(self) -> list[list[Clause]]:
        """For each detector the clauses that a file must fulfil."""
        in_python = [_SETUP] if self.language == "python" else []
        return [in_python if detector.language == "recipe" else gate(detector) for _, detector in self.owned]

    def may_fire(self, text: bytes) -> bool:
        has = _Words(text).has_one_of
        return any(all(map(has, clauses)) for clauses in self.gates)

    def whole(self) -> _Query:
        """The query of all detectors."""
        if self._whole is None:
            self._whole = _Query(self.language, self.owned)
        return self._whole

    def _query(self, live: Sequence[Owned]) -> _Query:
        """A query for at least these detectors.

        To compile them all takes longer than to read a dozen files, so the first few get one of their own.
        """
        self._asked += 1
        if self._whole is None and self._asked <= _FEW_FILES:
            return _Query(self.language, live)
        return self.whole()

    def matches(self, source: Source, limit: int) -> tuple[list[Match], bool]:
        """The matches of the detectors that may fire in the file, and whether the limit cut some off."""
        words = _Words(source.text)
        live = [
            pair for pair, clauses in zip(self.owned, self.gates, strict=True) if all(map(words.has_one_of, clauses))
        ]
        found, exceeded = self._of_queries(source, live, limit)
        found += self._of_names(source, live, words)
        for pair in live:
            if (wanted := pair[1].wanted) is not None:
                found += [Match(*pair, {"word": [raw]}) for raw in source.analysis.identifiers(wanted)]
        owned = [pair for pair in live if pair[1].language == "recipe"]
        for entry in source.analysis.entries if owned else ():
            found += [Match(*pair, {}, entry) for pair in owned if entry.kind in pair[1].names]
        return found, exceeded

    def _of_queries(self, source: Source, live: Sequence[Owned], limit: int) -> tuple[list[Match], bool]:
        wanted = frozenset(id(detector) for _, detector in live if detector.query)
        if not wanted:
            return [], False
        roots = source.analysis.roots()
        query = self._query(live)
        found, exceeded = query.matches(roots, wanted, limit)
        if exceeded and query is self._whole:  # what is found must not depend on which of the two was at hand
            found, exceeded = _Query(self.language, live).matches(roots, wanted, limit)
        return found, exceeded

    def _of_names(self, source: Source, live: Sequence[Owned], words: _Words) -> list[Match]:
        """The calls and references by the names that detectors look for, or by an alias of one.

        The few names that a file has are looked up in its text; a query would compare each identifier with all of them.
        """
        named: dict[tuple[str, bytes], list[Owned]] = defaultdict(list)
        for pair in live:
            for part in words.shared(self.parts[id(pair[1])]):
                named[pair[1].kind, part].append(pair)
        if self.language == "python" and b" as " in source.text:
            for original, alias in sorted(_aliases(source.text)):  # `from torch import load as restore`
                for kind in ("call", "name"):
                    if original != alias and (kind, original) in named:
                        named[kind, alias] += [one for one in named[kind, original] if one not in named[kind, alias]]
        places: dict[bytes, list[tree_sitter.Node]] = {}
        found: list[Match] = []
        for (kind, part), owned in named.items():
            if part not in places:
                places[part] = source.identifiers(part)
            anchors = [anchor for raw in places[part] if (anchor := _ANCHOR[self.language, kind](raw)) is not None]
            found += [Match(*pair, {kind: [anchor]}) for anchor in anchors for pair in owned]
        return found


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


def _python_call(identifier: tree_sitter.Node) -> tree_sitter.Node | None:
    """The call of a function or method by a name."""
    if identifier.type != "identifier":
        return None
    called, parent = identifier, identifier.parent
    if parent is not None and parent.type == "attribute" and parent.child_by_field_name("attribute") == identifier:
        called, parent = parent, parent.parent
    is_call = parent is not None and parent.type == "call" and parent.child_by_field_name("function") == called
    return parent if is_call else None


def _python_reference(identifier: tree_sitter.Node) -> tree_sitter.Node | None:
    """A name, or the attribute that it is the last part of."""
    if identifier.type != "identifier":
        return None
    parent = identifier.parent
    if parent is not None and parent.type == "attribute" and parent.child_by_field_name("attribute") == identifier:
        return parent
    return identifier


def _cuda_call(identifier: tree_sitter.Node) -> tree_sitter.Node | None:
    """The call of a function by a name, qualified or not, with template arguments or without."""
    called, parent = identifier, identifier.parent
    if identifier.type == "field_identifier":
        if parent is None or parent.type != "field_expression":
            return None
        called, parent = parent, parent.parent
    elif identifier.type != "identifier":
        return None
    for around in ("template_function", "qualified_identifier"):
        if parent is not None and parent.type == around and parent.child_by_field_name("name") == called:
            called, parent = parent, parent.parent
    is_call = (
        parent is not None and parent.type == "call_expression" and parent.child_by_field_name("function") == called
    )
    return parent if is_call else None


_ANCHOR: dict[tuple[str, str], Callable[[tree_sitter.Node], tree_sitter.Node | None]] = {
    ("python", "call"): _python_call,
    ("python", "name"): _python_reference,
    ("cuda", "call"): _cuda_call,
}
"""what a detector that looks for a name is given, from an identifier that is its last part"""


class _Words:
    """The words of a text, which is far quicker to ask than the text itself."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._words = set(text.translate(_APART).split())

    def has_one_of(self, clause: Clause) -> bool:
        return not self._words.isdisjoint(clause.words) or any(one in self._text for one in clause.parts)

    def shared(self, words: frozenset[bytes]) -> frozenset[bytes]:
        return words & self._words


_APART = bytes(char if char in WORD_BYTES else ord(" ") for char in range(256))
"""maps what no word has to spaces"""


def gate(detector: Detector) -> list[Clause]:
    """What a file must have for a detector to match: what it says itself, its names, or the predicates of its query.

    A query with several patterns gives words only if all their predicates ask for the same.
    """
    said = [Clause(parts=frozenset(map(str.encode, detector.mentions)))] if detector.mentions else []
    if detector.names:
        last = Clause(frozenset(part.encode() for part in detector.last_parts))
        roots = frozenset(name.partition(".")[0].encode() for name in detector.names)
        return [*said, last] if b"" in roots or detector.language != "python" else [*said, last, Clause(roots)]
    asked = {_clause(_STRING.findall(quoted)) for quoted in _EQUALITY.findall(detector.query)}
    asked |= {Clause(parts=frozenset(plain.encode().split(b"|"))) for plain in _PLAIN_MATCH.findall(detector.query)}
    return said + (list(asked) if len(asked) == 1 else [])


def _clause(texts: Iterable[str]) -> Clause:
    """That a file has a node with one of these texts."""
    raw = frozenset(map(str.encode, texts))
    words = frozenset(one for one in raw if _WORD.fullmatch(one))
    return Clause(words, raw - words)


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
