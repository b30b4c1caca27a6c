"""A model and a load against products: does it fit, on how many devices, and what bounds it there.

Times are seconds, sizes bytes, rates FLOP/s, bytes/s and tokens/s. What a profile does not say stays None, with a
sentence that says what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from portlint.fit import collectives, ledger, roofline
from portlint.fit.architecture import Model
from portlint.fit.dtypes import DTYPES, Dtype
from portlint.fit.ledger import Ledger
from portlint.fit.products import Product
from portlint.fit.roofline import Bound, Work

MOST_DEVICES = 1024
"""the largest tensor-parallel degree that is tried"""
WIDE_BYTES = DTYPES["bf16"].bytes_each


class Load(msgspec.Struct, frozen=True):
    """What the model is asked to do, and how it is stored."""

    weights: Dtype
    kv: Dtype
    compute: Dtype
    """in which products are taken"""
    context_tokens: int = 4096
    """of each sequence; also the length of the prompt"""
    concurrency: int = 1
    """sequences at once"""
    training: bool = False
    overhead_bytes: float = 0.0
    """on each device: activations, workspaces, the runtime"""
    offload: float = 0.0
    """share of the weights that stays in the host's memory, 0 to 1"""
    host_bytes_s: float = 64e9
    tensor_parallel: int | None = None
    """the degree that the user asks for"""
    link_bytes_s: float | None = None
    """one direction of a device's link to the others"""
    latency_s: float = 0.0
    """of one collective"""


class Phase(msgspec.Struct, frozen=True):
    """One decoding step, or the prefill of one prompt, on each of the devices that share it."""

    work: Work
    """of one device"""
    tokens: int
    """that come out of it, of all sequences together"""
    compute_s: float | None
    memory_s: float | None
    host_s: float = 0.0
    link_s: float | None = 0.0
    """None where devices talk and nobody said how fast"""

    @property
    def floor_s(self) -> float | None:
        """The least time by what is known; None where nothing is. Host and link do not overlap with the rest."""
        known = [time for time in (self.compute_s, self.memory_s) if time is not None]
        return max(known) + self.host_s + (self.link_s or 0.0) if known else None

    @property
    def bound(self) -> Bound | None:
        """What takes longest; None where that cannot be told."""
        if self.compute_s is None or self.memory_s is None:
            return None
        parts = {
            Bound.COMPUTE: self.compute_s,
            Bound.MEMORY: self.memory_s,
            Bound.HOST: self.host_s,
            Bound.LINK: self.link_s or 0.0,
        }
        return max(parts, key=parts.__getitem__)

    @property
    def tokens_per_s(self) -> float | None:
        """At most so many tokens per second, of all sequences together."""
        return None if self.floor_s is None else self.tokens / self.floor_s


class Answer(msgspec.Struct, frozen=True):
    """What is to be said of one product."""

    product: Product
    fits: bool | None
    """None where the memory is not known"""
    devices: int | None = None
    """the fewest on which it fits, or the degree that the user asked for"""
    by_memory_alone: int | None = None
    """ceil(need / memory): what would do if anything could be cut anywhere"""
    books: Ledger | None = None
    """of one of these devices"""
    sequences: int | None = None
    """of the context that these devices hold at once"""
    peak: tuple[str, float] | None = None
    """the dense peak that the ceilings use, FLOP/s"""
    decode: Phase | None = None
    prefill: Phase | None = None
    training_tokens_per_s: float | None = None
    """at most, on all devices together"""
    remarks: tuple[str, ...] = ()
    """why it does not fit, and what is not known"""

    @property
    def pieces(self) -> int | None:
        """How many pieces of the product these devices are."""
        return None if self.devices is None else math.ceil(self.devices / self.product.devices)

    @property
    def ridge(self) -> float | None:
        """FLOP per byte from which on arithmetic is the bound; None where a figure is missing."""
        if self.peak is None or self.product.bandwidth_bytes_s is None:
            return None
        return roofline.ridge(self.peak[1], self.product.bandwidth_bytes_s)


def weights_bytes(model: Model, load: Load) -> float:
    """All weights, those that stay in 16 bits included; in training, gradients and optimizer state too."""
    if load.training:
        return ledger.training_bytes(model.parameters)
    narrow = model.parameters - model.wide_parameters
    return ledger.weight_bytes(narrow, load.weights.bytes_each) + ledger.weight_bytes(model.wide_parameters, WIDE_BYTES)


def kv_bytes_per_token(model: Model, load: Load) -> float | None:
    """What a token adds to the KV cache, over all layers; None where the model's attention is not known."""
    if model.layers is None or model.kv_values is None or load.training:
        return None
    return model.layers * model.kv_values * load.kv.bytes_each


def need_bytes(model: Model, load: Load) -> float:
    """What one device would have to hold alone."""
    return books(model, load, math.inf, 1).total


def books(model: Model, load: Load, memory_bytes: float, degree: int) -> Ledger:
    """The ledger of each of `degree` devices of that memory."""
    per_token = kv_bytes_per_token(model, load)
    cache = (per_token or 0.0) * _kv_share(model, degree) * load.context_tokens * load.concurrency
    weights = weights_bytes(model, load) * (1 - load.offload) / degree
    return Ledger(memory_bytes, weights, cache, load.overhead_bytes)


def _kv_share(model: Model, degree: int) -> float:
    """The share of the KV cache that each device keeps."""
    if model.kv_heads is None:
        return 1.0
    return ledger.heads_per_device(model.kv_heads, degree) / model.kv_heads


def degrees(model: Model, load: Load) -> Iterable[int]:
    """The tensor-parallel degrees to try, smallest first. In training, state is sharded over any number of devices."""
    every = range(1, MOST_DEVICES + 1)
    if load.training or model.kv_heads is None:
        return every
    if model.heads is not None:
        return [n for n in every if ledger.splits_heads(model.kv_heads, n, model.heads)]
    kept_twice = [model.kv_heads * 2**n for n in range(1, 11) if model.kv_heads * 2**n <= MOST_DEVICES]
    return [n for n in [*every[: model.kv_heads], *kept_twice] if ledger.splits_heads(model.kv_heads, n)]


def assess(model: Model, load: Load, product: Product) -> Answer:
    """Everything that can be said of one product."""
    peak = product.peak(load.compute)
    memory = product.memory_bytes
    unknown = [
        *(["memory, so whether the model fits"] if memory is None else []),
        *(["memory bandwidth"] if product.bandwidth_bytes_s is None else []),
        *([_missing_peak(product, load)] if peak is None else []),
    ]
    remarks = [f"Not known: {'; '.join(unknown)}."] if unknown else []
    devices, fits = load.tensor_parallel, None
    if memory is not None:
        fitting = next((n for n in degrees(model, load) if books(model, load, memory, n).fits), None)
        devices = devices or fitting
        fits = fitting is not None if load.tensor_parallel is None else books(model, load, memory, devices or 1).fits
        if not fits:
            remarks.insert(0, _why_not(model, load, memory, fitting))
    answer = Answer(product, fits, devices, peak=peak, remarks=tuple(remarks))
    if memory is not None:
        page = books(model, load, memory, devices or 1)
        answer = msgspec.structs.replace(
            answer,
            books=page,
            by_memory_alone=ledger.devices_needed(need_bytes(model, load), memory),
            sequences=_sequences(model, load, page, devices) if devices else None,
        )
    return _with_ceilings(answer, model, load) if devices and fits is not False else answer


def _missing_peak(product: Product, load: Load) -> str:
    others = f" (known are {', '.join(product.peaks_flop_s)}; see --compute-dtype)" if product.peaks_flop_s else ""
    return f"dense {load.compute.peaks[0]} peak{others}"


def _why_not(model: Model, load: Load, memory: float, fitting: int | None) -> str:
    if fitting is not None:
        return f"It would fit on {fitting:,} of them."
    if load.overhead_bytes >= memory:
        return "The overhead alone is larger than its memory."
    held = {n: _sequences(model, load, books(model, load, memory, n), n) or 0 for n in degrees(model, load)}
    if load.training or model.kv_heads is None:
        return f"It does not fit on {max(held):,} devices either."
    best = max(held, key=lambda n: (held[n], -n))
    if not held[best]:
        return f"Not even one sequence of {load.context_tokens:,} tokens fits, whatever number of devices shares it."
    return (
        f"At best, {best:,} of them hold {held[best]:,} of the {load.concurrency:,} sequences; the others need devices"
        " of their own."
    )


def _sequences(model: Model, load: Load, page: Ledger, devices: int) -> int | None:
    per_token = kv_bytes_per_token(model, load)
    if per_token is None:
        return None
    share = per_token * _kv_share(model, devices)
    return ledger.sequences_that_fit(page.device, page.weights, page.overhead, share, load.context_tokens)


def _with_ceilings(answer: Answer, model: Model, load: Load) -> Answer:
    assert answer.devices is not None
    peak = None if answer.peak is None else answer.peak[1]
    if load.training:
        rate = None if peak is None else peak * answer.devices / roofline.training_flop(model.active_parameters, 1)
        return msgspec.structs.replace(answer, training_tokens_per_s=rate)
    return msgspec.structs.replace(
        answer,
        decode=_phase(_decode(model, load, answer.devices), load.concurrency, model, load, answer),
        prefill=_phase(_prefill(model, load, answer.devices), load.context_tokens, model, load, answer),
    )


def _decode(model: Model, load: Load, devices: int) -> Work:
    """One step of one device: its share of the weights that the tokens meet, and of every sequence's cache."""
    cache = (kv_bytes_per_token(model, load) or 0.0) * _kv_share(model, devices) * load.context_tokens
    attention = 0.0
    if model.layers and model.heads and model.attention_dim:
        attention = roofline.decode_attention_flop(model.layers, model.heads, model.attention_dim, load.context_tokens)
    return roofline.decode(
        active_parameters=model.active_parameters / devices,
        read_weight_bytes=_read_weights(model, load, load.concurrency) / devices,
        kv_bytes_per_sequence=cache,
        sequences=load.concurrency,
        attention_flop_per_token=attention / devices,
    )


def _prefill(model: Model, load: Load, devices: int) -> Work:
    attention = 0.0
    if model.layers and model.heads and model.attention_dim:
        attention = roofline.prefill_attention_flop(model.layers, model.heads, model.attention_dim, load.context_tokens)
    return roofline.prefill(
        active_parameters=model.active_parameters / devices,
        read_weight_bytes=_read_weights(model, load, load.context_tokens) / devices,
        kv_bytes_per_token=(kv_bytes_per_token(model, load) or 0.0) * _kv_share(model, devices),
        tokens=load.context_tokens,
        attention_flop=attention / devices,
    )


def _read_weights(model: Model, load: Load, tokens: int) -> float:
    """Bytes of the weights that so many tokens meet in one pass: of experts, those that the router picks on average.

    Where there are fewer active than all parameters and no experts are known, only the active ones are sure to be read.
    """
    every = weights_bytes(model, load)
    if model.experts is None:
        return every * model.active_parameters / model.parameters
    idle = model.experts.count - roofline.distinct_experts(model.experts.count, model.experts.per_token, tokens)
    return every - ledger.weight_bytes(idle * model.experts.parameters_each, load.weights.bytes_each)


def _phase(work: Work, tokens: int, model: Model, load: Load, answer: Answer) -> Phase:
    """The times of one device's work, with what the host and the other devices add."""
    devices, bandwidth = answer.devices or 1, answer.product.bandwidth_bytes_s
    weights = _read_weights(model, load, tokens) / devices
    hosted = weights * load.offload
    return Phase(
        work,
        tokens,
        None if answer.peak is None else work.flop / answer.peak[1],
        None if bandwidth is None else (work.bytes - hosted) / bandwidth,
        hosted / load.host_bytes_s,
        _link_s(model, load, devices, tokens),
    )


def _link_s(model: Model, load: Load, devices: int, tokens: int) -> float | None:
    if devices == 1:
        return 0.0
    if load.link_bytes_s is None or model.hidden is None or model.layers is None:
        return None
    return collectives.tensor_parallel_step(
        devices=devices,
        hidden=model.hidden,
        tokens=tokens,
        bytes_each=WIDE_BYTES,
        layers=model.layers,
        link_bytes_s=load.link_bytes_s,
        latency_s=load.latency_s,
    ).total_s


class Choice(msgspec.Struct, frozen=True):
    """A product that stands out among those that fit."""

    purpose: str
    """cheapest, decode, prefill or training"""
    answer: Answer
    why: str
    price_per_hour: float | None = None
    """of all its devices, in the currency of the prices given"""


def choices(answers: Sequence[Answer], load: Load, prices: Mapping[str, float]) -> tuple[Choice, ...]:
    """The cheapest product that fits, and the best for each phase; nothing where none is known to fit."""
    fitting = [answer for answer in answers if answer.fits]
    if not fitting:
        return ()
    found = [_cheapest(fitting, prices)]
    if not load.training:
        wide = [answer for answer in fitting if answer.product.bandwidth_bytes_s is not None]
        if wide:
            best = min(wide, key=lambda one: (one.pieces or 0, -_of_all(one.product, one.product.bandwidth_bytes_s)))
            found.append(Choice("decode", best, "the fewest, and of those the highest memory bandwidth"))
    fast = [answer for answer in fitting if answer.peak is not None]
    if fast:
        best = max(fast, key=lambda one: _of_all(one.product, one.peak and one.peak[1]))
        found.append(Choice("training" if load.training else "prefill", best, "the highest dense peak"))
    return tuple(found)


def _of_all(product: Product, figure: float | None) -> float:
    """A figure of one device, for the whole product; 0 where it is not known."""
    return (figure or 0.0) * product.devices


def _cheapest(fitting: Sequence[Answer], prices: Mapping[str, float]) -> Choice:
    priced = [answer for answer in fitting if answer.product.name in prices]
    if priced:
        cost = {id(one): prices[one.product.name] * (one.pieces or 1) for one in priced}
        best = min(priced, key=lambda one: cost[id(one)])
        return Choice("cheapest", best, "the lowest price per hour of those with a price", cost[id(best)])
    best = min(
        fitting,
        key=lambda one: (
            one.pieces,
            _of_all(one.product, one.product.memory_bytes),
            _of_all(one.product, one.product.bandwidth_bytes_s) or math.inf,
        ),
    )
    return Choice("cheapest", best, "the fewest, and of those the smallest memory and bandwidth; no price is known")
