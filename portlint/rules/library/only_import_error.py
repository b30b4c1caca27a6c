"""An optional GPU package is taken to fail with ImportError only.

These packages load their own shared library while they are imported (`torch.ops.load_library`, `ctypes.CDLL`). Where the
vendor's library behind it is missing, as on a host without the GPU, that raises OSError, which passes by
`except ImportError` and takes the program down.

## Exceptions
Imports whose `try` catches OSError or Exception are silent, and so are those behind a test of the platform or the device.

## Fix safety
Safe: where the package can be loaded, nothing is caught.

## References
https://github.com/NVIDIA/TransformerEngine/issues/2040
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, replace

rule = Rule(
    assumes={},
    message="'{text}' is all that is caught, and {name} raises OSError where its shared library cannot be loaded; {target} has {fact}.",
    remedy={"*": "Catch both: `except (ImportError, OSError):`."},
)

IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError", "(ImportError, ModuleNotFoundError)")
FACTS = {
    "fbgemm_gpu.experimental": "library.fbgemm_gpu_genai",
    "transformer_engine": "library.transformer_engine",
}


@rule.python(
    "[(import_statement) (import_from_statement)] @statement", mentions=tuple(one.partition(".")[0] for one in FACTS)
)
def optional_import(statement: Node) -> Hits:
    fact = _fact(statement)
    if not fact or not statement.role("only-import-error") or statement.role("own-package"):
        return
    beside = statement.parent.children if statement.parent is not None else []
    if not any(_fact(one) == fact for one in beside if one.start < statement.start):  # the first is what fails
        caught = _caught(statement)
        types = caught.children[0] if caught.type == "as_pattern" else caught
        edits = (replace(types, "(ImportError, OSError)"),) if types.text in IMPORT_ERRORS else ()
        yield Hit(caught, {fact: "native"}, {"name": _module(statement)}, statement.guards, edits=edits, safe=True)


def _fact(statement: Node) -> str:
    """The fact about the package that an import statement loads, or "" for any other package and statement."""
    if not statement.type.startswith("import_"):
        return ""
    name = _module(statement)
    return next((fact for package, fact in FACTS.items() if f"{name}.".startswith(f"{package}.")), "")


def _module(statement: Node) -> str:
    """The module that an import statement loads."""
    module = statement.get("module_name") or statement.children[0]
    return (module.get("name") or module).text


def _caught(statement: Node) -> Node:
    """What the `except` clause around an import catches; the import itself where there is none."""
    clauses = (one for around in statement.ancestors("try_statement") for one in around.children)
    named = (one.children[0] for one in clauses if one.type == "except_clause" and one.children)
    return next((one for one in named if re.search(r"\b(Import|ModuleNotFound)Error\b", one.text)), statement)
