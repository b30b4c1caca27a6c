"""Who imports a Python module of the tree, and where other files call what it defines.

The import lines of the whole project are read once, to find the files that may use a module; those are then parsed.
"""

from __future__ import annotations

import os
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from portlint.source import nearby
from portlint.source.node import Node
from portlint.source.python.scopes import Scopes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source import Source

_IMPORT = re.compile(
    rb"^[ \t]*(?P<keyword>from|import)[ \t]+([.\w]+)(?:[ \t]+import[ \t]*(\([^)]*\)|[^\n#]*)|([^\n#]*))", re.MULTILINE
)
"""(keyword, the module, what `from` imports of it, what follows the first module of `import`)"""
_WORD = re.compile(rb"[^\W\d]\w*")
_MOST_USERS = 40
"""files that import a module; one with more is for everybody"""
_MOST_OPEN = 128
"""other files whose names are kept"""
_INIT = "__init__.py"


@cache
def imports_of(file: str) -> tuple[Node, ...]:
    """The statements by which other files of the project import a module, tests left out where others do as well.

    Of a package, of a script, of a module that its package loads by name, and of one that more files import than are
    read, there are none.
    """
    root = nearby.project(file) if file.endswith(".py") else None
    folder, name = os.path.dirname(file), os.path.basename(file).removesuffix(".py")
    if root is None or name == "__init__" or b"__main__" in (nearby.read(file) or b""):
        return ()
    if re.search(rb"""["']\.?%s["']""" % name.encode(), nearby.read(os.path.join(folder, _INIT)) or b""):
        return ()
    candidates = [path for path in _importing(root).get(name.encode(), ()) if path != file]
    if len(candidates) > _MOST_USERS:
        return ()
    statements = [one for path in candidates for one in _statements(path, file) if not _is_for_types(one)]
    in_code = [one for one in statements if not nearby.is_of_tests(os.path.relpath(one.source.file, root))]
    return tuple(in_code or statements)


def calls_from_elsewhere(definition: Node) -> list[Node] | None:
    """The calls of a function or class at the left margin of its module, in other files of the project.

    None where they are not all known: the name is exported from its package, or is used in another way than a call.
    """
    name, file = definition["name"].text, definition.source.file
    if not file or not _is_at_margin(definition) or _is_exported(file, name):
        return None
    found: list[Node] = []
    for statement in imports_of(file):
        for use in _uses(statement, name):
            call = use.parent
            if call is None or call.type != "call" or call["function"] != use:
                return None
            found.append(call)
    return found


@lru_cache(maxsize=_MOST_OPEN)
def scopes_of(source: Source) -> Scopes:
    """The names of another file, gathered once for all that ask."""
    return Scopes(source)


@cache
def _importing(root: str) -> dict[bytes, tuple[str, ...]]:
    """The Python files of a project by each word of what they import."""
    found: dict[bytes, dict[str, None]] = {}
    for path in nearby.modules(root):
        for _, module, names, modules in _IMPORT.findall(nearby.read(path) or b""):
            words = [*module.split(b".")[-1:], *_WORD.findall(names), *_WORD.findall(modules)]
            for word in words:
                found.setdefault(word, {})[path] = None
    return {word: tuple(paths) for word, paths in found.items()}


def _statements(path: str, file: str) -> Iterator[Node]:
    """The statements of a file that import a module, or something of it."""
    source = nearby.opened(path, "python")
    if source is None:
        return
    for match in _IMPORT.finditer(source.text):
        keyword = source.tree.root_node.descendant_for_byte_range(match.start("keyword"), match.end("keyword"))
        raw = keyword.parent if keyword is not None else None
        if raw is not None and raw.type in ("import_statement", "import_from_statement"):
            statement = Node(source, raw)
            if any(_is_module(module, path, file) for module in _modules(statement)):
                yield statement


def _is_for_types(statement: Node) -> bool:
    """Whether an import is there for type checkers alone."""
    return any("TYPE_CHECKING" in one["condition"].text for one in statement.ancestors("if_statement"))


def _modules(statement: Node) -> Iterator[str]:
    """The modules that a statement may load: of `from a.b import c`, `a.b` and `a.b.c`."""
    if statement.type == "import_statement":
        yield from ((one.get("name") or one).text for one in statement.children)
        return
    module = statement["module_name"].text
    yield module
    yield from (module.rstrip(".") + "." + name if module.strip(".") else module + name for name in _names(statement))


def _names(statement: Node) -> dict[str, str]:
    """What a `from` statement imports, with its name in the file."""
    module = statement["module_name"]
    named = [one for one in statement.children if one != module and one.type in ("dotted_name", "aliased_import")]
    return {(one.get("name") or one).text: (one.get("alias") or one).text for one in named}


def _is_module(module: str, importer: str, file: str) -> bool:
    """Whether a module as written in one file is another file."""
    here, place = os.path.dirname(importer), file.removesuffix(".py")
    dots = len(module) - len(module.lstrip("."))
    parts = module.strip(".").split(".")
    if dots:
        return os.path.normpath(os.path.join(here, *[".."] * (dots - 1), *parts)) == place
    beside = os.path.join(here, *parts) == place
    return beside or (len(parts) > 1 and place.endswith(os.sep + os.path.join(*parts)))


def _uses(statement: Node, name: str) -> Iterator[Node]:
    """The uses of a name of a module in a file that imports it by a statement."""
    source = statement.source
    local = _names(statement).get(name) if statement.type == "import_from_statement" else None
    if local is not None:
        yield from (use for use in scopes_of(source).uses(local) if _is_use(use))
        return
    for use in scopes_of(source).uses(name):
        parent = use.parent
        named = parent is not None and parent.type == "attribute" and parent["attribute"] == use
        if parent is not None and named and parent["object"].text != "self":
            yield parent


def _is_use(identifier: Node) -> bool:
    """Whether an identifier stands for a value of the file: not for an attribute, a keyword or an import."""
    parent = identifier.parent
    if parent is None or any(True for _ in identifier.ancestors("import_from_statement")):
        return False
    if parent.type == "attribute":
        return parent["object"] == identifier
    return parent.type != "keyword_argument" or parent["value"] == identifier


def _is_at_margin(definition: Node) -> bool:
    """Whether a definition is one of the module's own, under a test or not."""
    return not any(True for _ in definition.ancestors("function_definition", "class_definition", "lambda"))


@cache
def _is_exported(file: str, name: str) -> bool:
    """Whether a name stands in `__all__` of its module, or in the `__init__.py` of a package around it."""
    word = re.compile(rb"\b" + name.encode() + rb"\b")
    listed = re.search(rb"^__all__\s*=\s*[\[(]([^\])]*)", nearby.read(file) or b"", re.MULTILINE)
    if listed is not None and word.search(listed[1]):
        return True
    for folder in nearby.folders(file):
        package = nearby.read(os.path.join(folder, _INIT))
        if package is None:
            return False
        if word.search(package) is not None:
            return True
    return False
