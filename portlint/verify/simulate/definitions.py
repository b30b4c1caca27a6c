"""What a line outside functions defines: its name, the code that uses it, and the line with another value.

A kernel that uses a constant and goes wrong may do so for another reason. It is the constant's fault only if the kernel
goes on otherwise where that has the value that the target's width asks for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from portlint.source import nearby
from portlint.source.cxx.lexer import mask
from portlint.source.cxx.numbers import Integer, literal
from portlint.source.cxx.users import all_users_of
from portlint.verify.simulate.program import Program, declared_name, line_of, text_of, walk

if TYPE_CHECKING:
    import tree_sitter

    from portlint.source import Source

_DEFINED = re.compile(
    r"#\s*define\s+(\w+)(?P<call>\()?|\benum\b[^={]*\{[^=}]*?\b(\w+)\s*=|\b(?:const|constexpr)\b[^=;(]*?\b(\w+)\s*[={]"
    r"|^\s*(\w+)\s*="
)
_VALUE = re.compile(r"\s*(?:[={]\s*)?(?P<value>[^,;{}\s](?:[^,;{}\n]*[^,;{}\s])?)")
_OTHERS = re.compile(
    r"#[ \t]*define[ \t]+(?P<macro>\w+)(?:\([^()]*\))?(?P<body>(?:[^\n\\]|\\\n|\\.)*)"
    r"|\b(?:const|constexpr)\b[^=;(){}]*?\b(?P<constant>\w+)\s*[={](?P<value>[^;]*);"
)
_HARMLESS = re.compile(r"<<<.*?>>>|\bf?printf\s*\([^;{}]*\)\s*;", re.DOTALL)
"""the shape of a launch, which the launches that are tried have, and what is only printed"""
_WARP = 32
_BITS = 5
"""of the number of a lane"""
_ONES = 0xFFFFFFFF
_MOST_USERS = 12
"""files that are asked for what a header defines"""


class Definition(msgspec.Struct, frozen=True):
    """A macro, or a constant."""

    name: str
    file: str
    line: int
    changed: str
    """the line as it would be for the target's width; "" where that cannot be said"""
    is_a_function: bool = False
    """whether it is a macro with arguments"""


def defined_by(source: Source, line: int, width: int) -> Definition | None:
    """What a line defines, for a target of a width."""
    text = source.text.splitlines()
    at = line - 1
    while at > 0 and text[at - 1].rstrip().endswith(b"\\"):
        at -= 1
    code = mask(text[at]).decode(errors="replace") if at < len(text) else ""
    match = _DEFINED.search(code)
    name = next((one for one in (match[1], *match.groups()[2:]) if one), None) if match else None
    if match is None or name is None:
        return None
    changed = "" if match["call"] else _changed(code, name, match.start(), width)
    return Definition(name, source.file, at + 1, changed, bool(match["call"]))


def _changed(code: str, name: str, start: int, width: int) -> str:
    """A line of code with another value."""
    value = _VALUE.match(code, code.index(name, start) + len(name))
    if value is None or code.rstrip().endswith("\\"):
        return ""
    return code[: value.start("value")] + _widened(value["value"], width) + code[value.end("value") :]


def _widened(text: str, width: int) -> str:
    """The value of a constant for another width: a width, the number of its bits, or a mask of lanes or numbers."""
    known = literal(text.strip("() ").replace("'", ""))
    value = known.value if isinstance(known, Integer) else None
    if value == _ONES:
        return f"{(1 << width) - 1:#x}ull"
    if value == _WARP - 1:
        return str(width - 1)
    if value == _BITS:
        return str(width.bit_length() - 1)
    return f"({width // _WARP} * ({text}))"


class Users(msgspec.Struct, frozen=True):
    """The code that uses a definition."""

    names: frozenset[str]
    """of the definition, and of what is defined by it"""
    files: tuple[str, ...]
    """that include it, directly or not, and mention one of the names"""
    are_all: bool


def users_with(source: Source, definition: Definition) -> Users:
    """The files beside its own that use a definition."""
    texts = {file: nearby.read(file) or b"" for file in all_users_of(definition.file)}
    names = names_with(definition.name, [source.text, *texts.values()])
    files = [file for file, text in texts.items() if any(name.encode() in text for name in names)]
    return Users(frozenset(names), tuple(files[:_MOST_USERS]), len(files) <= _MOST_USERS)


def names_with(name: str, texts: list[bytes]) -> set[str]:
    """A name and those that files define by it, macros and constants."""
    found = {name}
    parts = [one for text in texts for one in _OTHERS.finditer(mask(text).decode(errors="replace"))]
    while True:
        used = re.compile(rf"\b(?:{'|'.join(map(re.escape, found))})\b")
        more = {
            one["macro"] or one["constant"] for one in parts if used.search(one["body"] or one["value"] or "")
        } - found
        if not more:
            return found
        found |= more


def lines_using(source: Source, names: frozenset[str]) -> list[int]:
    """The lines of a file whose code depends on names."""
    text = mask(source.text).decode(errors="replace")
    text = _HARMLESS.sub(lambda found: re.sub(r"\S", " ", found[0]), text)
    used = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    return [number for number, line in enumerate(text.splitlines(), 1) if used.search(line)]


def lines_after(program: Program, line: int) -> list[int]:
    """The lines of a function that use the variables which a line of it sets."""
    functions = [one for one in walk(program.root, "function_definition") if _stands_on(one, line)]
    if not functions:
        return []
    function = functions[-1]
    here = [one for one in walk(function, "init_declarator", "assignment_expression") if line_of(one) == line]
    targets = [one.child_by_field_name("left") or declared_name(one) for one in here]
    names = {text_of(one) for one in targets if one is not None and one.type == "identifier"}
    found = {line_of(one) for one in walk(function, "identifier") if text_of(one) in names}
    return sorted(one for one in found if one > line)


def _stands_on(node: tree_sitter.Node, line: int) -> bool:
    return line_of(node) <= line <= node.end_point[0] + 1
