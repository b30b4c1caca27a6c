"""Answers that live as long as the file that they are about: a tree takes a hundred times the bytes of its text."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from portlint.source import Source

P = ParamSpec("P")
T = TypeVar("T")


def with_source(function: Callable[Concatenate[Source, P], T]) -> Callable[Concatenate[Source, P], T]:
    """`functools.cache` for what is asked of a source; the answers are forgotten with it."""

    @wraps(function)
    def ask(source: Source, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (function, args, *kwargs.items())
        if key not in source.answers:
            source.answers[key] = function(source, *args, **kwargs)
        return cast("T", source.answers[key])

    return ask
