"""A Triton kernel converts to an 8-bit float format that the back end does not have.

`tl.float8e4b8` and `tl.float8e5b16` are AMD's FNUZ formats, `tl.float8e4b15` is NVIDIA's own, and `tl.float8e4nv` is not there
before compute capability 8.9. The compiler refuses them by name.

## Exceptions
A format that is only compared with, or looked up on the host, is silent, and so is one behind a test of the platform.

## References
https://triton-lang.org/main/python-api/triton.language.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, has

rule = Rule(
    assumes={},
    message="'{text}' is not a format of every back end; {target} has {fact}.",
    remedy={
        "amd": "Take the format from the tensor (`x.dtype.element_ty`), or pass it as a `tl.constexpr`: float8e4b8 on gfx94x, float8e4nv on gfx950 and gfx12.",
        "*": "Take the format from the tensor (`x.dtype.element_ty`), or pass it as a `tl.constexpr` that the host chooses by the device.",
    },
)

FORMATS = {f"triton.language.{name}": name.replace("float8", "fp8") for name in (
    "float8e4b8", "float8e5b16", "float8e4b15", "float8e4nv",
)}  # fmt: skip


@rule.references(*FORMATS)
def converted(name: Node) -> Hits:
    parent = name.parent
    if parent is not None and parent.type == "keyword_argument" and parent["name"].text == "dtype":
        parent = parent.parent
    if parent is not None and parent.type == "argument_list" and name.role("triton-kernel"):
        yield Hit(name, {"dtype.triton_fp8": has(FORMATS[name.name])}, language="triton")
