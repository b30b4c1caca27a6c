"""Double precision is taken to exist on the device.

MPS refuses float64 when a tensor is created or moved, Trainium has no such type, Gaudi computes in float32 instead and
TPU emulates it. Much float64 is nobody's wish: it is NumPy's default, and arrives with `torch.from_numpy`.

## Exceptions
Values that stay on the host are silent, and so is code behind a test of the device.

## References
https://docs.pytorch.org/docs/stable/notes/mps.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"dtype.float64": "native"},
    message="'{text}' puts float64 on the device; {target} has {fact}.",
    remedy={
        "mps": "Convert to float32 before the value reaches the device, or compute this part on the CPU and move the float32 result.",
        "tpu": "Use float32 on the device; keep what needs double precision on the host.",
        "*": "Use float32 on the device; keep what needs double precision on the host, in NumPy or on the CPU.",
    },
)

CREATORS = (
    "arange as_tensor empty empty_like eye full full_like linspace logspace ones ones_like rand rand_like randn "
    "randn_like scalar_tensor tensor zeros zeros_like"
)


@rule.calls(*(f"torch.{name}" for name in CREATORS.split()))
def created(call: Node) -> Hits:
    if call.role("float64") and call.role("on-device") and call.argument(None, "device") is not None:
        yield Hit(call.argument(None, "dtype") or call)


@rule.calls(".double")
def doubled(call: Node) -> Hits:
    value = call["function"]["object"]
    if call.arguments or not call.source.imports("torch"):
        return
    if value.role("on-host") or value.role("traced") or value.role("object"):
        return
    yield Hit(call)


@rule.calls(".to", ".cuda")
def moved(call: Node) -> Hits:
    value = call["function"]["object"]
    if (
        call.role("float64")
        and call.role("tensor")
        and call.role("on-device")
        and (value.role("tensor") or value.role("float64"))
    ):
        yield Hit(call)


@rule.calls("torch.set_default_dtype")
def default(call: Node) -> Hits:
    if call.arguments and call.arguments[0].name in ("torch.float64", "torch.double"):
        yield Hit(call.arguments[0])


@rule.calls("jax.config.update", "jax.config.config.update")
def x64(call: Node) -> Hits:
    flag = call.argument(0, "name")
    value = call.argument(1, "val")
    if flag is not None and flag.constant == "jax_enable_x64" and value is not None and value.constant is True:
        yield Hit(call, language="jax")


@rule.calls("jax.experimental.enable_x64", "jax.enable_x64")
def x64_within(call: Node) -> Hits:
    value = call.argument(0, "new_val")
    if value is None or value.constant is True:
        yield Hit(call, language="jax")


@rule.python(
    "((assignment left: (subscript value: (_) @owner subscript: (string) @key) right: (_) @value)"
    ' (#match? @key "JAX_ENABLE_X64"))'
)
def x64_of_the_process(owner: Node, value: Node) -> Hits:
    if owner.name == "os.environ" and value.constant in ("1", "true", "True"):
        yield Hit(value, language="jax")
