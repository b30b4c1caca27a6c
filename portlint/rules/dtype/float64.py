"""Double precision is taken to exist on the device.

MPS refuses float64 when a tensor is created or moved, Trainium has no such type, Gaudi computes in float32 instead and
TPU emulates it. Much float64 is nobody's wish: it is NumPy's default, and arrives with `torch.from_numpy`.

## Exceptions
Values that stay on the host or come from a state dict are silent, and so is code behind a test of the device, or whose
failure is caught. A buffer or parameter in float64 is reported where the module makes it: it goes to the device with the
module. A single number is silent where float64 is emulated, and so is `enable_x64` around 64-bit integers alone.

## Fix safety
Safe: what goes to the CPU at once becomes float64 there, `x.cpu().double()`. Else unsafe: float32 has 24 bits of precision
in place of 53. The dtype is changed where it is written; `numpy` and JAX are left, and so is a function that also calls
operators without a kernel on some devices, for that part belongs on the CPU, or operators of an extension.

## References
https://docs.pytorch.org/docs/stable/notes/mps.html
"""

from __future__ import annotations

from portlint.rule import (
    TORCH_CREATORS,
    Edit,
    Guard,
    Hit,
    Hits,
    Node,
    Rule,
    regex,
    replace,
    torch_operators,
    unless,
    words_of,
)

rule = Rule(
    assumes={"dtype.float64": "native"},
    message="'{text}' puts float64 on the device; {target} has {fact}.",
    remedy={
        "mps": "Convert to float32 before the value reaches the device, or compute this part on the CPU and move the float32 result.",
        "tpu": "Use float32 on the device; keep what needs double precision on the host.",
        "*": "Use float32 on the device; keep what needs double precision on the host, in NumPy or on the CPU.",
    },
)

REDUCTIONS = "sum mean prod cumsum cumprod softmax log_softmax"
NEW = "new_empty new_full new_ones new_tensor new_zeros"
OF_AN_EXTENSION = regex(r"\btorch\.ops\.(?!aten\b)\w")
HOST = frozenset(("cpu", "host"))
"""words in the name of a function that say where its values are"""
LONG = regex(r"\bu?int64\b")
DOUBLE = regex(r"\b(float64|complex128|double|float)\b")
DEFAULT_FLOATS = frozenset(
    "zeros ones empty full eye linspace logspace array asarray normal uniform init apply".split()
)
"""calls that make float64 under `enable_x64` where no dtype is given"""
WITHOUT_KERNEL = frozenset(name for name in torch_operators() if name.startswith("torch."))
"""functions that some device has no kernel for"""


@rule.calls(*TORCH_CREATORS)
def created(call: Node) -> Hits:
    if not call.role("on-device") or call.argument(None, "device") is None:
        return
    dtype = call.argument(None, "dtype")
    if dtype is not None and dtype.type != "none":
        is_number = call.name == "torch.tensor" and bool(call.arguments) and _is_number(call.arguments[0])
        yield from _asked(call, dtype, (unless("is_tpu"),) if is_number else ())
    elif call.role("float64") and not call.role("guarded-call"):
        yield Hit(call)


@rule.calls(*(f".{name}" for name in NEW.split()), *(f".{name}" for name in REDUCTIONS.split()))
def asked_of_a_method(call: Node) -> Hits:
    owner, dtype = call["function"]["object"], call.argument(None, "dtype")
    if dtype is not None and _is_of_torch(call) and _may_be_on_device(owner):
        yield from _asked(call, dtype)


@rule.calls(
    *(f"torch.{name}" for name in REDUCTIONS.split()),
    *(f"torch.nn.functional.{name}" for name in ("softmax", "log_softmax")),
)
def asked_of_a_function(call: Node) -> Hits:
    dtype = call.argument(None, "dtype")
    if dtype is not None and call.arguments and _may_be_on_device(call.arguments[0]):
        yield from _asked(call, dtype)


@rule.references("torch.float64", "torch.double")
def layer(name: Node) -> Hits:
    argument = name.parent
    call = next(name.ancestors("call"), None)
    if argument is None or argument.type != "keyword_argument" or call is None or not call.name.startswith("torch.nn."):
        return
    device = call.argument(None, "device")
    place = str(device.constant).partition(":")[0] if device is not None else "cpu"
    if argument["name"].text == "dtype" and place not in ("cpu", "meta"):
        yield Hit(name, edits=_narrower(name))


@rule.calls(".double")
def doubled(call: Node) -> Hits:
    value = call["function"]["object"]
    if not call.arguments and _is_of_torch(call) and _may_be_on_device(value) and not call.role("guarded-call"):
        to_host = _goes_to_host(call)
        yield Hit(call, edits=_on_host(call, to_host) if to_host else _single(call), safe=to_host is not None)


@rule.calls(".to", ".cuda", ".type")
def converted(call: Node) -> Hits:
    value = call["function"]["object"]
    if not call.role("on-device") or not _is_of_torch(call) or value.role("traced") or value.role("object"):
        return
    if value.role("stored") and len(call.arguments) < 2 and call.argument(None, "device") is None:
        return
    dtype = call.argument(None, "dtype")
    asked = [one for one in (*call.arguments[:2], *([dtype] if dtype is not None else [])) if one.dtypes]
    if asked:
        yield from _asked(call, asked[-1])
    elif call.role("float64") and value.role("tensor") and value.role("on-host") and not call.role("guarded-call"):
        yield Hit(call)  # what was made float64 on the device is reported there


@rule.calls(".register_buffer", "torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer")
def kept_by_the_module(call: Node) -> Hits:
    kept = call.argument(1, "tensor") if call.name == "" or call.name.endswith("register_buffer") else call.argument(0)
    if kept is not None and kept.role("float64") and kept.role("tensor") and kept.role("on-host"):
        yield Hit(kept)


@rule.calls("torch.set_default_dtype", "torch.set_default_tensor_type")
def default(call: Node) -> Hits:
    if not call.role("host-torch"):
        for argument in call.arguments[:1]:
            yield from _asked(call, argument)


@rule.calls("jax.config.update", "jax.config.config.update")
def x64(call: Node) -> Hits:
    flag = call.argument(0, "name")
    value = call.argument(1, "val")
    if flag is not None and flag.constant == "jax_enable_x64" and value is not None and value.constant is True:
        yield Hit(call, language="jax")


@rule.calls("jax.experimental.enable_x64", "jax.enable_x64")
def x64_within(call: Node) -> Hits:
    value = call.argument(0, "new_val")
    if (value is None or value.constant is True) and not _is_for_integers(call):
        yield Hit(call, language="jax")


@rule.python(
    '((assignment left: (subscript) @variable right: (string)) @assignment (#match? @variable "JAX_ENABLE_X64"))'
)
def x64_in_the_environment(assignment: Node, variable: Node) -> Hits:
    if (
        variable["value"].name == "os.environ"
        and not variable.role("after-jax")
        and str(assignment["right"].constant).lower() in ("1", "true")
    ):
        yield Hit(assignment, language="jax")


def _asked(call: Node, dtype: Node, more: tuple[Guard, ...] = ()) -> Hits:
    """The places where a dtype is float64, each under its own conditions."""
    for named, place in dtype.dtypes:
        if named == "float64" and not call.role("guarded-call"):
            edits = _narrower(dtype) if place == dtype else ()
            yield Hit(dtype, guards=(*call.guards, *place.guards, *more), edits=edits)


def _narrower(dtype: Node) -> tuple[Edit, ...]:
    """`torch.float32` for `torch.float64` and `torch.double`."""
    is_torch = dtype.type == "attribute" and dtype.name in ("torch.float64", "torch.double")
    return (replace(dtype["attribute"], "float32"),) if is_torch and not _lacks_kernels(dtype) else ()


def _single(call: Node) -> tuple[Edit, ...]:
    """`x.float()` for `x.double()`."""
    return (replace(call["function"]["attribute"], "float"),) if not _lacks_kernels(call) else ()


def _goes_to_host(call: Node) -> Node | None:
    """The method in `x.double().cpu()`."""
    method = call.parent
    then = method.parent if method is not None and method.type == "attribute" else None
    if method is None or then is None or then.type != "call" or then.arguments or method["attribute"].text != "cpu":
        return None
    return method["attribute"]


def _on_host(call: Node, cpu: Node) -> tuple[Edit, ...]:
    """`x.cpu().double()` for `x.double().cpu()`."""
    return replace(call["function"]["attribute"], "cpu"), replace(cpu, "double")


def _lacks_kernels(node: Node) -> bool:
    """Whether the function around a node calls what some device has no kernel for: float32 comes no further there.

    Operators of extensions are compiled for the types that they get.
    """
    function = node.function
    if function is None:
        return False
    return OF_AN_EXTENSION.search(function.text) is not None or any(
        call.name in WITHOUT_KERNEL for call in function.walk("call")
    )


def _is_number(value: Node) -> bool:
    """Whether a value is one Python number: written, converted, or one of two such."""
    if value.type == "conditional_expression" and len(value.children) == 3:
        return _is_number(value.children[0]) and _is_number(value.children[2])
    return isinstance(value.constant, float | int) or (value.type == "call" and value.name in ("float", "int"))


def _is_for_integers(call: Node) -> bool:
    """Whether the block under `with enable_x64():` names 64-bit integers, and makes no float64."""
    block = next(call.ancestors("with_statement"), None)
    if block is None or not LONG.search(block["body"].text) or DOUBLE.search(block["body"].text):
        return False
    made = (one for one in block["body"].walk("call") if one.last_name in DEFAULT_FLOATS)
    return all(one.argument(None, "dtype") is not None for one in made)


def _may_be_on_device(value: Node) -> bool:
    function = value.function
    if function is not None and not HOST.isdisjoint(words_of(function["name"].text)):
        return False
    return not any(value.role(role) for role in ("on-host", "traced", "object", "stored"))


def _is_of_torch(call: Node) -> bool:
    return call.source.imports("torch") and not call.role("host-torch")
