"""Triton is required from PyPI, although PyTorch brings the Triton that it was built with.

PyTorch for ROCm and for XPU requires a Triton under a name of its own (`triton-rocm`, `triton-xpu`), which fills the same folder
as `triton`. The requirement is not met by it, so pip installs the package of PyPI over it. On AMD's GPUs that works from 3.0 on,
with another version than PyTorch was built with; older ones, and all of them on Intel's, have no back end for the machine. For
macOS there is no wheel at all, and the installation stops.

## Exceptions
Silent where a marker leaves the machine out, in extras, where a requirements file is named for the platform, and for AMD where the
project requires `triton` for ROCm by that name.

## References
https://github.com/pytorch/pytorch/issues/186350
https://github.com/pytorch/pytorch/blob/0036db5ab1a6fcf13662cd8ccd99f021422fe547/.github/scripts/build_triton_wheel.py
"""

from __future__ import annotations

from portlint.rule import Assumed, Entry, Hit, Hits, Rule, at_least, on_platform, unless

rule = Rule(
    assumes={},
    message="'{text}' requires Triton from PyPI; {target} has {fact}.",
    remedy={
        "mps": "Put it behind a marker (`; sys_platform == 'linux'`) or into an extra, and import it where it is used.",
        "*": "Require `torch` alone, which brings its Triton, or move `triton` into an extra.",
    },
)


FROM_PYPI: dict[str, Assumed] = {"build.pypi_triton": "native"}
FIRST_FOR_AMD = (3, 0)


@rule.recipes("package")
def required(entry: Entry) -> Hits:
    if entry.name != "triton" or not entry.is_in_manifest or entry.choice:
        return
    yield Hit(entry.node, assumes=FROM_PYPI, guards=(*entry.guards, unless("is_rocm")))
    on_amd = (*entry.guards, on_platform("rocm"))
    newest = entry.newest
    if newest is not None and newest < FIRST_FOR_AMD:
        release = float(f"{newest[0]}.{newest[1]}")
        yield Hit(entry.node, assumes={"build.oldest_triton": at_least(release)}, guards=on_amd)
    elif not entry.is_required_on("rocm", "hip", "amd"):
        yield Hit(entry.node, assumes=FROM_PYPI, guards=on_amd, otherwise="degrades")
