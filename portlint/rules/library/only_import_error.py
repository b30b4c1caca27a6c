"""An optional GPU package is taken to fail with ImportError only.

These packages load their own shared library while they are imported (`torch.ops.load_library`, `ctypes.CDLL`). Where the
vendor's library behind it is missing, as on a host without the GPU, that raises OSError, which passes by
`except ImportError` and takes the program down.

## Exceptions
Imports whose `try` catches OSError or Exception are silent, and so are those behind a test of the platform or the device.

## References
https://github.com/NVIDIA/TransformerEngine/issues/2040
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={},
    message="'{text}' raises OSError, not ImportError, where its shared library cannot be loaded; {target} has {fact}.",
    remedy={"*": "Catch both: `except (ImportError, OSError):`."},
)

FACTS = {
    "fbgemm_gpu.experimental": "library.fbgemm_gpu_genai",
    "transformer_engine": "library.transformer_engine",
}


@rule.python("[(import_statement) (import_from_statement)] @statement")
def optional_import(statement: Node) -> Hits:
    fact = _fact(statement)
    if not fact or not statement.role("only-import-error") or statement.role("own-package"):
        return
    beside = statement.parent.children if statement.parent is not None else []
    if not any(_fact(one) == fact for one in beside if one.start < statement.start):  # the first is what fails
        yield Hit(statement, assumes={fact: "native"})


def _fact(statement: Node) -> str:
    """The fact about the package that an import statement loads, or "" for any other package and statement."""
    if not statement.type.startswith("import_"):
        return ""
    module = statement.get("module_name") or statement.children[0]
    name = (module.get("name") or module).text
    return next((fact for package, fact in FACTS.items() if f"{name}.".startswith(f"{package}.")), "")
