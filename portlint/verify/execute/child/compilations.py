"""How often JAX compiles a function of the user's, and why again: read from what it logs."""

from __future__ import annotations

import importlib
import logging
import re
from typing import Any, NamedTuple

from portlint.verify.execute.child.events import Events, Place

jax: Any = importlib.import_module("jax")

_LOGGERS = tuple(
    f"jax._src.{name}" for name in ("interpreters.partial_eval", "pjit", "interpreters.pxla", "dispatch", "compiler")
)
_TALK = ("TRACING CACHE MISS", "Compiling ", "Finished ", "PERSISTENT COMPILATION CACHE")
"""how the messages begin that JAX would not log by itself"""
_MISS = re.compile(r"TRACING CACHE MISS at (\S+?):(\d+)")
_FUNCTION = re.compile(r"(?:  for |never seen function:\s+)(\S+)")
_REASON = re.compile(r"^\s*\* (.+)$", re.MULTILINE)
_COMPILES = re.compile(r"Compiling (?:jit\()?(.+?)\)? with global shapes")


class _Miss(NamedTuple):
    """Why a function is traced."""

    at: Place
    words: str
    facts: tuple[str, ...]


class Compilations(logging.Filter):
    """Takes from JAX's log what it explains, and notes what comes to be compiled; the rest is part of another trace."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events
        self._first: dict[tuple[Place, str], str] = {}
        self._misses: dict[str, _Miss] = {}
        for name in ("jax_explain_cache_misses", "jax_log_compiles"):
            jax.config.update(name, True)
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether JAX's own log gets the record."""
        text = record.getMessage()
        if miss := _MISS.match(text):
            self._missed((miss[1], int(miss[2])), text)
        elif (compiles := _COMPILES.match(text)) and (known := self._misses.pop(compiles[1], None)):
            self._events.note("compile", known.words, *known.facts, at=known.at)
        return not text.startswith(_TALK)

    def _missed(self, at: Place, text: str) -> None:
        found = _FUNCTION.search(text)
        if found is None:
            return
        function = found[1]
        if "another function defined on the same line" in text:
            words = f"{function} is compiled again: each time it is another function"
            miss = _Miss(at, words, ("shape.temporary_functions",))
        elif "never seen function" in text:
            miss = _Miss(at, f"{function} is compiled", ())
        else:
            reason = _REASON.search(text)
            why = reason[1] if reason else "it was called otherwise"
            words = self._first.setdefault((at, function), f"{function} is compiled again, first because {why}")
            miss = _Miss(at, words, ("shape.dynamic",))
        self._misses[function] = miss
