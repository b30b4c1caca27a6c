"""The 8-bit float formats of one vendor are taken to be everybody's.

There are two families. OCP `e4m3fn`/`e5m2` (NVIDIA, CDNA 4, RDNA 4) and FNUZ `e4m3fnuz`/`e5m2fnuz` (CDNA 3) differ in
bias, largest value (448 against 240) and NaN, so bits of one read as the other are off by a factor of two. Matrix
units take their own family only.

In C++ HIP's types follow the device. Where it has one family (`HIP_FP8_TYPE_OCP`, `HIP_FP8_TYPE_FNUZ`), conversions of
the other are for host code, and device code that uses them does not compile. `__hip_fp8_e4m3`, which HIPIFY makes of
`__nv_fp8_e4m3`, is worse: it keeps the constructor from `short int`, so a float loses its fraction. Conversion functions
given the other format assert, and without assertions write the device's own bits.

## Exceptions
Naming a format to compare, to look up, to tag a configuration, or to hold bytes (`torch.empty`, `view`) is silent; what
counts is a conversion to it, its range taken for a scale, or a choice by the name of the AMD architecture. A default is a choice of the
caller's where the file names the other variant too, and the limits of a format may be kept as constants. Tensors on the CPU or from a state dict are silent, and so are MX formats and NVFP4, which fix their
variant.
In C++ only conversions in device code are reported. Names that the tree gives a meaning of its own are silent, as is
code behind a test of HIP's macros. `c10::Float8_e4m3fn` is converted in software on every device.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/low_fp_types.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, asked_by, has, on_platform, regex

rule = Rule(
    assumes={},
    message="'{text}' is used as the FP8 format; {target} has {fact}.",
    remedy={
        "cdna3": "Choose the format from the device: `torch.float8_e4m3fnuz`/`float8_e5m2fnuz` on gfx94x, with scales computed from `torch.finfo` of that type; convert stored OCP weights, whose bits mean half the value as FNUZ. In C++ take `__hip_fp8_e4m3_fnuz` where `HIP_FP8_TYPE_FNUZ` is set and `HIP_FP8_TYPE_OCP` is not.",
        "amd": "Choose the format from the device's `gcnArchName`; without FP8 matrix units use bfloat16 or int8. In C++ take `__hip_fp8_e4m3` where `HIP_FP8_TYPE_OCP` is set.",
        "nvidia": "Choose the format from the device: OCP `torch.float8_e4m3fn`/`float8_e5m2` from compute capability 8.9 on, bfloat16 or int8 before; FNUZ is for AMD's gfx94x only.",
        "neuron": "Take `float8_e4m3` or `float8_e5m2` before Trainium3, with scales for a largest value of 240 and not 448.",
        "*": "Choose the format from the device; without FP8 use bfloat16 or int8.",
    },
)

FACTS = {
    f"torch.{name}": f"dtype.{fact}"
    for name, fact in {
        "float8_e4m3fn": "fp8_e4m3fn",
        "float8_e5m2": "fp8_e5m2",
        "float8_e4m3fnuz": "fp8_e4m3fnuz",
        "float8_e5m2fnuz": "fp8_e5m2fnuz",
    }.items()
}
IN_JAX = {
    "float8_e4m3fn": "fp8_e4m3fn",
    "float8_e4m3fnuz": "fp8_e4m3fnuz",
    "float8_e5m2fnuz": "fp8_e5m2fnuz",
}
LOADED_AS = ("torch_dtype", "storage_dtype", "load_dtype")
"""names of the format that weights are stored in, whatever they are computed in"""
COMPUTING = frozenset(("to", "type", "finfo", "astype"))
"""calls that convert to a format or take its range; a container of that dtype, a view and a tag compute nothing"""

CONVERTS = regex(r"(cast_)?to_(fp8|float8)(_saturated)?")
"""functions of projects that convert: `to_fp8_saturated(x, dtype)`, `cast_to_float8`"""
COMMON = ("bits", "dtype")
"""what `torch.finfo` says alike of both families"""
MICROSCALING = regex(
    r"[Mm][Xx][Ff][Pp]\d|[Nn][Vv][Ff][Pp]4|float8_e8m0|(?<![A-Za-z])(mx|MX)_|_(mx|MX)(?![A-Za-z])|(?<![A-Za-z])MX(?=[A-Z][a-z])"
)
"""`nvfp4_quantize`, `to_mx`, `MXTensor`, `torch.float8_e8m0fnu`"""
DEFINITIONS = ("function_definition", "class_definition")

CXX_TYPES = " ".join(
    f'"__{vendor}_fp8{width}_{layout}{variant}"'
    for vendor, variants in (("nv", ("",)), ("hip", ("", "_fnuz")))
    for variant in variants
    for width in ("", "x2", "x4")
    for layout in ("e4m3", "e5m2")
)
FROM = "float float2 double double2 halfraw halfraw2 bfloat16raw bfloat16raw2".split()
CXX_CONVERSIONS = [
    f"__{vendor}_cvt_{conversion}"
    for vendor in ("nv", "hip")
    for conversion in (
        *(f"{kind}_to_fp8{'x2' if kind.endswith('2') else ''}" for kind in FROM),
        "fp8_to_halfraw",
        "fp8x2_to_halfraw2",
    )
]


@rule.cuda(f"((call_expression function: (identifier) @fp8) (#any-of? @fp8 {CXX_TYPES}))")
@rule.cuda(
    "((call_expression function: (template_function"
    " arguments: (template_argument_list . (type_descriptor . type: (type_identifier) @fp8 .) .)))"
    f" (#any-of? @fp8 {CXX_TYPES}))"
)
@rule.cuda(f"((cast_expression type: (type_descriptor . type: (type_identifier) @fp8 .)) (#any-of? @fp8 {CXX_TYPES}))")
def converted_in_device_code(fp8: Node) -> Hits:
    template = next(fp8.ancestors("template_function", "call_expression"), None)
    if template is not None and template.type == "template_function" and template["name"].text != "static_cast":
        return
    # of HIP's OCP types one has a constructor left for device code, from `short int`
    yield from _in_device_code(fp8, "corrupts" if fp8.text.endswith("fp8_e4m3") else "breaks")


@rule.cuda_calls(*CXX_CONVERSIONS)
def converted_as(call: Node) -> Hits:
    """A conversion function, and the format that it is given last."""
    if call.arguments and call.arguments[-1].text.startswith(("__NV_E", "__HIP_E")):
        yield from _in_device_code(call.arguments[-1], "corrupts")


def _in_device_code(fp8: Node, verdict: str) -> Hits:
    asked = asked_by(fp8.guards)
    if not fp8.role("device-only") or asked & {"HIP_FP8_TYPE_OCP", "HIP_FP8_TYPE_FNUZ"}:
        return
    if fp8.source.defines(fp8.text):
        return
    is_fnuz = fp8.text.lower().endswith("fnuz")
    # only code for HIP has the names of HIP
    guards = fp8.guards if "nv" in fp8.text.lower()[:5] else (*fp8.guards, on_platform("rocm"))
    assumes = {"dtype.fp8_in_device_code": has("FNUZ" if is_fnuz else "OCP")}
    yield Hit(fp8, assumes, guards=guards, otherwise=verdict)


@rule.references(*FACTS)
def chosen(name: Node) -> Hits:
    if _is_of_microscaling(name):
        return
    kept = _kept_in(name)
    uses = _uses(kept)
    if _computes(name) or any(map(_computes, uses)) or (kept is not None and not uses) or _is_chosen_for_amd(name):
        yield Hit(name, assumes={FACTS[name.name]: "native"})


@rule.references(*(f"jax.numpy.{name}" for name in IN_JAX))
def chosen_in_jax(name: Node) -> Hits:
    """XLA emulates the formats that a GPU or TPU lacks; Neuron's compiler refuses them."""
    kept = _kept_in(name)
    if name.source.imports("jax.experimental.pallas"):
        return  # Neuron does not run Pallas kernels
    if _computes(name) or any(map(_computes, _uses(kept))):
        fact = f"dtype.{IN_JAX[name.name.rpartition('.')[2]]}"
        yield Hit(name, assumes={fact: "native"}, guards=(*name.guards, on_platform("neuron")), language="jax")


def _is_chosen_for_amd(dtype: Node) -> bool:
    """Whether a function returns an FNUZ format after a look at the AMD architecture, as `"gfx9" in gcnArchName`."""
    statement = dtype.parent
    while statement is not None and statement.type in ("conditional_expression", "parenthesized_expression"):
        statement = statement.parent
    is_returned = statement is not None and statement.type == "return_statement"
    return is_returned and dtype.name.endswith("fnuz") and "gcn_arch" in asked_by(dtype.guards)


def _computes(dtype: Node) -> bool:
    """Whether a dtype stands as the argument of a conversion, or of a question for its range."""
    parent = dtype.parent
    while parent is not None and parent.type in ("conditional_expression", "parenthesized_expression"):
        parent = parent.parent
    if parent is not None and parent.type == "keyword_argument" and parent["name"].text == "dtype":
        parent = parent.parent
    if parent is None or parent.type != "argument_list" or parent.parent is None:
        return False
    function = parent.parent["function"]
    called = function["attribute"].text if function.type == "attribute" else function.text
    if called == "to" and function.type == "attribute":
        value = function["object"]
        if value.role("on-host") or value.role("stored"):
            return False
    if called == "finfo":
        # a constant of the module describes a format; what is computed with it is seen where that happens
        return dtype.function is not None and _reads_range(parent.parent)
    return called in COMPUTING or CONVERTS.fullmatch(called) is not None


def _reads_range(info: Node) -> bool:
    """Whether more is asked of a `torch.finfo(...)` than how many bits a number has."""
    around = info.parent
    if around is not None and around.type == "attribute":
        return around["attribute"].text not in COMMON
    if around is None or around.type != "assignment" or around["left"].type != "identifier":
        return True
    asked = [use.parent for use in around["left"].uses]
    return not all(one is not None and one.type == "attribute" and one["attribute"].text in COMMON for one in asked)


def _is_of_microscaling(dtype: Node) -> bool:
    """Whether code is for MX formats or NVFP4, which fix the family of their 8-bit floats on every machine."""
    places = [dtype.source.place, *(one["name"].text for one in dtype.ancestors(*DEFINITIONS))]
    if any(map(MICROSCALING.search, places)):
        return True
    function = dtype.function
    return function is not None and any(map(MICROSCALING.search, {one.text for one in function.walk("identifier")}))


def _knows_the_other_variant(dtype: Node) -> bool:
    """Whether the file names a format of AMD's, so that the format is a choice there."""
    return any(FACTS.get(one.name, "").endswith("fnuz") for one in dtype.source.root.walk("attribute"))


def _uses(name: Node | None) -> list[Node]:
    """The uses of what a dtype is given to: of a name in a function, those in that function."""
    function = name.function if name is not None else None
    uses = name.uses if name is not None else []
    return uses if function is None else [use for use in uses if function.start <= use.start < function.end]


def _kept_in(dtype: Node) -> Node | None:
    """The name that a dtype is given to: `FP8 = torch.float8_e4m3fn`, `def quantize(x, dtype=...)`.

    One that the file does not use is meant for other files.
    """
    parent = dtype.parent
    while parent is not None and parent.type in ("conditional_expression", "parenthesized_expression"):
        parent = parent.parent
    if parent is None or parent.type not in ("assignment", "default_parameter", "typed_default_parameter"):
        return None
    target = parent.get("left") or parent.get("name")
    if parent.type != "assignment" and _knows_the_other_variant(dtype):
        return None  # the other variant is a choice of the caller's
    if target is None or target.type != "identifier" or parent.role("default-not-used"):
        return None
    return None if target.text in LOADED_AS else target
