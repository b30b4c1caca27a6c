"""Source x rules -> hits. No input or output, and it never raises because of the code that it looks at.

All detectors of a language share one query, so that the tree is matched once, in C; Python runs only for the anchors.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from portlint.rule import Detector, Hit, Rule, named_query
from portlint.source.node import Node
from portlint.source.prescan import Limits

if TYPE_CHECKING:
    import tree_sitter

    from portlint.source import Source

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_TEXT_PREDICATE = re.compile(r"\(#(?:eq|any-of)\?\s+@\w+((?:\s+\"(?:[^\"\\]|\\.)*\")+)\s*\)")
_ALIAS = re.compile(rb"(\w+)\s+as\s+(\w+)")


class Match(msgspec.Struct, frozen=True):
    """One match of one detector's query."""

    rule: Rule
    detector: Detector
    captures: dict[str, list["tree_sitter.Node"]]


class RuleSet:
    """The rules of one run, compiled."""

    def __init__(self, rules: Iterable[Rule], match_limit: int = Limits().query_match_limit) -> None:
        self.rules = tuple(rules)
        self.match_limit = match_limit
        """query states that one file may hold at a time; beyond it the answer is incomplete, and says so"""
        self._queries: dict[str, tuple[tree_sitter.Query, list[tuple[Rule, Detector]]] | None] = {}

    def may_fire(self, text: bytes, language: str) -> bool:
        """The byte gate: False only if no detector of this language can match such a text."""
        present: dict[bytes, bool] = {}
        for clauses in self._gates(language):
            for clause in clauses:
                for word in clause:
                    if word not in present:
                        present[word] = word in text
                    if present[word]:
                        break
                else:
                    break
            else:
                return True
        return False

    def matches(self, source: Source) -> tuple[list[Match], bool]:
        """Every match of every detector in a file, and whether the match limit cut some off."""
        from tree_sitter import QueryCursor

        compiled = self._query(source.language)
        if compiled is None:
            return [], False
        query, detectors = compiled
        found: list[Match] = []
        exceeded = False
        for root in source.analysis.roots():
            cursor = QueryCursor(query, match_limit=self.match_limit)
            found += [Match(*detectors[pattern], captures) for pattern, captures in cursor.matches(root)]
            exceeded = exceeded or cursor.did_exceed_match_limit
        return found + self._aliased(source), exceeded

    def _query(self, language: str) -> tuple[tree_sitter.Query, list[tuple[Rule, Detector]]] | None:
        if language not in self._queries:
            self._queries[language] = self._compile(language)
        return self._queries[language]

    def _compile(self, language: str) -> tuple[tree_sitter.Query, list[tuple[Rule, Detector]]] | None:
        from tree_sitter import Query

        from portlint.source.grammar import language as grammar

        text: list[str] = []
        by_pattern: list[tuple[Rule, Detector]] = []
        for rule in self.rules:
            for detector in rule.detectors:
                if detector.language == language:
                    text.append(detector.query)
                    by_pattern += [(rule, detector)] * Query(grammar(language), detector.query).pattern_count
        return (Query(grammar(language), "\n".join(text)), by_pattern) if text else None

    @cached_property
    def _named(self) -> dict[str, list[tuple[Rule, Detector]]]:
        """Last part of a qualified name -> the Python detectors that look for it."""
        table: dict[str, list[tuple[Rule, Detector]]] = defaultdict(list)
        for rule in self.rules:
            for detector in rule.detectors:
                for name in detector.names:
                    if not name.startswith("."):
                        table[name.rpartition(".")[2]].append((rule, detector))
        return table

    def _aliased(self, source: Source) -> list[Match]:
        """Uses through an import alias: `from torch import load as restore`."""
        if source.language != "python" or b" as " not in source.text:
            return []
        found: list[Match] = []
        for original, alias in set(_ALIAS.findall(source.text)):
            if original == alias:
                continue
            for rule, detector in self._named.get(original.decode(errors="replace"), ()):
                found += [
                    Match(rule, detector, captures)
                    for captures in _run(named_query(detector.kind, [alias.decode(errors="replace")]), source)
                ]
        return found

    def _gates(self, language: str) -> list[list[frozenset[bytes]]]:
        if language not in self._gate_table:
            self._gate_table[language] = [
                gate(detector) for rule in self.rules for detector in rule.detectors if detector.language == language
            ]
        return self._gate_table[language]

    @cached_property
    def _gate_table(self) -> dict[str, list[list[frozenset[bytes]]]]:
        return {}


def _run(query: str, source: Source) -> Iterator[dict[str, list[tree_sitter.Node]]]:
    from tree_sitter import Query, QueryCursor

    from portlint.source.grammar import language

    for _, captures in QueryCursor(Query(language("python"), query)).matches(source.tree.root_node):
        yield captures


def gate(detector: Detector) -> list[frozenset[bytes]]:
    """Sets of words, one of each of which must be in a file for the detector to match: read off its query and names.

    A query of several alternatives has words only if its predicates hold for all of them, so only those with exactly
    one pattern, or whose patterns share one set of words, give any.
    """
    words = {
        frozenset(word.encode() for word in _QUOTED.findall(quoted)) for quoted in _TEXT_PREDICATE.findall(detector.query)
    }
    clauses = list(words) if len(words) == 1 else []
    roots = frozenset(name.partition(".")[0].encode() for name in detector.names)
    if roots and b"" not in roots:
        clauses.append(roots)
    return clauses


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


def _look(source: Source, match: Match) -> Sequence[Hit]:
    """What a detector yields for one match."""
    captures = {name: Node(source, nodes[0]) for name, nodes in match.captures.items()}
    if match.detector.names and not _is_named(captures[match.detector.kind], match.detector.names):
        return ()
    code = match.detector.detect.__code__
    wanted = code.co_varnames[: code.co_argcount]
    return tuple(match.detector.detect(*(captures.get(name) for name in wanted)))


def _is_named(anchor: Node, names: frozenset[str]) -> bool:
    """Whether a call or reference resolves to one of the qualified names, or is a `.method` of some value."""
    reference = anchor["function"] if anchor.type == "call" else anchor
    parent = reference.parent
    if reference.type == "identifier" and parent is not None:
        # the last part of an attribute, an import, a keyword, a parameter: not a reference of its own
        if parent.type in ("dotted_name", "aliased_import", "import_from_statement", "parameters", "keyword_argument"):
            return False
        if parent.type == "attribute" and parent["attribute"] == reference:
            return False
    qualified = anchor.name
    if qualified:
        return qualified in names
    return reference.type == "attribute" and f".{reference['attribute'].text}" in names
