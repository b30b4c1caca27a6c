"""PyTorch/XLA on its CPU device: which lines have graphs compiled, which operators go to the host, and what waits."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from portlint.verify.execute.child.events import Events, Place, is_users
from portlint.verify.execute.child.logical import LogicalDevice, Watch
from portlint.verify.execute.child.operators import Operators

_BEGIN = re.compile(r"^Compilation Analysis: Compilation Cause$", re.MULTILINE)
_CAUSE = re.compile(r"^Compilation Analysis:   (.+)$", re.MULTILINE)
_FRAME = re.compile(r"^Compilation Analysis:   .+ \((.+):(\d+)\)$", re.MULTILINE)


class LazyDevice(LogicalDevice):
    """The device that is really there: operators are seen, and nothing is sent elsewhere."""

    def __init__(self, title: str, operators: Operators, events: Events, log: Path) -> None:
        super().__init__("xla", title, operators, events)
        self._log = log

    def __enter__(self) -> LazyDevice:
        self._stack.enter_context(Watch(self))
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._compilations(self._log.read_text(encoding="utf-8", errors="replace"))
        self._log.unlink(missing_ok=True)

    def asked(self, _operator: Any, kwargs: Any, _wanted: Any) -> Any:
        """The device that an operator is given."""
        return kwargs.get("device")

    def _compilations(self, text: str) -> None:
        many: Counter[Place] = Counter()
        for record in _BEGIN.split(text)[1:]:
            places = [(path, int(line)) for path, line in _FRAME.findall(record) if is_users(path)]
            at = places[0] if places else ("", 0)
            cause = _CAUSE.search(record)
            many[at] += 1
            again = " again" if many[at] > 1 else ""
            self.events.note("compile", f"a graph is compiled{again}: {cause[1] if cause else 'it is run'}", at=at)
