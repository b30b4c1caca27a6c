"""How often JAX traces and compiles a function, and why again: read from what it logs of misses of its cache."""

from __future__ import annotations

import importlib
import logging
import re
from typing import Any

from portlint.verify.execute.child.events import Events, Place

jax: Any = importlib.import_module("jax")

_LOGGERS = ("jax._src.interpreters.partial_eval", "jax._src.pjit")
_MISS = re.compile(r"TRACING CACHE MISS at (\S+?):(\d+)")
_FUNCTION = re.compile(r"(?:  for |never seen function:\s+)(\S+)")
_REASON = re.compile(r"^\s*\* (.+)$", re.MULTILINE)


class Compilations(logging.Filter):
    """Takes the explanations of misses out of JAX's log, and notes them."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events
        self._words: dict[tuple[Place, str], str] = {}
        jax.config.update("jax_explain_cache_misses", True)
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether JAX's own log gets the record."""
        text = record.getMessage()
        miss = _MISS.match(text)
        if miss is None:
            return True
        at = miss[1], int(miss[2])
        found = _FUNCTION.search(text)
        function = found[1] if found else "a function"
        if "another function defined on the same line" in text:
            words = f"{function} is compiled again: each time it is another function"
            self._events.note("compile", words, "shape.temporary_functions", at=at)
        elif "never seen function" in text:
            self._events.note("compile", f"{function} is compiled", at=at)
        else:
            reason = _REASON.search(text)
            why = reason[1] if reason else "it was called otherwise"
            words = self._words.setdefault((at, function), f"{function} is compiled again, first because {why}")
            self._events.note("compile", words, "shape.dynamic", at=at)
        return False
