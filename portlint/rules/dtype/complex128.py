"""Complex numbers in double precision are taken to exist on the device.

A complex128 is two float64, and a device without float64 has none. MPS refuses it when the tensor is made; on TPU the
emulation of float64 ends where numbers are complex. Rotary embeddings get there by `torch.view_as_complex(x.double())`,
and in JAX every Fourier transform of float64 does, once `jax_enable_x64` is on.

## Exceptions
Complex values on the host, and code behind a test of the device or whose failure is caught, are silent.

## References
https://github.com/pytorch/pytorch/blob/026a4bff/aten/src/ATen/mps/EmptyTensor.cpp
https://github.com/jax-ml/jax/issues/19769
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"dtype.complex128": "native"},
    message="'{text}' makes a complex128 tensor on the device; {target} has {fact}.",
    remedy={
        "mps": "Use complex64 (`x.float()` before `torch.view_as_complex`), or compute this part on the CPU.",
        "tpu": "Use complex64, or keep this part on the host.",
        "*": "Keep real and imaginary parts in two float32 tensors, or compute this part on the CPU.",
    },
)

MAKERS = (
    "zeros ones empty full rand randn tensor as_tensor zeros_like ones_like empty_like full_like rand_like randn_like"
)
TRANSFORMS = "fft fft2 fftn ifft ifft2 ifftn rfft rfft2 rfftn hfft ihfft"
X64 = (b"enable_x64", b"ENABLE_X64")


@rule.calls(*(f"torch.{name}" for name in MAKERS.split()))
def created(call: Node) -> Hits:
    dtype = call.argument(None, "dtype")
    if dtype is not None and call.argument(None, "device") is not None and call.role("on-device"):
        yield from _asked(call, dtype)


@rule.calls(".to", ".type")
def converted(call: Node) -> Hits:
    if call.role("on-device") and call.source.imports("torch"):
        dtype = call.argument(None, "dtype")
        for argument in (*call.arguments[:2], *([dtype] if dtype is not None else [])):
            yield from _asked(call, argument)


@rule.calls(".cdouble")
def doubled(call: Node) -> Hits:
    if call.role("on-device") and call.source.imports("torch") and not call.role("guarded-call"):
        yield Hit(call)


@rule.calls("torch.view_as_complex", "torch.polar", "torch.complex")
def made_of_doubles(call: Node) -> Hits:
    if call.role("complex128") and call.role("on-device") and not call.role("guarded-call"):
        yield Hit(call)


@rule.calls(*(f"jax.numpy.fft.{name}" for name in TRANSFORMS.split()), "jax.lax.complex")
def traced_transform(call: Node) -> Hits:
    if call.arguments and call.arguments[0].role("float64") and _is_64_bit(call):
        yield Hit(call, language="jax")


@rule.references("jax.numpy.complex128")
def traced(name: Node) -> Hits:
    if _is_64_bit(name) and name.function is not None:
        yield Hit(name, language="jax")


def _is_64_bit(node: Node) -> bool:
    """Whether a file asks JAX for 64-bit types; it makes complex64 of complex128 otherwise."""
    return any(word in node.source.text for word in X64)


def _asked(call: Node, dtype: Node) -> Hits:
    """The places where a dtype is complex128, each under its own conditions."""
    for named, place in dtype.dtypes:
        if named == "complex128" and place.name.startswith("torch.") and not call.role("guarded-call"):
            yield Hit(dtype, guards=(*call.guards, *place.guards))
