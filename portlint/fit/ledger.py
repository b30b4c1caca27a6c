"""The ledger of a device's memory: what weights, KV cache and overhead take, and what is left.

All quantities are bytes. Sizes of a sequence are in tokens.
"""

from __future__ import annotations

import math

import msgspec

ADAM_BYTES_PER_PARAMETER = 16
"""Adam in mixed precision: 16-bit weights and gradients (2 + 2), and in 32 bits a copy of the weights, momentum and
variance (4 + 4 + 4). The authors of ZeRO count so; 16 TB for 10^12 parameters:
https://www.cs.toronto.edu/~cmaddis/courses/csc2541_w25/presentations/richards_zero.pdf"""


def weight_bytes(parameters: float, bytes_each: float) -> float:
    """The memory of all weights: parameters x bytes each."""
    return parameters * bytes_each


def training_bytes(parameters: float) -> float:
    """The memory of weights, gradients and Adam's state, without activations."""
    return parameters * ADAM_BYTES_PER_PARAMETER


def kv_bytes_per_token(layers: int, kv_heads: int, head_dim: int, bytes_each: float) -> float:
    """What one token adds to the KV cache: a key and a value for every head of every layer.

    2 x layers x KV heads x head dimension x bytes each: https://jax-ml.github.io/scaling-book/inference/
    """
    return 2 * layers * kv_heads * head_dim * bytes_each


def sequences_that_fit(
    device_bytes: float, weights: float, overhead: float, kv_per_token_bytes: float, tokens: float
) -> int:
    """How many sequences of `tokens` tokens the memory beside weights and overhead holds: none, where those do not fit.

    floor((device - weights - overhead) / (KV per token x tokens))
    """
    return max(0, math.floor((device_bytes - weights - overhead) / (kv_per_token_bytes * tokens)))


def devices_needed(need_bytes: float, device_bytes: float) -> int:
    """The fewest devices whose memory adds up to the need: ceil(need / memory)."""
    return math.ceil(need_bytes / device_bytes)


class Ledger(msgspec.Struct, frozen=True):
    """The memory of one device, in bytes."""

    device: float
    weights: float
    """the device's share of them; in training, of gradients and optimizer state too"""
    kv_cache: float
    """of the device's share of the KV heads, for every sequence"""
    overhead: float
    """activations, workspaces, the runtime's own memory; each device has its own"""

    @property
    def total(self) -> float:
        """What is needed, in bytes."""
        return self.weights + self.kv_cache + self.overhead

    @property
    def left(self) -> float:
        """What is left of the device, in bytes; negative where the need does not fit."""
        return self.device - self.total

    @property
    def fits(self) -> bool:
        """Whether the need is no larger than the device."""
        return self.left >= 0


def heads_per_device(kv_heads: int, degree: int) -> int:
    """The KV heads that each of `degree` tensor-parallel devices keeps: a head is not cut, but kept twice or more.

    vLLM does so: https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/models/llama.py
    """
    return max(1, kv_heads // degree)


def splits_heads(kv_heads: int, degree: int, heads: int | None = None) -> bool:
    """Whether attention splits evenly over `degree` tensor-parallel devices.

    The KV heads are divided, or each is kept by the same number of devices; query heads, where known, are divided.
    """
    divides = kv_heads % degree == 0 or degree % kv_heads == 0
    return divides and (heads is None or heads % degree == 0)
