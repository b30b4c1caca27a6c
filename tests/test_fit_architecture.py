"""Parameters counted from a config.json are the published ones; what cannot be counted is not guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portlint.fit.architecture import FAMILIES, ArchitectureError, Model, read


def shape(
    hidden: int, layers: int, heads: int, kv_heads: int, size: int, vocabulary: int, **more: Any
) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": size,
        "vocab_size": vocabulary,
        **more,
    }


LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
LLAMA_3_8B = shape(4096, 32, 32, 8, 14_336, 128_256, model_type="llama", torch_dtype="bfloat16")
MIXTRAL = shape(4096, 32, 32, 8, 14_336, 32_000, model_type="mixtral", num_local_experts=8, num_experts_per_tok=2)
GPT_OSS_20B = shape(
    2880, 24, 64, 8, 2880, 201_088, model_type="gpt_oss", head_dim=64, num_local_experts=32, num_experts_per_tok=4,
    attention_bias=True, sliding_window=128, quantization_config={"quant_method": "mxfp4"},
)  # fmt: skip
DEEPSEEK_V3 = shape(
    7168, 61, 128, 128, 18_432, 129_280, model_type="deepseek_v3", q_lora_rank=1536, n_routed_experts=256,
    n_shared_experts=1, num_experts_per_tok=8, moe_intermediate_size=2048, first_k_dense_replace=3,
    num_nextn_predict_layers=1, **LATENT,
)  # fmt: skip

PUBLISHED = {
    "Llama-2-7B": (shape(4096, 32, 32, 32, 11_008, 32_000, model_type="llama"), 6_738_415_616),
    "Llama-3-8B": (LLAMA_3_8B, 8_030_261_248),
    "Mistral-7B": (shape(4096, 32, 32, 8, 14_336, 32_000, model_type="mistral"), 7_241_732_096),
    "Phi-3-mini": (shape(3072, 32, 32, 32, 8192, 32_064, model_type="phi3"), 3_821_079_552),
    "Qwen2-7B": (shape(3584, 28, 28, 4, 18_944, 152_064, model_type="qwen2"), 7_615_616_512),
    "Qwen2-0.5B": (
        shape(896, 24, 14, 2, 4864, 151_936, model_type="qwen2", tie_word_embeddings=True),
        494_032_768,
    ),
    "Qwen3-8B": (shape(4096, 36, 32, 8, 12_288, 151_936, model_type="qwen3", head_dim=128), 8_190_735_360),
    "Gemma-7B": (shape(3072, 28, 16, 16, 24_576, 256_000, model_type="gemma", head_dim=256), 8_537_680_896),
    "Gemma-2-9B": (shape(3584, 42, 16, 8, 14_336, 256_000, model_type="gemma2", head_dim=256), 9_241_705_984),
    "Gemma-3-1B": (shape(1152, 26, 4, 1, 6912, 262_144, model_type="gemma3_text", head_dim=256), 999_885_952),
    "Mixtral-8x7B": (MIXTRAL, 46_702_792_704),
    "OLMoE-1B-7B": (
        shape(2048, 16, 16, 16, 1024, 50_304, model_type="olmoe", num_experts=64, num_experts_per_tok=8),
        6_919_161_856,
    ),
    "Qwen1.5-MoE-A2.7B": (
        shape(
            2048, 24, 16, 16, 5632, 151_936, model_type="qwen2_moe", num_experts=60, num_experts_per_tok=4,
            moe_intermediate_size=1408, shared_expert_intermediate_size=5632, decoder_sparse_step=1,
        ),
        14_315_784_192,
    ),
    "Qwen3-30B-A3B": (
        shape(
            2048, 48, 32, 4, 6144, 151_936, model_type="qwen3_moe", head_dim=128, num_experts=128,
            num_experts_per_tok=8, moe_intermediate_size=768, mlp_only_layers=[],
        ),
        30_532_122_624,
    ),
    "gpt-oss-20b": (GPT_OSS_20B, 20_914_757_184),
    "DeepSeek-V2-Lite": (
        shape(
            2048, 27, 16, 16, 10_944, 102_400, model_type="deepseek_v2", q_lora_rank=None, n_routed_experts=64,
            n_shared_experts=2, num_experts_per_tok=6, moe_intermediate_size=1408, first_k_dense_replace=1, **LATENT,
        ),
        15_706_484_224,
    ),
    "DeepSeek-V3": (DEEPSEEK_V3, 671_026_419_200),
}  # fmt: skip


def model(path: Path, fields: object, parameters: float | None = None) -> Model:
    file = path / "config.json"
    file.write_text(fields if isinstance(fields, str) else json.dumps(fields), encoding="utf-8")
    return read(file, parameters)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_count_is_the_published_one(name: str, tmp_path: Path) -> None:
    fields, published = PUBLISHED[name]
    found = model(tmp_path, fields)
    assert found.parameters == published
    assert str(fields["model_type"]) in found.how


def test_every_family_is_held_to_a_published_count() -> None:
    assert {fields["model_type"] for fields, _ in PUBLISHED.values()} == set(FAMILIES)


@pytest.mark.parametrize(("fields", "billions"), [(LLAMA_3_8B, 8.03), (MIXTRAL, 12.88), (DEEPSEEK_V3, 37.55)])
def test_a_token_meets_some_of_the_experts(fields: dict[str, Any], billions: float, tmp_path: Path) -> None:
    assert round(model(tmp_path, fields).active_parameters / 1e9, 2) == billions


def test_what_the_cache_needs_is_read_as_well(tmp_path: Path) -> None:
    found = model(tmp_path, LLAMA_3_8B)
    assert (found.layers, found.heads, found.kv_heads, found.head_dim, found.hidden) == (32, 32, 8, 128, 4096)
    assert found.kv_values == 2 * 8 * 128
    assert found.dtype == "bf16"
    assert found.notes == ()


def test_latent_attention_caches_one_vector_for_all_heads(tmp_path: Path) -> None:
    found = model(tmp_path, DEEPSEEK_V3)
    assert (found.kv_heads, found.kv_values) == (1, 512 + 64)
    assert found.attention_dim == (192 + 128) / 2
    assert any("further tokens" in note for note in found.notes)


def test_experts_alone_are_quantized_to_mxfp4(tmp_path: Path) -> None:
    found = model(tmp_path, GPT_OSS_20B)
    assert found.dtype == "mxfp4"
    narrow = found.parameters - found.wide_parameters
    assert round((narrow * (0.5 + 1 / 32) + found.wide_parameters * 2) / 1e9, 1) == 13.8  # the size of its files
    assert any("128 tokens" in note for note in found.notes)


@pytest.mark.parametrize(
    ("quantized", "expected"),
    [
        ({"quant_method": "gptq", "bits": 4}, "int4"),
        ({"quant_method": "awq", "bits": 8}, "int8"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "hqq"}, None),
        ({"quant_method": "gptq", "bits": 3}, None),
    ],
)
def test_the_dtype_of_quantized_weights(quantized: dict[str, Any], expected: str | None, tmp_path: Path) -> None:
    assert model(tmp_path, {**LLAMA_3_8B, "quantization_config": quantized}).dtype == expected


def test_biases_are_counted_where_the_file_has_them(tmp_path: Path) -> None:
    plain = model(tmp_path, LLAMA_3_8B).parameters
    biased = model(tmp_path, {**LLAMA_3_8B, "attention_bias": True, "mlp_bias": True}).parameters
    assert biased - plain == 32 * (4096 + 2 * 1024 + 4096 + 2 * 14_336 + 4096)


def test_a_model_with_pictures_is_described_by_its_text_part(tmp_path: Path) -> None:
    found = model(tmp_path, {"model_type": "unknown", "text_config": LLAMA_3_8B})
    assert found.parameters == 8_030_261_248


def test_a_given_number_makes_up_for_an_unknown_type(tmp_path: Path) -> None:
    fields = {"model_type": "mine", "num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 512}
    found = model(tmp_path, fields, 1e9)
    assert (found.parameters, found.how, found.kv_heads, found.head_dim) == (1e9, "given", 8, 64)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("{", "is not JSON: line 1"),
        ("[" * 100_000, "is not JSON"),
        ('{"vocab_size": ' + "9" * 5000 + "}", "is not JSON"),
        ("[]", "no JSON object"),
        ({"model_type": "bert"}, "'bert' cannot be counted; give --params"),
        ({}, "None cannot be counted; give --params"),
        ({"model_type": ["llama"]}, "cannot be counted"),
        ({"model_type": "llama"}, "there is no 'hidden_size'"),
        ({**LLAMA_3_8B, "num_hidden_layers": -1}, "'num_hidden_layers' is -1, not a count"),
        ({**LLAMA_3_8B, "vocab_size": 1.5}, "'vocab_size' is 1.5"),
        ({**LLAMA_3_8B, "vocab_size": True}, "'vocab_size' is True"),
        ({**LLAMA_3_8B, "num_attention_heads": 30}, "30 heads do not divide the hidden size 4096"),
        ({**MIXTRAL, "num_experts_per_tok": 9}, "9 of 8 experts"),
        ({**DEEPSEEK_V3, "kv_lora_rank": None}, "there is no 'kv_lora_rank'"),
    ],
)
def test_a_file_that_cannot_be_used_is_explained(fields: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(ArchitectureError) as caught:
        model(tmp_path, fields)
    assert said in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArchitectureError, match="No such file"):
        read(tmp_path / "config.json")
