"""Who imports a Python module of the tree, where other files call what it defines, and what it imports from them.

The import lines of the whole project are read once, to find the files that may use a module; those are then parsed.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from portlint.regex import regex
from portlint.source import nearby
from portlint.source.kept import with_source
from portlint.source.node import Node
from portlint.source.python.scopes import Binding, Scopes
from portlint.source.text import occurrences

if TYPE_CHECKING:
    from collections.abc import Iterator

    from portlint.source import Source

_IMPORT = regex(
    rb"^[ \t]*(?P<keyword>from|import)[ \t]+([.\w]+)(?:[ \t]+import[ \t]*(\([^)]*\)|[^\n#]*)|([^\n#]*))", re.MULTILINE
)
"""(keyword, the module, what `from` imports of it, what follows the first module of `import`)"""
_WORD = regex(rb"[^\W\d]\w*")
_MOST_USERS = 40
"""files that import a module; one with more is for everybody"""
_DEEPEST_CLASS = 5
_INIT = "__init__.py"
_MADE_BY_BUILDS = regex(r"version|_pb2(_grpc)?$|generated|^proto")
_LAZY = regex(rb"__getattr__|__path__|sys\.modules|import_module|lazy", re.IGNORECASE)
"""how a package gets modules that have no file of their own"""
_HOPS = 4
"""files that a name is followed through"""
_LIBRARIES = frozenset("torch jax jaxlib triton numpy os sys platform typing importlib functools".split())
"""packages whose functions are queries that targets answer"""
PACKAGE_ROOTS = ("", "src", "python")
"""folders above a file in which a tree keeps its packages"""
_PLAIN_BASES = frozenset(("object", "abc.ABC", "torch.nn.Module", "torch.autograd.Function", "typing.Protocol"))
_HOOKS = frozenset(
    "_apply _call_impl _get_name _load_from_state_dict _named_members _replicate_for_data_parallel"
    " _save_to_state_dict _wrapped_call_impl".split()
)
"""private methods that torch.nn.Module calls"""
_DECORATORS_THAT_KEEP = regex(
    r"(\w+\.)*(staticmethod|classmethod|property|cache|lru_cache|cached_property|no_grad|inference_mode)(\(.*\))?"
)
"""decorators that hand a function to nobody"""


def imports_of(file: str) -> tuple[Node, ...]:
    """The statements by which other files of the project import a module, tests left out where others do as well.

    Of a package, of a script, of a module that its package loads by name, and of one that more files import than are
    read, there are none.
    """
    importers = [nearby.opened(path, "python") for path in _importers(file)]
    statements = [one for source in importers if source is not None for one in _statements(source, file)]
    in_code = [one for one in statements if not nearby.is_of_tests(one.source.place)]
    return tuple(in_code or statements)


@nearby.remembered
def _importers(file: str) -> tuple[str, ...]:
    """The files of the project that may import a module."""
    root = nearby.project(file) if file.endswith(".py") else None
    folder, name = os.path.dirname(file), os.path.basename(file).removesuffix(".py")
    if root is None or name == "__init__" or b"__main__" in (nearby.read(file) or b""):
        return ()
    if re.search(rb"""["']\.?%s["']""" % name.encode(), nearby.read(os.path.join(folder, _INIT)) or b""):
        return ()
    candidates = [path for path in _importing(root).get(name.encode(), ()) if path != file]
    return tuple(candidates) if len(candidates) <= _MOST_USERS else ()


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


def every_call(definition: Node, scopes: Scopes) -> list[Node] | None:
    """The calls of a function in its project; None where they are not all known."""
    own = scopes.callers(definition)
    if len(own) != len(scopes.uses(definition["name"].text)):
        return None
    if _is_at_margin(definition):
        elsewhere = calls_from_elsewhere(definition)
        return None if elsewhere is None else own + elsewhere
    return None if _is_mentioned_elsewhere(definition) else own


def is_unused(definition: Node) -> bool:
    """Whether a private function or method has a name that the project says nowhere else.

    What a class overrides of a base that is not in the project is used there.
    """
    name, file = definition["name"].text, definition.source.file
    if not name.startswith("_") or name.startswith("__") or nearby.project(file) is None:
        return False
    if not all(map(_DECORATORS_THAT_KEEP.fullmatch, decorators(definition))):
        return False
    text = definition.source.text
    if len(re.findall(rb"\b%s\b" % name.encode(), text)) > 1 or _is_put_together(name, text):
        return False
    owner = _class_around(definition)
    if owner is not None:
        plain = name not in _HOOKS and _is_plain(owner, scopes_of(definition.source), _DEEPEST_CLASS)
        return plain and not _is_mentioned_elsewhere(definition)
    return _is_at_margin(definition) and not _is_imported(definition)


class Meaning(msgspec.Struct, frozen=True):
    """What a name is bound to, in the file that binds it."""

    scopes: Scopes
    binding: Binding


def meaning(scopes: Scopes, name: Node) -> Meaning | None:
    """What a name or dotted name means where it is bound once: here, or in the file that it is imported from."""
    if name.type == "identifier":
        binding = scopes.only(name.text, name)
        if binding is not None and binding.kind != "import":
            return Meaning(scopes, binding)
    return _imported(scopes, scopes.qualified(name), _HOPS)


def definition_of(scopes: Scopes, name: Node) -> Node | None:
    """The function or class of another file of the project that a name is imported from there."""
    found = meaning(scopes, name) if name.type == "identifier" else None
    if found is None or found.scopes is scopes or found.binding.kind not in ("function", "class"):
        return None
    return found.binding.value


def decorators(definition: Node) -> list[str]:
    """The decorators of a function, as they are written."""
    parent = definition.parent
    if parent is None or parent.type != "decorated_definition":
        return []
    return [one.children[0].text for one in parent.children if one.type == "decorator" and one.children]


@with_source
def scopes_of(source: Source) -> Scopes:
    """The names of another file, gathered once for all that ask."""
    return Scopes(source)


@nearby.remembered
def _importing(root: str) -> dict[bytes, tuple[str, ...]]:
    """The Python files of a project by each word of what they import."""
    found: dict[bytes, dict[str, None]] = {}
    for path, text in nearby.texts(root, (".py", ".ipynb")):
        for _, module, names, modules in _IMPORT.findall(text) if path.endswith(".py") else ():
            words = [*module.split(b".")[-1:], *_WORD.findall(names), *_WORD.findall(modules)]
            for word in words:
                found.setdefault(word, {})[path] = None
    return {word: tuple(paths) for word, paths in found.items()}


@with_source
def _statements(source: Source, file: str) -> tuple[Node, ...]:
    """The statements of a file that import a module, or something of it, for more than types."""
    found: list[Node] = []
    for match in _IMPORT.finditer(source.text):
        keyword = source.tree.root_node.descendant_for_byte_range(match.start("keyword"), match.end("keyword"))
        raw = keyword.parent if keyword is not None else None
        if raw is not None and raw.type in ("import_statement", "import_from_statement"):
            statement = Node(source, raw)
            if any(_is_module(module, source.file, file) for module in _modules(statement)):
                found.append(statement)
    return tuple(one for one in found if not _is_for_types(one))


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


def _class_around(definition: Node) -> Node | None:
    """The class whose method a function is."""
    parent = definition.parent
    if parent is not None and parent.type == "decorated_definition":
        parent = parent.parent
    owner = parent.parent if parent is not None and parent.type == "block" else None
    return owner if owner is not None and owner.type == "class_definition" else None


def _is_mentioned_elsewhere(definition: Node) -> bool:
    """Whether another Python file of the project has a word that is the name of a function."""
    root, name = nearby.project(definition.source.file), definition["name"].text
    return root is None or bool(_files_with(root, name) - {definition.source.file})


def _is_imported(definition: Node) -> bool:
    """Whether a file that imports something by the name of a function's module, or from its package, has its name."""
    file = definition.source.file
    root, module = nearby.project(file), os.path.basename(file).removesuffix(".py")
    if module == "__init__":
        module = os.path.basename(os.path.dirname(file))
    if root is None:
        return True
    importing = _importing(root)
    importers = {*importing.get(module.encode(), ()), *importing.get(definition["name"].text.encode(), ())} - {file}
    return bool(importers & _files_with(root, definition["name"].text))


@nearby.remembered
def _files_with(root: str, name: str) -> frozenset[str]:
    """The Python files and notebooks of a project that have a word."""
    word = name.encode()
    texts = nearby.texts(root, (".py", ".ipynb"))
    return frozenset(path for path, text in texts if next(occurrences(text, word), None) is not None)


def _is_put_together(name: str, text: bytes) -> bool:
    """Whether a file may make up a name: `getattr(self, f"_load_{kind}")`."""
    starts = [name[: at + 1] for at, char in enumerate(name) if char == "_"]
    return any(start.encode() + b"{" in text for start in starts) or any(
        start.encode() + quote in text for start in starts[1:] for quote in (b'"', b"'")
    )


def _is_plain(owner: Node, scopes: Scopes, depth: int) -> bool:
    """Whether nothing outside the project calls what a class overrides."""
    bases = owner.get("superclasses")
    if owner["name"].text.endswith("Mixin") or not depth:
        return False
    return all(_is_plain_base(base, scopes, depth) for base in (bases.children if bases is not None else ()))


def _is_plain_base(base: Node, scopes: Scopes, depth: int) -> bool:
    if base.type == "keyword_argument":
        return True
    if scopes.qualified(base) in _PLAIN_BASES or base.text == "object":
        return True
    bound = scopes.only(base.text, base) if base.type == "identifier" else None
    if bound is not None and bound.kind == "class" and bound.value is not None:
        return _is_plain(bound.value, scopes, depth - 1)
    found = definition_of(scopes, base)
    if found is None or found.type != "class_definition":
        return False
    return _is_plain(found, scopes_of(found.source), depth - 1)


def _imported(scopes: Scopes, qualified: str, hops: int) -> Meaning | None:
    """What a qualified name means in the file of the tree that defines it."""
    module, _, name = qualified.rpartition(".")
    if not hops or not name or not module or module.partition(".")[0] in _LIBRARIES:
        return None
    for path in _files(scopes.source.file, module):
        source = nearby.opened(path, "python")
        if source is None:
            continue
        there = scopes_of(source)
        binding = there.only(name, Node(source, source.tree.root_node))
        if binding is None:
            continue
        return Meaning(there, binding) if binding.kind != "import" else _imported(there, there.imports[name], hops - 1)
    return None


def _files(importer: str, module: str) -> Iterator[str]:
    """The files that may be a module as one file names it: `.` before a name may stand for a package or a module."""
    parts = module.strip(".").split(".")
    dots = len(module) - len(module.lstrip("."))
    if not importer or not all(parts):
        return
    names = (os.path.join(*parts) + ".py", os.path.join(*parts, "__init__.py"))
    if not dots:
        found = (nearby.find(importer, name, PACKAGE_ROOTS) for name in names)
        yield from (path for path in found if path is not None)
        return
    for up in (dots - 1, dots - 2)[:dots]:
        above = os.path.normpath(os.path.join(os.path.dirname(importer), *[".."] * up, "x"))
        found = (nearby.find(above, name, levels=1) for name in names)
        yield from (path for path in found if path is not None)


def missing_import(source: Source) -> Node | None:
    """The first import at the left margin of a file that loads a module which its own package does not have.

    What a build makes is not among them: modules with a file of any ending, private ones, protocol buffers, versions.
    """
    root = nearby.project(source.file) if source.file.endswith((".py", ".ipynb")) else None
    for statement in source.root.children if root is not None else ():
        if statement.type == "import_from_statement" and _is_missing(statement["module_name"].text, root or ""):
            return statement
    return None


def _is_missing(module: str, root: str) -> bool:
    *packages, name = module.split(".")
    if not packages or not packages[0] or name.startswith("_") or _MADE_BY_BUILDS.search(name):
        return False
    folder = next(
        (one for one in (os.path.join(root, top, *packages) for top in ("", "src")) if nearby.is_folder(one)), None
    )
    if folder is None:
        return False
    said = nearby.read(os.path.join(folder, _INIT))
    if said is None or _LAZY.search(said) or re.search(rb"\b%s\b" % name.encode(), said):
        return False
    return not any(entry.partition(".")[0] == name for entry in nearby.entries(folder))


@nearby.remembered
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
