"""The answers of `portlint fit` as JSON, version 1: a stable interface for scripts.

Sizes are bytes, times seconds, rates FLOP/s, bytes/s and tokens/s; the unit ends a name. `null` is what is not known,
or does not apply. Memory, bandwidth and peak are those of one device, of which a product may be several
(`devices_in_product`); `flop` and `bytes` of `decode` and `prefill` are those of each of the `devices`. Times are
floors, `tokens_per_s` is a ceiling of all devices together.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from portlint.fit import phrases
from portlint.fit.assess import Answer, Choice, Phase, kv_bytes_per_token, need_bytes, weights_bytes
from portlint.fit.report import Report
from portlint.report.escape import strict_json


def render(report: Report, version: str) -> str:
    """Write the report as one JSON object; `version` is that of portlint."""
    model, load = report.model, report.load
    return strict_json(
        {
            "version": 1,
            "tool": {"name": "portlint", "version": version},
            "targets": list(report.targets),
            "model": {
                "parameters": model.parameters,
                "active_parameters": model.active_parameters,
                "how": model.how,
                "layers": model.layers,
                "heads": model.heads,
                "kv_heads": model.kv_heads,
                "head_dim": model.head_dim,
                "hidden": model.hidden,
                "experts": None if model.experts is None else msgspec.to_builtins(model.experts),
            },
            "load": {
                "weight_dtype": load.weights.name,
                "kv_dtype": load.kv.name,
                "compute_dtype": load.compute.name,
                "context_tokens": load.context_tokens,
                "concurrency": load.concurrency,
                "training": load.training,
                "overhead_bytes": load.overhead_bytes,
                "offload": load.offload,
                "host_bytes_per_s": load.host_bytes_s,
                "tensor_parallel": load.tensor_parallel,
                "link_bytes_per_s": load.link_bytes_s,
                "collective_latency_s": load.latency_s,
            },
            "needs": {
                "weights_bytes": weights_bytes(model, load),
                "kv_bytes_per_token": kv_bytes_per_token(model, load),
                "kv_bytes": None if load.training else _kv_bytes(report),
                "overhead_bytes_each": load.overhead_bytes,
                "one_device_bytes": need_bytes(model, load),
            },
            "answers": [_answer(answer) for answer in report.answers],
            "choices": [_choice(choice) for choice in report.choices],
            "assumptions": list(phrases.assumptions(model, load)),
        }
    )


def _kv_bytes(report: Report) -> float | None:
    per_token = kv_bytes_per_token(report.model, report.load)
    return None if per_token is None else per_token * report.load.context_tokens * report.load.concurrency


def _answer(answer: Answer) -> dict[str, Any]:
    product, books, peak = answer.product, answer.books, answer.peak
    return {
        "target": product.target,
        "product": product.name,
        "devices_in_product": product.devices,
        "memory_bytes": product.memory_bytes,
        "bandwidth_bytes_per_s": product.bandwidth_bytes_s,
        "peak": None if peak is None else {"dtype": peak[0], "dense_flop_per_s": peak[1]},
        "ridge_flop_per_byte": answer.ridge,
        "interconnect": product.interconnect or None,
        "fits": answer.fits,
        "devices": answer.devices,
        "pieces": answer.pieces,
        "devices_by_memory_alone": answer.by_memory_alone,
        "each_device": None
        if books is None
        else {
            "weights_bytes": books.weights,
            "kv_bytes": books.kv_cache,
            "overhead_bytes": books.overhead,
            "total_bytes": books.total,
            "left_bytes": books.left,
        },
        "sequences": answer.sequences,
        "decode": None if answer.decode is None else _phase(answer.decode),
        "prefill": None if answer.prefill is None else _phase(answer.prefill),
        "training_tokens_per_s": answer.training_tokens_per_s,
        "remarks": list(answer.remarks),
        "note": product.note,
        "cites": [{"title": cite.title, "url": cite.url, "seen": cite.seen} for cite in product.cites],
    }


def _phase(phase: Phase) -> dict[str, Any]:
    return {
        "flop": phase.work.flop,
        "bytes": phase.work.bytes,
        "intensity_flop_per_byte": phase.work.intensity,
        "compute_s": phase.compute_s,
        "memory_s": phase.memory_s,
        "host_s": phase.host_s,
        "exchange_s": phase.link_s,
        "floor_s": phase.floor_s,
        "bound": phase.bound,
        "tokens_per_s": phase.tokens_per_s if phase.tokens_per_s is None or math.isfinite(phase.tokens_per_s) else None,
    }


def _choice(choice: Choice) -> dict[str, Any]:
    return {
        "purpose": choice.purpose,
        "target": choice.answer.product.target,
        "product": choice.answer.product.name,
        "pieces": choice.answer.pieces,
        "devices": choice.answer.devices,
        "price_per_hour": choice.price_per_hour,
        "why": choice.why,
    }
