"""Pallas kernels over blocks, lowered or compiled for the platform of the options."""

import argparse
import importlib.util
from collections.abc import Callable
from typing import Any

from _kernel import need
from _platform import INSTALL, Answer, compiled, jax, lowered, platform, shape

pl = need("jax.experimental.pallas", INSTALL)


def triton_parameters() -> Any:
    """What asks Pallas for its Triton back end."""
    return need("jax.experimental.pallas.triton", INSTALL).CompilerParams()


def blocked(
    body: Callable[..., None], whole: tuple[int, ...], block: tuple[int, ...], *, dtype: Any = None, **more: Any
) -> Callable[..., Any]:
    """A Pallas call from one array to another of its shape, block by block along all axes."""
    grid = tuple(-(-size // part) for size, part in zip(whole, block, strict=True)) or (2,)
    spec = pl.BlockSpec(block, lambda *place: place[: len(block)])
    out = shape(*whole, dtype=dtype)
    call: Callable[..., Any] = pl.pallas_call(body, out_shape=out, grid=grid, in_specs=[spec], out_specs=spec, **more)
    return call


def of_values(function: Callable[[Any], Any]) -> Callable[..., None]:
    """A kernel's body that stores a function of its block."""

    def body(source: Any, out: Any) -> None:
        out[...] = jax.numpy.broadcast_to(function(source[...]), out.shape).astype(out.dtype)

    return body


def accepts(
    asked: argparse.Namespace,
    body: Callable[..., None],
    whole: tuple[int, ...],
    block: tuple[int, ...],
    *,
    dtype: Any = None,
    **more: Any,
) -> Answer:
    """Lower such a call, and compile it for TPU where libtpu is installed.

    On AMD's GPUs there is no back end but Triton's, which has to be asked for by name.
    """
    if platform(asked) == "rocm":
        more.setdefault("compiler_params", triton_parameters())
    call, argument = blocked(body, whole, block, dtype=dtype, **more), shape(*whole, dtype=dtype)
    answer = lowered(asked, call, argument)
    is_compiled = answer.accepted and platform(asked) == "tpu" and importlib.util.find_spec("libtpu") is not None
    return compiled(asked, call, argument) if is_compiled else answer
