"""NVML is started while a module is imported.

The package that wraps NVML installs anywhere; its first call is what looks for NVIDIA's driver, and raises where there is
none. At the left margin, in a class body, or in a function that the module itself calls, that call takes down every import
of the module, of code that never needs the device as well. A `try` around the import alone does not help.

In a file whose import of the package nothing guards, calls in functions are reported too: nothing in it is for another vendor.

## Exceptions
Calls whose failure is caught, behind a test of the device or the platform, and in functions of a file that imports the
package where it is optional are silent.

## References
https://docs.nvidia.com/deploy/nvml-api/group__nvmlInitializationAndCleanup.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"library.pynvml": "native"},
    message="'{text}' {when}; {target} has {fact}.",
    remedy={
        "amd": "Start it where it is asked, in a function, and catch `NVMLError`; ask `amdsmi` there, or the framework (`torch.cuda.get_device_name`).",
        "*": "Start it where it is asked, in a function, and catch `NVMLError`.",
    },
)


IMPORT = regex(r"(import|from)\s+pynvml\b")
LINKS = ("DeviceGetP2PStatus", "DeviceGetNvLinkState", "DeviceGetNvLinkCapability", "DeviceGetNvLinkRemotePciInfo")


@rule.calls("pynvml.nvmlInit", ".nvmlInit", ".nvmlInitWithFlags")
def start(call: Node) -> Hits:
    if call.role("guarded-call"):
        return
    if call.role("import-time"):
        yield Hit(call, words={"when": "looks for NVIDIA's driver whenever the module is imported"})
    elif call.function is not None and _is_required(call):
        yield Hit(call, words={"when": "looks for NVIDIA's driver"})


@rule.calls(*(f"pynvml.nvml{name}" for name in LINKS), *(f".nvml{name}" for name in LINKS))
def links(call: Node) -> Hits:
    if not call.role("guarded-call") and _is_required(call):
        yield Hit(call, words={"when": "asks NVML for the links between GPUs"})


def _is_required(call: Node) -> bool:
    """Whether the file imports NVML's package as it is loaded, and nothing guards that."""
    statements = call.source.root.walk("import_statement", "import_from_statement")
    return any(
        IMPORT.match(one.text) and one.role("import-time") and not one.guards and not one.role("guarded-import")
        for one in statements
    )
