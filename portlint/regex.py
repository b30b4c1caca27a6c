"""Regular expressions that are compiled when they are first used.

The modules of the analysis hold some three hundred, of which a small file needs a few dozen; to compile them all would
be a quarter of the time that a hook takes.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")


def regex(pattern: AnyStr, flags: int | re.RegexFlag = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, but later: a pattern that is wrong raises re.error at its first use."""
    return cast("re.Pattern[AnyStr]", _Later(pattern, flags))


class _Later:
    """Stands in for a compiled pattern."""

    def __init__(self, pattern: str | bytes, flags: int | re.RegexFlag) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.pattern, self.flags)
        for method in _METHODS:  # from here on found without coming by here
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)
