"""NVML is started while a module is imported.

The package that wraps NVML installs anywhere; its first call is what looks for NVIDIA's driver, and raises where there is
none. At the left margin, in a class body, or in a function that the module itself calls, that call takes down every import
of the module, of code that never needs the device as well. A `try` around the import alone does not help.

## Exceptions
Calls whose failure is caught, behind a test of the device or the platform, in a function, and under
`if __name__ == "__main__"` are silent.

## References
https://docs.nvidia.com/deploy/nvml-api/group__nvmlInitializationAndCleanup.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"library.pynvml": "native"},
    message="'{text}' looks for NVIDIA's driver whenever the module is imported; {target} has {fact}.",
    remedy={
        "amd": "Start it where it is asked, in a function, and catch `NVMLError`; ask `amdsmi` there, or the framework (`torch.cuda.get_device_name`).",
        "*": "Start it where it is asked, in a function, and catch `NVMLError`.",
    },
)


@rule.calls("pynvml.nvmlInit", ".nvmlInit", ".nvmlInitWithFlags")
def start(call: Node) -> Hits:
    if call.role("import-time") and not call.role("guarded-call"):
        yield Hit(call)
