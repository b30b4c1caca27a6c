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


MAKERS = (
    "zeros ones empty full rand randn tensor as_tensor zeros_like ones_like empty_like full_like rand_like randn_like"
)


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


@rule.calls(*(f"torch.fft.{name}" for name in TRANSFORMS.split()), *(f"torch.{name}" for name in CREATORS))
def complex_result(call: Node) -> Hits:
    if not call.arguments or call.role("complex128") or any("complex" in guard.text for guard in call.guards):
        return
    if call.arguments[0].role("on-device"):
        yield Hit(call)


@rule.calls(*(f"{JAX}.{name}" for name in TRANSFORMS.split()), "jax.lax.complex")
def traced_result(call: Node) -> Hits:
    yield Hit(call, language="jax")


def _asked(call: Node, dtype: Node) -> Hits:
    """The places where a dtype is complex64, each under its own conditions."""
    for named, place in dtype.dtypes:
        if named == "complex64" and place.name.startswith("torch."):
            yield Hit(dtype, guards=(*call.guards, *place.guards))
