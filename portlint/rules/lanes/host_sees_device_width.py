"""Host code reads a warp width that only the device pass of the compiler knows.

A HIP compiler defines `__GFX9__` and its like in the device pass alone, and `__AMDGCN_WAVEFRONT_SIZE` (64 whatever the
device, where it is there at all) says nothing in the host pass. A launch, a grid or a buffer that host code sizes with
such a constant does not fit the kernel, which sees another value.

## Exceptions
Device code, and constants that the platform alone chooses, are silent; so are static assertions and `constexpr`
functions, which device code may call.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_cpp_language_extensions.html
"""

from __future__ import annotations

from portlint.rule import HOST_PASS, Hit, Hits, Node, Rule, on_platform, one_runs, regex

rule = Rule(
    assumes={"lanes.width": 32},
    otherwise="corrupts",
    message="'{text}' is chosen by a macro of the device pass, and host code reads {assumed} here; {target} has {fact}.",
    remedy={
        "amd": "Ask the device for `hipDeviceAttributeWarpSize` (`warpSize` of its properties) in host code.",
        "*": "Ask the device for its warp size in host code.",
    },
)

WIDTHS = (32, 64)
BUILTIN = regex(r"\(?__AMDGCN_WAVEFRONT_SIZE(__)?\)?")
NAMED = regex(r"(?i:warp|wave|lanes)(?!s|_?per)(?![a-rt-z])")
HOLDERS = ("preproc_def", "init_declarator", "field_declaration")


@rule.cuda("(preproc_def name: (identifier) @name value: (preproc_arg) @value)")
@rule.cuda("(init_declarator declarator: (identifier) @name value: (_) @value)")
@rule.cuda("(field_declaration declarator: (_) @name default_value: (_) @value)")
def width_in_host_code(name: Node, value: Node) -> Hits:
    if not (name.role("warp-size") or NAMED.search(name.text)) or _width(value) is None or name.function is not None:
        return
    definitions = [(name, value), *_others(name)]
    if any(other.start < name.start for other, _ in definitions):
        return  # all definitions are looked at once, from the first
    if not any(_width(given) == 64 for _, given in definitions):
        return
    if not any(one.role("by-device-pass") or BUILTIN.fullmatch(given.text) for one, given in definitions):
        return
    read = {use.line: use for use in reversed(name.uses) if _is_read_by_host(use)}  # one finding a line
    for use in reversed(read.values()):
        for width in WIDTHS:
            given = [one for one, value in definitions if _width(value) == width]
            if given:
                guards = (*use.guards, HOST_PASS, on_platform("rocm"), one_runs(given))
                yield Hit(use, assumes={"lanes.width": width}, guards=guards)


def _others(name: Node) -> list[tuple[Node, Node]]:
    """The other definitions of a name with their values."""
    found = []
    for use in name.uses:
        parent = use.parent
        if parent is not None and parent.type in HOLDERS:
            value = parent.get("value") or parent.get("default_value")
            if value is not None and value != use:
                found.append((use, value))
    return found


def _width(value: Node) -> int | None:
    """The width that the host pass reads; the builtin macro is 64 there."""
    if BUILTIN.fullmatch(value.text.strip()):
        return 64
    return value.constant if value.constant in WIDTHS else None  # type: ignore[return-value]


def _is_read_by_host(use: Node) -> bool:
    function = use.function
    if function is None or not use.role("host-code") or any(True for _ in use.ancestors("static_assert_declaration")):
        return False
    head = function.text.partition("{")[0]
    return "constexpr" not in head and use.parent is not None and use.parent.type not in HOLDERS[:1]
