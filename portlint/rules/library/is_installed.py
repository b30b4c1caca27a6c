"""A package that exists for one vendor's machines is imported as if it were everywhere.

The import runs when the module is loaded, so one missing wheel takes down everything that imports the module, code that
never needs the package included.

## Exceptions
Imports in a `try` that catches the failure, under `TYPE_CHECKING`, behind a test of the platform or of the package, or
inside a function are silent, and so are imports of a package that the same tree holds: it is what is being ported.
`numba.cuda` is silent after `numba.hip.pose_as_cuda()`.
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={},
    message="'{text}' imports a package whenever the module is loaded; {target} has {fact}.",
    remedy={
        "amd": "Import it where it is used, behind a test of the platform, or catch ImportError and OSError; for NVML use `amdsmi`, for `numba.cuda` on Instinct GPUs numba-hip (experimental), which takes its place after `numba.hip.pose_as_cuda()`.",
        "*": "Import it where it is used, behind a test of the device, or catch ImportError and OSError and keep a path without it.",
    },
)

FACTS = {
    "apex": "library.apex",
    "bitsandbytes": "library.bitsandbytes",
    "cudf": "library.cudf",
    "cupy": "library.cupy",
    "cupyx": "library.cupy",
    "cutlass": "library.cutlass",
    "deep_gemm": "library.deep_gemm",
    "fbgemm_gpu": "library.fbgemm_gpu",
    "flash_attn": "library.flash_attn",
    "flashinfer": "library.flashinfer",
    "habana_frameworks": "library.habana_frameworks",
    "numba.cuda": "library.numba_cuda",
    "nvidia.dali": "library.nvidia_dali",
    "pycuda": "library.pycuda",
    "pynvml": "library.pynvml",
    "tensorrt": "library.tensorrt",
    "tensorrt_llm": "library.tensorrt",
    "torch_tensorrt": "library.tensorrt",
    "transformer_engine": "library.transformer_engine",
    "triton": "library.triton",
    "xformers": "library.xformers",
}


@rule.python(
    "[(import_statement) (import_from_statement)] @statement", mentions=tuple(one.partition(".")[0] for one in FACTS)
)
def module_level_import(statement: Node) -> Hits:
    fact = next((fact for module in _modules(statement) if (fact := _fact(module))), None)
    if fact is None or not statement.role("import-time") or statement.role("repeated-import"):
        return
    if statement.role("own-package") or (fact == FACTS["numba.cuda"] and _poses_as_cuda(statement)):
        return
    if not statement.role("guarded-import"):
        yield Hit(statement, assumes={fact: "native"})


@rule.calls("importlib.import_module", "__import__")
def imported_by_name(call: Node) -> Hits:
    name = call.arguments[0].constant if call.arguments else None
    fact = _fact(name) if isinstance(name, str) else None
    if fact is None or not call.role("import-time") or call.role("guarded-import"):
        return
    package = str(name).partition(".")[0]
    if not any(package in guard.text for guard in call.guards):
        yield Hit(call, assumes={fact: "native"})


def _poses_as_cuda(statement: Node) -> bool:
    """Whether numba-hip has taken the place of `numba.cuda` before."""
    if not statement.source.mentions("pose_as_cuda"):
        return False
    calls = (call for call in statement.source.root.walk("call") if call.name == "numba.hip.pose_as_cuda")
    return any(call.end < statement.start for call in calls)


def _fact(module: str) -> str | None:
    """The fact about the package that a module belongs to, or None for one that exists everywhere."""
    parts = module.split(".")
    return FACTS.get(parts[0]) or FACTS.get(".".join(parts[:2]))


def _modules(statement: Node) -> list[str]:
    """The packages that an import statement loads; "numba.cuda" for `from numba import cuda` as well."""
    module = statement.get("module_name")
    names = [child for child in statement.children if child != module]
    imported = [(child.get("name") or child).text for child in names]
    return [f"{module.text}.{name}" for name in imported] if module is not None else imported
