"""The roofline: whether arithmetic or memory bounds a piece of work, and the least time that it can take.

FLOP are operations (a multiplication and an addition are two), FLOP/s a rate; peaks are dense. Times are seconds, and
floors: no program is faster, and most are slower.
https://docs.amd.com/r/en-US/57368-uProf-user-guide/Classic-Roofline-Model, and for transformers
https://jax-ml.github.io/scaling-book/inference/
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Bound(StrEnum):
    """What a piece of work waits for."""

    COMPUTE = "compute"
    MEMORY = "memory"
    HOST = "host link"
    LINK = "device link"


class Work(msgspec.Struct, frozen=True):
    """What has to be computed and moved."""

    flop: float
    bytes: float
    """read from and written to the device's memory"""

    @property
    def intensity(self) -> float:
        """Arithmetic intensity, FLOP per byte."""
        return self.flop / self.bytes


class Times(msgspec.Struct, frozen=True):
    """How long each part of the machine is busy with a piece of work at least, in seconds."""

    compute_s: float
    memory_s: float

    @property
    def floor_s(self) -> float:
        """The least time: arithmetic and memory at best overlap."""
        return max(self.compute_s, self.memory_s)

    @property
    def bound(self) -> Bound:
        """The part that is busy longest."""
        return Bound.COMPUTE if self.compute_s >= self.memory_s else Bound.MEMORY


def times(work: Work, peak_flop_s: float, bandwidth_bytes_s: float) -> Times:
    """The two sides of time floor = max(FLOP / peak, bytes / bandwidth)."""
    return Times(work.flop / peak_flop_s, work.bytes / bandwidth_bytes_s)


def ridge(peak_flop_s: float, bandwidth_bytes_s: float) -> float:
    """The intensity, in FLOP per byte, from which on arithmetic is the bound: peak / bandwidth."""
    return peak_flop_s / bandwidth_bytes_s


def ceiling_flop_s(intensity: float, peak_flop_s: float, bandwidth_bytes_s: float) -> float:
    """The rate that work of this intensity (FLOP per byte) can reach at most."""
    return min(peak_flop_s, intensity * bandwidth_bytes_s)


def matmul(m: int, k: int, n: int, bytes_each: float) -> Work:
    """An (m x k) by (k x n) product whose three matrices each cross the memory bus once: 2mkn FLOP."""
    return Work(2 * m * k * n, bytes_each * (m * k + k * n + m * n))


def decode(
    *,
    active_parameters: float,
    read_weight_bytes: float,
    kv_bytes_per_sequence: float,
    sequences: int,
    attention_flop_per_token: float = 0.0,
) -> Work:
    """One decoding step, a token for each sequence: weights are read once, the KV cache once per sequence.

    2 FLOP per parameter and token: https://jax-ml.github.io/scaling-book/inference/
    """
    flop = sequences * (2 * active_parameters + attention_flop_per_token)
    return Work(flop, read_weight_bytes + sequences * kv_bytes_per_sequence)


def prefill(
    *,
    active_parameters: float,
    read_weight_bytes: float,
    kv_bytes_per_token: float,
    tokens: int,
    attention_flop: float = 0.0,
) -> Work:
    """The prompt of one sequence: weights are read once, and the KV cache of every token is written once."""
    return Work(2 * active_parameters * tokens + attention_flop, read_weight_bytes + tokens * kv_bytes_per_token)


def decode_attention_flop(layers: int, heads: int, head_dim: float, context_tokens: int) -> float:
    """FLOP of attention for one new token: two products with the whole context for each head."""
    return 4 * layers * heads * head_dim * context_tokens


def prefill_attention_flop(layers: int, heads: int, head_dim: float, tokens: int) -> float:
    """FLOP of causal attention over a prompt: half of the two full products."""
    return 2 * layers * heads * head_dim * tokens**2


def tokens_per_s(sequences: int, step_s: float) -> float:
    """Tokens per second of all sequences together, for one step of `step_s` seconds."""
    return sequences / step_s


class Offload(msgspec.Struct, frozen=True):
    """The time of reading weights of which a share stays in the host's memory, in seconds; nothing overlaps."""

    device_s: float
    host_s: float

    @property
    def total_s(self) -> float:
        """Both, one after the other."""
        return self.device_s + self.host_s

    @property
    def host_share(self) -> float:
        """The share of the time that the host link takes, 0 to 1."""
        return self.host_s / self.total_s


def offload(weights: float, host_fraction: float, bandwidth_bytes_s: float, host_bytes_s: float) -> Offload:
    """Reading `weights` bytes, of which `host_fraction` (0 to 1) come over the host link."""
    return Offload(weights * (1 - host_fraction) / bandwidth_bytes_s, weights * host_fraction / host_bytes_s)


def distinct_experts(experts: int, per_token: int, tokens: int) -> float:
    """How many experts `tokens` tokens call together, on average, if the router spreads them evenly.

    Each token leaves out an expert with probability 1 - k/E: E x (1 - (1 - k/E)^tokens).
    """
    return experts * (1 - (1 - per_token / experts) ** tokens)


def training_flop(active_parameters: float, tokens: float) -> float:
    """FLOP of forward and backward pass: 6 per parameter and token, attention left out.

    https://jax-ml.github.io/scaling-book/transformers/
    """
    return 6 * active_parameters * tokens
