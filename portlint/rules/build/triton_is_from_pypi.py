"""Triton is required from PyPI, although PyTorch brings the Triton that it was built with.

PyTorch for ROCm and for XPU requires a Triton under a name of its own (`pytorch-triton-rocm`, `pytorch-triton-xpu`), which
fills the same folder as `triton`. The requirement is not met by it, so pip installs the package of PyPI over it, and kernels fail
or come out for another version. For macOS there is no wheel at all, and the installation stops.

## Exceptions
Silent where a marker leaves the machine out, in extras, and where a requirements file is named for the platform.

## References
https://github.com/pytorch/pytorch/blob/0036db5ab1a6fcf13662cd8ccd99f021422fe547/.github/scripts/build_triton_wheel.py
"""

from __future__ import annotations

from portlint.rule import Entry, Hit, Hits, Rule

rule = Rule(
    assumes={"build.pypi_triton": "native"},
    message="'{text}' requires Triton from PyPI; {target} has {fact}.",
    remedy={
        "mps": "Put it behind a marker (`; sys_platform == 'linux'`) or into an extra, and import it where it is used.",
        "*": "Require `torch` alone, which brings its Triton, or move `triton` into an extra.",
    },
)


@rule.recipes("package")
def required(entry: Entry) -> Hits:
    if entry.name == "triton" and entry.is_in_manifest and not entry.choice:
        yield Hit(entry.node)
