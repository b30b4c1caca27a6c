"""With 64-bit JAX, complex numbers of 128 bits are taken to exist on the device.

Under `jax_enable_x64` a Fourier transform of float64 gives complex128. TPU has float64 by emulation, but no such complex
type: XLA answers that element type C128 is not supported. Neuron has no complex types at all.

## Exceptions
Without `jax_enable_x64` JAX makes complex64 instead, and the file is silent. Code behind a test of the back end is too.

## References
https://github.com/jax-ml/jax/issues/19769
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"dtype.complex128": "native"},
    message="'{text}' makes complex128 values on the device; {target} has {fact}.",
    remedy={
        "*": "Convert to float32 before the transform, which then gives complex64, or compute this part on the host with NumPy."
    },
)

TRANSFORMS = "fft fft2 fftn ifft ifft2 ifftn rfft rfft2 rfftn hfft ihfft"
X64 = (b"enable_x64", b"ENABLE_X64")


@rule.calls(*(f"jax.numpy.fft.{name}" for name in TRANSFORMS.split()), "jax.lax.complex")
def transform(call: Node) -> Hits:
    if call.arguments and call.arguments[0].role("float64") and _is_64_bit(call):
        yield Hit(call, language="jax")


@rule.references("jax.numpy.complex128")
def named(name: Node) -> Hits:
    if _is_64_bit(name) and name.function is not None:
        yield Hit(name, language="jax")


def _is_64_bit(node: Node) -> bool:
    return any(word in node.source.text for word in X64)
