"""`portlint fit`: what it says of every product, what it refuses, and its three formats."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from portlint.cli import main
from portlint.fit import figures, phrases
from portlint.fit.architecture import Experts, Model
from portlint.fit.assess import Load, assess, books, choices, degrees
from portlint.fit.dtypes import DTYPES, UnknownDtype, dtype
from portlint.fit.products import Product, products
from portlint.target import load, shipped

MODEL = {"--params": "7e9", "--weight-dtype": "bf16", "--layers": "32", "--kv-heads": "8", "--head-dim": "128"}
LOAD = {"--kv-dtype": "bf16", "--context": "4096", "--concurrency": "32"}
BF16 = DTYPES["bf16"]


def run(*arguments: str, **changed: str | None) -> Result:
    """The command for the model above; `params="9e9"` changes an option, None leaves it out."""
    options: dict[str, str | None] = {**MODEL, **LOAD, "--target": "hopper"}
    options.update({f"--{name.replace('_', '-')}": value for name, value in changed.items()})
    words = [word for name, value in options.items() if value is not None for word in (name, value)]
    return CliRunner().invoke(main, ["fit", *words, *arguments])


def answered(*arguments: str, **changed: str | None) -> dict[str, Any]:
    """The JSON of a command that must not fail."""
    result = run(*arguments, "--output-format", "json", **changed)
    assert result.exit_code in (0, 1), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def product(**changed: Any) -> Product:
    figures = {
        "name": "one", "target": "mine", "title": "Mine", "memory_bytes": 80e9, "memory_text": "80 GB",
        "bandwidth_bytes_s": 3.35e12, "peaks_flop_s": {"bf16": 989e12}, "cites": (),
    }  # fmt: skip
    return Product(**{**figures, **changed})


def model(**changed: Any) -> Model:
    shape = {"layers": 32, "kv_heads": 8, "head_dim": 128, "kv_values": 2048}
    return Model(**{"parameters": 7e9, "how": "given", "active_parameters": 7e9, **shape, **changed})


def test_the_command_that_the_design_spells_out() -> None:
    found = answered()
    assert (found["version"], found["tool"]["name"], found["targets"]) == (1, "portlint", ["hopper"])
    assert found["needs"]["weights_bytes"] == 14e9
    assert found["needs"]["kv_bytes_per_token"] == 131_072
    assert round(found["needs"]["kv_bytes"] / 1e9, 2) == 17.18
    h100 = found["answers"][0]
    assert (h100["product"], h100["fits"], h100["devices"], h100["sequences"]) == ("H100 SXM", True, 1, 122)
    assert round(h100["ridge_flop_per_byte"]) == 295
    assert h100["decode"]["bound"] == "memory"
    assert h100["prefill"]["bound"] == "compute"
    assert h100["decode"]["floor_s"] == pytest.approx((14e9 + 32 * 4096 * 131_072) / 3.35e12)


def test_the_shape_of_the_json() -> None:
    found = answered()
    shape = {key: sorted(value) if isinstance(value, dict) else type(value).__name__ for key, value in found.items()}
    assert shape == {
        "version": "int",
        "tool": ["name", "version"],
        "targets": "list",
        "model": sorted(
            "parameters active_parameters how layers heads kv_heads head_dim hidden experts".split()
        ),
        "load": sorted(
            "weight_dtype kv_dtype compute_dtype context_tokens concurrency training overhead_bytes offload"
            " host_bytes_per_s tensor_parallel link_bytes_per_s collective_latency_s".split()
        ),
        "needs": sorted(
            "weights_bytes kv_bytes_per_token kv_bytes overhead_bytes_each one_device_bytes".split()
        ),
        "answers": "list",
        "choices": "list",
        "assumptions": "list",
    }  # fmt: skip
    assert sorted(found["answers"][0]) == sorted(
        "target product devices_in_product memory_bytes bandwidth_bytes_per_s peak ridge_flop_per_byte interconnect"
        " fits devices pieces devices_by_memory_alone each_device sequences decode prefill training_tokens_per_s"
        " remarks note cites".split()
    )
    assert sorted(found["answers"][0]["decode"]) == sorted(
        "flop bytes intensity_flop_per_byte compute_s memory_s host_s exchange_s floor_s bound tokens_per_s".split()
    )
    assert sorted(found["choices"][0]) == sorted("purpose target product pieces devices price_per_hour why".split())


def test_two_devices_of_80_gb_or_one_of_192() -> None:
    found = answered(
        "--target", "cdna3", params="70B", weight_dtype="fp8", layers="80", context="8192", product="H100 SXM"
    )
    assert [(one["product"], one["devices"]) for one in found["answers"]] == [("H100 SXM", 2)]
    large = answered(target="cdna3", params="70B", weight_dtype="fp8", layers="80", context="8192")
    assert large["answers"][0]["devices"] == 1


def test_overhead_counts_on_each_device() -> None:
    each = answered(overhead_gb="2.5")["answers"][0]["each_device"]
    assert (each["overhead_bytes"], each["left_bytes"]) == (2.5e9, pytest.approx(80e9 - 31.18e9 - 2.5e9, rel=1e-3))


def test_heads_are_not_cut() -> None:
    """Where the memory of three devices would do, eight heads need four."""
    answer = assess(model(parameters=100e9), Load(BF16, BF16, BF16), product())
    assert (answer.by_memory_alone, answer.devices) == (3, 4)
    assert "the memory of 3 would do, if all of it could be divided" in phrases.memory_line(
        answer, Load(BF16, BF16, BF16)
    )


@pytest.mark.parametrize(
    ("heads", "kv_heads", "expected"),
    [
        (None, 8, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]),
        (32, 8, [1, 2, 4, 8, 16, 32]),
        (28, 4, [1, 2, 4, 28]),
        (40, 40, [1, 2, 4, 5, 8, 10, 20, 40]),
        (8, 1, [1, 2, 4, 8]),
    ],
)
def test_the_degrees_over_which_attention_splits(heads: int | None, kv_heads: int, expected: list[int]) -> None:
    assert list(degrees(model(heads=heads, kv_heads=kv_heads), Load(BF16, BF16, BF16))) == expected


def test_a_head_that_is_kept_twice_takes_memory_twice() -> None:
    load_ = Load(BF16, BF16, BF16, concurrency=8)
    eight, sixteen = (books(model(), load_, 80e9, degree) for degree in (8, 16))
    assert sixteen.kv_cache == eight.kv_cache
    assert sixteen.weights == eight.weights / 2


def test_training_is_sharded_over_any_number_of_devices() -> None:
    found = answered("--training", layers=None, kv_heads=None, head_dim=None, overhead_gb="10")["answers"][0]
    assert (found["devices"], found["decode"], found["sequences"]) == (2, None, None)
    assert found["each_device"]["weights_bytes"] == 56e9
    assert found["training_tokens_per_s"] == pytest.approx(2 * 989e12 / (6 * 7e9))


def test_the_host_link_becomes_the_bound() -> None:
    found = answered(offload="0.1", params="8e9", concurrency="1", context="1")["answers"][0]
    assert found["decode"]["bound"] == "host link"
    assert found["decode"]["host_s"] == pytest.approx(0.025)
    assert round(found["decode"]["floor_s"] * 1e3, 1) == 29.3
    assert found["each_device"]["weights_bytes"] == pytest.approx(14.4e9)


def test_what_devices_tell_each_other_is_counted_where_the_link_is_known() -> None:
    changed = {"tensor_parallel": "4", "hidden": "4096", "link_gb_s": "50", "latency_us": "10"}
    found = answered(**changed)["answers"][0]
    assert round(found["decode"]["exchange_s"] * 1e3, 2) == 1.14
    silent = answered(tensor_parallel="4")
    assert silent["answers"][0]["decode"]["exchange_s"] is None
    assert any("--link-gb-s" in one for one in silent["assumptions"])
    text = " ".join(run(tensor_parallel="4").stdout.split())
    assert "Links between devices: NVLink 4: 450 GB/s each way (900 total) (ML engineering, network" in text
    assert "Links between" not in run(**changed).stdout


def test_a_degree_that_does_not_fit_says_which_would() -> None:
    result = run(target="ampere", context="20000", tensor_parallel="1")
    assert result.exit_code == 1
    assert "does not fit: 97.89 GB of 80.00 GB on one device, 17.89 GB too much" in result.stdout
    assert "It would fit on 2 of them." in result.stdout


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"context": "131072"}, "8 of them hold 11 of the 32 sequences"),
        ({"context": "99999999"}, "Not even one sequence of 99,999,999 tokens fits"),
        ({"overhead_gb": "30"}, "The overhead alone is larger than its memory."),
    ],
)
def test_why_nothing_fits(changed: dict[str, str], said: str) -> None:
    result = run(target="rdna3", product="RX 7900 XTX", **changed)
    assert result.exit_code == 1
    assert said in " ".join(result.stdout.split())


def test_experts_are_read_by_as_many_tokens_as_pick_them() -> None:
    experts = Experts(count=8, per_token=2, parameters_each=1e9)
    mixture = model(parameters=10e9, active_parameters=4e9, experts=experts)
    one, many = (
        assess(mixture, Load(BF16, BF16, BF16, concurrency=n), product(memory_bytes=1e12)).decode for n in (1, 1000)
    )
    assert one is not None
    assert many is not None
    cache = 4096 * 131_072
    assert one.work.bytes == pytest.approx(2 * 4e9 + cache)
    assert many.work.bytes == pytest.approx(2 * 10e9 + 1000 * cache)


def test_what_a_profile_does_not_say_is_not_known() -> None:
    found = answered(target="blackwell-rtx")
    by_name = {one["product"]: one for one in found["answers"]}
    assert by_name["RTX 5090"]["fits"] is None
    assert by_name["RTX 5090"]["devices"] is None
    assert by_name["RTX 5090"]["remarks"] == ["Not known: memory, so whether the model fits."]
    assert by_name["RTX PRO 6000"]["ridge_flop_per_byte"] is None
    assert found["choices"] == []
    assert run(target="blackwell-rtx").exit_code == 1


def test_a_missing_peak_leaves_the_floor_of_memory() -> None:
    found = answered(target="mps", product="M3 Ultra")["answers"][0]
    assert (found["peak"], found["decode"]["bound"], found["decode"]["compute_s"]) == (None, None, None)
    assert found["decode"]["floor_s"] == found["decode"]["memory_s"]


def test_the_peak_follows_the_type_in_which_products_are_taken() -> None:
    assert answered(weight_dtype="fp8")["answers"][0]["peak"] == {"dtype": "fp8", "dense_flop_per_s": 1979e12}
    assert answered(weight_dtype="int4")["answers"][0]["peak"]["dtype"] == "bf16"
    assert answered(weight_dtype="int8", compute_dtype="bf16")["answers"][0]["peak"]["dtype"] == "bf16"
    none = answered(weight_dtype="fp8", target="tpu-v5e")["answers"][0]
    assert none["peak"] is None
    assert none["remarks"] == ["Not known: dense fp8 peak (known are bf16, int8, int4; see --compute-dtype)."]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"weight_dtype": "fp8"}, "Products are taken in fp8, so activations are, too"),
        ({"weight_dtype": "int8", "compute_dtype": "bf16"}, "Weights are stored in int8 and multiplied in bf16."),
        ({"weight_dtype": "int4"}, "4-bit weights are widened to bf16"),
        ({"weight_dtype": "mxfp4"}, "an 8-bit scale for each 32 numbers"),
    ],
)
def test_how_weights_are_multiplied_is_an_assumption(changed: dict[str, str], said: str) -> None:
    assert any(said in one for one in answered(**changed)["assumptions"])


def test_two_dies_are_two_devices_of_half_the_memory() -> None:
    found = answered(target="cdna2", context="16384")["answers"]
    mi250x, mi210 = found[0], found[2]
    assert mi250x["memory_bytes"] == mi210["memory_bytes"] == 64 * 2**30
    assert (mi250x["devices"], mi250x["pieces"], mi210["pieces"]) == (2, 1, 2)
    assert mi250x["bandwidth_bytes_per_s"] == 1.64e12
    text = run(target="cdna2", context="16384").stdout
    assert "MI250X  128 GiB, 3.28 TB/s, 383 dense bf16 TFLOP/s, which are 2 devices" in text
    assert "fits on 2 devices (1 MI250X)" in text
    assert "cheapest that fits: 1 MI250 (cdna2)" in text


def test_the_cheapest_needs_fewest_devices_and_then_the_least() -> None:
    found = {one["purpose"]: one["product"] for one in answered("--target", "cdna3")["choices"]}
    assert found == {"cheapest": "H100 SXM", "decode": "MI325X", "prefill": "MI300X"}


def test_with_prices_the_lowest_one_wins() -> None:
    prices = ("--price", "h200=4.00", "--price", "MI300X = 3.5")
    (cheapest, *_) = answered("--target", "cdna3", *prices)["choices"]
    assert (cheapest["product"], cheapest["price_per_hour"]) == ("MI300X", 3.5)
    two = [assess(model(parameters=100e9), Load(BF16, BF16, BF16), product())]
    assert choices(two, Load(BF16, BF16, BF16), {"one": 2.0})[0].price_per_hour == 8.0


@pytest.mark.parametrize("name", list(shipped()))
@pytest.mark.parametrize("more", [(), ("--training",)], ids=["inference", "training"])
def test_every_shipped_target_is_answered(name: str, more: tuple[str, ...], tmp_path: Path) -> None:
    page = tmp_path / "fit.html"
    result = run(*more, "--html", str(page), target=name)
    assert result.exit_code in (0, 1), result.output
    for one in products(load(name)):
        assert one.name in result.stdout
        assert one.name in page.read_text(encoding="utf-8")
    assert "nan" not in result.stdout.lower().split()
    assert all((line == line.rstrip() and len(line) <= 100) or "http" in line for line in result.stdout.splitlines())


def test_figures_of_a_source_become_bytes_and_flop() -> None:
    by_name = {one.name: one for name in ("hopper", "cdna3") for one in products(load(name))}
    assert by_name["H100 SXM"].memory_bytes == 80e9
    assert by_name["MI300X"].memory_bytes == 192 * 2**30
    assert by_name["MI300X"].bandwidth_bytes_s == 5.3e12
    assert by_name["H100 SXM"].peaks_flop_s["bf16"] == 989e12
    assert all(cite.url for cite in by_name["H100 SXM"].cites)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"params": None}, "Give --params, such as --params 7e9, or --config"),
        ({"params": "-7e9"}, "'--params': -7e9 is not a number greater than 0"),
        ({"params": "0"}, "'--params': 0 is not"),
        ({"params": "1e300"}, "'--params': 1e300 is not a number greater than 0 and at most 1e+18"),
        ({"host_gb_s": "1e-300"}, "'--host-gb-s': 1e-300 is not"),
        ({"params": "nan"}, "'--params': nan is not"),
        ({"params": "inf"}, "'--params': inf is not"),
        ({"params": "seven"}, "'--params': 'seven' is not a number"),
        ({"params": "7q"}, "'--params': '7q' is not a number"),
        ({"params": "b"}, "'--params': 'b' is not a number"),
        ({"active_params": "8e9"}, "--active-params 8e+09 are more than"),
        ({"weight_dtype": None}, "Give --weight-dtype"),
        ({"weight_dtype": "bf17"}, "--weight-dtype: there is no dtype 'bf17'. Did you mean 'bf16'?"),
        ({"kv_dtype": "q9"}, "--kv-dtype: there is no dtype 'q9'. Known are fp32, tf32, bf16"),
        ({"compute_dtype": "x"}, "--compute-dtype: "),
        ({"layers": None}, "depends on --layers: give it"),
        ({"layers": None, "head_dim": None}, "depends on --layers, --head-dim: give them"),
        ({"layers": "0"}, "'--layers': '0' is not a whole number from 1 to 1,000,000,000"),
        ({"kv_heads": "2.5"}, "'--kv-heads': '2.5' is not a whole number"),
        ({"layers": "9" * 5000}, "is not a whole number"),
        ({"heads": "12"}, "--kv-heads 8 do not divide the 12 query heads"),
        ({"context": "0"}, "'--context'"),
        ({"concurrency": "-1"}, "'--concurrency'"),
        ({"overhead_gb": "-1"}, "'--overhead-gb': -1 is not a number at least 0"),
        ({"offload": "1.5"}, "'--offload': 1.5 is not a number at least 0 and at most 1"),
        ({"host_gb_s": "0"}, "'--host-gb-s'"),
        ({"tensor_parallel": "3"}, "--tensor-parallel 3 does not split 8 KV heads evenly"),
        ({"tensor_parallel": "16", "heads": "24"}, "does not split 8 KV heads and 24 query heads"),
        ({"link_gb_s": "50"}, "--link-gb-s needs --hidden"),
        ({"latency_us": "5"}, "--latency-us needs --link-gb-s"),
        ({"target": None}, "no target"),
        ({"target": "hoper"}, "Did you mean 'hopper'"),
        ({"product": "H20"}, "--product: the targets have no product 'H20'. Did you mean 'H200'?"),
        ({"product": "MI300X"}, "no product 'MI300X'. They have H100 SXM, H200."),
        ({"price": "H200"}, "--price is 'H200', not NAME=PRICE"),
        ({"price": "H300=4"}, "--price: the targets have no product 'H300'"),
        ({"price": "H200=free"}, "--price: 'free' is not a price"),
        ({"price": "H200=-1"}, "--price: '-1' is not a price"),
        ({"html": "/nowhere/fit.html"}, "--html: cannot write /nowhere/fit.html"),
        ({"config": "/nowhere/config.json"}, "cannot read /nowhere/config.json: No such file"),
    ],
)
def test_a_mistake_is_named(changed: Mapping[str, str | None], said: str) -> None:
    result = run(**changed)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert not result.stdout


@pytest.mark.parametrize(
    "changed",
    [
        {"params": "1e18", "layers": "1000000000", "kv_heads": "1000000000", "head_dim": "1000000000"},
        {"context": "1000000000", "concurrency": "1000000000", "heads": "8", "tensor_parallel": "1000000000"},
        {"params": "1e-9", "context": "1", "layers": "1", "kv_heads": "1", "head_dim": "1", "concurrency": "1"},
        {"offload": "1", "host_gb_s": "1e-9", "params": "1e12", "tensor_parallel": "8"},
    ],
)
def test_the_largest_and_the_smallest_numbers_stay_numbers(changed: dict[str, str], tmp_path: Path) -> None:
    result = run("--output-format", "json", "--html", str(tmp_path / "fit.html"), **changed)
    assert result.exit_code in (0, 1, 2)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert not re.search(r"\b(NaN|Infinity)\b", result.stdout)


def test_offload_is_not_for_training() -> None:
    assert "does not go with --training" in run("--training", offload="0.5").stderr


LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    return path


def test_a_configuration_file_says_it_all(config: Path) -> None:
    alone = dict.fromkeys(("params", "weight_dtype", "layers", "kv_heads", "head_dim"))
    found = answered(config=str(config), **alone)
    assert found["model"]["parameters"] == 8_030_261_248
    assert found["needs"]["kv_bytes_per_token"] == 131_072
    assert found["load"]["weight_dtype"] == "bf16"


def test_options_override_the_file(config: Path) -> None:
    alone = dict.fromkeys(("layers", "head_dim"))
    found = answered(config=str(config), params="9e9", weight_dtype="fp8", kv_heads="32", **alone)
    assert found["model"]["parameters"] == 9e9
    assert found["model"]["how"] == "given"
    assert found["needs"]["weights_bytes"] == 9e9
    assert found["needs"]["kv_bytes_per_token"] == 524_288


def test_a_file_that_is_not_json_is_a_users_mistake(config: Path) -> None:
    config.write_text("{")
    result = run(config=str(config), params=None)
    assert result.exit_code == 2
    assert f"{config} is not JSON: line 1" in result.stderr


@pytest.mark.parametrize(
    ("name", "expected"),
    [("BF16", "bf16"), ("torch.bfloat16", "bf16"), ("float8_e4m3fn", "fp8"), (" half ", "fp16")],
)
def test_dtypes_have_the_names_of_pytorch_as_well(name: str, expected: str) -> None:
    assert dtype(name).name == expected


def test_an_unknown_dtype_lists_the_known_ones() -> None:
    with pytest.raises(UnknownDtype, match=", ".join(DTYPES)):
        dtype("?")


PROFILE = """
name = "mine"
title = "My <b>machine</b>"
families = ["gpu"]
languages = ["cuda"]

[facts]

[products."a<i>\\u001b[31m"]
devices = 2
memory_gb = 160
bandwidth_tb_s = 2
dense_tflops = { bf16 = 500 }
cite = "manual"

[cites.manual]
title = "The manual <script>"
url = "javascript:alert(1)"
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(PROFILE)
    return path


def test_text_of_a_profile_is_escaped(own: Path, tmp_path: Path) -> None:
    page = tmp_path / "fit.html"
    result = run("--html", str(page), target=str(own))
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout
    html = page.read_text(encoding="utf-8")
    assert "\x1b" not in html
    assert "a&lt;i&gt;\\x1b[31m" in html
    assert "My &lt;b&gt;" in html
    assert 'href="javascript' not in html
    assert "<script" not in html


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("memory_gb = 160", 'memory_gb = "160"', "Expected `float"),
        ("memory_gb = 160", "memory_tb = 160", "memory_tb"),
        ("devices = 2", "devices = 0", "at least one device"),
        ("memory_gb = 160", "memory_gb = 0", "a figure is not positive"),
        ("{ bf16 = 500 }", "{ bf16 = nan }", "a figure is not positive"),
        ('cite = "manual"', 'cite = "folklore"', "cites folklore"),
        ('cite = "manual"', "cite = []", "cites nothing"),
        ('cite = "manual"', "", "cite"),
    ],
)
def test_a_product_that_is_not_well_formed_is_explained(own: Path, old: str, new: str, said: str) -> None:
    own.write_text(PROFILE.replace(old, new))
    result = run(target=str(own))
    assert result.exit_code == 2
    assert said in result.stderr
    assert str(own) in result.stderr


def test_a_target_without_products_has_nothing_to_fit_into(own: Path) -> None:
    own.write_text(PROFILE.split("[products", maxsplit=1)[0] + "[cites]")
    assert "names no product" in run(target=str(own)).stderr


VOID = {"meta", "line", "rect", "circle", "path", "br"}


class Page(HTMLParser):
    """The elements of a page, and whether they are nested as they must be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone(tmp_path: Path) -> None:
    file = tmp_path / "fit.html"
    run("--target", "rdna4", "--target", "tpu-v5e", "--html", str(file))
    text = file.read_text(encoding="utf-8")
    page = Page(text)
    tags = [tag for tag, _ in page.seen]
    assert not {"script", "link", "img", "iframe", "object"} & set(tags)
    assert not [attributes for _, attributes in page.seen if {"src", "srcset", "style"} & attributes.keys()]
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    assert tags.count("svg") == 3 + 3  # a bar and a roofline for each product with figures
    assert all(attributes.get("aria-label") for tag, attributes in page.seen if tag == "svg")
    targets = {attributes["id"] for _, attributes in page.seen if "id" in attributes}
    links = [str(attributes["href"]) for tag, attributes in page.seen if tag == "a"]
    assert {link[1:] for link in links if link.startswith("#")} <= targets


def test_a_training_page_has_no_roofline(tmp_path: Path) -> None:
    file = tmp_path / "fit.html"
    run("--training", "--html", str(file))
    text = file.read_text(encoding="utf-8")
    Page(text)
    assert "gradients, optimizer" in text
    assert "Roofline" not in text


def test_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    pages = []
    for name in ("a.html", "b.html"):
        run("--html", str(tmp_path / name))
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]
    assert run().stdout == run().stdout


def test_colour_is_added_and_nothing_else() -> None:
    plain, colored = run("--color", "never").stdout, run("--color", "always").stdout
    assert colored != plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


@settings(max_examples=60, deadline=None)
@given(
    parameters=st.floats(1e6, 2e12),
    layers=st.integers(1, 200),
    kv_heads=st.integers(1, 128),
    context=st.integers(1, 10**7),
    sequences=st.integers(1, 10**5),
    memory=st.floats(1e9, 1e12),
    bandwidth=st.floats(1e10, 1e14),
    peak=st.floats(1e11, 1e17),
    offload=st.floats(0, 1),
)
def test_figures_stay_inside_whatever_is_asked(
    parameters: float, layers: int, kv_heads: int, context: int, sequences: int, memory: float, bandwidth: float,
    peak: float, offload: float,
) -> None:  # fmt: skip
    one = product(memory_bytes=memory, bandwidth_bytes_s=bandwidth, peaks_flop_s={"bf16": peak})
    asked = model(
        parameters=parameters, active_parameters=parameters, layers=layers, kv_heads=kv_heads, kv_values=256 * kv_heads
    )
    load_ = Load(BF16, BF16, BF16, context, sequences, offload=offload)
    answer = assess(asked, load_, one)
    assert answer.fits is (answer.devices is not None)
    bar = figures.ledger_bar(answer, training=False)
    assert bar is not None
    assert all(-0.1 <= part.x <= part.x + part.width <= figures.BAR_WIDTH + 0.2 for part in bar.parts)
    roof = figures.roofline(answer)
    if roof is None:
        assert answer.fits is False
        return
    assert answer.sequences is not None
    assert answer.sequences >= sequences
    for point in roof.points:
        assert figures.LEFT <= point.x <= figures.RIGHT
        assert figures.TOP <= point.y <= figures.BOTTOM
    numbers = [float(text) for text in re.findall(r"-?[\d.]+", roof.roof)]
    assert len(numbers) == 6
    assert all(math.isfinite(number) for number in numbers)


FORMULAS = ("ledger", "roofline", "collectives", "measured", "dtypes")


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_know_no_targets(name: str) -> None:
    text = (Path(figures.__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    imported = {node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    assert {module for module in imported if module.startswith("portlint")} <= {"portlint.mistake"}
