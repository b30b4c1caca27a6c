"""Complex numbers in double precision are taken to exist on the device.

A complex128 is two float64, and a device without float64 has none. MPS refuses it when the tensor is made; on TPU the
emulation of float64 ends where numbers are complex. Rotary embeddings get there by `torch.view_as_complex(x.double())`,
and in JAX every Fourier transform of float64 does, once `jax_enable_x64` is on.

## Exceptions
Complex values on the host, and code behind a test of the device or whose failure is caught, are silent.

## Fix safety
Unsafe: complex64 has half the precision. The dtype is changed where PyTorch's name of it is written.

## References
https://github.com/pytorch/pytorch/blob/026a4bff/aten/src/ATen/mps/EmptyTensor.cpp
https://github.com/jax-ml/jax/issues/19769
"""

from __future__ import annotations

from portlint.rule import TORCH_CREATORS, Hit, Hits, Node, Rule, replace

rule = Rule(
    assumes={"dtype.complex128": "native"},
    message="'{text}' makes a complex128 tensor on the device; {target} has {fact}.",
    remedy={
        "mps": "Use complex64 (`x.float()` before `torch.view_as_complex`), or compute this part on the CPU.",
        "tpu": "Use complex64, or keep this part on the host.",
        "*": "Keep real and imaginary parts in two float32 tensors, or compute this part on the CPU.",
    },
)
TRANSFORMS = "fft fft2 fftn ifft ifft2 ifftn rfft rfft2 rfftn hfft ihfft"
X64 = ("enable_x64", "ENABLE_X64")


@rule.calls(*TORCH_CREATORS, ".to", ".type")
def asked(call: Node) -> Hits:
    for dtype, guards in call.asked_for("complex128"):
        if not call.role("guarded-call"):
            is_torch = dtype.type == "attribute" and dtype.name in ("torch.complex128", "torch.cdouble")
            edits = (replace(dtype["attribute"], "complex64"),) if is_torch else ()
            yield Hit(dtype, guards=guards, edits=edits)


@rule.calls(".cdouble")
def doubled(call: Node) -> Hits:
    if call.role("on-device") and call.source.imports("torch") and not call.role("guarded-call"):
        yield Hit(call, edits=(replace(call["function"]["attribute"], "cfloat"),))


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
    words = node.source.root.walk("identifier", "string_content")
    return any(one.text.endswith(X64) for one in words)
