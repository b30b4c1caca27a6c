"""Text of the same length that parses better: for what needs structure in a file whose own tree has errors.

Three things break the grammar most: attributes and attribute-like macros in declarations, directives in the middle of
other syntax, and `#if` branches that each open the same brace. Here directives and attributes become blanks and one
branch of each conditional stays, so offsets remain those of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from portlint.regex import regex
from portlint.source.cxx.lexer import blank
from portlint.source.cxx.preprocessor import Preprocessor

_QUALIFIER = rb"(?:__host__|__device__|__forceinline__|mutable)"
_ATTRIBUTE = regex(
    # with arguments
    rb"\b(?:__align__|__cluster_dims__|__block_size__|__maxnreg__|__launch_bounds__|__attribute__|__declspec|alignas"
    rb"|[A-Z][A-Z0-9_]*_LAUNCH_BOUNDS\w*|_?[A-Z][A-Z0-9_]*_REQUIRES)\s*(?=\()"
    # words that the grammar does not know everywhere
    rb"|\b(?:__grid_constant__|__restrict__|__restrict|__forceinline__|__noinline__|__managed__)\b"
    # an extended lambda
    rb"|(?<=\])\s*" + _QUALIFIER + rb"(?:\s+" + _QUALIFIER + rb")*"
    # macros of the usual names before what they qualify
    rb"|\b(?:[A-Z_][A-Z0-9_]*_)?(?:DEVICE|HOST|GLOBAL|INLINE|API|EXPORT|FUNCTION|UNROLL|FORCEINLINE|HOSTDEVICE|HOST_DEV"
    rb"|CONSTEXPR|RESTRICT|FROM_ABI|HIDDEN)\b(?=\s+[A-Za-z_~:])"
)
_WORD = regex(
    r"\s*(?:__(?:device|host|global|forceinline|noinline|inline|restrict|constant|shared|managed|grid_constant)__"
    r"|__forceinline|__inline|__restrict|inline|static|constexpr|extern|const|volatile|noexcept"
    r"|(?:__attribute__|__declspec|__launch_bounds__|__align__|alignas)\s*\([^;{}]*\)|\[\[[^\]]*\]\])"
)
_LONGEST_ARGUMENT = 2000
_BRACKET = regex(rb"[()]")
_BRANCHES = frozenset(("if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else"))
_NEVER = ("0", "(0)", "false")


def without_directives(masked: bytes, preprocessor: Preprocessor) -> bytes:
    """The code of all branches, directives blanked."""
    page = bytearray(masked)
    for directive in preprocessor.directives:
        page[directive.start : directive.end] = blank(masked[directive.start : directive.end])
    return bytes(page)


def normalise(text: bytes, masked: bytes, preprocessor: Preprocessor, branch: int = 0) -> bytes:
    """The text with directives and attributes blanked and one branch of each conditional kept.

    That is the branch of that number, counted from 0, or the last if there are fewer; never one after `#if 0`.
    """
    page, code = bytearray(text), bytearray(masked)
    for start, end in left_out(preprocessor, len(text), branch):
        page[start:end] = code[start:end] = blank(text[start:end])
    for match in _ATTRIBUTE.finditer(code):
        end = _closing(code, match.end()) if code[match.end() : match.end() + 1] == b"(" else match.end()
        page[match.start() : end] = blank(text[match.start() : end])
    if macros := attribute_macros(preprocessor):
        for match in re.finditer(rb"\b(?:" + b"|".join(name.encode() for name in macros) + rb")\b", code):
            page[match.start() : match.end()] = blank(match[0])
    return bytes(page)


def attribute_macros(preprocessor: Preprocessor) -> list[str]:
    """The object-like macros of the file that stand for nothing but attributes and qualifiers, sorted."""
    return sorted(
        name
        for name, macros in preprocessor.macros.items()
        if all(macro.parameters is None and macro.body and _is_attribute(macro.body) for macro in macros)
    )


def _is_attribute(body: str) -> bool:
    at = 0
    while match := _WORD.match(body, at):
        at = match.end()
    return not body[at:].strip()


def left_out(preprocessor: Preprocessor, length: int, branch: int = 0) -> Iterator[tuple[int, int]]:
    """The ranges of directives, and of branches that are not selected, in order."""
    kept = {branches[min(branch, len(branches) - 1)] for branches in branches_of(preprocessor)}
    selected = [True]
    dead_from = None
    for directive in preprocessor.directives:
        if directive.kind in ("if", "ifdef", "ifndef"):
            selected.append(selected[-1] and directive.start in kept)
        elif directive.kind in ("elif", "elifdef", "elifndef", "else") and len(selected) > 1:
            selected[-1] = selected[-2] and directive.start in kept
        elif directive.kind == "endif" and len(selected) > 1:
            selected.pop()
        if selected[-1]:
            yield directive.start if dead_from is None else dead_from, directive.end
            dead_from = None
        elif dead_from is None:
            dead_from = directive.start
    if dead_from is not None:
        yield dead_from, length


def branches_of(preprocessor: Preprocessor) -> list[list[int]]:
    """The offsets of the directives that open the branches of each conditional; `#if 0` opens none to keep."""
    conditionals: list[list[int]] = []
    unfinished: list[list[int]] = []
    for directive in preprocessor.directives:
        if directive.kind in ("if", "ifdef", "ifndef"):
            unfinished.append([])
            conditionals.append(unfinished[-1])
        elif directive.kind == "endif" and unfinished:
            unfinished.pop()
        if directive.kind in _BRANCHES and unfinished and directive.text not in _NEVER:
            unfinished[-1].append(directive.start)
    return [branches for branches in conditionals if branches]


def _closing(code: bytearray, opening: int) -> int:
    """The offset after the bracket that closes the one at `opening`; `opening` itself where none is near."""
    depth = 0
    for match in _BRACKET.finditer(code, opening, opening + _LONGEST_ARGUMENT):
        depth += 1 if match[0] == b"(" else -1
        if depth == 0:
            return match.end()
    return opening
