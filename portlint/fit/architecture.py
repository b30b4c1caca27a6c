"""How large a model is: read off a Hugging Face `config.json`, parameter by parameter, or said by the user.

Only families whose layers are known here are counted; for any other, the number of parameters has to be given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from portlint.fit.dtypes import UnknownDtype, dtype
from portlint.mistake import Mistake


class ArchitectureError(Mistake):
    """A description of a model that cannot be used; the message says what is missing."""


class Experts(msgspec.Struct, frozen=True):
    """The routed experts of a mixture."""

    count: int
    """in each layer that has them"""
    per_token: int
    """how many a token is sent to"""
    parameters_each: float
    """of one expert, over all layers"""


class Model(msgspec.Struct, frozen=True):
    """What the arithmetic needs of a model. None is what nobody said."""

    parameters: float
    how: str
    """where the number of parameters comes from"""
    active_parameters: float
    """that one token is multiplied with: fewer than all, where there are experts"""
    layers: int | None = None
    heads: int | None = None
    """query heads"""
    kv_heads: int | None = None
    head_dim: int | None = None
    attention_dim: float | None = None
    """the mean width of the two products of attention in one head; the head dimension, in most models"""
    kv_values: int | None = None
    """numbers that a layer caches for each token"""
    hidden: int | None = None
    """numbers of an activation, per token"""
    experts: Experts | None = None
    dtype: str | None = None
    """of the weights, as the file says"""
    wide_parameters: float = 0
    """that stay in 16 bits where the others are quantized"""
    notes: tuple[str, ...] = ()
    """what the numbers leave out or assume"""


class _Family(msgspec.Struct, frozen=True):
    """What sets the layers of a model type apart from Llama's; configuration keys as Transformers spells them."""

    qkv_bias: bool = False
    output_bias: bool = False
    head_norms: bool = False
    """each layer normalizes queries and keys, over a head"""
    wide_norms: bool = False
    """or over all heads"""
    norms: int = 2
    """in each layer, over the hidden size"""
    tied: bool = False
    """input and output embedding are one, unless the file says otherwise"""
    experts_key: str = ""
    expert_size_key: str = "moe_intermediate_size"
    expert_bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False
    sinks: bool = False
    """a number per query head that attention may attend to"""
    latent: bool = False
    """multi-head latent attention: the cache holds one compressed vector per token"""


_FAMILIES: Mapping[str, _Family] = {
    "llama": _Family(),
    "mistral": _Family(),
    "phi3": _Family(),
    "qwen2": _Family(qkv_bias=True),
    "qwen3": _Family(head_norms=True),
    "gemma": _Family(tied=True),
    "gemma2": _Family(tied=True, norms=4),
    "gemma3_text": _Family(tied=True, norms=4, head_norms=True),
    "mixtral": _Family(experts_key="num_local_experts", expert_size_key="intermediate_size"),
    "olmoe": _Family(experts_key="num_experts", expert_size_key="intermediate_size", wide_norms=True),
    "qwen2_moe": _Family(qkv_bias=True, experts_key="num_experts", shared_gate=True),
    "qwen3_moe": _Family(head_norms=True, experts_key="num_experts"),
    "gpt_oss": _Family(
        qkv_bias=True,
        output_bias=True,
        sinks=True,
        experts_key="num_local_experts",
        expert_size_key="intermediate_size",
        expert_bias=True,
        router_bias=True,
    ),
    "deepseek_v2": _Family(latent=True, experts_key="n_routed_experts"),
    "deepseek_v3": _Family(latent=True, experts_key="n_routed_experts", router_bias=True),
}

FAMILIES = tuple(_FAMILIES)
"""the model types whose parameters are counted"""


class _Config:
    """The fields of a configuration file, each checked as it is asked for."""

    def __init__(self, path: str, fields: Mapping[str, Any]) -> None:
        self.path = path
        self.fields = fields

    def count(self, key: str, least: int = 1) -> int | None:
        """A whole number of at least `least`, or None where the key is missing or null."""
        value = self.fields.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 10**9:
            raise ArchitectureError(f"{self.path}: '{key}' is {value!r}, not a count.")
        return value

    def need(self, key: str) -> int:
        """A count that must be there."""
        value = self.count(key)
        if value is None:
            raise ArchitectureError(
                f"{self.path}: there is no '{key}', which the number of parameters depends on; give --params instead."
            )
        return value

    def flag(self, key: str, otherwise: bool) -> bool:
        """A truth value."""
        value = self.fields.get(key)
        return otherwise if value is None else bool(value)


def read(path: Path, parameters: float | None = None) -> Model:
    """The model that a `config.json` describes, with `parameters` of them if given.

    Raises ArchitectureError where the file cannot be read, or its parameters cannot be counted and are not given.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ArchitectureError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ArchitectureError(f"{path} is not UTF-8 text, so no config.json.") from error
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a plain ValueError
        where = f": line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
        raise ArchitectureError(f"{path} is not JSON{where}.") from error
    if not isinstance(fields, dict):
        raise ArchitectureError(f"{path} holds no JSON object, so it is no config.json.")
    inner = fields.get("text_config")
    return _model(_Config(str(path), {**fields, **inner} if isinstance(inner, dict) else fields), parameters)


def _model(config: _Config, given: float | None) -> Model:
    kind = config.fields.get("model_type")
    family = _FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None and given is None:
        raise ArchitectureError(
            f"{config.path}: the parameters of model type {kind!r} cannot be counted; give --params. Counted are"
            f" {', '.join(FAMILIES)}."
        )
    family = family or _Family()
    heads, hidden = config.count("num_attention_heads"), config.count("hidden_size")
    head_dim = config.count("head_dim")
    if head_dim is None and heads and hidden:
        if hidden % heads:
            raise ArchitectureError(f"{config.path}: {heads} heads do not divide the hidden size {hidden}.")
        head_dim = hidden // heads
    kv_heads = config.count("num_key_value_heads") or heads
    kv_values = 2 * kv_heads * head_dim if kv_heads and head_dim else None
    attention_dim: float | None = head_dim
    if family.latent:
        kv_heads, kv_values = 1, config.need("kv_lora_rank") + config.need("qk_rope_head_dim")
        head_dim = config.need("qk_nope_head_dim") + config.need("qk_rope_head_dim")
        attention_dim = (head_dim + config.need("v_head_dim")) / 2
    if given is None:
        parameters, experts = _counted(config, family)
        how = f"counted from {config.path} as {kind}"
    else:
        parameters, experts, how = given, None, "given"
    stored, wide, notes = _storage(config, parameters if given is None else None, experts, family)
    return Model(
        parameters,
        how,
        parameters - ((experts.count - experts.per_token) * experts.parameters_each if experts else 0),
        config.count("num_hidden_layers"),
        heads,
        kv_heads,
        head_dim,
        attention_dim,
        kv_values,
        hidden,
        experts,
        stored,
        wide,
        (*notes, *_notes(config, family)),
    )


def _counted(config: _Config, family: _Family) -> tuple[float, Experts | None]:
    """All parameters, and the experts among them."""
    hidden, layers = config.need("hidden_size"), config.need("num_hidden_layers")
    sparse = [layer for layer in range(layers) if _is_sparse(config, family, layer)]
    dense = layers - len(sparse)
    total = _embedding(config, family) + hidden + layers * (_attention(config, family) + family.norms * hidden)
    if dense:
        total += dense * (3 * hidden * config.need("intermediate_size") + _mlp_bias(config))
    if not sparse:
        return total, None
    count, size = config.need(family.experts_key), config.need(family.expert_size_key)
    per_token = config.count("num_experts_per_tok") or config.need("experts_per_token")
    if per_token > count:
        raise ArchitectureError(f"{config.path}: a token cannot be sent to {per_token} of {count} experts.")
    each = 3 * hidden * size + (2 * size + hidden if family.expert_bias else 0)
    shared = config.count("shared_expert_intermediate_size", 0) or (config.count("n_shared_experts", 0) or 0) * size
    router = hidden * count + (count if family.router_bias else 0)
    total += len(sparse) * (count * each + router + 3 * hidden * shared + (hidden if family.shared_gate else 0))
    return total, Experts(count, per_token, len(sparse) * each)


def _is_sparse(config: _Config, family: _Family, layer: int) -> bool:
    """Whether a layer has experts in place of one MLP."""
    only = config.fields.get("mlp_only_layers")
    if not family.experts_key or (isinstance(only, list) and layer in only):
        return False
    if family.latent:
        first = config.count("first_k_dense_replace", 0) or 0
        return layer >= first and layer % (config.count("moe_layer_freq") or 1) == 0
    return (layer + 1) % (config.count("decoder_sparse_step") or 1) == 0


def _embedding(config: _Config, family: _Family) -> int:
    tables = 1 if config.flag("tie_word_embeddings", family.tied) else 2
    return tables * config.need("vocab_size") * config.need("hidden_size")


def _attention(config: _Config, family: _Family) -> int:
    """The parameters of one layer's attention."""
    hidden, heads = config.need("hidden_size"), config.need("num_attention_heads")
    if family.latent:
        return _latent_attention(config, hidden, heads)
    kv_heads = config.count("num_key_value_heads") or heads
    head_dim = config.count("head_dim") or hidden // heads
    queries, keys = heads * head_dim, kv_heads * head_dim
    total = 2 * hidden * queries + 2 * hidden * keys
    biased = config.flag("attention_bias", False)
    if family.qkv_bias or biased:
        total += queries + 2 * keys
    if family.output_bias or (biased and not family.qkv_bias):
        total += hidden
    if family.head_norms:
        total += 2 * head_dim
    if family.wide_norms:
        total += queries + keys
    return total + (heads if family.sinks else 0)


def _latent_attention(config: _Config, hidden: int, heads: int) -> int:
    nope, rope, value = config.need("qk_nope_head_dim"), config.need("qk_rope_head_dim"), config.need("v_head_dim")
    rank, query_rank = config.need("kv_lora_rank"), config.count("q_lora_rank")
    queries = heads * (nope + rope)
    total = hidden * query_rank + query_rank + query_rank * queries if query_rank else hidden * queries
    return total + hidden * (rank + rope) + rank + rank * heads * (nope + value) + heads * value * hidden


def _mlp_bias(config: _Config) -> int:
    return 2 * config.need("intermediate_size") + config.need("hidden_size") if config.flag("mlp_bias", False) else 0


_QUANTIZED = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "mxfp4", "gptq": "int", "awq": "int"}
"""methods of a `quantization_config` -> the dtype of the weights, `int` with the bits that the file says"""


def _storage(
    config: _Config, counted: float | None, experts: Experts | None, family: _Family
) -> tuple[str | None, float, tuple[str, ...]]:
    """The dtype of the weights, how many parameters stay in 16 bits beside it, and what to say about that."""
    quantized = config.fields.get("quantization_config")
    if not isinstance(quantized, dict):
        word = config.fields.get("torch_dtype") or config.fields.get("dtype")
        try:
            return (dtype(word).name if isinstance(word, str) else None), 0, ()
        except UnknownDtype:
            return None, 0, ()
    method = quantized.get("quant_method")
    stored = _QUANTIZED.get(method) if isinstance(method, str) else None
    if stored == "int":
        bits = quantized.get("bits", 4)
        stored = {4: "int4", 8: "int8"}.get(bits) if isinstance(bits, int) else None
    if stored is None or counted is None:
        return stored, 0, ()
    if method == "mxfp4" and experts:
        wide, what = counted - experts.count * experts.parameters_each, "everything but the experts stays"
    else:
        wide, what = _embedding(config, family), "the embeddings stay"
    return stored, wide, (f"The file says that weights are quantized ({method}); {what} in 16 bits.",)


def _notes(config: _Config, family: _Family) -> tuple[str, ...]:
    notes = []
    window = config.count("sliding_window", 0) if config.flag("use_sliding_window", True) else None
    if window:
        notes.append(f"The sliding window of {window:,} tokens is not used to shrink the KV cache: an upper bound.")
    if family.latent:
        notes.append("The KV cache is the compressed one of latent attention, which every device keeps whole.")
    if config.count("num_nextn_predict_layers", 0):
        notes.append("Layers that predict further tokens are not counted.")
    return tuple(notes)
