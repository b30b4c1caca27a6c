"""Complex numbers are taken to exist on the device.

Fourier transforms, `torch.view_as_complex` (rotary embeddings) and `torch.polar` make complex tensors; Neuron's compiler
refuses them.

## Exceptions
Complex values on the host are silent, and so is what is done for values that were found to be complex; complex128 is a matter of
its own.

## References
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/compiler/error-codes/EVRF004.html
"""

from __future__ import annotations

from portlint.rule import TORCH_CREATORS, Hit, Hits, Node, Rule

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


@rule.calls(*TORCH_CREATORS, ".to", ".type")
def asked(call: Node) -> Hits:
    for dtype, guards in call.asked_for("complex64"):
        if not call.role("guarded-call"):
            yield Hit(dtype, guards=guards)


@rule.calls(*(f"torch.fft.{name}" for name in TRANSFORMS.split()), *(f"torch.{name}" for name in CREATORS))
def complex_result(call: Node) -> Hits:
    if not call.arguments or call.role("complex128") or any("complex" in guard.text for guard in call.guards):
        return
    if call.arguments[0].role("on-device"):
        yield Hit(call)


@rule.calls(*(f"{JAX}.{name}" for name in TRANSFORMS.split()), "jax.lax.complex")
def traced_result(call: Node) -> Hits:
    yield Hit(call, language="jax")
