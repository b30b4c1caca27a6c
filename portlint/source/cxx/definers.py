"""Whether a project defines a function or type itself that one of its files uses, in a header that the file includes.

`includes.py` reads the headers of a file with their conditions, and no more than so many of them. In a library of
headers the definition of a name can be far behind those: here the `#include` lines of the project are followed as they
stand.
"""

from __future__ import annotations

import re
from functools import cache

from portlint.source import nearby
from portlint.source.cxx.lexer import mask
from portlint.source.cxx.users import users_of
from portlint.source.language import CXX_HEADERS


def is_defined_for(file: str, name: str) -> bool:
    """Whether a header of the file's own project defines a name, and the file includes it, directly or through others.

    A header leans on what the files that include it bring, if each of them does.
    """
    root = nearby.project(file)
    if root is None:
        return False
    including = _including(root, name)
    users = users_of(file)
    return file in including or (bool(users) and including.issuperset(users))


@nearby.remembered
def _including(root: str, name: str) -> frozenset[str]:
    """The headers of a project that define a name, and all files that include one of them, however indirectly."""
    headers = (header for header in nearby.below(root, CXX_HEADERS) if _defines(header, name))
    waiting = [header for header in headers if nearby.project(header) == root]  # those of a submodule are another's
    found = set(waiting)
    while waiting:
        new = set(users_of(waiting.pop())) - found
        found |= new
        waiting += new
    return frozenset(found)


def _defines(header: str, name: str) -> bool:
    """Whether a header has a body for a name: `name(...) {`, `struct name {`."""
    text = nearby.read(header)
    if text is None or name.encode() not in text:
        return False
    definition = _definition(name)
    return bool(definition.search(text)) and bool(definition.search(mask(text)))


@cache
def _definition(name: str) -> re.Pattern[bytes]:
    word = rb"\b" + re.escape(name.encode()) + rb"\b"
    parameters = rb"\((?:[^;{}()]|\([^;{}()]{0,100}\)){0,300}\)"
    function = word + rb"\s*" + parameters + rb"\s*(?:(?:const|noexcept)\s*)*\{"
    return re.compile(function + rb"|\b(?:struct|class|union)\s+" + word + rb"\s*(?:final\s*)?(?::[^;{]{0,80})?\{")
