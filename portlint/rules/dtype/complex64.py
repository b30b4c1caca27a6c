"""Complex numbers are taken to exist on the device.

Fourier transforms, `torch.view_as_complex` (rotary embeddings) and `torch.polar` make complex tensors; Neuron's compiler
refuses them.

## Exceptions
Complex values on the host are silent.

## References
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/compiler/error-codes/EVRF004.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"dtype.complex64": "native"},
    message="'{text}' makes a complex tensor on the device; {target} has {fact}.",
    remedy={
        "*": "Keep real and imaginary parts in two tensors (rotary embeddings with cos and sin), or compute this part on the CPU.",
    },
)

TRANSFORMS = "fft fft2 fftn ifft ifft2 ifftn rfft rfft2 rfftn hfft hfftn ihfft"
JAX = "jax.numpy.fft"
CREATORS = ("view_as_complex", "polar", "complex", "stft")


@rule.calls(*(f"torch.fft.{name}" for name in TRANSFORMS.split()), *(f"torch.{name}" for name in CREATORS))
def complex_result(call: Node) -> Hits:
    if call.arguments and call.arguments[0].role("on-device"):
        yield Hit(call)


@rule.calls(*(f"{JAX}.{name}" for name in TRANSFORMS.split()), "jax.lax.complex")
def traced_result(call: Node) -> Hits:
    yield Hit(call, language="jax")
