"""What is said of an answer, in words that the terminal and the page share."""

from __future__ import annotations

from collections.abc import Iterator

from portlint.fit.architecture import Model
from portlint.fit.assess import Answer, Choice, Load, Phase, kv_bytes_per_token, weights_bytes
from portlint.fit.dtypes import DTYPES
from portlint.fit.ledger import ADAM_BYTES_PER_PARAMETER
from portlint.fit.products import GB, GIB, TERA, Product

PURPOSES = {
    "cheapest": "cheapest that fits",
    "decode": "best for decode",
    "prefill": "best for prefill",
    "training": "best for training",
}


def gigabytes(size: float) -> str:
    """Bytes as GB, in three digits or more."""
    return f"{size / GB:,.2f} GB" if abs(size) < 1000 * GB else f"{size / GB:,.0f} GB"


def duration(seconds: float) -> str:
    """Seconds in the unit that leaves digits before the point."""
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            value = seconds * factor
            return f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}"
    raise AssertionError


def number(value: float) -> str:
    """A rate or an intensity: three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def plural(count: float, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,.0f} {noun}" if count == 1 else f"{count:,.0f} {noun}s"


def billions(parameters: float) -> str:
    """A number of parameters."""
    return f"{parameters / 1e9:,.2f} billion" if parameters >= 1e7 else f"{parameters:,.0f}"


def model_line(model: Model, load: Load) -> str:
    """The model, and how it is stored."""
    parts = [f"{billions(model.parameters)} parameters ({model.how}), {load.weights.name} weights"]
    if model.active_parameters < model.parameters:
        parts[0] += f", {billions(model.active_parameters)} active for a token"
    if load.training:
        parts[0] += f"; Adam in mixed precision, {ADAM_BYTES_PER_PARAMETER} bytes per parameter"
    elif model.kv_values == 2 * (model.kv_heads or 0) * (model.head_dim or 0):
        heads = plural(model.kv_heads or 0, "KV head")
        parts.append(f"{plural(model.layers or 0, 'layer')}, {heads} of {model.head_dim}, {load.kv.name} KV cache")
    else:
        values = f"{model.kv_values or 0:,} numbers per token and layer in the {load.kv.name} cache"
        parts.append(f"{plural(model.layers or 0, 'layer')}, {values}")
    return "; ".join(parts)


def load_line(load: Load) -> str:
    """What the model is asked to do."""
    parts = [
        "training" if load.training else f"{plural(load.concurrency, 'sequence')} of {load.context_tokens:,} tokens"
    ]
    if load.tensor_parallel is not None:
        parts.append(f"{'sharded over' if load.training else 'tensor-parallel degree'} {load.tensor_parallel}")
    if load.offload:
        parts.append(f"{load.offload * 100:.3g} % of the weights on the host at {load.host_bytes_s / GB:g} GB/s")
    return ", ".join(parts)


def need_line(model: Model, load: Load) -> str:
    """What has to be held, all devices together."""
    weights = weights_bytes(model, load)
    per_token = kv_bytes_per_token(model, load)
    what = "weights, gradients and optimizer" if load.training else "weights"
    parts = [f"{what} {gigabytes(weights)} ({weights / GIB:,.2f} GiB)"]
    if per_token is not None:
        cache = per_token * load.context_tokens * load.concurrency
        parts.append(f"KV cache {gigabytes(cache)} ({per_token:,.0f} bytes per token)")
    if load.overhead_bytes:
        parts.append(f"overhead {gigabytes(load.overhead_bytes)} on each device")
    return ", ".join(parts)


def figures(product: Product, answer: Answer) -> str:
    """The figures of a product that the answer rests on."""
    memory = f"{product.memory_text}" if product.memory_bytes is not None else "memory not known"
    bandwidth = product.bandwidth_bytes_s
    parts = [memory, "bandwidth not known" if bandwidth is None else f"{bandwidth * product.devices / TERA:.4g} TB/s"]
    if answer.peak is not None:
        parts.append(f"{answer.peak[1] * product.devices / TERA:,.5g} dense {answer.peak[0]} TFLOP/s")
    else:
        parts.append("peak not known")
    if product.devices > 1:
        parts.append(f"which are {product.devices} devices")
    return ", ".join(parts)


def fits_label(answer: Answer) -> str:
    """The verdict in a few words."""
    if answer.fits is None:
        return "not known"
    if not answer.fits:
        return "does not fit"
    text = f"fits on {plural(answer.devices or 0, 'device')}"
    return text + (f" ({answer.pieces:,} {answer.product.name})" if answer.product.devices > 1 else "")


def memory_line(answer: Answer, load: Load) -> str:
    """The ledger of one device, in words; empty where there is none."""
    books = answer.books
    if books is None:
        return ""
    several = (answer.devices or 1) > 1
    where = " on each" if several else "" if answer.fits else " on one device"
    parts = [f"{gigabytes(books.total)} of {gigabytes(books.device)}{where}"]
    parts.append(f"{gigabytes(books.left)} left" if books.fits else f"{gigabytes(-books.left)} too much")
    if answer.sequences is not None and answer.fits:
        parts.append(f"room for {plural(answer.sequences, 'sequence')} of {load.context_tokens:,} tokens")
    if answer.fits and several and load.tensor_parallel is None:
        parts.append(_degree(answer, load))
    return ", ".join(parts)


def _degree(answer: Answer, load: Load) -> str:
    if load.training:
        return "state sharded over all of them"
    text = f"tensor-parallel degree {answer.devices}"
    if answer.by_memory_alone is not None and answer.by_memory_alone < (answer.devices or 0):
        text += f" (the memory of {answer.by_memory_alone} would do, if all of it could be divided)"
    return text


def decode_line(answer: Answer, load: Load) -> str:
    """What decoding reaches at most."""
    phase = answer.decode
    if phase is None or phase.floor_s is None or phase.tokens_per_s is None:
        return "not known"
    each = f", {number(phase.tokens_per_s / load.concurrency)} for each sequence" if load.concurrency > 1 else ""
    rate = f"at most {number(phase.tokens_per_s)} tokens/s{each}"
    return f"{rate} ({duration(phase.floor_s)} a step); {_bound(phase, answer)}"


def prefill_line(answer: Answer, load: Load) -> str:
    """What a prompt takes at least."""
    phase = answer.prefill
    if phase is None or phase.floor_s is None:
        return "not known"
    return f"at least {duration(phase.floor_s)} for a prompt of {load.context_tokens:,} tokens; {_bound(phase, answer)}"


def training_line(answer: Answer) -> str:
    """What training reaches at most."""
    rate = answer.training_tokens_per_s
    return (
        "not known" if rate is None else f"at most {number(rate)} tokens/s on {plural(answer.devices or 1, 'device')}"
    )


def _bound(phase: Phase, answer: Answer) -> str:
    intensity = f"{number(phase.work.intensity)} FLOP/byte"
    if phase.bound is None or answer.ridge is None:
        known = "memory" if phase.memory_s is not None else "compute"
        return f"by {known} alone ({intensity}), what bounds it is not known"
    parts = [f"bound by {phase.bound} ({intensity}, ridge {number(answer.ridge)})"]
    if phase.host_s and phase.floor_s:
        parts.append(f"host link {duration(phase.host_s)}, {phase.host_s / phase.floor_s:.1%}")
    if phase.link_s is None:
        parts.append("without the devices' exchange")
    elif phase.link_s:
        parts.append(f"exchange {duration(phase.link_s)}")
    return ", ".join(parts)


def remarks(answer: Answer) -> Iterator[str]:
    """What else is to be said of a product: why it does not fit, what is not known, what its profile notes."""
    yield from answer.remarks
    phase, product = answer.decode, answer.product
    if phase is not None and phase.link_s is None and product.interconnect:
        yield f"Links between devices: {product.interconnect}."
    if product.note:
        yield f"{product.note}."


def cell(value: float | None) -> str:
    """A number of a table; a dash where there is none."""
    return "-" if value is None else number(value)


def choice_title(choice: Choice) -> str:
    """A product that stands out."""
    answer = choice.answer
    price = "" if choice.price_per_hour is None else f" at {choice.price_per_hour:,.2f} an hour"
    return f"{answer.pieces:,} {answer.product.name} ({answer.product.target}){price}"


def choice_line(choice: Choice) -> str:
    """A product that stands out, and why."""
    return f"{choice_title(choice)}: {choice.why}"


def assumptions(model: Model, load: Load) -> Iterator[str]:
    """What the figures rest on, a sentence each."""
    yield "GB are 10^9 bytes, GiB 2^30. All of a device's memory counts as usable; what a runtime keeps is overhead."
    yield (
        "Peaks are dense ones of data sheets, so times are floors and rates ceilings: no program is better, most are"
        " well below."
    )
    if load.compute.name != load.weights.name and not load.training:
        yield f"Weights are stored in {load.weights.name} and multiplied in {load.compute.name}."
    elif load.weights.name == "int4" and not load.training:
        yield "4-bit weights are widened to bf16 before they are multiplied."
    elif load.weights.bytes_each < DTYPES["bf16"].bytes_each and not load.training:
        yield (
            f"Products are taken in {load.compute.name}, so activations are, too; --compute-dtype bf16 is for weights"
            " that are widened first."
        )
    if load.weights.how and not load.training:
        yield f"{load.weights.name}: {load.weights.how}."
    yield from model.notes
    if load.training:
        yield "Training holds weights, gradients and Adam's state, evenly sharded; activations are for the overhead."
        yield "A token costs 6 FLOP per parameter; what devices tell each other is left out."
        return
    yield (
        f"Decode reads the weights once per step, and the KV cache of every sequence at its full"
        f" {load.context_tokens:,} tokens; activations are not counted."
    )
    if model.experts is not None:
        yield "The router spreads tokens evenly over the experts, so a step reads those that are picked on average."
    elif model.active_parameters < model.parameters:
        yield "Of the weights, only the active ones are sure to be read; with many sequences more of them are."
    if model.heads is None:
        yield "The number of query heads is not known, so attention's own arithmetic is left out (--heads says it)."
    yield (
        "Tensor parallelism divides weights evenly and KV heads as whole heads; each device has the whole overhead of"
        " its own."
    )
    if load.link_bytes_s is None:
        yield "What devices tell each other is left out; --link-gb-s and --hidden bring it in."
    else:
        yield (
            f"Devices exchange activations twice per layer in a ring at {load.link_bytes_s / GB:g} GB/s one way, and"
            f" wait {duration(load.latency_s) if load.latency_s else 'no time'} for each; nothing hides it."
        )
    if load.offload:
        yield "Weights on the host cross its link in every step, after the device's own reads, not beside them."
