"""`warpSize` is used where a constant expression is needed.

On AMD `warpSize` was a macro once; since ROCm 7.0 it is an object that only device code can convert to an integer. As an
array bound, a template argument or in `#if` it no longer compiles. nvcc refuses it in these places as well.

## Exceptions
Arithmetic at run time (`threadIdx.x % warpSize`) is what `warpSize` is for, and silent.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/hip-7-changes.html
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"lanes.warp_size_constant": "native"},
    message="'{text}' needs a constant expression; {target} has {fact}.",
    remedy={
        "amd": "Size arrays for the largest width, 64, and use `warpSize` at run time; or choose a constant by the target macro (`__GFX9__` has 64) in device code.",
        "*": "Use a constant of your own that the build chooses.",
    },
)


@rule.cuda("(array_declarator size: (_) @size)")
@rule.cuda("(template_argument_list (_) @size)")
@rule.cuda("(static_assert_declaration condition: (_) @size)")
def constant_expression(size: Node) -> Hits:
    yield from _uses(size)


@rule.cuda(
    '((declaration (type_qualifier) @_constexpr declarator: (init_declarator value: (_) @size)) (#eq? @_constexpr "constexpr"))'
)
def constant_variable(size: Node) -> Hits:
    yield from _uses(size)


def _uses(size: Node) -> Hits:
    """Every `warpSize` that an expression reaches, in the expression itself or in the macros that it names."""
    if not size.source.mentions("warpSize") or size.source.defines("warpSize"):
        return
    names = list(size.walk("identifier", "type_identifier"))  # a template argument may be taken for a type
    yield from (Hit(name) for name in names if name.text == "warpSize" and name.declaration is None)
    for name in names:
        for body in name.choices:
            if body.type == "preproc_arg" and re.search(r"\bwarpSize\b", body.text):
                yield Hit(body, guards=(*size.guards, *body.guards))
