"""What devices that share a model have to tell each other, in bytes per link and seconds.

Bandwidths are those of one direction of a device's link, in bytes per second.
https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from __future__ import annotations

import msgspec

ALL_REDUCES_PER_LAYER = 2
"""of a transformer layer under tensor parallelism, in the forward pass: one after attention, one after the MLP, which
end in row-parallel products: https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/models/llama.py"""


def ring_all_reduce_bytes(message_bytes: float, devices: int) -> float:
    """What a ring all-reduce of the message sends through each device's link: 2(p-1)/p of it."""
    return 2 * (devices - 1) / devices * message_bytes


def ring_all_reduce_s(message_bytes: float, devices: int, link_bytes_s: float) -> float:
    """The time of a ring all-reduce by bandwidth alone, in seconds."""
    return ring_all_reduce_bytes(message_bytes, devices) / link_bytes_s


def serial_latency_s(collectives: int, latency_s: float) -> float:
    """The time that collectives take one after the other, however small their messages are, in seconds."""
    return collectives * latency_s


class TensorParallelStep(msgspec.Struct, frozen=True):
    """The all-reduces of one forward pass under tensor parallelism."""

    message_bytes: float
    """the activations of one all-reduce"""
    ring_bytes: float
    """what one all-reduce sends through each link"""
    collectives: int
    """all-reduces in the pass"""
    bandwidth_s: float
    latency_s: float

    @property
    def step_bytes(self) -> float:
        """What the whole pass sends through each link."""
        return self.ring_bytes * self.collectives

    @property
    def total_s(self) -> float:
        """The time of the pass's all-reduces, in seconds; none of it is hidden behind arithmetic."""
        return self.bandwidth_s + self.latency_s


def tensor_parallel_step(
    *,
    devices: int,
    hidden: int,
    tokens: int,
    bytes_each: float,
    layers: int,
    link_bytes_s: float,
    latency_s: float = 0.0,
    per_layer: int = ALL_REDUCES_PER_LAYER,
) -> TensorParallelStep:
    """The all-reduces of one pass over `tokens` tokens, with activations of `hidden` numbers per token."""
    message = tokens * hidden * bytes_each
    ring = ring_all_reduce_bytes(message, devices)
    collectives = layers * per_layer
    return TensorParallelStep(
        message, ring, collectives, ring * collectives / link_bytes_s, serial_latency_s(collectives, latency_s)
    )
